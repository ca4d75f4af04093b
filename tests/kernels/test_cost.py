"""The simulator's iteration time is the performance room's, to 1e-9, for networks of every kind."""

import numpy as np
import pytest

from gpuplan.calibration.inference.labels import inference_labels
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.performance.kernels.step import StepLoad, step_time_s
from gpuplan.simulation.serving.arrays import engine_state
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.cost import SCALE, decode_line, mixed_step_s
from gpuplan.simulation.serving.kernels.engine.kinds import one_engine
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.inference.deployment import constants_for
from gpuplan.studies.inference.step_table import step_table
from gpuplan.studies.inference.work import setup_work
from gpuplan.studies.naming import model_named

CASES = (
    ("Llama-3.1-8B", "H100", 1),
    ("gemma-3-27b-it", "H100", 2),
    ("Mixtral-8x7B-Instruct-v0.1", "A100-80GB", 2),
    ("deepseek-v3", "8xH200", 8),
    ("Qwen3-30B-A3B", "L40S", 2),
)
# Views cannot leave a kernel, and pieces of kernels have no door for Python.
view, mixed, decoded = (getattr(f, "py_func", f) for f in (one_engine, mixed_step_s, decode_line))
LIMITS = EngineLimits(max_batch_tokens=4096, max_sequences=256, n_blocks=10**5, block_tokens=16)


@pytest.mark.parametrize(("model", "on", "tp"), CASES)
def test_iteration_time_is_the_performance_rooms(model: str, on: str, tp: int):
    load = LoadRequest(regime="poisson", input_tokens=500, output_tokens=200, requests_per_s=1.0)
    choice = find_accelerator(on, read_catalog())
    setup, _ = setup_of(model_named(model, None), choice, PredictRequest(tp=tp, load=load))
    work = setup_work(setup)
    k, _ = constants_for(inference_calibration(), inference_labels(setup))
    table = step_table(work, k, max_tokens=4096, max_sequences=256)
    state = engine_state(requests_of([0.0], [1], [1]), Fleet(limits=LIMITS, table=table), 60.0)
    draw = np.random.default_rng(0)
    for _ in range(300):
        n_decodes = int(draw.integers(0, 250))
        context = int(n_decodes * 10.0 ** draw.uniform(0, 4.5))
        n_prefill = int(draw.integers(0, 2)) * int(draw.integers(1, 3000))
        n_ended = int(draw.integers(0, min(5, n_prefill) + 1))
        pairs = n_prefill * int(draw.integers(1, 20000))
        if n_decodes + n_prefill == 0:
            continue
        s = state.scalar[0]
        s[st.N_DECODES], s[st.CONTEXT], s[st.N_ENDED] = n_decodes, context, n_ended
        s[st.PREFILL_TOKENS], s[st.PREFILL_PAIRS] = n_prefill, pairs
        expected = step_time_s(work, k, StepLoad(
            float(n_prefill), pairs / 2 / n_prefill if n_prefill else 0.0, float(n_ended),
            float(n_decodes), context / n_decodes if n_decodes else 0.0,
        ))  # fmt: skip
        engine = view(state, 0)
        assert mixed(engine)[0] == pytest.approx(float(expected), rel=1e-9)
        if n_prefill == 0:
            assert decoded(engine)[0] / SCALE == pytest.approx(float(expected), rel=1e-9)
