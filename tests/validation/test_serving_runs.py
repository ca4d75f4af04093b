"""Real requests on vLLM 0.19 against the simulator; nothing here is fitted to them.

The same requests are replayed twice: with step times of a plain roofline whose efficiencies were
set beforehand (arithmetic 0.8, memory 0.9, 1 ms a step), which shows what the scheduling leaves,
and with the calibrated step times, which is what users get. Budgets may only fall.
"""

import csv
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.simulation.simulation import EngineRequest, SimulateRequest
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.performance.kernels.step import StepConstants
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.inference.step_table import step_table
from gpuplan.studies.inference.work import setup_work
from gpuplan.studies.naming import model_named
from gpuplan.studies.replay.replicas import fleet_of
from shared_data import shared_file

pytestmark = pytest.mark.shared

PLAIN = StepConstants(
    gemm_compute_frac=0.8, gemm_read_frac=0.9, gemm_warm_tokens=0.0, gemm_serial_frac=0.0,
    expert_serial_frac=0.0, expert_compute_frac=1.0, expert_read_frac=1.0, expert_pad_tokens=0.0,
    expert_uneven_frac=0.0,
    expert_evenness=1e6, cache_read_frac=0.9, attention_compute_frac=0.8,
    activation_read_frac=1e9, sample_s=0.0, operator_s=0.0, launch_s=0.0,
    reduce_sync_s=0.0, reduce_time_frac=0.0,
    host_s=1e-3, host_sequence_s=0.0, host_hidden_frac=0.0, slowdown_frac=1.0,
)  # fmt: skip
MEASURES = {"ttft_s": "ttft_ms", "tpot_s": "tpot_ms", "e2e_s": "e2e_ms"}
# Blocks that the engine logged; where it logged none, what the memory model leaves.
N_BLOCKS = {"RTX4090": 2588, "RTXPRO6000": None}
SCHEDULING_BUDGETS = {
    "RTX4090": {"ttft_s": 0.05, "tpot_s": 0.03, "e2e_s": 0.04},
    "RTXPRO6000": {"ttft_s": 0.40, "tpot_s": 0.18, "e2e_s": 0.23},
}
BUDGETS = {
    "RTX4090": {"ttft_s": 0.10, "tpot_s": 0.10, "e2e_s": 0.10},
    "RTXPRO6000": {"ttft_s": 0.10, "tpot_s": 0.10, "e2e_s": 0.10},
}
Rows = list[dict[str, str]]


def rows_of(gpu: str) -> Rows:
    with shared_file("measured/vllm_requests.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["gpu"] == gpu]
    return sorted(rows, key=lambda row: float(row["arrival_s"]))


def column(rows: Rows, name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def replayed(rows: Rows) -> tuple[ServingSetup, Requests, Fleet]:
    requests = requests_of(
        column(rows, "arrival_s"), column(rows, "input_toks"), column(rows, "output_toks")
    )
    first = rows[0]
    load = LoadRequest(regime="poisson", input_tokens=1000, output_tokens=500, requests_per_s=1.0)
    setup, _ = setup_of(
        model_named(first["model"], None), find_accelerator(first["gpu"], read_catalog()),
        PredictRequest(tp=1, engine_version=first["vllm"], load=load),
    )  # fmt: skip
    settings = replace(
        setup.settings, max_sequences=int(first["max_num_seqs"]),
        max_batch_tokens=int(first["max_num_batched_tokens"]),
    )  # fmt: skip
    setup = replace(setup, settings=settings)
    asked = SimulateRequest(tp=1, scheduler=EngineRequest(n_blocks=N_BLOCKS[first["gpu"]]))
    return setup, requests, fleet_of(setup, requests, asked)[0]


def errors(rows: Rows, outcome: Outcome) -> dict[str, float]:
    """Relative error of every mean."""
    return {
        name: float(getattr(outcome.times, name).mean() / column(rows, measured).mean() * 1e3 - 1)
        for name, measured in MEASURES.items()
    }


@pytest.mark.parametrize("gpu", sorted(N_BLOCKS))
def test_scheduling_is_the_engines(gpu: str):
    rows = rows_of(gpu)
    setup, requests, fleet = replayed(rows)
    limits = fleet.limits
    table = step_table(
        setup_work(setup), PLAIN,
        max_tokens=limits.max_batch_tokens, max_sequences=limits.max_sequences,
    )  # fmt: skip
    found = errors(rows, simulate_serving(requests, replace(fleet, table=table)))
    over = {k: v for k, v in found.items() if abs(v) > SCHEDULING_BUDGETS[gpu][k]}
    assert not over, found


@pytest.mark.parametrize("gpu", sorted(N_BLOCKS))
def test_users_get_no_worse_than_the_budget(gpu: str):
    rows = rows_of(gpu)
    _, requests, fleet = replayed(rows)
    found = errors(rows, simulate_serving(requests, fleet))
    over = {k: v for k, v in found.items() if abs(v) > BUDGETS[gpu][k]}
    assert not over, found
