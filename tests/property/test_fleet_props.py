"""Living fleets of every kind: each request ends once, and nothing is left behind."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuplan.domain.simulation.fleet import FINISHED, UNSERVED
from gpuplan.simulation.serving.fleet.run import simulate_fleet
from kernels.fleets import autoscaled_fleet, grouped_stream, services_of


# A pool at zero whose clock never asks it to grow, while one request waits: it must end.
@example(seed=40128, n=1)
@example(seed=111, n=1)  # the only client leaves before the fleet has come to rest
@given(seed=st.integers(0, 10**6), n=st.integers(1, 80))
@settings(max_examples=60, deadline=None)
def test_every_request_ends_once_and_all_is_given_back(seed: int, n: int):
    draw = np.random.default_rng(seed)
    requests = grouped_stream(draw, n)
    fleet = autoscaled_fleet(draw, requests)
    service = services_of(draw, requests, fleet)
    found = simulate_fleet(requests, fleet, service=service)
    outcome, times = found.outcome, found.outcome.times
    assert outcome.n_completed + outcome.n_refused == n
    assert outcome.n_completed == found.n_ended(FINISHED)
    done = times.is_finished == 1
    assert np.all(times.wait_s >= 0)
    assert np.all(times.ttft_s[done] >= times.wait_s[done])
    assert np.all(times.e2e_s[done] >= times.ttft_s[done])
    if not found.n_ended(UNSERVED):
        blocks = sum(pool.size.n_slots * pool.limits.n_blocks for pool in fleet.pools)
        assert outcome.totals.n_free_blocks == blocks
    # All that is counted adds up.
    assert found.counts.n_retries == int(found.n_tries.sum()) - n
    assert found.counts.n_resends <= found.counts.n_broken
    assert sum(pool.n_served for pool in found.pools) == outcome.n_completed
    # Replicas are paid from their start to their end, whatever they do in between; the fleet may
    # still change after its last client has left.
    end_s = max(outcome.totals.span_s, float(found.timeline.at_s[-1]))
    for pool, totals in zip(fleet.pools, found.pools, strict=True):
        assert totals.busy_s <= totals.paid_s + 1e-6
        assert totals.paid_s <= pool.size.n_slots * end_s + 1e-6
        assert totals.ready_s + totals.starting_s <= totals.paid_s + 1e-6


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_same_input_same_bytes(seed: int):
    draw = np.random.default_rng(seed)
    requests = grouped_stream(draw, 40)
    fleet = autoscaled_fleet(draw, requests)
    a, b = simulate_fleet(requests, fleet), simulate_fleet(requests, fleet)
    assert a.outcome.times.e2e_s.tobytes() == b.outcome.times.e2e_s.tobytes()
    assert a.timeline.at_s.tobytes() == b.timeline.at_s.tobytes()
    assert a.counts == b.counts
