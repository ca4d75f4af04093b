"""Cumulative buckets over time become what fell into each bucket between two samples."""

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.observation import Histogram


class Buckets:
    """The buckets of one histogram as they are read."""

    def __init__(self) -> None:
        self._counts: dict[float, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        self._totals: dict[float, float] = defaultdict(float)
        self._all: dict[float, float] = defaultdict(float)

    def bucket(self, at_s: float, upper: float, count: float) -> None:
        """A cumulative count; equal bounds at one time (several reasons, models) add up."""
        self._counts[at_s][upper] += count

    def total(self, at_s: float, value: float) -> None:
        """Sum of the values so far."""
        self._totals[at_s] += value

    def number(self, at_s: float, count: float) -> None:
        """How many values so far: the infinite bucket, should the source not write it."""
        self._all[at_s] += count

    def histogram(self, metric: str, subject: int, quirk: Callable[..., None]) -> Histogram | None:
        """What fell into each bucket from sample to sample, or since the start if read once."""
        if not self._counts:
            return None
        if not any(math.inf in row for row in self._counts.values()):
            for at_s, count in self._all.items():
                self._counts[at_s][math.inf] = count
        times = sorted(self._counts)
        uppers = sorted({upper for row in self._counts.values() for upper in row})
        below = np.array([[self._counts[t].get(u, math.nan) for u in uppers] for t in times])
        if np.isnan(below).any():
            quirk("a bucket is missing in some samples", metric, "read as its lower neighbour")
            below = _filled(below)
        if uppers[-1] != math.inf:
            quirk("no infinite bucket", metric, "values above the last bound are not known")
        total = np.array([self._totals.get(t, math.nan) for t in times])
        if len(times) == 1:
            quirk("a histogram read once counts from the start", metric, "kept")
            rises, sums, at = below, total, times
        else:
            rises, sums, at = np.diff(below, axis=0), np.diff(total), times[:-1]
            is_reset = rises[:, -1] < 0
            rises[is_reset], sums[is_reset] = below[1:][is_reset], total[1:][is_reset]
        return Histogram(
            metric=metric,
            subject=subject,
            at_s=floats(at),
            upper=floats(uppers),
            count=floats(np.maximum(np.diff(rises, axis=1, prepend=0.0), 0.0)),
            total=floats(sums),
        )


def _filled(
    below: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    filled = below.copy()
    filled[:, 0] = np.nan_to_num(filled[:, 0])
    for k in range(1, filled.shape[1]):
        is_gap = np.isnan(filled[:, k])
        filled[is_gap, k] = filled[is_gap, k - 1]
    return filled
