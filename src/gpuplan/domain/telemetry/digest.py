"""A fleet too large to hold as series: every device in a few figures, exact where it matters.

Quantiles from histograms: buckets are added up first, quantiles are never averaged.
"""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.telemetry.observation import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDigests:
    """One row per device; NaN is what was not measured."""

    name: tuple[str, ...]
    team: tuple[str, ...]
    model: tuple[str, ...]
    span_s: Floats
    mean_frac: Floats  # of utilization
    p95_frac: Floats  # exact to a percent
    peak_frac: Floats
    idle_frac: Floats  # share of samples at or below 2 %
    sm_frac: Floats  # mean of processors active
    tensor_frac: Floats
    power_w: Floats
    held_bytes: Floats  # mean of device memory in use


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDigest:
    """All devices, and the whole over time."""

    source: str
    devices: DeviceDigests
    percent_s: Floats  # [0 … 100] device time at each whole percent of utilization
    at_s: Floats  # of the whole, by the hour
    hour_mean_frac: Floats
    hour_peak_frac: Floats  # highest instant mean over all devices within the hour
    n_rows: int


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
