"""Weights of the experts, fitted to the past: they add up to one, and none is negative.

Errors count by size, not by square: the score of a forecast is its mean absolute error. Where the
past is short the weights stay near those that the experts' own errors suggest.

Simple forecasts that a combination is made of: last value, day and week ago, medians.

Medians, because outages written as zeros and single bursts must not move a level.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import nnls

from gpuplan.domain.columns import Floats, floats

NAMES = (
    "last",
    "day ago",
    "day's shape",
    "week ago",
    "day's level",
    "week's level",
    "shifted shape",
)
N_DAYS = 7


class Season(NamedTuple):
    """Steps of a day and of a week."""

    day: int
    week: int


PULL = 0.05  # towards the weights that the experts' own errors suggest
SHARPNESS = 12.0  # with which a better expert is preferred before any fit
N_ROUNDS = 6
SMALL = 0.05  # of the mean: errors below it count alike
GROUPS = ((0.0, 1 / 8), (1 / 8, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1.0))  # of the day ahead
MAX_PAST_DAYS = 28
HALF_LIFE_DAYS = 14.0  # after which an error of the past counts half
TAIL = 0.9
N_PER_DAY = 8.0  # errors of neighbouring hours are alike: a day holds about so many of its own


class Past(NamedTuple):
    """What the experts said, what came, and how much each case counts."""

    rows: Floats
    truth: Floats
    trust: Floats


class Combined(NamedTuple):
    """A forecast with the range that past errors of its weights suggest."""

    middle: Floats
    low: Floats
    high: Floats


def combined(
    table: Floats, values: Floats, origin: int, *, season: Season, horizon: int
) -> Combined:
    """Steps after the origin, from what was known at it."""
    middle, low, high = np.zeros(horizon), np.zeros(horizon), np.zeros(horizon)
    for steps in _groups(horizon):
        past = _past(table, values, origin, steps=steps, season=season)
        weights = _weights(past)
        errors = past.truth - past.rows @ weights
        tail = _tail(min(origin / season.day - 1.0, MAX_PAST_DAYS))
        below, above = np.quantile(errors, (1.0 - tail, tail)) if len(errors) else (0.0, 0.0)
        for ahead in steps:
            value = float(np.nan_to_num(table[origin, ahead], nan=values[origin]) @ weights)
            middle[ahead - 1] = max(value, 0.0)
            low[ahead - 1] = max(value + below, 0.0)
            high[ahead - 1] = max(value + above, 0.0)
    return Combined(middle, low, high)


def _tail(n_days: float) -> float:
    """The quantile of n past errors that holds the next one in nine of ten cases [Vovk2005]."""
    n = N_PER_DAY * max(n_days, 1.0)
    return min(1.0, TAIL * (n + 1.0) / n)


def _groups(horizon: int) -> list[range]:
    """Steps that share their weights: soon, later today, tonight, tomorrow."""
    edges = [1 + round(horizon * low) for low, _ in GROUPS] + [horizon + 1]
    return [range(a, b) for a, b in pairwise(edges) if b > a]


def _past(table: Floats, values: Floats, origin: int, *, steps: range, season: Season) -> Past:
    """What the experts said at earlier origins, and what came."""
    first = max(season.day, origin - MAX_PAST_DAYS * season.day)
    rows, truth, age = [], [], []
    for ahead in steps:
        origins = np.arange(first, origin - ahead + 1)
        rows.append(table[origins, ahead])
        truth.append(values[origins + ahead])
        age.append((origin - origins) / season.day)
    said, came = np.vstack(rows), np.concatenate(truth)
    trust = 0.5 ** (np.concatenate(age) / HALF_LIFE_DAYS)
    is_whole = np.isfinite(said).all(axis=1)
    return Past(said[is_whole], came[is_whole], trust[is_whole])


def _weights(past: Past) -> Floats:
    """Non-negative weights of sum one with a small mean absolute error, by reweighted squares."""
    rows, truth, fresh = past
    n_experts = len(NAMES)
    if len(truth) == 0:
        return floats(np.eye(n_experts)[0])
    errors = np.average(np.abs(rows - truth[:, None]), axis=0, weights=fresh) + 1e-12
    start = (errors.min() / errors) ** SHARPNESS
    start /= start.sum()
    scale = float(np.abs(truth).mean()) + 1e-12
    size = float(np.sqrt((rows**2).mean() * fresh.sum()))
    pull = np.sqrt(PULL) * size * np.eye(n_experts)
    whole = 1e3 * scale * np.ones((1, n_experts))
    weights, trust = start, np.ones(len(truth))
    for _ in range(N_ROUNDS):
        root = np.sqrt(trust * fresh)
        left = np.vstack([rows * root[:, None], pull, whole])
        right = np.concatenate([truth * root, pull @ start, [1e3 * scale]])
        weights, _ = nnls(left, right)
        trust = 1.0 / np.maximum(np.abs(truth - rows @ weights), SMALL * scale)
        trust /= trust.mean()
    return np.asarray(weights / max(float(weights.sum()), 1e-12))


def expert_table(values: Floats, season: Season, horizon: int) -> Floats:
    """[origin, step ahead, expert]; row 0 of the steps is not used. NaN: not enough past.

    Steps beyond a day look at the same hour of the last day that is known.
    """
    n = len(values)
    table = np.full((n, horizon + 1, len(NAMES)), np.nan)
    origin = np.arange(n)
    day_level = _rolling_median(values, season.day)
    week_level = _rolling_median(values, season.week)
    shape_now = _shape(values, origin, season.day)
    for ahead in range(1, horizon + 1):
        back = season.day * -(-ahead // season.day)
        shape = _shape(values, origin + ahead - back + season.day, season.day)
        week = _at(values, origin + ahead - season.week * -(-ahead // season.week))
        table[:, ahead] = np.stack(
            [
                values,
                _at(values, origin + ahead - back),
                shape,
                np.where(np.isnan(week), shape, week),
                day_level,
                week_level,
                values + shape - shape_now,
            ],
            axis=1,
        )
    return table


def _at(values: Floats, place: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    inside = (place >= 0) & (place < len(values))
    return np.where(inside, values[np.clip(place, 0, len(values) - 1)], np.nan)


def _shape(values: Floats, place: np.ndarray[tuple[int], np.dtype[np.int64]], day: int) -> Floats:
    """Median of the same hour over the seven days before."""
    stack = np.stack([_at(values, place - day * k) for k in range(1, N_DAYS + 1)])
    return _median(stack, axis=0)


def _rolling_median(values: Floats, width: int) -> Floats:
    padded = np.concatenate([np.full(width - 1, np.nan), values])
    return _median(sliding_window_view(padded, width), axis=1)


def _median(stack: Floats, *, axis: int) -> Floats:
    """Median of what is there; NaN where nothing is."""
    ordered = np.sort(stack, axis=axis)  # NaN goes last
    n = np.sum(~np.isnan(stack), axis=axis)
    low, high = np.maximum((n - 1) // 2, 0), np.maximum(n // 2, 0)
    pick = np.expand_dims(low, axis), np.expand_dims(np.minimum(high, stack.shape[axis] - 1), axis)
    middle = [np.take_along_axis(ordered, p, axis).squeeze(axis) for p in pick]
    return np.where(n > 0, (middle[0] + middle[1]) / 2.0, np.nan)
