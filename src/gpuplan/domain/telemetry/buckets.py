"""Quantiles from histograms: buckets are added up first, quantiles are never averaged."""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.telemetry.observation import Histogram


def summed(histograms: Sequence[Histogram]) -> tuple[Floats, Floats]:
    """Upper bounds and counts of all histograms of one metric, over all time and subjects.

    Bounds may differ between subjects: counts go to the union of bounds, where each bucket's own
    upper bound is one of them.
    """
    upper = np.unique(np.concatenate([one.upper for one in histograms]))
    count = np.zeros(len(upper))
    for one in histograms:
        count[np.searchsorted(upper, one.upper)] += np.nansum(one.count, axis=0)
    return floats(upper), floats(count)


def quantile(upper: Floats, count: Floats, share: float) -> float | None:
    """The value that this share stays below, by straight lines within a bucket; None: no counts.

    In the unbounded last bucket the answer is its lower bound: the true value is at least that.
    """
    total = float(count.sum())
    if total <= 0:
        return None
    below = np.cumsum(count)
    k = int(np.searchsorted(below, share * total))
    k = min(k, len(upper) - 1)
    lower = float(upper[k - 1]) if k > 0 else 0.0
    if not np.isfinite(upper[k]):
        return lower
    before = float(below[k - 1]) if k > 0 else 0.0
    inside = float(count[k])
    part = (share * total - before) / inside if inside > 0 else 1.0
    return lower + (float(upper[k]) - lower) * part
