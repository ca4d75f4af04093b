"""Real serving runs beside their replays: what comes of step times, what of scheduling.

A run is replayed twice. *As is*: the calibrated step times, as users get them. *Own steps*: every
step time multiplied by one factor, chosen so that the mean TPOT of the first half of the requests
is the measured one; the other half is judged. What is left then is scheduling, and the shape of the
step time over loads. Nothing else is taken from a run's outcomes.
"""

import csv
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.simulation.engine import Fleet, StepTable
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.simulation.simulation import EngineRequest, PreparedFleet, SimulateRequest
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.replay.replicas import prepared

MEASURES = ("ttft_s", "tpot_s", "e2e_s")
MEAN_TARGET, P99_TARGET = 0.10, 0.20
# Blocks that the engine logged; where it logged none, what the memory model leaves.
N_BLOCKS = {"RTX4090": 2588, "RTXPRO6000": None}
N_ROUNDS, CLOSE_FRAC = 12, 0.005


class Times(NamedTuple):
    """One value a request, in the order of the run's rows."""

    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats


class Replay(NamedTuple):
    """What the simulator made of a run."""

    times: Times
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A measured run and the way to replay it."""

    name: str
    fleet: Fleet
    measured: Times
    arrive_s: Floats
    replay: Callable[[Fleet], Replay]

    @property
    def is_first(self) -> np.ndarray:
        """The half of the requests that came first."""
        rank = np.argsort(np.argsort(self.arrive_s, kind="stable"), kind="stable")
        return rank < len(rank) // 2


class Error(NamedTuple):
    """Relative errors of one measure."""

    mean: float
    p99: float

    @property
    def is_within(self) -> bool:
        """Both targets are met."""
        return abs(self.mean) <= MEAN_TARGET and abs(self.p99) <= P99_TARGET


class Judged(NamedTuple):
    """A run beside both of its replays."""

    run: Run
    as_is: Replay
    own: Replay
    factor: float
    as_is_errors: dict[str, Error]  # of all requests
    own_errors: dict[str, Error]  # of the second half


def judged(run: Run, *, start_s: float = 0.0) -> Judged:
    """Replay as is and with the run's own step times; `start_s` more outside the engine."""
    as_is = run.replay(run.fleet)
    factor, own = own_steps(run, start_s)
    everyone = np.ones(len(run.arrive_s), dtype=bool)
    return Judged(
        run, as_is, own, factor,
        errors(run.measured, as_is.times, everyone), errors(run.measured, own.times, ~run.is_first),
    )  # fmt: skip


def own_steps(run: Run, start_s: float) -> tuple[float, Replay]:
    """The factor on step times at which the first half's mean TPOT is the measured one."""
    half = run.is_first
    limits = replace(run.fleet.limits, start_s=run.fleet.limits.start_s + start_s)
    factor = 1.0
    for _ in range(N_ROUNDS):
        table = stretched(run.fleet.table, factor)
        found = run.replay(replace(run.fleet, table=table, limits=limits))
        ratio = float(run.measured.tpot_s[half].mean() / found.times.tpot_s[half].mean())
        if abs(ratio - 1) < CLOSE_FRAC:
            return factor, found
        factor *= ratio
    raise RuntimeError(f"{run.name}: no factor gives the measured TPOT")


def own_start_s(run: Run) -> float:
    """What requests of the first half take outside the engine beyond what is assumed."""
    half = run.is_first
    _, found = own_steps(run, 0.0)
    return float((run.measured.ttft_s[half] - found.times.ttft_s[half]).mean())


def stretched(table: StepTable, factor: float) -> StepTable:
    """The same table on a device that is slower by this factor in everything."""
    rates = {
        f.name: getattr(table.rates, f.name) / factor
        for f in fields(table.rates)
        if f.name.endswith("_per_s")
    }
    seconds = {
        f.name: getattr(table, f.name) * factor for f in fields(table) if f.name.endswith("_s")
    }
    return replace(table, **seconds, rates=replace(table.rates, **rates))


def errors(measured: Times, found: Times, chosen: np.ndarray) -> dict[str, Error]:
    """Relative errors of the mean and of the 99th percentile over the chosen rows."""
    result = {}
    for name in MEASURES:
        real, ours = getattr(measured, name)[chosen], getattr(found, name)[chosen]
        p99 = float(np.percentile(ours, 99) / np.percentile(real, 99) - 1)
        result[name] = Error(float(ours.mean() / real.mean() - 1), p99)
    return result


def times_of(ttft_s: Floats, e2e_s: Floats, output_tokens: Floats) -> Times:
    """TPOT is what the simulator calls so: (last - first token) / (tokens - 1)."""
    return Times(ttft_s, (e2e_s - ttft_s) / np.maximum(output_tokens - 1, 1), e2e_s)


def open_run(path: Path, gpu: str) -> Run:
    """300 requests of one card, replayed at their arrivals."""
    with path.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["gpu"] == gpu]
    rows.sort(key=lambda row: float(row["arrival_s"]))
    columns = {
        name: np.array([float(row[name]) for row in rows])
        for name in ("arrival_s", "input_toks", "output_toks", "ttft_ms", "e2e_ms")
    }
    requests = requests_of(columns["arrival_s"], columns["input_toks"], columns["output_toks"])
    ready = _ready_of(rows[0], requests)

    def replay(fleet: Fleet) -> Replay:
        outcome = simulate_serving(requests, fleet, bin_s=1.0)
        t = outcome.times
        return Replay(Times(t.ttft_s, t.tpot_s, t.e2e_s), outcome)

    return Run(
        name=gpu,
        fleet=ready.fleet,
        measured=times_of(
            columns["ttft_ms"] / 1e3, columns["e2e_ms"] / 1e3, columns["output_toks"]
        ),
        arrive_s=columns["arrival_s"],
        replay=replay,
    )


def _ready_of(row: dict[str, str], requests: object) -> PreparedFleet:
    scheduler = EngineRequest(
        max_sequences=int(row["max_num_seqs"]),
        max_batch_tokens=int(row["max_num_batched_tokens"]),
        n_blocks=N_BLOCKS[row["gpu"]],
    )
    asked = SimulateRequest(tp=1, engine_version=row["vllm"], scheduler=scheduler)
    return prepared(row["model"], row["gpu"], requests, request=asked)  # type: ignore[arg-type]
