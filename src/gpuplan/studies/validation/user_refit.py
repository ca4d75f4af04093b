"""Refit of the package's constants to a user's rows, judged by rows that it had not seen."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import Columns, Observed, columns, fit, fitted, row_values
from gpuplan.calibration.inference.labels import cells_of, nearest_era
from gpuplan.calibration.inference.novelty import unknown
from gpuplan.calibration.inference.ranges import Miss
from gpuplan.calibration.inference.site import (
    LATENCY_SDS,
    PACE_SDS,
    base_values,
    factors,
    moved_values,
    site_key,
    site_spreads,
    widened,
    with_deviations,
)
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.studies.inference.predict import metric_estimates, predict_inference
from gpuplan.studies.validation.fit_inference import Study, by_row, known_labels
from gpuplan.studies.validation.inference_table import (
    METRICS,
    TAIL_METRICS,
    Simulated,
    benchmark_of,
    log_predictions,
    simulated,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Deviations = Mapping[str, Mapping[str, float]]

# A site's own row says more of the site than a published one; still, few rows may be an accident.
STRENGTH = 0.5
LONE_ROWS = 3.0
MOST_FOLDS = 25
MANY_CONDITIONS, FOLDS_OF_MANY = 50, 10  # where one row more or less does not move the refit
N_ROUNDS, N_ROUNDS_NEAR = 25, 8  # of the fit; the second where it starts beside its end
LEAST_CONDITIONS = 3  # below, nothing can be left out and the rest still say anything
LEAST_APART_LOG = 0.4
LEAST_JUDGES = 10  # figures below which none can be said to be apart
MOST_APART_FRAC = 0.25  # more are not outliers, they are how the site is
GROUPS = ("regime", "accelerator", "model", "source", "engine")


def conditions(of: Study) -> list[str]:
    """What each row was measured under; repeats have the same."""
    keys = ("regime", "request_rate_per_s", "n_accelerators", "pp", "engine_version")
    rows = of.table.rows
    return [
        "|".join([by_row(of, i), *(row.get(key, "") for key in keys)]) for i, row in enumerate(rows)
    ]


def weights(of: Study, used: Flags) -> Floats:
    """A row counts once, however many figures it has; repeats count as the root of their number."""
    seen = of.seen
    is_tail = np.isin(seen.metric, TAIL_METRICS)
    has_rate = np.array([bool(row.get("measured_output_tokens_per_s")) for row in of.table.rows])
    says_twice = (seen.metric == "e2e_s") & has_rate[seen.row]
    fits = used & ~is_tail & ~says_twice
    per_row = Counter(seen.row[fits].tolist())
    names = conditions(of)
    repeats = Counter(names[i] for i in per_row)
    n = len(repeats)
    share = STRENGTH * n / (n + LONE_ROWS)
    counts = [
        share / per_row[i] / repeats[names[i]] ** 0.5 if is_used else 0.0
        for i, is_used in zip(seen.row.tolist(), fits.tolist(), strict=True)
    ]
    return np.array(counts)


class Site(NamedTuple):
    """A user's rows with the package's constants for them, ready for repeated refits."""

    of: Study
    package: InferenceCalibration
    base: Mapping[str, Floats]
    pace: Columns
    late: Columns

    def values(self, by: Mapping[str, Floats]) -> dict[str, Floats]:
        """The constants times these factors."""
        return moved_values(self.package.constants.constants, self.base, by)

    def logs(self, by: Mapping[str, Floats], runs: Simulated) -> Floats:
        """Log predictions of all observations."""
        return log_predictions(self.of.groups, self.values(by), runs, len(self.of.seen.row))


class Refit(NamedTuple):
    """Deviations, and the parameters that they were read from."""

    deviations: Deviations
    pace: Floats
    late: Floats
    residual: Floats  # log of predicted / measured, of every observation
    apart: Flags  # observations that the others do not bear out


def site_of(of: Study, package: InferenceCalibration) -> Site:
    """The rows, and those factors that any of their figures depends on."""
    known = package.known
    labels = [{**row, "era": nearest_era(row["era"], known["era"])} for row in of.table.labels]
    is_new = any(
        {"hardware", "era"} & {item.split(" ")[0] for item in _unknown(of, i, package)}
        for i in range(len(labels))
    )
    base = base_values(package.constants, labels)
    pace = factors(PACE_SDS, package.constants, is_new=is_new)
    late = factors(LATENCY_SDS, package.constants, is_new=is_new)
    site = Site(of, package, base, columns((), labels), columns(late, labels))
    runs = simulated(of.table, site.values({}))
    still = site.logs({}, runs)
    n = len(of.table.rows)
    moving = [c for c in pace if np.any(site.logs({c.name: np.full(n, 1.1)}, runs) != still)]
    return site._replace(pace=columns(moving, labels))


def _unknown(of: Study, i: int, package: InferenceCalibration) -> tuple[str, ...]:
    setup, labels = of.table.setups[i], of.table.labels[i]
    return unknown(package.known, labels, model=setup.model.name, version=setup.engine.version)


def refit(site: Site, used: Flags, *, near: Refit | None = None) -> Refit:
    """What the used observations ask for, those apart that nothing else bears out."""
    first = _refit(site, weights(site.of, used), near)
    apart = used & (np.abs(first.residual) > _limit(first.residual[used]))
    is_few = apart.sum() <= MOST_APART_FRAC * used.sum()
    if not apart.any() or not is_few or used.sum() < LEAST_JUDGES:
        return first
    again = _refit(site, weights(site.of, used & ~apart), first)
    return again._replace(apart=apart)


def _limit(residual: Floats) -> float:
    """How far a figure may lie off before it counts as apart: four spreads of the others."""
    spread = 1.48 * float(np.median(np.abs(residual - np.median(residual))))
    return max(LEAST_APART_LOG, 4.0 * spread)


def _refit(site: Site, weight: Floats, near: Refit | None) -> Refit:
    """First what iterations ask for, then, with those held, what waits ask for."""
    of = site.of
    runs = simulated(of.table, site.values({}))
    paced = Observed(of.seen.row, of.seen.log_value, weight * ~of.is_wait)
    n_rounds = N_ROUNDS_NEAR if near else N_ROUNDS
    beta = fit(
        site.pace, lambda by: site.logs(by, runs), paced,
        start=near.pace if near else None, n_rounds=n_rounds,
    )  # fmt: skip
    by_pace = row_values(site.pace, beta)
    late_beta = site.late.centre.copy()
    waited = Observed(of.seen.row, of.seen.log_value, weight * of.is_wait)
    runs = simulated(of.table, site.values(by_pace))
    if waited.weight.any():
        late_beta = fit(
            site.late, lambda by: site.logs({**by_pace, **by}, runs), waited,
            start=near.late if near else None, n_rounds=n_rounds,
        )  # fmt: skip
    factors_ = {**by_pace, **row_values(site.late, late_beta)}
    return Refit(
        {**_deviations(site.pace, beta), **_deviations(site.late, late_beta)},
        beta, late_beta, site.logs(factors_, runs) - of.seen.log_value,
        np.zeros(len(weight), dtype=bool),
    )  # fmt: skip


def _deviations(cols: Columns, beta: Floats) -> Deviations:
    found = fitted((), cols, beta, n_rows=0, sources=()).deviation
    return {key: of for key, of in found.items() if any(of.values())}


def refitted(site: Site, found: Refit, *, version: str) -> InferenceCalibration:
    """The package's calibration, moved."""
    return with_deviations(site.package, found.deviations, version=version)


