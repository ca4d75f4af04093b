"""Fits the constants of inference to measured rows, and says how far rows outside the fit miss."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import Observed, columns, fit, fitted, row_values, start_from
from gpuplan.calibration.inference.labels import cells_of, nearest_era
from gpuplan.calibration.inference.novelty import hardware_label, model_family, version_label
from gpuplan.calibration.inference.priors import CONSTANTS
from gpuplan.calibration.inference.ranges import Miss, left_out_errors, spreads
from gpuplan.domain.calibration.constants import FittedConstants, InferenceCalibration
from gpuplan.studies.validation.inference_table import (
    TAIL_METRICS,
    Group,
    InferenceTable,
    Observations,
    groups,
    log_predictions,
    observations,
    simulated,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Carries out the fits of folds, in order: `map`, or one that uses several processes.
Run = Callable[[Callable[[int], Floats], Sequence[int]], Iterable[Floats]]
# Fitted last, with the iteration held: how requests start and queue says nothing about kernels.
LATENCY_NAMES = ("serve_start_s", "start_prompts", "start_steps", "first_wave_frac")
# Weight of the data against the priors, and rows below which a cell counts for less; chosen by
# rows left out, not by rows fitted.
STRENGTH = 0.3
LONE_ROWS = 3.0
CONCURRENCY_WEIGHT = 3.0
# Near saturation the time per token says how full the queue was rather than how fast kernels are.
OPEN_LOOP_WEIGHT = 0.0
N_NEAR_ROUNDS = 4  # from the fit of all rows, which is close
LATENCY_STRENGTH = 1.0  # four constants only, so the data may speak louder


class Study(NamedTuple):
    """A table made ready for repeated fits."""

    table: InferenceTable
    seen: Observations
    groups: list[Group]

    @property
    def is_wait(self) -> Flags:
        """Observations of first-token times under load."""
        regimes = np.array([setup.load.regime for setup in self.table.setups])[self.seen.row]
        loaded = np.isin(regimes, ("fixed_concurrency", "poisson"))
        found: Flags = loaded & (self.seen.metric == "ttft_mean_ms")
        return found


class StudyFit(NamedTuple):
    """Fitted constants and the log residual (predicted minus measured) of every observation."""

    constants: FittedConstants
    residual: Floats


def study(table: InferenceTable) -> Study:
    """The table with its observations and groups."""
    seen = observations(table)
    return Study(table, seen, groups(table, seen))


def weights(of: Study, used: Flags) -> Floats:
    """A measured cell counts about as the root of its rows: no large table drowns small ones."""
    keys = []
    for i, metric in zip(of.seen.row, of.seen.metric, strict=True):
        row, labels = of.table.rows[i], of.table.labels[i]
        keys.append(
            (row["source"], row["regime"], metric, by_model(of, int(i)),
             labels["accelerator"], labels["era"], labels["precision"])
        )  # fmt: skip
    count = Counter(key for key, is_used in zip(keys, used, strict=True) if is_used)
    found = np.array([_cell_weight(count[key]) for key in keys])
    weight: Floats = found * used * _is_fitted(of) * _regime_weight(of)
    return weight


def _regime_weight(of: Study) -> Floats:
    """Serving at a known concurrency decides plans, and has few sources: it counts for more."""
    regimes = np.array([setup.load.regime for setup in of.table.setups])[of.seen.row]
    is_queue = (regimes == "poisson") & (of.seen.metric != "output_tokens_per_s")
    weight = np.where(is_queue, OPEN_LOOP_WEIGHT, 1.0)
    return np.where(regimes == "fixed_concurrency", CONCURRENCY_WEIGHT, weight)


def _is_fitted(of: Study) -> Flags:
    """Tails have no constants; a static batch's whole time says what its throughput says."""
    says_twice = np.array([bool(row.get("measured_output_tokens_per_s")) for row in of.table.rows])
    is_twice = (of.seen.metric == "e2e_s") & says_twice[of.seen.row]
    fitted_: Flags = ~np.isin(of.seen.metric, TAIL_METRICS) & ~is_twice
    return fitted_


def _cell_weight(n: int) -> float:
    """Weight of each of n rows: few may be an accident, many are still one source."""
    return float(STRENGTH * n**0.5 / (n + LONE_ROWS))


def fit_study(
    of: Study, used: Flags, *, n_rounds: int = 15, near: FittedConstants | None = None
) -> StudyFit:
    """Constants from the used observations; residuals of all. `near` only shortens the way."""
    table, seen = of.table, of.seen
    rows = set(seen.row[used].tolist())
    eras = {table.labels[i]["era"] for i in rows}
    labels = [{**row, "era": nearest_era(row["era"], eras)} for row in table.labels]
    weight = weights(of, used)
    cols = columns(CONSTANTS, labels)
    start = cols.centre if near is None else start_from(cols, near)
    # Closed loops' times per token lean on waits; near ones do while the constants move.
    runs = simulated(table, row_values(cols, start), regimes=("fixed_concurrency",))
    n_seen = len(seen.row)
    paced = Observed(seen.row, seen.log_value, weight * ~of.is_wait)
    beta = fit(
        cols, lambda v: log_predictions(of.groups, v, runs, n_seen), paced,
        start=start, n_rounds=n_rounds,
    )  # fmt: skip
    values = row_values(cols, beta)
    runs = simulated(table, values)
    late = columns([c for c in CONSTANTS if c.name in LATENCY_NAMES], labels)
    waited = Observed(seen.row, seen.log_value, LATENCY_STRENGTH * weight * of.is_wait)
    late_beta = fit(
        late, lambda v: log_predictions(of.groups, {**values, **v}, runs, n_seen), waited,
        start=None if near is None else start_from(late, near), n_rounds=n_rounds,
    )  # fmt: skip
    values |= row_values(late, late_beta)
    residual = log_predictions(of.groups, values, runs, n_seen) - seen.log_value
    sources = [table.rows[i]["source"] for i in rows]
    pace = fitted(CONSTANTS, cols, beta, n_rows=len(rows), sources=sources)
    latency = fitted(CONSTANTS, late, late_beta, n_rows=len(rows), sources=sources)
    return StudyFit(_merged(pace, latency), residual)


