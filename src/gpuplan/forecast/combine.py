"""Weights of the experts, fitted to the past: they add up to one, and none is negative.

Errors count by size, not by square: the score of a forecast is its mean absolute error. Where the
past is short the weights stay near those that the experts' own errors suggest.

Simple forecasts that a combination is made of: last value, day and week ago, medians.

Medians, because outages written as zeros and single bursts must not move a level.
"""

from bisect import bisect_left, insort
from itertools import pairwise
from math import isnan
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from gpuplan.domain.columns import Floats, Ints, floats

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
MOST_PER_DAY = 48  # origins, and steps ahead, that weights are fitted to
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


class Experts:
    """What each simple forecast says; NaN: not enough past.

    Steps beyond a day look at the same hour of the last day that is known.
    """

    def __init__(self, values: Floats, season: Season) -> None:
        self._values, self._season = values, season
        self._day_level = _rolling_median(values, season.day)
        self._week_level = _rolling_median(values, season.week)
        place = np.arange(len(values) + season.day)
        same_hour = [_at(values, place - season.day * k) for k in range(1, N_DAYS + 1)]
        self._shape = _median(np.stack(same_hour), axis=0)  # over the seven days before

    def stated(self, origin: Ints, ahead: Ints | int) -> Floats:
        """By every expert (last axis) at origins, of steps ahead."""
        values, season = self._values, self._season
        now = values[origin]
        back = season.day * -(-ahead // season.day)
        shape = self._shape[origin + ahead - back + season.day]
        week = _at(values, origin + ahead - season.week * -(-ahead // season.week))
        columns = (
            now,
            _at(values, origin + ahead - back),
            shape,
            np.where(np.isnan(week), shape, week),
            self._day_level[origin],
            self._week_level[origin],
            now + shape - self._shape[origin],
        )
        return np.stack(np.broadcast_arrays(*columns), axis=-1)


def combined(
    experts: Experts, values: Floats, origin: int, *, season: Season, horizon: int
) -> Combined:
    """Steps after the origin, from what was known at it."""
    middle, low, high = np.zeros(horizon), np.zeros(horizon), np.zeros(horizon)
    for steps in _groups(horizon):
        past = _past(experts, values, origin, steps=steps, season=season)
        weights = _weights(past)
        errors = past.truth - past.rows @ weights
        tail = _tail(min(origin / season.day - 1.0, MAX_PAST_DAYS))
        below, above = np.quantile(errors, (1.0 - tail, tail)) if len(errors) else (0.0, 0.0)
        stated = experts.stated(np.array([origin]), np.arange(steps.start, steps.stop))
        value = np.nan_to_num(stated, nan=values[origin]) @ weights
        here = slice(steps.start - 1, steps.stop - 1)
        middle[here], low[here], high[here] = value, value + below, value + above
    middle, low, high = (np.maximum(level, 0.0) for level in (middle, low, high))
    return Combined(middle, low, high)


def _tail(n_days: float) -> float:
    """The quantile of n past errors that holds the next one in nine of ten cases [Vovk2005]."""
    n = N_PER_DAY * max(n_days, 1.0)
    return min(1.0, TAIL * (n + 1.0) / n)


def _groups(horizon: int) -> list[range]:
    """Steps that share their weights: soon, later today, tonight, tomorrow."""
    edges = [1 + round(horizon * low) for low, _ in GROUPS] + [horizon + 1]
    return [range(a, b) for a, b in pairwise(edges) if b > a]


def _past(experts: Experts, values: Floats, origin: int, *, steps: range, season: Season) -> Past:
    """What the experts said at earlier origins, and what came.

    Of steps under half an hour a part is looked at: minutes beside each other err alike.
    """
    first = max(season.day, origin - MAX_PAST_DAYS * season.day)
    every = max(1, season.day // MOST_PER_DAY)
    rows, truth, age = [], [], []
    for ahead in steps[::every]:
        origins = np.arange(first, origin - ahead + 1, every)
        rows.append(experts.stated(origins, ahead))
        truth.append(values[origins + ahead])
        age.append((origin - origins) / season.day)
    stated, came = np.vstack(rows), np.concatenate(truth)
    trust = 0.5 ** (np.concatenate(age) / HALF_LIFE_DAYS)
    is_whole = np.isfinite(stated).all(axis=1)
    return Past(stated[is_whole], came[is_whole], trust[is_whole])


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


def _at(values: Floats, place: Ints) -> Floats:
    inside = (place >= 0) & (place < len(values))
    return np.where(inside, values[np.clip(place, 0, len(values) - 1)], np.nan)


def _rolling_median(values: Floats, width: int) -> Floats:
    """Of the last values up to each, kept in order: a week of minutes is not sorted anew."""
    window: list[float] = []
    found = np.full(len(values), np.nan)
    for place, value in enumerate(values.tolist()):
        if not isnan(value):
            insort(window, value)
        if place >= width and not isnan(gone := float(values[place - width])):
            del window[bisect_left(window, gone)]
        if n := len(window):
            found[place] = (window[(n - 1) // 2] + window[n // 2]) / 2.0
    return found


def _median(stack: Floats, *, axis: int) -> Floats:
    """Median of what is there; NaN where nothing is."""
    ordered = np.sort(stack, axis=axis)  # NaN goes last
    n = np.sum(~np.isnan(stack), axis=axis)
    low, high = np.maximum((n - 1) // 2, 0), np.maximum(n // 2, 0)
    pick = np.expand_dims(low, axis), np.expand_dims(np.minimum(high, stack.shape[axis] - 1), axis)
    middle = [np.take_along_axis(ordered, p, axis).squeeze(axis) for p in pick]
    return np.where(n > 0, (middle[0] + middle[1]) / 2.0, np.nan)
