"""Fit of the inference constants: measured rows in, constants and held-out residuals out."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import (
    NOISE_LOG,
    Columns,
    Observed,
    columns,
    fit,
    fitted,
    row_values,
    start_from,
)
from gpuplan.calibration.inference.labels import nearest_era, range_kind, range_regime
from gpuplan.calibration.inference.novelty import (
    model_family,
    novelty_labels,
    novelty_of,
)
from gpuplan.calibration.inference.ranges import Line
from gpuplan.calibration.tables import priors
from gpuplan.domain.calibration.constants import FittedConstants
from gpuplan.studies.validation.figures import TAIL_METRICS
from gpuplan.studies.validation.inference_table import (
    Group,
    InferenceTable,
    Observations,
    Simulated,
    groups,
    log_predictions,
    observations,
    simulated,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Carries out the fits of folds, in order: `map`, or one that uses several processes.
Run = Callable[[Callable[[int], Floats], Sequence[int]], Iterable[Floats]]
# Fitted last, with the iteration fixed: how requests start and queue says nothing about kernels.
LATENCY_NAMES = ("serve_start_s", "start_prompts", "start_steps", "first_wave_frac")
# Weight of the data against the priors, and rows below which a cell counts for less; chosen by
# held-out rows, not by rows fitted.
STRENGTH = 0.3
LONE_ROWS = 3.0
CONCURRENCY_WEIGHT = 3.0
# Near saturation the time per token says how full the queue was rather than how fast kernels are.
OPEN_LOOP_WEIGHT = 0.0
CONDITION_COLUMNS = [
    "accelerator",
    "model",
    "precision",
    "engine",
    "tp",
    "batch",
    "input_tokens",
    "output_tokens",
]
N_NEAR_ROUNDS = 4  # from the fit of all rows, which is close


class Study(NamedTuple):
    """A table made ready for repeated fits."""

    table: InferenceTable
    observed: Observations
    groups: list[Group]

    @property
    def is_wait(self) -> Flags:
        """Whether an observation is a time to first token under load."""
        regimes = np.array([setup.load.regime for setup in self.table.setups])[self.observed.row]
        loaded = np.isin(regimes, ("fixed_concurrency", "poisson"))
        found: Flags = loaded & (self.observed.metric == "ttft_mean_ms")
        return found


class Stages(NamedTuple):
    """The two stages of a fit: iterations first, then how requests start and queue."""

    pace: Columns
    late: Columns
    values: Callable[[Mapping[str, Floats]], Mapping[str, Floats]]  # constants from fitted values
    turn_log: float = NOISE_LOG  # residuals beyond it may be accidents


class StageFit(NamedTuple):
    """Fitted parameters of both stages, and log(predicted / measured) of every observation."""

    pace: Floats
    late: Floats
    residual: Floats


class StudyFit(NamedTuple):
    """Fitted constants, and log(predicted / measured) of every observation."""

    constants: FittedConstants
    residual: Floats


def study(table: InferenceTable) -> Study:
    """The table with its observations and groups."""
    observed = observations(table)
    return Study(table, observed, groups(table, observed))


def weights(of: Study, used: Flags) -> Floats:
    """A measured cell counts about as the root of its rows: no large table drowns small ones."""
    keys = []
    for i, metric in zip(of.observed.row.tolist(), of.observed.metric.tolist(), strict=True):
        row, labels = of.table.rows[i], of.table.labels[i]
        cell = (row["source"], row["regime"], metric, by_model(of, i))
        keys.append((*cell, labels["accelerator"], labels["era"], labels["precision"]))
    count = Counter(key for key, is_used in zip(keys, used, strict=True) if is_used)
    found = np.array([_cell_weight(count[key]) for key in keys])
    weight: Floats = found * used * is_fitted(of) * _regime_weight(of)
    return weight


def _regime_weight(of: Study) -> Floats:
    """Serving at a known concurrency decides plans, and has few sources: it counts for more."""
    regimes = np.array([setup.load.regime for setup in of.table.setups])[of.observed.row]
    is_queue = (regimes == "poisson") & (of.observed.metric != "output_tokens_per_s")
    weight = np.where(is_queue, OPEN_LOOP_WEIGHT, 1.0)
    return np.where(regimes == "fixed_concurrency", CONCURRENCY_WEIGHT, weight)


def is_fitted(of: Study) -> Flags:
    """Whether an observation is fitted: no tail, no whole time beside its throughput."""
    has_rate = np.array([bool(row.get("measured_output_tokens_per_s")) for row in of.table.rows])
    is_repeated = (of.observed.metric == "e2e_s") & has_rate[of.observed.row]
    fitted_: Flags = ~np.isin(of.observed.metric, TAIL_METRICS) & ~is_repeated
    return fitted_


def _cell_weight(n: int) -> float:
    """Weight of each of n rows: few may be an accident, many are still one source."""
    return float(STRENGTH * n**0.5 / (n + LONE_ROWS))


def fit_stages(
    of: Study,
    stages: Stages,
    weight: Floats,
    *,
    runs: Simulated,
    start: tuple[Floats | None, Floats | None],
    n_rounds: int,
) -> StageFit:
    """What iterations ask for, then, with those fixed, what waits ask for.

    `runs` are simulations at the constants that the first stage starts from.
    """
    observed = of.observed

    def logs(fitted_values: Mapping[str, Floats], runs: Simulated) -> Floats:
        return log_predictions(of.groups, stages.values(fitted_values), runs, len(observed.row))

    turn = stages.turn_log
    paced = Observed(observed.row, observed.log_value, weight * ~of.is_wait, turn)
    pace = fit(stages.pace, lambda v: logs(v, runs), paced, start=start[0], n_rounds=n_rounds)
    values = row_values(stages.pace, pace)
    later = simulated(of.table, stages.values(values))
    waited = Observed(observed.row, observed.log_value, weight * of.is_wait, turn)
    late = stages.late.centre.copy()
    if waited.weight.any():
        late = fit(
            stages.late,
            lambda v: logs({**values, **v}, later),
            waited,
            start=start[1],
            n_rounds=n_rounds,
        )
    values = {**values, **row_values(stages.late, late)}
    # Latencies at the limits of a benchmark leave what starts cost to the rest.
    rates = simulated(of.table, stages.values(values), regimes=("poisson",))
    is_rate = np.array([setup.load.regime == "poisson" for setup in of.table.setups])
    ratios = np.where(is_rate, rates.run_ratio, later.run_ratio)
    residual = logs(values, later._replace(run_ratio=ratios)) - observed.log_value
    return StageFit(pace, late, residual)


def fit_study(
    of: Study, used: Flags, *, n_rounds: int = 15, near: FittedConstants | None = None
) -> StudyFit:
    """Constants from the used observations; residuals of all. `near` only shortens the way."""
    table, constants = of.table, priors("inference")
    rows = set(of.observed.row[used].tolist())
    eras = {table.labels[i]["era"] for i in rows}
    labels = [{**row, "era": nearest_era(row["era"], eras)} for row in table.labels]
    late = columns([c for c in constants if c.name in LATENCY_NAMES], labels)
    stages = Stages(columns(constants, labels), late, lambda values: values)
    start = stages.pace.centre if near is None else start_from(stages.pace, near)
    found = fit_stages(
        of,
        stages,
        weights(of, used),
        # Closed loops' times per token lean on waits; near ones do while the constants move.
        runs=simulated(table, row_values(stages.pace, start), regimes=("fixed_concurrency",)),
        start=(start, None if near is None else start_from(late, near)),
        n_rounds=n_rounds,
    )
    n_rows, sources = len(rows), [table.rows[i]["source"] for i in rows]
    pace = fitted(constants, stages.pace, found.pace, n_rows=n_rows, sources=sources)
    latency = fitted(constants, late, found.late, n_rows=n_rows, sources=sources)
    return StudyFit(_merged(pace, latency), found.residual)


def _merged(pace: FittedConstants, latency: FittedConstants) -> FittedConstants:
    deviations = {
        key: labels
        for key, labels in pace.deviation.items()
        if key.split(":")[0] not in LATENCY_NAMES
    }
    return FittedConstants(
        constants=pace.constants,
        log_value={**pace.log_value, **latency.log_value},
        deviation={**deviations, **latency.deviation},
        n_rows=pace.n_rows,
        sources=pace.sources,
    )


def cross_residuals(
    of: Study,
    fold_of: Callable[[Study, int], str],
    *,
    n_folds: int,
    near: FittedConstants | None = None,
    run: Run = map,
) -> Floats:
    """The residual of every observation from a fit that its fold was held out of."""
    fold = np.array(folds(of, fold_of, n_folds))[of.observed.row]

    def held_out(number: int) -> Floats:
        out = fold == number
        found: Floats = fit_study(of, ~out, near=near, n_rounds=N_NEAR_ROUNDS).residual[out]
        return found

    numbers = sorted(set(fold.tolist()))
    residual = np.full(len(fold), np.nan)
    for number, missed in zip(numbers, run(held_out, numbers), strict=True):
        residual[fold == number] = missed
    return residual


def folds(of: Study, fold_of: Callable[[Study, int], str], n_folds: int) -> list[int]:
    """The number of the fold of every row."""
    return _balanced([fold_of(of, i) for i in range(len(of.table.rows))], n_folds)


def _balanced(names: Sequence[str], n_folds: int) -> list[int]:
    """A fold number per name, the folds of about equal size."""
    sizes = [0] * n_folds
    place: dict[str, int] = {}
    for name, n in Counter(names).most_common():
        place[name] = min(range(n_folds), key=lambda f: sizes[f])
        sizes[place[name]] += n
    return [place[name] for name in names]


def by_model(of: Study, i: int) -> str:
    """The model family of a row, to hold it out by."""
    return model_family(of.table.setups[i].model.name)


def by_source(of: Study, i: int) -> str:
    """The publication of a row, to hold it out by."""
    return of.table.rows[i]["source"]


def by_row(of: Study, i: int) -> str:
    """The conditions of a row, to hold it out by: repeated rows stay together."""
    row = of.table.rows[i]
    return "|".join(row.get(key, "") for key in CONDITION_COLUMNS)


def by_group(of: Study, i: int) -> str:
    """Source, model and accelerator: rows that err together."""
    labels = of.table.labels[i]
    return f"{by_source(of, i)}|{of.table.setups[i].model.name}|{labels['accelerator']}"


# How rows are held out, and in how many folds.
SPLITS = {"model": (by_model, 10), "source": (by_source, 8), "group": (by_group, 4)}


def held_out_splits(of: Study, near: FittedConstants, run: Run = map) -> dict[str, list[Line]]:
    """Every way of `SPLITS` to hold rows out, with the lines of its rows."""
    return {
        name: held_out_lines(of, name, cross_residuals(of, by, n_folds=n, near=near, run=run))
        for name, (by, n) in SPLITS.items()
    }


def held_out_lines(of: Study, split: str, residual: Floats) -> list[Line]:
    """Lines of the ledger from rows held out; as new as each was to the other folds."""
    fold_of, n_folds = SPLITS[split]
    fold = folds(of, fold_of, n_folds)
    rows = range(len(of.table.rows))
    known = {
        number: known_labels(of, [i for i in rows if fold[i] != number]) for number in set(fold)
    }
    return [
        observed_line(of, int(i), str(metric), known[fold[i]], -float(value))
        for i, metric, value in zip(of.observed.row, of.observed.metric, residual, strict=True)
    ]


def observed_line(
    of: Study, i: int, metric: str, known: Mapping[str, frozenset[str]], log_ratio: float
) -> Line:
    """The line of an observed row, as new as it is beside what is known."""
    setup, labels = of.table.setups[i], of.table.labels[i]
    regime = setup.load.regime
    new = novelty_of(known, labels, model=setup.model.name, regime=regime)
    where = range_regime(labels, setup.load)
    return Line(metric, where, range_kind(labels), by_group(of, i), new.kind, log_ratio)


def row_labels(of: Study, i: int) -> dict[str, str]:
    """What of a row may be new to a fit, by kind."""
    setup = of.table.setups[i]
    return novelty_labels(of.table.labels[i], model=setup.model.name, regime=setup.load.regime)


def known_labels(of: Study, rows: Iterable[int]) -> dict[str, frozenset[str]]:
    """What these rows have, by kind: accelerators, engines on families, models, configurations."""
    found = [row_labels(of, i) for i in rows]
    return {kind: frozenset(row[kind] for row in found) for kind in row_labels(of, 0)}
