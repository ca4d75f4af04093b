"""The smallest autoscaled fleet that holds a load: pools grow alike until no queue grows.

Pools of unlike size: a share of the paid time is one of accelerators, not of replicas.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.simulation.fleet import ElasticFleet, FleetOutcome, PoolSize
from gpuplan.domain.simulation.outcome import SloTargets, UseOverTime
from gpuplan.domain.simulation.simulation import FleetTried, SmallestFleet
from gpuplan.studies.replay.sizes import criterion, first_enough, holds, tried_point

MOST_REPLICAS = 1024
Run = Callable[[ElasticFleet], FleetOutcome]


def smallest_autoscaled(
    fleet: ElasticFleet,
    run: Run,
    *,
    slo: SloTargets | None,
    n_accelerators: Sequence[int],
    serves: bool = False,
) -> SmallestFleet:
    """Found by replaying: doubling finds a fleet that holds, halving the gap the first.

    Bounds of scalers grow with the pools; all else stays as it is. Where a fleet turns requests
    away its queue does not grow: with `serves` it must serve them, too.
    """
    limit, n_given = slo or SloTargets(), n_replicas_of(fleet)

    def tried(n: int) -> FleetTried:
        larger = grown(fleet, n)
        found, n_larger = weighed(run(larger), n_accelerators), n_replicas_of(larger)
        pairs = zip(found.pools, n_accelerators, strict=True)
        paid_s = sum(pool.paid_s * n_each for pool, n_each in pairs)
        return tried_point(found.outcome, n_larger, limit, paid_s=paid_s)

    def is_enough(point: FleetTried) -> bool:
        return holds(point, limit) and (not serves or point.recall_frac >= limit.kept_frac)

    aim = f"{_aim(limit, serves=serves)}; all pools grown alike"
    bounds = {"n_first": n_given, "n_below": n_given, "n_most": MOST_REPLICAS}
    return first_enough(tried, is_enough, aim, **bounds)


def _aim(slo: SloTargets, *, serves: bool) -> str:
    served = f", and {100 * slo.kept_frac:g} % of requests are served"
    return criterion(slo) + (served if serves and not slo.is_given else "")


def n_replicas_of(fleet: ElasticFleet) -> int:
    """The most that there can be at a time."""
    return sum(pool.size.n_slots for pool in fleet.pools)


def grown(fleet: ElasticFleet, n: int) -> ElasticFleet:
    """So many replicas at least, shared out as now: each pool is rounded up."""
    before = n_replicas_of(fleet)

    def larger(count: int) -> int:
        return -(-count * n // before)

    def of(size: PoolSize) -> PoolSize:
        return PoolSize(
            n_first=larger(size.n_first),
            n_least=None if size.n_least is None else larger(size.n_least),
            n_most=None if size.n_most is None else larger(size.n_most),
        )

    pools = tuple(replace(pool, size=of(pool.size)) for pool in fleet.pools)
    return replace(fleet, pools=pools)


def weighed(found: FleetOutcome, n_accelerators: Sequence[int]) -> FleetOutcome:
    """The run with busy and paid time, and use over time, counted in accelerators.

    Where all replicas have as many, the ratios are the same, and the run is left as it is.
    """
    if len(set(n_accelerators)) == 1:
        return found
    pairs = list(zip(found.pools, n_accelerators, strict=True))
    outcome = replace(
        found.outcome,
        paid_engine_s=sum(pool.paid_s * n for pool, n in pairs),
        totals=replace(found.outcome.totals, busy_s=sum(pool.busy_s * n for pool, n in pairs)),
        use=_use(found, n_accelerators),
    )
    return replace(found, outcome=outcome)


def _use(found: FleetOutcome, n_accelerators: Sequence[int]) -> UseOverTime:
    weights = [pool.on_s * n for pool, n in zip(found.pools, n_accelerators, strict=True)]
    on_s = np.sum(weights, axis=0)

    def mean(name: str) -> Floats:
        parts = [
            getattr(pool.use, name) * weight
            for pool, weight in zip(found.pools, weights, strict=True)
        ]
        shares = np.divide(np.sum(parts, axis=0), on_s, where=on_s > 0, out=np.zeros(len(on_s)))
        return floats(shares)

    return replace(
        found.outcome.use,
        busy_frac=mean("busy_frac"),
        cache_frac=mean("cache_frac"),
        compute_frac=mean("compute_frac"),
        bandwidth_frac=mean("bandwidth_frac"),
    )
