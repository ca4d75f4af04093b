"""Simple forecasts that a combination is made of: last value, day and week ago, medians.

Medians, because outages written as zeros and single bursts must not move a level.
"""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gpuplan.domain.columns import Floats

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
