"""Measured serving rows as columns: what fits and cross-validation work on."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.inference.labels import inference_labels
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.errors import PlannerError
from gpuplan.performance.kernels.columns import stacked, taken
from gpuplan.performance.kernels.regimes import (
    REGIMES,
    RegimeConstants,
    Served,
    ServingCase,
    closed_loop_at,
    loop_times,
    open_loop,
    paced_loop,
    serve_start_s,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork
from gpuplan.performance.serving.regimes import loop_waits, serve, serving_case
from gpuplan.studies.inference.deployment import EvaluatedDeployment
from gpuplan.studies.inference.open_loop import open_loop_run
from gpuplan.studies.inference.predict import is_loop_run, replica_forecast
from gpuplan.studies.inference.work import setup_work
from gpuplan.studies.measured.inference import Row, serving_setup
from gpuplan.studies.validation.figures import METRICS, rejected_figures, without
from gpuplan.units import MS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Values = Mapping[str, Floats]
Item = TypeVar("Item")

SIMULATED_REGIMES = ("fixed_concurrency", "poisson")


class InferenceTable(NamedTuple):
    """Rows that could be resolved, aligned with their setups, labels, work and cases."""

    rows: list[Row]
    setups: list[ServingSetup]
    labels: list[dict[str, str]]
    works: list[StepWork]
    cases: list[ServingCase]
    refused: list[tuple[str, str]]  # id of a row, and why it or a figure of it is not used

    def without(self, refused: Mapping[int, str]) -> "InferenceTable":
        """The table without some rows, which it keeps with their reasons."""

        def retained(column: list[Item]) -> list[Item]:
            return [item for i, item in enumerate(column) if i not in refused]

        return InferenceTable(
            rows=retained(self.rows),
            setups=retained(self.setups),
            labels=retained(self.labels),
            works=retained(self.works),
            cases=retained(self.cases),
            refused=[
                *self.refused,
                *((self.rows[i].get("id", ""), reason) for i, reason in refused.items()),
            ],
        )


class Observations(NamedTuple):
    """Measured numbers: the row of each, its metric and its log."""

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


def read_table(rows: Sequence[Row], *, is_new: bool = False) -> InferenceTable:
    """Rows of models and accelerators of the catalog; the others with the reason.

    Figures of new rows that cannot be right are left out too; those of the package's own table were
    when it was taken over.
    """
    table = InferenceTable([], [], [], [], [], [])
    for row in rows:
        try:
            setup = serving_setup(row)
        except PlannerError as error:
            table.refused.append((row.get("id", ""), str(error)))
            continue
        wrong = rejected_figures(row) if is_new else {}
        table.refused.extend((row.get("id", ""), why) for why in wrong.values())
        table.rows.append(without(row, wrong) if wrong else row)
        table.setups.append(setup)
        table.labels.append(inference_labels(setup, benchmark=benchmark_of(row)))
        table.works.append(setup_work(setup))
        table.cases.append(serving_case(setup)[0])
    return table


def benchmark_of(row: Row) -> str:
    """The suite whose rules shaped the run, or nothing."""
    source = row.get("source", "")
    return next((suite for suite in ("mlperf", "inferencex") if suite in source), "")


def observations(table: InferenceTable) -> Observations:
    """Every measured number of the rows."""
    found = [
        (i, metric, value)
        for i, row in enumerate(table.rows)
        for metric in METRICS
        if (value := float(row.get(f"measured_{metric}") or 0.0)) > 0
    ]
    rows, metrics, values = zip(*found, strict=True) if found else ((), (), ())
    return Observations(np.array(rows, dtype=np.int64), np.array(metrics), np.log(values))


def groups(table: InferenceTable, observed: Observations) -> list[Group]:
    """Rows by regime, ready for evaluation."""
    regimes = np.array([setup.load.regime for setup in table.setups])
    n_replicas = np.array([setup.n_replicas for setup in table.setups])
    work, case = stacked(table.works), stacked(table.cases)
    place = np.zeros(len(regimes), dtype=np.int64)
    found = []
    for regime in sorted(set(regimes)):
        rows = np.flatnonzero(regimes == regime)
        place[rows] = np.arange(len(rows))
        here = np.flatnonzero(regimes[observed.row] == regime)
        reads = []
        for metric in METRICS:
            at = here[observed.metric[here] == metric]
            if len(at):
                reads.append((at, place[observed.row[at]], metric))
        found.append(
            Group(regime, rows, taken(work, rows), taken(case, rows), n_replicas[rows], reads)
        )
    return found


def constants_of(values: Values, rows: Ints | int) -> tuple[StepConstants, RegimeConstants]:
    """The constants of iterations and of regimes for these rows."""
    step = StepConstants(*(values[name][rows] for name in StepConstants._fields))
    regime = RegimeConstants(*(values[name][rows] for name in RegimeConstants._fields))
    return step, regime


class Simulated(NamedTuple):
    """What runs say of every row at some constants; zero where its regime needs none."""

    first_s: Floats  # mean wait of a closed loop's first wave
    later_s: Floats
    prompt_s: Floats  # what one prompt added to an iteration there
    run_ratio: Floats  # a run of engines over the formula, one line per field of `RunRatios`


class RunRatios(NamedTuple):
    """Ratios of a run to the formula: waits (of loops TTFT), and times per token."""

    wait_mean: Floats
    tpot_mean: Floats
    tpot_p50: Floats


def not_simulated(n_rows: int) -> Simulated:
    """Formulas alone; closed loops wait for a second."""
    ratios = np.ones((len(RunRatios._fields), n_rows))
    return Simulated(np.ones(n_rows), np.ones(n_rows), np.ones(n_rows), ratios)


def log_predictions(
    found: Sequence[Group], values: Values, runs: Simulated, n_observed: int
) -> Floats:
    """The log of what is predicted for every observation."""
    out = np.zeros(n_observed)
    for group in found:
        k, r = constants_of(values, group.rows)
        if group.regime == "fixed_concurrency":
            first_s, later_s = runs.first_s[group.rows], runs.later_s[group.rows]
            wait_s = r.first_wave_frac * first_s + (1.0 - r.first_wave_frac) * later_s
            # One waits for prompts, others' and one's own: near the run, in proportion to them.
            times = loop_times(group.work, k, r, group.case)
            wait_s = wait_s * times.prompt_s / runs.prompt_s[group.rows]
            served = closed_loop_at(group.work, k, r, group.case, wait_s, times)
            ratios = RunRatios(*runs.run_ratio[:, group.rows])
            first_s, tpot_s = served.ttft_s * ratios.wait_mean, served.tpot_s * ratios.tpot_mean
            served = paced_loop(group.case, first_s, tpot_s, served.n_running)
        else:
            served = REGIMES[group.regime](group.work, k, r, group.case)
        apart: Values = {}
        if group.regime == "poisson":
            ratios = RunRatios(*runs.run_ratio[:, group.rows])
            served, apart = at_a_rate(group, k, r, served=served, ratios=ratios)
        for at, place, metric in group.reads:
            value = apart[metric] if metric in apart else metric_value(served, metric, group)
            out[at] = np.log(value[place])
    return out


def at_a_rate(
    group: Group, k: StepConstants, r: RegimeConstants, *, served: Served, ratios: RunRatios
) -> tuple[Served, Values]:
    """The formula's result moved to simulated runs, and metrics that are no field of it."""
    start_s = serve_start_s(group.work, k, r, group.case, served.tpot_s)
    wait_s = served.ttft_s - start_s
    tpot_s = served.tpot_s * ratios.tpot_mean
    start_s = serve_start_s(group.work, k, r, group.case, tpot_s)
    first_s = start_s + wait_s * ratios.wait_mean
    apart = {"tpot_p50_ms": served.tpot_s * ratios.tpot_p50 / MS}
    e2e_s = first_s + group.case.output_tokens * tpot_s
    moved = Served(served.output_tokens_per_s, first_s, tpot_s, e2e_s, served.n_running)
    return moved, apart