def _merged(pace: FittedConstants, latency: FittedConstants) -> FittedConstants:
    kept = {
        key: labels
        for key, labels in pace.deviation.items()
        if key.split(":")[0] not in LATENCY_NAMES
    }
    return FittedConstants(
        constants=pace.constants,
        log_value={**pace.log_value, **latency.log_value},
        deviation={**kept, **latency.deviation},
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
    """Residual of every observation from a fit that saw nothing of its fold."""
    fold = np.array(folds(of, fold_of, n_folds))[of.seen.row]

    def left_out(number: int) -> Floats:
        out = fold == number
        found: Floats = fit_study(of, ~out, near=near, n_rounds=N_NEAR_ROUNDS).residual[out]
        return found

    numbers = sorted(set(fold.tolist()))
    residual = np.full(len(fold), np.nan)
    for number, missed in zip(numbers, run(left_out, numbers), strict=True):
        residual[fold == number] = missed
    return residual


def folds(of: Study, fold_of: Callable[[Study, int], str], n_folds: int) -> list[int]:
    """The fold of every row."""
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
    """Folds by model family."""
    return model_family(of.table.setups[i].model.name)


def by_source(of: Study, i: int) -> str:
    """Folds by publication."""
    return of.table.rows[i]["source"]


def by_version(of: Study, i: int) -> str:
    """Folds by engine and version as written."""
    engine = of.table.setups[i].engine
    return version_label(engine.name, engine.version)


def by_era(of: Study, i: int) -> str:
    """Folds by engine era."""
    return of.table.labels[i]["era"]


def by_row(of: Study, i: int) -> str:
    """Folds of single conditions: repeated rows stay together."""
    row = of.table.rows[i]
    return "|".join(row.get(key, "") for key in
                    ("accelerator", "model", "precision", "engine", "tp", "batch", "input_tokens",
                     "output_tokens"))  # fmt: skip


SPLITS = {
    "row": (by_row, 5),
    "model": (by_model, 10),
    "engine": (by_version, 10),
    "source": (by_source, 8),
}


def calibrate_inference(of: Study, *, version: str, run: Run = map) -> InferenceCalibration:
    """Constants from all rows, ranges from rows left out by condition, model, version, source."""
    everything = np.ones(len(of.seen.row), dtype=bool)
    constants = fit_study(of, everything).constants
    misses = [
        miss
        for novelty, (fold_of, n_folds) in SPLITS.items()
        for miss in misses_of(
            of, novelty, cross_residuals(of, fold_of, n_folds=n_folds, near=constants, run=run)
        )
    ]
    return InferenceCalibration(
        constants=constants,
        spreads=spreads(misses),
        known=known_labels(of),
        left_out=left_out_errors(misses),
        version=version,
    )


def misses_of(of: Study, novelty: str, residual: Floats) -> list[Miss]:
    """Residuals of one split with their cells."""
    names = _novelties(of) if novelty == "engine" else [novelty] * len(of.table.rows)
    found = []
    for i, metric, value in zip(of.seen.row, of.seen.metric, residual, strict=True):
        regime, cells = of.table.setups[i].load.regime, cells_of(of.table.labels[i])
        source = by_source(of, int(i))
        found.append(Miss(names[i], regime, str(metric), cells, -float(value), source))
    return found


def _novelties(of: Study) -> list[str]:
    """A version left out is less new where other versions of its era stayed in the fit."""
    fold_of, n_folds = SPLITS["engine"]
    eras: dict[str, set[int]] = {}
    for number, row in zip(folds(of, fold_of, n_folds), of.table.labels, strict=True):
        eras.setdefault(row["era"], set()).add(number)
    return ["version" if len(eras[row["era"]]) > 1 else "engine" for row in of.table.labels]


def known_labels(of: Study) -> dict[str, frozenset[str]]:
    """What the fit has seen: model families, engine versions, hardware with precision."""
    n = range(len(of.table.rows))
    labels = of.table.labels
    return {
        "model": frozenset(by_model(of, i) for i in n),
        "era": frozenset(by_era(of, i) for i in n),
        "version": frozenset(by_version(of, i) for i in n),
        "hardware": frozenset(hardware_label(row) for row in labels),
        "pair": frozenset(f"{by_model(of, i)} on {hardware_label(labels[i])}" for i in n),
    }
