"""Percentiles of values that are not kept: counts in bins of equal relative width.

A bin is the first 10 bits of a float's mantissa with its exponent: 1,024 bins to each doubling, so
that the middle of a bin is within 0.05 % of every value in it. Counts add: batches, blocks and
processes merge without loss. Zero has a bin of its own.
"""

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.simulation.outcome import Bounds, Summary
from gpuplan.simulation.serving.intervals import (
    PERCENTILES,
    share_error,
    share_range,
    t_quantile,
)

SUB_BITS = 10
SHIFT = 52 - SUB_BITS
LOWEST_S, HIGHEST_S = 2.0**-30, 2.0**22  # a nanosecond, 48 days
ERROR_FRAC = 2.0 ** -(SUB_BITS + 1)


def _bits(value: float) -> int:
    return int(np.array([value]).view(np.int64)[0] >> SHIFT)


FIRST = _bits(LOWEST_S)
N_BINS = _bits(HIGHEST_S) - FIRST + 1  # bin 0 holds what is below the lowest, above all zero


def counts_of(values: Floats) -> Ints:
    """How many values fall in each bin."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64) >> SHIFT
    place = np.clip(bits - FIRST + 1, 0, N_BINS - 1)
    return np.bincount(place, minlength=N_BINS)


def middles() -> Floats:
    """The value that stands for each bin."""
    bits = (np.arange(N_BINS, dtype=np.int64) + FIRST - 1) << SHIFT
    edges = bits.view(np.float64)
    value: Floats = edges * (1.0 + ERROR_FRAC)
    value[0] = 0.0
    return value


class Sketch:
    """Counts of one measure by batches of consecutive requests."""

    def __init__(self, n_batches: int) -> None:
        self.counts = np.zeros((n_batches, N_BINS), dtype=np.uint32)
        self.sums_s = np.zeros(n_batches)
        self.most_s = np.zeros(n_batches)

    def add(self, batch: int, values: Floats) -> None:
        """Count the values of one batch."""
        if len(values):
            self.counts[batch] += counts_of(values).astype(np.uint32)
            self.sums_s[batch] += values.sum()
            self.most_s[batch] = max(self.most_s[batch], values.max())

    def halve(self) -> None:
        """Two batches become one: the first half of the rows holds all, the rest is free."""
        half = len(self.counts) // 2
        self.counts[:half] = self.counts[0::2] + self.counts[1::2]
        self.sums_s[:half] = self.sums_s[0::2] + self.sums_s[1::2]
        self.most_s[:half] = np.maximum(self.most_s[0::2], self.most_s[1::2])
        self.counts[half:], self.sums_s[half:], self.most_s[half:] = 0, 0.0, 0.0

    def means(self, batches: slice) -> Floats:
        """Mean of each batch; 0 where it is empty."""
        n = self.counts[batches].sum(axis=1)
        means: Floats = np.divide(self.sums_s[batches], n, out=np.zeros(len(n)), where=n > 0)
        return means

    def summary(self, batches: slice) -> Summary | None:
        """As `intervals.summary`, from the counts of these batches."""
        counts = self.counts[batches].astype(np.int64)
        n_each = counts.sum(axis=1)
        n = int(n_each.sum())
        if n == 0:
            return None
        cumulated = np.cumsum(counts.sum(axis=0))
        mean = float(self.sums_s[batches].sum() / n)
        half = _half_width(self.means(batches)[n_each > 0])
        points = {name: _value_at(cumulated, share, n) for name, share in PERCENTILES.items()}
        return Summary(
            n=n,
            mean_s=mean,
            max_s=float(self.most_s[batches].max()),
            mean_low_s=None if half is None else mean - half,
            mean_high_s=None if half is None else mean + half,
            bounds=tuple(_bounds(name, counts, cumulated) for name in PERCENTILES),
            **{f"{name}_s": value for name, value in points.items()},
        )


def _half_width(means: Floats) -> float | None:
    if len(means) < 2:
        return None
    return float(t_quantile(len(means)) * means.std(ddof=1) / np.sqrt(len(means)))


def _value_at(cumulated: Ints, share: float, n: int) -> float:
    place = int(np.searchsorted(cumulated, max(1.0, np.ceil(share * n))))
    return float(middles()[place])


def _bounds(name: str, counts: Ints, cumulated: Ints) -> Bounds:
    share, n = PERCENTILES[name], int(cumulated[-1])
    n_each = counts.sum(axis=1)
    place = int(np.searchsorted(cumulated, np.ceil(share * n)))
    below = counts[n_each > 0, : place + 1].sum(axis=1) / n_each[n_each > 0]
    low, high = share_range(share, share_error(share, below, n), len(below))
    rank_low, rank_high = np.floor(n * low), np.ceil(n * high) + 1
    return Bounds(
        percentile=name,
        low_s=_value_at(cumulated, low, n) if rank_low >= 1 else None,
        high_s=_value_at(cumulated, rank_high / n, n) if rank_high <= n else None,
    )
