"""Blocks of any size give the times of one run, bit for bit; memory is what is in the fleet."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.steps import work
from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.stream import Passed, ServingStream
from kernels.cases import bent_table, constant_table, fleet_of, limits_of, stream_of
from kernels.texts import grouped_stream

WORK = work()
TIMES = ("wait_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions", "is_finished")


def streamed(requests: Requests, stream: ServingStream, cuts: list[int]) -> list[Passed]:
    edges = [0, *sorted(cuts), len(requests)]
    passed = [stream.feed(requests.take(np.arange(a, b))) for a, b in itertools.pairwise(edges)]
    return [*passed, stream.finish()]


def joined(parts: list[Passed], name: str) -> np.ndarray:
    return np.concatenate([getattr(part.times, name) for part in parts])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    router=st.sampled_from(["round_robin", "least_outstanding", "power_of_two"]),
    n_engines=st.integers(1, 4),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_blocks_equal_one_run(seed: int, router: str, n_engines: int, cuts: list[int]):
    draw = np.random.default_rng(seed)
    requests = stream_of(draw, 200)
    fleet = fleet_of(
        limits_of(draw, requests), WORK, n_engines=n_engines, router=router, seed=seed % 7
    )
    whole, stream = simulate_serving(requests, fleet), ServingStream(fleet)
    parts = streamed(requests, stream, cuts)
    for name in TIMES:
        assert joined(parts, name).tobytes() == getattr(whole.times, name).tobytes(), name
    arrive_s = np.concatenate([part.requests.arrive_s for part in parts])
    assert arrive_s.tobytes() == requests.arrive_s.tobytes()
    assert stream.totals() == whole.totals
    assert stream.use().busy_frac.tobytes() == whole.use.busy_frac.tobytes()


POLICIES = {
    "priority": {"scheduling": "priority"},
    "long": {"long_prefill_tokens": 24},
    "priority and long": {"scheduling": "priority", "long_prefill_tokens": 24},
    "drafts": {"drafts": SpeculativeDecoding(n_tokens=3, acceptance_frac=0.6)},
    "drawn drafts": {
        "drafts": SpeculativeDecoding(n_tokens=3, acceptance_frac=0.6),
        "draws_acceptance": True,
    },
}


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(sorted(POLICIES)),
    router=st.sampled_from(["round_robin", "least_outstanding"]),
    cuts=st.lists(st.integers(0, 200), max_size=8),
)
def test_blocks_equal_one_run_with_more_policies(
    seed: int, policy: str, router: str, cuts: list[int]
):
    draw = np.random.default_rng(seed)
    requests = grouped_stream(draw, 200)
    limits = limits_of(draw, requests)
    if "drafts" in policy:
        tokens = limits.max_batch_tokens + 3 * limits.max_sequences
        limits = replace(limits, max_batch_tokens=tokens, n_blocks=limits.n_blocks + 4)
    limits = replace(limits, **POLICIES[policy])
    table = bent_table(draw, replace(limits, max_sequences=4 * limits.max_sequences))
    fleet = Fleet(limits=limits, table=table, n_engines=2, router=router, seed=seed % 7)
    whole, stream = simulate_serving(requests, fleet), ServingStream(fleet)
    parts = streamed(requests, stream, cuts)
    for name in TIMES:
        assert joined(parts, name).tobytes() == getattr(whole.times, name).tobytes(), name
    assert stream.totals().n_steps == whole.totals.n_steps


def test_priorities_are_known_by_their_number_when_rows_are_used_again(monkeypatch):
    """Many at one instant, over the edge of a small table that is widened on the way."""
    monkeypatch.setattr("gpuplan.simulation.serving.stream.LEAST_ROWS", 16)
    n = 300
    arrive_s = np.repeat(np.arange(n // 12 + 1) * 0.2, 12)[:n]
    draw = np.random.default_rng(3)
    grouping = Grouping(priority=draw.integers(0, 2, n))
    requests = requests_of(
        arrive_s, draw.integers(1, 60, n), draw.integers(1, 30, n), grouping=grouping
    )
    limits = replace(constant_fleet().limits, scheduling="priority", n_blocks=40)
    fleet = replace(constant_fleet(), limits=limits)
    whole, stream = simulate_serving(requests, fleet), ServingStream(fleet)
    parts = streamed(requests, stream, list(range(0, n, 10)))
    for name in TIMES:
        assert joined(parts, name).tobytes() == getattr(whole.times, name).tobytes(), name


def test_a_cache_of_prefixes_is_not_streamed_and_says_what_to_do():
    fleet = constant_fleet()
    caching = replace(fleet, limits=replace(fleet.limits, caches_prefixes=True))
    with pytest.raises(InputError, match="--no-prefix-caching"):
        ServingStream(caching)


def constant_fleet(**changes: object) -> Fleet:
    limits = EngineLimits(max_batch_tokens=256, max_sequences=8, n_blocks=4000, block_tokens=16)
    return Fleet(
        limits=limits, table=constant_table(0.01, max_tokens=256, max_sequences=8), **changes
    )  # type: ignore[arg-type]


def test_rows_and_ring_grow_without_a_trace(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gpuplan.simulation.serving.stream.LEAST_ROWS", 4)
    draw = np.random.default_rng(3)
    n = 600
    outputs = np.concatenate([draw.integers(1, 20, 300), draw.integers(1, 3000, 300)])
    requests = requests_of(np.cumsum(draw.exponential(0.05, n)), draw.integers(1, 200, n), outputs)
    fleet = constant_fleet(n_engines=2, router="least_outstanding")
    whole = simulate_serving(requests, fleet)
    parts = streamed(requests, ServingStream(fleet), [50, 310, 340, 500])
    for name in TIMES:
        assert joined(parts, name).tobytes() == getattr(whole.times, name).tobytes(), name


def test_a_refused_request_does_not_hold_the_others_back():
    requests = requests_of([0.0, 1.0, 2.0, 3.0], [10, 0, 10, 10**6], [5, 5, 5, 5])
    stream = ServingStream(constant_fleet())
    passed = streamed(requests, stream, [])
    assert joined(passed, "is_finished").tolist() == [1, 0, 1, 0]
    assert stream.refused == {
        "no tokens to read or to write": 1, "larger than the whole cache": 1
    }  # fmt: skip
    assert stream.n_held == 0


def test_what_is_held_does_not_grow_with_the_stream():
    draw = np.random.default_rng(0)
    stream, at, most = ServingStream(constant_fleet()), 0.0, 0
    for _ in range(50):
        arrive = at + np.cumsum(draw.exponential(0.2, 400))
        at = float(arrive[-1])
        stream.feed(requests_of(arrive, np.full(400, 20), draw.integers(1, 60, 400)))
        most = max(most, stream.n_held)
    assert stream.n_submitted == 20_000
    assert most < 100


def test_an_overloaded_stream_says_that_it_is_full():
    stream = ServingStream(constant_fleet(), max_held=1000)
    stream.feed(requests_of(np.arange(3000) * 1e-3, np.full(3000, 50), np.full(3000, 50)))
    assert stream.is_full


def test_blocks_out_of_order_and_spans_too_long_are_refused():
    stream = ServingStream(constant_fleet())
    stream.feed(requests_of([5.0, 6.0], [5, 5], [5, 5]))
    with pytest.raises(InputError, match="sort the requests"):
        stream.feed(requests_of([5.5], [5], [5]))
    with pytest.raises(InputError, match="40 days"):
        stream.feed(requests_of([5e6], [5], [5]))