def metric_value(served: Served, metric: str, group: Group) -> Floats:
    """The prediction in the unit of a measured column."""
    field, unit = METRICS[metric]
    value: Floats = getattr(served, field) / unit
    if metric == "output_tokens_per_s":
        return value * group.n_replicas
    if metric == "tpot_mean_ms" and group.regime == "fixed_max_batch":
        # The mean counts the iterations that prompts lengthen; the median does not.
        mean_s: Floats = served.n_running / served.output_tokens_per_s
        return mean_s / unit
    return value


def simulated(
    table: InferenceTable, values: Values, *, regimes: Sequence[str] = SIMULATED_REGIMES
) -> Simulated:
    """Closed loops and runs at a rate, at these constants; formulas alone for other regimes."""
    runs = not_simulated(len(table.rows))
    for i, setup in enumerate(table.setups):
        if setup.load.regime not in regimes:
            continue
        k, r = constants_of(values, i)
        work, case = table.works[i], table.cases[i]
        if setup.load.regime == "fixed_concurrency":
            times = loop_times(work, k, r, case)
            budget = float(setup.settings.max_batch_tokens)
            waits = loop_waits(work, k, times, case=case, batch_tokens=budget)
            runs.first_s[i], runs.later_s[i] = waits
            runs.prompt_s[i] = times.prompt_s
            if is_loop_run(setup):
                runs.run_ratio[:, i] = _loop_ratios(setup, k, r)
        elif setup.load.regime == "poisson" and case.requests_per_s > 0.0:
            runs.run_ratio[:, i] = _open_ratios(setup, work, k, r=r, case=case)
    return runs


def _loop_ratios(setup: ServingSetup, k: StepConstants, r: RegimeConstants) -> RunRatios:
    of = EvaluatedDeployment(setup, (k, r))
    budget = float(setup.settings.max_batch_tokens)
    near = serve("fixed_concurrency", of.work, k, r=r, case=of.case, batch_tokens=budget)
    run = replica_forecast(of).served
    tpot_ratio = run.tpot_s / near.tpot_s
    return RunRatios(run.ttft_s / near.ttft_s, tpot_ratio, tpot_ratio)


def _open_ratios(
    setup: ServingSetup, work: StepWork, k: StepConstants, *, r: RegimeConstants, case: ServingCase
) -> RunRatios:
    near = open_loop(work, k, r, case)
    wait_s = near.ttft_s - serve_start_s(work, k, r, case, near.tpot_s)
    run = open_loop_run(EvaluatedDeployment(setup, (k, r)))
    if run is None:
        return RunRatios(*np.ones(len(RunRatios._fields)))
    return RunRatios(
        run.wait_mean_s / wait_s, run.tpot_mean_s / near.tpot_s, run.tpot_p50_s / near.tpot_s
    )