def with_known(site: Site, used: Flags, calibration: InferenceCalibration) -> InferenceCalibration:
    """Labels that enough conditions carry count as measured: their ranges need not be wider."""
    names, table = conditions(site.of), site.of.table
    seen: dict[tuple[str, str], set[str]] = {}
    for i in sorted(set(site.of.seen.row[used].tolist())):
        one = table._replace(
            rows=[table.rows[i]], setups=[table.setups[i]], labels=[table.labels[i]]
        )
        for kind, labels in known_labels(site.of._replace(table=one)).items():
            for label in labels:
                seen.setdefault((kind, label), set()).add(names[i])
    # An era steers which constants a version takes: one is new only where its engine is.
    engines = {labels["engine"] for labels in table.labels}
    added = {
        (kind, label)
        for (kind, label), of in seen.items()
        if len(of) >= LEAST_CONDITIONS and (kind != "era" or label in engines)
    }
    known = {
        kind: labels | {label for of, label in added if of == kind}
        for kind, labels in calibration.known.items()
    }
    return replace(calibration, known=known)


def predicted(of: Study, i: int, calibration: InferenceCalibration) -> PredictedRow:
    """One row beside its prediction by this calibration."""
    row = of.table.rows[i]
    prediction = predict_inference(
        of.table.setups[i], calibration=calibration, benchmark=benchmark_of(row)
    )
    texts = {metric: row.get(f"measured_{metric}", "") for metric in METRICS}
    return PredictedRow(
        id=row.get("id", ""),
        groups={group: row.get(group, "") for group in GROUPS},
        predicted=metric_estimates(prediction),
        measured={metric: float(text) for metric, text in texts.items() if text},
    )


