"""What a fit leaves over, in: log errors outside the fit; out: scores, and ranges for new rows."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Row = TypeVar("Row")
Fitted = TypeVar("Fitted")
COVERED_FRAC = 0.8
LEAST_GROUPS, FEW_GROUPS = 2, 20


class Score(NamedTuple):
    """Errors of one set of rows, as fractions; bias is positive where we predict too much."""

    n: int
    median_ape: float
    mape: float
    p90_ape: float
    bias: float
    range_coverage: float | None


class Spread(NamedTuple):
    """Factors on a prediction that hold 80 % of what was measured."""

    low: float
    high: float


def score(log_errors: Floats, spread: Spread | None = None) -> Score:
    """Errors of predictions; log error is log(predicted / measured)."""
    ape = np.abs(np.expm1(log_errors))
    return Score(
        n=len(ape),
        median_ape=float(np.median(ape)),
        mape=float(np.mean(ape)),
        p90_ape=float(np.quantile(ape, 0.9)),
        bias=float(np.expm1(np.median(log_errors))),
        range_coverage=None if spread is None else coverage(log_errors, spread),
    )


def spread_of(log_errors: Floats, weights: Floats | None = None) -> Spread:
    """The central 80 % of measured over predicted; few rows widen it."""
    ratio = np.sort(-log_errors)
    tail = (1 - COVERED_FRAC) / 2
    low, high = _quantiles(-log_errors, weights, (tail, 1 - tail))
    widened = 1 + 2 / max(len(ratio), 1)
    return Spread(float(np.exp(low * widened)), float(np.exp(high * widened)))


def clustered_spread(log_errors: Floats, groups: Sequence[Hashable]) -> Spread:
    """Factors for a row of a group never seen: few groups tell little, however many rows.

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


def _quantiles(values: Floats, weights: Floats | None, at: tuple[float, float]) -> Floats:
    order = np.argsort(values)
    mass = np.ones(len(values)) if weights is None else weights
    place = np.cumsum(mass[order]) - 0.5 * mass[order]
    found: Floats = np.interp(at, place / mass.sum(), values[order])
    return found


def coverage(log_errors: Floats, spread: Spread) -> float:
    """Share of measurements inside their range."""
    ratio = np.exp(-log_errors)
    return float(np.mean((ratio >= spread.low) & (ratio <= spread.high)))


def left_out_errors(
    rows: Sequence[Row],
    key: Callable[[Row], Hashable],
    *,
    fit: Callable[[Sequence[Row]], Fitted],
    errors: Callable[[Sequence[Row], Fitted], Sequence[Floats]],
) -> dict[Hashable, Floats]:
    """Log errors of every fold, each predicted by a fit that never saw it."""
    folds: dict[Hashable, list[Row]] = {}
    for row in rows:
        folds.setdefault(key(row), []).append(row)
    found = {}
    for fold, held in folds.items():
        fitted = fit([row for row in rows if key(row) != fold])
        parts = errors(held, fitted)
        if parts:
            found[fold] = np.concatenate(parts)
    return found


def spread_across(folds: Mapping[Hashable, Floats]) -> Spread:
    """The range of one more fold: of all rows where folds are many, wider where they are few."""
    errors = np.concatenate(list(folds.values()))
    if len(folds) >= FEW_GROUPS:
        return spread_of(errors)
    groups = [fold for fold, held in folds.items() for _ in held]
    return clustered_spread(errors, groups)


def outer_coverage(
    folds: Mapping[Hashable, Floats],
    spread: Callable[[Mapping[Hashable, Floats]], Spread] | None = None,
) -> float:
    """Share of rows inside a range drawn from the residuals of the other folds only."""
    drawn = spread or (lambda others: spread_of(np.concatenate(list(others.values()))))
    inside, n = 0.0, 0
    for fold, held in folds.items():
        others = {other: errors for other, errors in folds.items() if other != fold}
        if not others:
            continue
        inside += coverage(held, drawn(others)) * len(held)
        n += len(held)
    return inside / n if n else float("nan")
