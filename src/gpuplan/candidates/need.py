"""Replicas for every hour from a few sized loads, never too few.

A load between two sized ones takes the replicas of the higher one, or those of the lower one in
proportion, whichever is fewer: a larger pool never needs more per request than a smaller one,
because it could be run as several of those.
"""

from math import ceil

import numpy as np

from gpuplan.domain.columns import Floats, ints
from gpuplan.domain.plan.sizing import DemandProfile, ReplicaNeed

N_POINTS = 5
RATIOS = (4.0, 32.0)  # of the first peak: steps of growth
LEAST_FRAC = 0.1  # of the highest load: below, the need of this load is kept


def load_points(demand: DemandProfile) -> list[float]:
    """Loads worth sizing: the peak of the first period, lower hours, and growth step by step.

    Beyond the last step a pool gains little by its size: the need goes on in proportion.
    """
    loads = loads_of(demand)
    today = float(loads[0, 0].max())
    top = float(loads.max())
    low = max(float(loads[loads > 0].min(initial=today)), LEAST_FRAC * today)
    points = {today, *(min(top, ratio * today) for ratio in RATIOS)}
    if low < today * (1 - 1e-9):
        points |= {float(x) for x in np.geomspace(low, today, N_POINTS)[:-1]}
    return sorted(points)


def loads_of(demand: DemandProfile) -> Floats:
    """Load of every scenario, period and hour, per second or in accelerators."""
    peak = demand.peak_requests_per_s
    peak = demand.n_accelerators if peak is None else peak
    ratio = np.asarray(demand.periods.load_ratio)
    return np.asarray((peak or 0.0) * ratio[:, :, None] * demand.hours.load_frac[None, None, :])


def need_of(demand: DemandProfile, sized: dict[float, int]) -> ReplicaNeed:
    """Every hour's replicas from sized loads; an hour without load needs none."""
    known = sorted(sized.items())
    loads = loads_of(demand)
    distinct, place = np.unique(loads, return_inverse=True)
    n = np.array([_need_at(load, known) for load in distinct], dtype=np.int64)
    # More load never takes fewer replicas, whatever chance did to single points.
    n = np.maximum.accumulate(n)
    return ReplicaNeed(n_replicas=ints(n[place].reshape(loads.shape)))


def _need_at(load: float, known: list[tuple[float, int]]) -> int:
    if load <= 0:
        return 0
    above = [n for at, n in known if at >= load * (1 - 1e-9)]
    below = [ceil(n * load / at - 1e-9) for at, n in known if at < load]
    return max(1, min([*above, *below]))


def need_in_proportion(demand: DemandProfile, capacity_per_replica: float) -> ReplicaNeed:
    """Every hour's replicas where one carries so much; the least load needs one."""
    loads = loads_of(demand)
    n = np.maximum(np.ceil(loads / capacity_per_replica - 1e-9), loads > 0)
    return ReplicaNeed(n_replicas=ints(n.astype(np.int64)))
