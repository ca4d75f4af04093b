"""Bands of utilization, peaks beside means, and what a pool of this size can bear."""

import math
from collections.abc import Sequence

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.telemetry.diagnosis import BandEdges, BandShare
from gpuplan.domain.telemetry.observation import Series

MINUTE_S = 60.0
PEAK_MINUS_MEAN = 0.25  # a peak minute so far above the mean makes the mean misleading
WAIT_CHANCE = 0.2  # of a request that meets all servers busy, at the safe point


def band_shares(values: Floats, weights_s: Floats, edges: BandEdges) -> tuple[BandShare, ...]:
    """Share of the measured time in each band, from the lowest up."""
    limits = (
        ("waste", 0.0, edges.waste_frac),
        ("under-used", edges.waste_frac, edges.good_frac),
        ("good", edges.good_frac, edges.hot_frac),
        ("hot", edges.hot_frac, edges.overload_frac),
        ("overload", edges.overload_frac, 1.0),
    )
    names = np.array([edges.band(float(value)) for value in values])
    whole_s = float(weights_s.sum())
    return tuple(
        BandShare(
            name=name,
            low_frac=low,
            high_frac=high,
            time_frac=float(weights_s[names == name].sum()) / whole_s if whole_s else 0.0,
        )
        for name, low, high in limits
    )


def minute_means(series: Sequence[Series]) -> Floats:
    """Mean over all series of each minute that has samples; sparse samples stand for themselves."""
    at_s = np.concatenate([one.at_s[one.is_given] for one in series])
    value = np.concatenate([one.value[one.is_given] for one in series])
    if len(at_s) == 0:
        return floats([])
    # Minutes without samples take no memory: a recording may pause for months.
    _, minute = np.unique(np.floor((at_s - at_s.min()) / MINUTE_S), return_inverse=True)
    return floats(np.bincount(minute, weights=value) / np.bincount(minute))


def pooled(series: Sequence[Series]) -> tuple[Floats, Floats]:
    """Values and how long each stands, of all series together."""
    value = np.concatenate([one.value[one.is_given] for one in series])
    weight_s = np.concatenate([one.weight_s[one.is_given] for one in series])
    return floats(value), floats(weight_s)


def safe_use(n_servers: int) -> float:
    """Utilization at which a request meets all servers busy with one chance in five [Erlang1917].

    Servers are independent replicas; exponential service is the pessimist's middle ground.
    """
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if erlang_c(n_servers, middle) <= WAIT_CHANCE else (low, middle)
    return low


def erlang_c(n_servers: int, use_frac: float) -> float:
    """Chance to wait among n servers; by the recursion of Erlang's loss formula."""
    load = n_servers * use_frac
    blocked = 1.0
    for k in range(1, n_servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked / (1.0 - use_frac * (1.0 - blocked)) if use_frac < 1.0 else 1.0


def mean_hides_peak(mean_frac: float, peak_frac: float, edges: BandEdges) -> str:
    """A warning where mean and peak tell different stories; empty where they agree."""
    mean_band, peak_band = edges.band(mean_frac), edges.band(peak_frac)
    is_far = peak_frac - mean_frac >= PEAK_MINUS_MEAN and not math.isclose(peak_frac, mean_frac)
    if mean_band == peak_band or not is_far:
        return ""
    return (
        f"the mean of {mean_frac:.0%} is {mean_band}, but the peak reaches {peak_frac:.0%} "
        f"({peak_band}): size for the peak, save in the valleys"
    )
