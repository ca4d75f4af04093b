"""Refit of the package's constants to a user's site, judged by held-out conditions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import NOISE_LOG, columns, fitted
from gpuplan.calibration.inference.labels import nearest_era
from gpuplan.calibration.inference.novelty import configuration
from gpuplan.calibration.inference.own import conditions_of
from gpuplan.calibration.inference.site import (
    LATENCY_SDS,
    PACE_SDS,
    OwnMiss,
    base_values,
    factors,
    measured_here,
    moved_values,
    requested_width,
    with_deviations,
)
from gpuplan.domain.calibration.constants import InferenceCalibration, OwnFigure
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.inference.predict import Ranged, metric_estimates, predict_inference
from gpuplan.studies.validation.figures import TAIL_METRICS
from gpuplan.studies.validation.fit_inference import (
    StageFit,
    Stages,
    Study,
    by_row,
    fit_stages,
    is_fitted,
    row_labels,
)
from gpuplan.studies.validation.inference import beside
from gpuplan.studies.validation.inference_table import (
    Simulated,
    benchmark_of,
    log_predictions,
    simulated,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Deviations = Mapping[str, Mapping[str, float]]

# How far off a site is, its own rows show: what others measured elsewhere is no reason to doubt it.
TURN_LOG = 1.0
# Rows of one site lie about so far apart where its own factors are known; prompts alone twice.
# Waits under load have a stage of their own: sites differ in them by more than rows of a site do.
ROW_LOG_SD, PROMPT_LOG_SD, WAIT_LOG_SD = 0.15, 0.3, 0.05
MOST_FOLDS = 25
MANY_CONDITIONS, FOLDS_OF_MANY = 50, 10  # where one row more or less does not move the refit
N_ROUNDS, N_ROUNDS_NEAR = 25, 8  # of the fit; the second where it starts beside its end
LEAST_CONDITIONS = 3  # below, nothing can be held out and the rest still say anything
LEAST_OUTLIER_LOG = 0.4
LEAST_JUDGES = 10  # figures below which none can be called an outlier
MOST_OUTLIERS_FRAC = 0.25  # more are not outliers, they are how the site is


def conditions(of: Study) -> list[str]:
    """What each row was measured under; repeats have the same."""
    keys = ("regime", "request_rate_per_s", "n_accelerators", "pp", "engine_version")
    rows = of.table.rows
    return [
        "|".join([by_row(of, i), *(row.get(key, "") for key in keys)]) for i, row in enumerate(rows)
    ]


def weights(of: Study, used: Flags) -> Floats:
    """Figures count by how far rows scatter, repeated ones as the root of their number."""
    fits, names = used & is_fitted(of), conditions(of)
    repeats = Counter(names[i] for i in set(of.observed.row[fits].tolist()))
    counts = [repeats[names[i]] ** -0.5 if names[i] in repeats else 0.0 for i in of.observed.row]
    log_sd = np.where(of.observed.metric == "ttft_mean_ms", PROMPT_LOG_SD, ROW_LOG_SD)
    log_sd = np.where(of.is_wait, WAIT_LOG_SD, log_sd)
    weight: Floats = np.array(counts) * fits * (NOISE_LOG / log_sd) ** 2
    return weight


class Site(NamedTuple):
    """A user's rows with the package's constants for them, ready for repeated refits."""

    of: Study
    package: InferenceCalibration
    stages: Stages  # factors on the package's constants
    runs: Simulated  # at the package's constants


class Refit(NamedTuple):
    """Deviations from the package's constants, and the fit that they were read from."""

    deviations: Deviations
    fit: StageFit
    outliers: Flags  # observations that the others contradict


def site_of(of: Study, package: InferenceCalibration) -> Site:
    """The rows, and those factors that any of their figures depends on."""
    fitted_ = package.constants
    labels = [
        {**row, "era": nearest_era(row["era"], package.known["era"])} for row in of.table.labels
    ]
    is_new = any(
        row_labels(of, i)[kind] not in package.known.get(kind, ())
        for i in range(len(labels))
        for kind in ("accelerator", "engine", "era")
    )
    base = base_values(fitted_, labels)

    def values(by: Mapping[str, Floats]) -> dict[str, Floats]:
        return moved_values(fitted_.constants, base, by)

    def logs(by: Mapping[str, Floats]) -> Floats:
        return log_predictions(of.groups, values(by), runs, len(of.observed.row))

    runs = simulated(of.table, values({}))
    unmoved, n = logs({}), len(of.table.rows)
    pace = [
        factor
        for factor in factors(PACE_SDS, fitted_, is_new=is_new)
        if np.any(logs({factor.name: np.full(n, 1.1)}) != unmoved)
    ]
    late = factors(LATENCY_SDS, fitted_, is_new=is_new)
    stages = Stages(columns(pace, labels), columns(late, labels), values, TURN_LOG)
    return Site(of, package, stages, runs)


def refit(site: Site, used: Flags, *, near: Refit | None = None) -> Refit:
    """What the used observations ask for, without outliers that the others contradict."""
    first = _refit(site, weights(site.of, used), near)
    residual = first.fit.residual
    outliers = used & (np.abs(residual) > _limit(residual[used]))
    is_few = outliers.sum() <= MOST_OUTLIERS_FRAC * used.sum()
    if not outliers.any() or not is_few or used.sum() < LEAST_JUDGES:
        return first
    again = _refit(site, weights(site.of, used & ~outliers), first)
    return again._replace(outliers=outliers)


