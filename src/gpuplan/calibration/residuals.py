"""Residuals of held-out rows: log errors in, errors by figure and ranges for new rows out."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from math import nan
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.calibration.validation import MetricErrors

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Row = TypeVar("Row")
Fitted = TypeVar("Fitted")
COVERED_FRAC = 0.8
LEAST_GROUPS = 2


class Spread(NamedTuple):
    """Factors on a prediction that hold 80 % of what was measured."""

    low: float
    high: float


def metric_errors(errors: Floats, inside: Sequence[bool] | Flags | float) -> MetricErrors:
    """The figures of relative errors, and the share of measurements inside their ranges."""
    ape = np.abs(errors)
    return MetricErrors(
        n=len(ape),
        median_ape=float(np.median(ape)),
        mape=float(np.mean(ape)),
        p90_ape=float(np.quantile(ape, 0.9)),
        bias=float(np.median(errors)),
        range_coverage=float(np.mean(inside)),
    )


def score(log_errors: Floats, range_coverage: float = nan) -> MetricErrors:
    """The figures of log errors, log(predicted / measured); the bias is that of the median row."""
    bias = float(np.expm1(np.median(log_errors)))
    return replace(metric_errors(np.expm1(log_errors), range_coverage), bias=bias)


def spread_of(log_errors: Floats, weights: Floats | None = None) -> Spread:
    """The central 80 % of measured over predicted; few rows widen it."""
    ratio = np.sort(-log_errors)
    tail = (1 - COVERED_FRAC) / 2
    low, high = weighted_quantiles(-log_errors, weights, at=(tail, 1 - tail))
    widened = 1 + 2 / max(len(ratio), 1)
    return Spread(float(np.exp(low * widened)), float(np.exp(high * widened)))


def clustered_spread(log_errors: Floats, groups: Sequence[Hashable]) -> Spread:
    """The 80 % range for a row of a new group: few groups say little, however many rows.

    Rows of a group err together. The spread of the groups' medians about zero and the spread
    within groups add as squares; as many groups as there are set Student's factor.
    """
    from scipy.special import ndtri, stdtrit  # noqa: PLC0415 - only where ranges are drawn anew

    names = np.array([str(group) for group in groups])
    parts = [log_errors[names == name] for name in dict.fromkeys(names.tolist())]
    if len(parts) < LEAST_GROUPS:
        return spread_of(log_errors)
    middles = np.array([np.median(part) for part in parts])
    rest = np.concatenate([part - middle for part, middle in zip(parts, middles, strict=True)])
    tail = (1 - COVERED_FRAC) / 2
    within = float(np.diff(np.quantile(rest, (tail, 1 - tail)))[0]) / (2 * ndtri(1 - tail))
    between = float(np.mean(middles**2)) ** 0.5
    half = stdtrit(len(parts), 1 - tail) * float(np.hypot(between, within))
    return Spread(float(np.exp(-half)), float(np.exp(half)))


def weighted_quantiles(
    values: Floats, weights: Floats | None = None, *, at: Sequence[float]
) -> Floats:
    """Quantiles of values that count by their weights, between the middles of their masses."""
    order = np.argsort(values)
    mass = np.ones(len(values)) if weights is None else weights
    place = np.cumsum(mass[order]) - 0.5 * mass[order]
    found: Floats = np.interp(at, place / mass.sum(), values[order])
    return found


def is_inside(log_errors: Floats, spread: Spread) -> Flags:
    """Whether each measurement lies inside its range."""
    ratio = np.exp(-log_errors)
    inside: Flags = (ratio >= spread.low) & (ratio <= spread.high)
    return inside


def held_out_errors(
    rows: Sequence[Row],
    key: Callable[[Row], Hashable],
    *,
    fit: Callable[[Sequence[Row]], Fitted],
    errors: Callable[[Sequence[Row], Fitted], Floats],
) -> dict[Hashable, Floats]:
    """The log errors of every fold, predicted by a fit to the rows of the other folds."""
    folds: dict[Hashable, list[Row]] = {}
    for row in rows:
        folds.setdefault(key(row), []).append(row)
    return {
        fold: errors(held_out, fit([row for row in rows if key(row) != fold]))
        for fold, held_out in folds.items()
    }
