"""Pools of unlike size: a share of the paid time is one of accelerators, not of replicas."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.simulation.fleet import FleetOutcome
from gpuplan.domain.simulation.outcome import UseOverTime


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