def _limit(residual: Floats) -> float:
    """How far off a figure may lie before it counts as an outlier: four spreads of the others."""
    spread = 1.48 * float(np.median(np.abs(residual - np.median(residual))))
    return max(LEAST_OUTLIER_LOG, 4.0 * spread)


def _refit(site: Site, weight: Floats, near: Refit | None) -> Refit:
    stages = site.stages
    found = fit_stages(
        site.of,
        stages,
        weight,
        runs=site.runs,
        start=(near.fit.pace, near.fit.late) if near else (None, None),
        n_rounds=N_ROUNDS_NEAR if near else N_ROUNDS,
    )
    deviations = {
        key: of
        for cols, beta in ((stages.pace, found.pace), (stages.late, found.late))
        for key, of in fitted((), cols, beta, n_rows=0, sources=()).deviation.items()
        if any(of.values())
    }
    return Refit(deviations, found, np.zeros(len(weight), dtype=bool))


def refitted(site: Site, found: Refit, *, version: str) -> InferenceCalibration:
    """The package's calibration, moved to the site."""
    return with_deviations(site.package, found.deviations, version=version)


def own_figures(site: Site) -> list[list[OwnFigure]]:
    """Per row, how far the package is off its figures, and under which conditions."""
    of, package = site.of, site.package
    before = [predicted(of, i, package) for i in range(len(of.table.rows))]
    return [
        [
            OwnFigure(miss.configuration, miss.metric, at, miss.log_ratio / miss.half)
            for miss in missed
        ]
        for missed, at in zip(
            own_misses(of, before, package), map(conditions_of, of.table.setups), strict=True
        )
    ]


def predicted(of: Study, i: int, calibration: InferenceCalibration) -> PredictedRow:
    """One row beside its prediction by this calibration."""
    row = of.table.rows[i]
    prediction = predict_inference(
        of.table.setups[i], calibration=calibration, benchmark=benchmark_of(row)
    )
    return beside(row, metric_estimates(prediction))


def held_out_rows(site: Site, whole: Refit) -> list[PredictedRow]:
    """Every row as a refit without its condition predicts it, as measured by the others."""
    names = conditions(site.of)
    order = {name: i for i, name in enumerate(dict.fromkeys(names))}
    n_folds = MOST_FOLDS if len(order) <= MANY_CONDITIONS else FOLDS_OF_MANY
    fold = np.array([order[name] % n_folds for name in names])
    own, found = own_figures(site), dict[int, PredictedRow]()
    for number in sorted(set(fold.tolist())):
        used = fold[site.of.observed.row] != number
        moved = refitted(site, refit(site, used, near=whole), version="held out")
        here = measured_here(moved, [run for i in np.flatnonzero(fold != number) for run in own[i]])
        for i in np.flatnonzero(fold == number).tolist():
            found[i] = predicted(site.of, i, here)
    return [found[i] for i in range(len(names))]


def own_misses(
    of: Study, rows: Sequence[PredictedRow], package: InferenceCalibration
) -> list[list[OwnMiss]]:
    """Per row, how far its figures lie from held-out predictions; tails have no constants."""
    never_seen = replace(package, own=())
    return [
        [
            OwnMiss(
                configuration(of.table.labels[i], of.table.setups[i].model.name),
                metric,
                log(measured / row.predicted[metric].value),
                Ranged(of.table.setups[i], never_seen, of.table.labels[i]).half(metric),
            )
            for metric, measured in row.measured.items()
            if metric in row.predicted and metric not in TAIL_METRICS
        ]
        for i, row in enumerate(rows)
    ]


def widened(
    of: Study, rows: Sequence[PredictedRow], missed: Sequence[Sequence[OwnMiss]]
) -> list[PredictedRow]:
    """Held-out rows with ranges at least as wide as the other conditions' rows ask for."""
    names = conditions(of)
    found = []
    for i, row in enumerate(rows):
        others = [
            miss for j, of_row in enumerate(missed) for miss in of_row if names[j] != names[i]
        ]
        requested = requested_width(others)
        made = dict(row.predicted)
        for miss in missed[i]:
            log_factor = requested.get((miss.configuration, miss.metric))
            if log_factor is not None:
                made[miss.metric] = _at_least(made[miss.metric], exp(log_factor) * miss.half)
        found.append(replace(row, predicted=made))
    return found


def _at_least(estimate: Estimate, half: float) -> Estimate:
    low, high = estimate.value * exp(-half), estimate.value * exp(half)
    return replace(estimate, low=min(estimate.low, low), high=max(estimate.high, high))


def pooled_ape(rows: Sequence[PredictedRow]) -> float:
    """Median error over all figures that a fit uses, as a fraction."""
    errors = [
        abs(row.predicted[metric].value / measured - 1.0)
        for row in rows
        for metric, measured in row.measured.items()
        if metric in row.predicted and metric not in TAIL_METRICS
    ]
    return float(np.median(errors)) if errors else 0.0
