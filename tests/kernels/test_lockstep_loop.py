"""A closed loop before ranks that step together: its arrivals, replayed as a stream, end alike."""

import numpy as np
import pytest

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.simulation.engine import EngineLimits
from gpuplan.domain.traffic.stream import ClosedLoop
from gpuplan.simulation.serving.run import simulate_lockstep_loop, simulate_serving
from kernels.test_lockstep import grouped, shared_experts

LIMITS = EngineLimits(max_batch_tokens=64, max_sequences=4, n_blocks=64, block_tokens=16)


def loop_of(n_users, n_each, think_s):
    n, rng = n_users * n_each, np.random.default_rng(5)
    return ClosedLoop(
        user=ints(np.repeat(np.arange(n_users), n_each)),
        think_s=floats(think_s * rng.random(n)),
        input_tokens=ints(rng.integers(1, 60, n)),
        output_tokens=ints(rng.integers(1, 40, n)),
    )


@pytest.mark.parametrize(("n_users", "think_s"), [(1, 0.0), (7, 0.0), (7, 0.3)])
@pytest.mark.parametrize("n_replicas", [1, 2])
def test_a_loop_is_the_stream_that_it_makes(n_users, think_s, n_replicas):
    layout = ServingLayout(dp=4, ep=4)
    fleet = grouped(LIMITS, shared_experts(4), layout, n_replicas, router="least_outstanding")
    loop = loop_of(n_users, 6, think_s)
    found = simulate_lockstep_loop(loop, fleet)
    again = simulate_serving(found.requests, fleet)
    assert found.times.is_finished.all()
    np.testing.assert_allclose(found.times.ttft_s, again.times.ttft_s, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.times.e2e_s, again.times.e2e_s, rtol=1e-9, atol=1e-11)
    ends = found.requests.arrive_s + found.times.e2e_s
    for user in range(n_users):
        rows = np.flatnonzero(found.requests.session == user)
        assert len(rows) == 6
        pauses = loop.think_s[user * 6 + 1 : user * 6 + 6]
        gaps = found.requests.arrive_s[rows[1:]] - ends[rows[:-1]]
        np.testing.assert_allclose(gaps, pauses, rtol=1e-6, atol=1e-9)
