"""Measured inference rows as columns: what the fit and the cross-validation work on."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.inference_labels import inference_labels
from gpuplan.domain.performance import ServingSetup
from gpuplan.errors import PlannerError
from gpuplan.performance.kernels.columns import stacked, taken
from gpuplan.performance.kernels.regimes import (
    REGIMES,
    RegimeConstants,
    Served,
    ServingCase,
    closed_loop,
    loop_times,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork
from gpuplan.performance.serving_regimes import loop_waits, serving_case
from gpuplan.pipeline.inference_work import setup_work
from gpuplan.pipeline.measured_inference import Row, serving_setup
from gpuplan.units import MS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Values = Mapping[str, Floats]

# Measured columns -> field of `Served` and its unit.
METRICS = {
    "output_tokens_per_s": ("output_tokens_per_s", 1.0),
    "ttft_mean_ms": ("ttft_s", MS),
    "tpot_mean_ms": ("tpot_s", MS),
    "tpot_p50_ms": ("tpot_s", MS),
    "e2e_s": ("e2e_s", 1.0),
    "ttft_p99_ms": ("ttft_s", MS),
    "tpot_p99_ms": ("tpot_s", MS),
}
# Tails are not fitted: they stand in a measured ratio to the mean.
TAIL_METRICS = ("ttft_p99_ms", "tpot_p99_ms")


class InferenceTable(NamedTuple):
    """Rows that could be resolved, aligned with their setups, labels, work and cases."""

    rows: list[Row]
    setups: list[ServingSetup]
    labels: list[dict[str, str]]
    works: list[StepWork]
    cases: list[ServingCase]
    refused: list[tuple[str, str]]  # id of a row and why it has no prediction


class Observations(NamedTuple):
    """One measured number each."""

    row: Ints
    metric: NDArray[np.str_]
    log_value: Floats


class Group(NamedTuple):
    """Rows of one regime, as columns."""

    regime: str
    rows: Ints
    work: StepWork
    case: ServingCase
    n_replicas: Floats
    reads: list[tuple[Ints, Ints, str]]  # observations, their place among the rows, metric


def read_table(rows: Sequence[Row]) -> InferenceTable:
    """Rows that name a model and an accelerator of the catalog; the others with the reason."""
    table = InferenceTable([], [], [], [], [], [])
    for row in rows:
        try:
            setup = serving_setup(row)
        except PlannerError as error:
            table.refused.append((row.get("id", ""), str(error)))
            continue
        table.rows.append(row)
        table.setups.append(setup)
        table.labels.append(inference_labels(setup, benchmark=benchmark_of(row)))
        table.works.append(setup_work(setup))
        table.cases.append(serving_case(setup)[0])
    return table


def benchmark_of(row: Row) -> str:
    """The suite whose rules shaped the run, or nothing."""
    return "mlperf" if "mlperf" in row.get("source", "") else ""


def observations(table: InferenceTable) -> Observations:
    """Every measured number of the rows."""
    found = [
        (i, metric, float(row[f"measured_{metric}"]))
        for i, row in enumerate(table.rows)
        for metric in METRICS
        if row.get(f"measured_{metric}")
    ]
    found = [item for item in found if item[2] > 0]
    return Observations(
        np.array([i for i, _, _ in found], dtype=np.int64),
        np.array([metric for _, metric, _ in found]),
        np.log(np.array([value for _, _, value in found])),
    )


def groups(table: InferenceTable, seen: Observations) -> list[Group]:
    """Rows by regime, ready for evaluation."""
    regimes = np.array([setup.load.regime for setup in table.setups])
    n_replicas = np.array([setup.n_replicas for setup in table.setups])
    work, case = stacked(table.works), stacked(table.cases)
    place = np.zeros(len(regimes), dtype=np.int64)
    found = []
    for regime in sorted(set(regimes)):
        rows = np.flatnonzero(regimes == regime)
        place[rows] = np.arange(len(rows))
        here = np.flatnonzero(regimes[seen.row] == regime)
        reads = []
        for metric in METRICS:
            at = here[seen.metric[here] == metric]
            if len(at):
                reads.append((at, place[seen.row[at]], metric))
        found.append(
            Group(regime, rows, taken(work, rows), taken(case, rows), n_replicas[rows], reads)
        )
    return found


def constants_of(values: Values, rows: Ints) -> tuple[StepConstants, RegimeConstants]:
    """The two groups of constants for these rows."""
    step = StepConstants(*(values[name][rows] for name in StepConstants._fields))
    regime = RegimeConstants(*(values[name][rows] for name in RegimeConstants._fields))
    return step, regime


def log_predictions(found: Sequence[Group], values: Values, waits: Floats, n_seen: int) -> Floats:
    """Log of every observation's prediction; `waits` are those of closed loops, per row."""
    out = np.zeros(n_seen)
    for group in found:
        k, r = constants_of(values, group.rows)
        if group.regime == "fixed_concurrency":
            first_s, later_s = waits[0][group.rows], waits[1][group.rows]
            wait_s = r.first_wave_frac * first_s + (1.0 - r.first_wave_frac) * later_s
            served = closed_loop(group.work, k, r, group.case, wait_s)
        else:
            served = REGIMES[group.regime](group.work, k, r, group.case)
        for at, place, metric in group.reads:
            out[at] = np.log(metric_value(served, metric, group)[place])
    return out


def metric_value(served: Served, metric: str, group: Group) -> Floats:
    """A measured column's counterpart."""
    field, unit = METRICS[metric]
    value: Floats = getattr(served, field) / unit
    if metric == "output_tokens_per_s":
        return value * group.n_replicas
    if metric == "tpot_mean_ms" and group.regime == "fixed_max_batch":
        # The mean counts the iterations that prompts lengthen; the median does not.
        mean_s: Floats = served.n_running / served.output_tokens_per_s
        return mean_s / unit
    return value


def closed_loop_waits(table: InferenceTable, values: Values) -> Floats:
    """Simulated waits of first and later waves, zero for rows of other regimes."""
    waits = np.zeros((2, len(table.rows)))
    for i, setup in enumerate(table.setups):
        if setup.load.regime != "fixed_concurrency":
            continue
        k = StepConstants(*(float(values[name][i]) for name in StepConstants._fields))
        r = RegimeConstants(*(float(values[name][i]) for name in RegimeConstants._fields))
        budget = float(setup.settings.max_batch_tokens)
        work, case = table.works[i], table.cases[i]
        times = loop_times(work, k, r, case)
        waits[:, i] = loop_waits(work, k, times, case=case, batch_tokens=budget)
    return waits
