"""The smallest autoscaled fleet: found by trying, all pools grown alike."""

import numpy as np
import pytest

from gpuplan.domain.simulation.engine import EngineLimits
from gpuplan.domain.simulation.fleet import Autoscaler, ElasticFleet, Pool, PoolSize
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.fleet.run import simulate_fleet
from gpuplan.studies.replay.autoscaled.sizes import grown, n_replicas_of, smallest_autoscaled
from kernels.cases import constant_table

LIMITS = EngineLimits(max_batch_tokens=64, max_sequences=1, n_blocks=1000, block_tokens=16)
TABLE = constant_table(0.1, max_tokens=64, max_sequences=4)


def pool(name: str, size: PoolSize, **parts: object) -> Pool:
    return Pool(name=name, limits=LIMITS, table=TABLE, size=size, **parts)  # type: ignore[arg-type]


def test_pools_keep_their_shares_and_their_bounds():
    scaler = Autoscaler(target_requests=2.0)
    fleet = ElasticFleet(
        pools=(
            pool("a", PoolSize(n_first=2)),
            pool("b", PoolSize(n_first=0, n_least=0, n_most=4), scaler=scaler),
        )
    )
    larger = grown(fleet, 9)
    assert [p.size for p in larger.pools] == [
        PoolSize(n_first=3), PoolSize(n_first=0, n_least=0, n_most=6)
    ]  # fmt: skip
    assert n_replicas_of(larger) == 9
    assert grown(fleet, 6) == fleet


@pytest.mark.parametrize(("rate", "expected"), [(4.4, 5), (2.4, 3)])
def test_the_first_that_holds_is_named_and_the_one_below_was_tried(rate: float, expected: int):
    """One request at a time of 1 s each: as many replicas as requests a second, and a bit."""
    draw = np.random.default_rng(1)
    n = 4000
    requests = requests_of(np.cumsum(draw.exponential(1 / rate, n)), [1] * n, [10] * n)
    fleet = ElasticFleet(pools=(pool("a", PoolSize(n_first=1)),))
    found = smallest_autoscaled(
        fleet, lambda larger: simulate_fleet(requests, larger), slo=None, n_accelerators=(1,)
    )
    assert found.n_replicas == expected
    tried = {point.n_replicas: point.is_overloaded for point in found.tried}
    assert tried[expected - 1]
    assert not tried[expected]
