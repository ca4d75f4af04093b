"""Autoscaled fleets whose engines have policies: prefix cache, priorities, draft tokens."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.fleet import FINISHED, UNSERVED, ElasticFleet, Pool, PoolSize, Router
from gpuplan.domain.traffic.stream import ClosedLoop, Requests
from gpuplan.simulation.serving.fleet.arrays import Jobs, elastic_of
from gpuplan.simulation.serving.fleet.run import simulate_closed_loop, simulate_fleet
from gpuplan.simulation.serving.kernels.fleet.state import PAIR_RANGE
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, limits_of
from kernels.fleets import (
    autoscaled_fleet,
    drafting,
    services_of,
    talking_stream,
    wide,
    with_policies,
)
from kernels.slow_featured_fleet import SlowFeaturedFleet
from kernels.slow_fleet import Job, table_time_s
from kernels.test_autoscaled_fleet import ENDS, same_bytes
from kernels.texts import texts_of_groups, traced_stream


def case(seed: int, n: int, *, drafts: bool = True) -> tuple[Requests, ElasticFleet, np.ndarray]:
    draw = np.random.default_rng(seed)
    requests = talking_stream(draw, n)
    fleet = with_policies(draw, autoscaled_fleet(draw, requests), drafts=drafts)
    return requests, fleet, services_of(draw, requests, fleet)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 110))
@settings(max_examples=60, deadline=None)
def test_jumping_equals_stepping(seed: int, n: int):
    requests, fleet, service = case(seed, n)
    jump = simulate_fleet(requests, fleet, service=service, bin_s=1.0)
    step = simulate_fleet(requests, fleet, service=service, bin_s=1.0, method="step")
    assert same_bytes(jump, step) == []
    assert jump.outcome.times.n_cached_tokens.tobytes() == (
        step.outcome.times.n_cached_tokens.tobytes()
    )
    names = ("n_steps", "n_computed_tokens", "n_preemptions", "n_free_blocks", "n_hit_tokens")
    a, b = jump.outcome.totals, step.outcome.totals
    assert [getattr(a, name) for name in names] == [getattr(b, name) for name in names]
    assert a.busy_s == pytest.approx(b.busy_s, rel=1e-9, abs=1e-9)
    if not jump.n_ended(UNSERVED):
        blocks = sum(pool.size.n_slots * pool.limits.n_blocks for pool in fleet.pools)
        assert a.n_free_blocks == blocks


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_an_independent_slow_fleet_agrees(seed: int, n: int):
    requests, fleet, service = case(seed, n, drafts=False)
    if fleet.kv_transfer is not None:
        fleet = replace(fleet, kv_transfer=None, services=(fleet.services[1],) * 2)
    fast = simulate_fleet(requests, fleet, service=service)
    oracle = slow(requests, fleet, service)
    assert fast.end.tolist() == [ENDS.get(job.state, UNSERVED) for job in oracle.jobs]
    assert {name: getattr(fast.counts, f"n_{name}") for name in oracle.counts} == oracle.counts
    done = np.flatnonzero(fast.end == FINISHED)
    jobs = [oracle.jobs[i] for i in done]
    times = fast.outcome.times
    ends, firsts = ([getattr(j, x) - j.origin for j in jobs] for x in ("end_s", "first_s"))
    np.testing.assert_allclose(times.e2e_s[done], ends, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(times.ttft_s[done], firsts, rtol=1e-9, atol=1e-8)
    assert times.n_cached_tokens[done].tolist() == [j.request.n_hit for j in jobs]


def slow(requests: Requests, fleet: ElasticFleet, service: np.ndarray) -> SlowFeaturedFleet:
    n = len(requests)
    handed = Jobs(requests, service, np.arange(n), np.full(n, -1), np.zeros(n), None)
    drawn = elastic_of(handed, fleet)
    keys = requests.prefix_group
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

    paths = texts_of_groups(requests, 16)
    times = [table_time_s(pool.table) for pool in fleet.pools]
    found = SlowFeaturedFleet(requests, paths, fleet, jobs, times, draw, pair)
    found.run()
    return found


@pytest.mark.parametrize("rule", ["round_robin", "least_outstanding", "power_of_two"])
@pytest.mark.parametrize("kind", ["prefixes of a trace", "priority and prefixes", "drafts"])
def test_a_fleet_at_rest_is_the_fleet_of_equal_engines(rule: str, kind: str):
    draw = np.random.default_rng(11)
    requests, blocks = traced_stream(draw, 300)
    limits = limits_of(draw, requests, caches_prefixes=True)
    if kind == "priority and prefixes":
        limits = replace(limits, scheduling="priority")
    if kind == "drafts":
        limits = drafting(draw, limits)
    table = bent_table(draw, wide(limits))
    still = Fleet(limits=limits, table=table, n_engines=5, router=rule, seed=3)
    one = Pool(name="a", limits=limits, table=table, size=PoolSize(n_first=5))
    elastic = ElasticFleet(pools=(one,), router=Router(rule=rule), seed=3)
    a = simulate_serving(requests, still, blocks=blocks)
    b = simulate_fleet(requests, elastic, blocks=blocks).outcome
    for name in ("wait_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions", "n_cached_tokens"):
        assert getattr(a.times, name).tobytes() == getattr(b.times, name).tobytes(), name
    assert (a.totals.n_steps, a.totals.n_hit_tokens, a.totals.n_free_blocks) == (
        b.totals.n_steps, b.totals.n_hit_tokens, b.totals.n_free_blocks,
    )  # fmt: skip


def talk(draw: np.random.Generator, n_users: int, n_turns: int) -> ClosedLoop:
    """Each prompt holds all that was said before it, and something new."""
    asked, answered = draw.integers(20, 200, (2, n_users, n_turns))
    said = np.cumsum(asked + answered, axis=1)
    before = np.concatenate([np.zeros((n_users, 1), dtype=np.int64), said[:, :-1]], axis=1)
    return ClosedLoop(
        user=ints(np.repeat(np.arange(n_users), n_turns)),
        think_s=floats(draw.exponential(2.0, n_users * n_turns)),
        input_tokens=ints((before + asked).ravel()),
        output_tokens=ints(answered.ravel()),
        prefix_tokens=ints(before.ravel()),
    )


def talked(rule: str, *, n_replicas: int, method: str = "jump", n_blocks: int = 5000):
    draw = np.random.default_rng(5)
    loop = talk(draw, n_users=12, n_turns=5)
    limits = replace(
        limits_of(draw, talking_stream(draw, 5)), caches_prefixes=True, n_blocks=n_blocks,
        max_sequences=32, max_batch_tokens=512,
    )  # fmt: skip
    one = Pool(
        name="a", limits=limits, table=bent_table(np.random.default_rng(1), limits),
        size=PoolSize(n_first=n_replicas),
    )  # fmt: skip
    fleet = ElasticFleet(pools=(one,), router=Router(rule=rule))
    return loop, simulate_closed_loop(loop, fleet, method=method)


@pytest.mark.parametrize("rule", ["session", "prefix_affinity", "round_robin"])
@pytest.mark.parametrize("n_blocks", [150, 5000])
def test_users_who_talk_on_jumping_equals_stepping(rule: str, n_blocks: int):
    _, jump = talked(rule, n_replicas=3, n_blocks=n_blocks)
    _, step = talked(rule, n_replicas=3, n_blocks=n_blocks, method="step")
    assert same_bytes(jump, step) == []
    assert jump.outcome.totals.n_hit_tokens == step.outcome.totals.n_hit_tokens


def test_a_user_finds_all_that_was_said_before():
    """The last token of an answer is never computed; what is full of the rest is found."""
    loop, found = talked("session", n_replicas=3)
    asked = found.outcome.requests
    hits = found.outcome.times.n_cached_tokens
    known = np.maximum(asked.prefix_tokens - 1, 0) // 16 * 16
    np.testing.assert_array_equal(hits, known)
    assert hits.sum() > 0.5 * loop.input_tokens.sum()


def test_affinity_finds_more_than_turns_do():
    _, bound = talked("session", n_replicas=4)
    _, turns = talked("round_robin", n_replicas=4)
    assert bound.outcome.totals.n_hit_tokens > 1.3 * turns.outcome.totals.n_hit_tokens
    assert bound.outcome.times.ttft_s.mean() < turns.outcome.times.ttft_s.mean()
