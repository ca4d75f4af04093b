"""Autoscaled fleets: jumping equals stepping, an independent slow fleet agrees, nothing is lost."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.simulation.fleet import (
    FINISHED,
    LOST,
    REFUSED,
    TIMED_OUT,
    ElasticFleet,
    FleetOutcome,
)
from gpuplan.domain.traffic.stream import Requests
from gpuplan.simulation.serving.fleet.arrays import Jobs, elastic_of
from gpuplan.simulation.serving.fleet.run import simulate_fleet
from gpuplan.simulation.serving.kernels.fleet.state import PAIR_RANGE
from kernels.fleets import autoscaled_fleet, grouped_stream, services_of
from kernels.slow_fleet import Job, SlowFleet, table_time_s

COLUMNS = ("at_s", "pool", "n_ready", "n_starting", "n_draining", "n_failed")
ENDS = {"done": FINISHED, "refused": REFUSED, "timed out": TIMED_OUT, "lost": LOST}


def case(seed: int, n_most: int = 120) -> tuple[Requests, ElasticFleet, np.ndarray]:
    draw = np.random.default_rng(seed)
    requests = grouped_stream(draw, int(draw.integers(20, n_most)))
    fleet = autoscaled_fleet(draw, requests)
    return requests, fleet, services_of(draw, requests, fleet)


def slow(requests: Requests, fleet: ElasticFleet, service: np.ndarray) -> SlowFleet:
    n = len(requests)
    none = np.full(n, -1)
    handed = Jobs(requests, service, np.arange(n), none, np.zeros(n), None)
    drawn = elastic_of(handed, fleet)
    rule = fleet.router.rule
    keys = requests.session if rule == "session" else requests.prefix_group
    jobs = [
        Job(i, round(float(at), 12), int(requests.input_tokens[i]), int(requests.output_tokens[i]),
            int(service[i]), [int(keys[i])] if keys[i] >= 0 else [])
        for i, at in enumerate(requests.arrive_s - requests.arrive_s[0])
    ]  # fmt: skip

    def draw(which: str, replica: int, count: int) -> float:
        row = ("fail", "notice", "repair").index(which)
        return float(drawn.draw[row, (replica * 7919 + count) % drawn.draw.shape[1]])

    def pair(number: int, n_tries: int, n_ready: int) -> tuple[int, int]:
        a, b = drawn.pair[(number + 7919 * n_tries) % n]
        most = int(drawn.scalar[PAIR_RANGE])
        return int(a) * n_ready // most, int(b) * n_ready // most

    found = SlowFleet(fleet, jobs, [table_time_s(pool.table) for pool in fleet.pools], draw, pair)
    found.run()
    return found


def same_bytes(a: FleetOutcome, b: FleetOutcome) -> list[str]:
    """Names of what differs."""
    times = ("wait_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions")
    wrong = [
        name
        for name in times
        if getattr(a.outcome.times, name).tobytes() != getattr(b.outcome.times, name).tobytes()
    ]
    wrong += [
        name
        for name in COLUMNS
        if getattr(a.timeline, name).tobytes() != getattr(b.timeline, name).tobytes()
    ]
    wrong += ["end"] if a.end.tobytes() != b.end.tobytes() else []
    return wrong + (["counts"] if a.counts != b.counts else [])


@pytest.mark.parametrize("seed", range(30))
def test_jumping_equals_stepping(seed: int):
    requests, fleet, service = case(seed)
    jump = simulate_fleet(requests, fleet, service=service, bin_s=1.0)
    step = simulate_fleet(requests, fleet, service=service, bin_s=1.0, method="step")
    assert same_bytes(jump, step) == []
    a, b = jump.outcome.totals, step.outcome.totals
    assert (a.n_steps, a.n_computed_tokens, a.n_preemptions, a.n_free_blocks) == (
        b.n_steps, b.n_computed_tokens, b.n_preemptions, b.n_free_blocks,
    )  # fmt: skip
    assert a.busy_s == pytest.approx(b.busy_s, rel=1e-9, abs=1e-9)


# The last four: a prompt ends, to be handed over, as another client of the same replica is gone.
@pytest.mark.parametrize("seed", [*range(30), 1005, 1033, 1111, 1138])
def test_an_independent_slow_fleet_agrees(seed: int):
    requests, fleet, service = case(1000 + seed, n_most=60)
    fast = simulate_fleet(requests, fleet, service=service)
    oracle = slow(requests, fleet, service)
    ways = [ENDS.get(job.state, 5) for job in oracle.jobs]
    assert fast.end.tolist() == ways
    counts = {name: getattr(fast.counts, f"n_{name}") for name in oracle.counts}
    assert counts == oracle.counts
    done = np.flatnonzero(fast.end == FINISHED)
    ends = np.array([oracle.jobs[i].end_s - oracle.jobs[i].origin for i in done])
    firsts = np.array([oracle.jobs[i].first_s - oracle.jobs[i].origin for i in done])
    np.testing.assert_allclose(fast.outcome.times.e2e_s[done], ends, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(fast.outcome.times.ttft_s[done], firsts, rtol=1e-9, atol=1e-8)


def test_clients_that_leave_again_and_again_while_their_text_travels():
    """Each leaves an entry behind until its instant: there are more of them than rows for all."""
    requests, fleet, service = case(2033, n_most=60)
    assert fleet.kv_transfer is not None
    service = np.zeros_like(service)  # the one that is handed over
    often = replace(
        fleet,
        kv_transfer=replace(fleet.kv_transfer, latency_s=1e5),
        clients=replace(fleet.clients, timeout_s=200.0, is_first_token=False, max_retries=40),
    )
    fast = simulate_fleet(requests, often, service=service)
    oracle = slow(requests, often, service)
    assert fast.counts.n_handovers > 4 * len(requests) + 16
    assert fast.end.tolist() == [ENDS.get(job.state, 5) for job in oracle.jobs]
    assert fast.counts.n_timeouts == oracle.counts["timeouts"]
    assert fast.counts.n_handovers == oracle.counts["handovers"]