def left_out_rows(site: Site, whole: Refit) -> tuple[list[PredictedRow], list[PredictedRow]]:
    """Every row as a refit without its condition predicts it: ranges as of new, and of known."""
    names = conditions(site.of)
    order = {name: i for i, name in enumerate(dict.fromkeys(names))}
    n_folds = MOST_FOLDS if len(order) <= MANY_CONDITIONS else FOLDS_OF_MANY
    fold = np.array([order[name] % n_folds for name in names])
    as_new: dict[int, PredictedRow] = {}
    as_known: dict[int, PredictedRow] = {}
    for number in sorted(set(fold.tolist())):
        used = fold[site.of.seen.row] != number
        new = refitted(site, refit(site, used, near=whole), version="left out")
        known = with_known(site, used, new)
        for i in np.flatnonzero(fold == number).tolist():
            as_new[i] = predicted(site.of, i, new)
            as_known[i] = predicted(site.of, i, known)
    n = range(len(names))
    return [as_new[i] for i in n], [as_known[i] for i in n]


def misses(of: Study, rows: Sequence[PredictedRow]) -> list[list[Miss]]:
    """Per row, how far its figures lie from its left-out predictions; tails have no constants."""
    return [
        [
            Miss("user", of.table.setups[i].load.regime, metric, cells_of(of.table.labels[i]),
                 log(measured / row.predicted[metric].value))
            for metric, measured in row.measured.items()
            if metric in row.predicted and metric not in TAIL_METRICS
        ]
        for i, row in enumerate(rows)
    ]  # fmt: skip


def ranged(of: Study, rows: Sequence[PredictedRow]) -> list[PredictedRow]:
    """Left-out rows with ranges at least as wide as the other conditions' rows ask for."""
    names, missed = conditions(of), misses(of, rows)
    found = []
    for i, row in enumerate(rows):
        told = site_spreads([m for j, of_j in enumerate(missed) if names[j] != names[i]
                             for m in of_j])  # fmt: skip
        made = dict(row.predicted)
        for miss in missed[i]:
            spread = told.get(site_key(miss))
            if spread is not None:
                made[miss.metric] = widened(made[miss.metric], spread)
        found.append(replace(row, predicted=made))
    return found


def coverage_frac(rows: Sequence[PredictedRow]) -> float:
    """Share of all figures inside their ranges."""
    inside = [
        row.predicted[metric].low <= measured <= row.predicted[metric].high
        for row in rows
        for metric, measured in row.measured.items()
        if metric in row.predicted
    ]
    return sum(inside) / len(inside) if inside else 0.0


def pooled_ape(rows: Sequence[PredictedRow]) -> float:
    """Median error over all figures that a fit uses, as a fraction."""
    errors = [
        abs(row.predicted[metric].value / measured - 1.0)
        for row in rows
        for metric, measured in row.measured.items()
        if metric in row.predicted and metric not in TAIL_METRICS
    ]
    return float(np.median(errors)) if errors else 0.0
