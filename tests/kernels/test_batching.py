"""Fixed batches: an independent batcher agrees request by request; limits that theory knows."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers, BatchTable
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.batching import simulate_servers
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, constant_table, stream_of
from kernels.slow_batches import Rules, SlowBatcher
from kernels.texts import exact_time

PS = 10**12
T_95 = 2.069  # Student, 23 degrees of freedom
N_SEEDS = 24


def picoseconds(values: np.ndarray) -> list[int]:
    return [int(v) for v in np.rint(np.asarray(values) * PS)]


def table_of(times_s: list[float]) -> BatchTable:
    none = floats(np.zeros(len(times_s) + 1))
    return BatchTable(batch_s=floats([0.0, *times_s]), arithmetic_s=none, memory_s=none)


def ones(arrive_s: np.ndarray) -> Requests:
    one = np.ones(len(arrive_s), dtype=np.int64)
    return requests_of(arrive_s, one, one)


@some.composite
def policies(draw: some.DrawFn) -> BatchPolicy:
    most = draw(some.integers(1, 9))
    delay_s = draw(some.sampled_from([None, 0.0, 0.001, 0.05, 0.7]))
    sizes = draw(some.sets(some.integers(1, most), max_size=3))
    return BatchPolicy(max_batch=most, max_delay_s=delay_s, preferred_sizes=tuple(sizes))


def slow(requests: Requests, policy: BatchPolicy, fleet: BatchServers | Fleet, times, fits):
    since = picoseconds(requests.arrive_s - requests.arrive_s[0])
    delay = None if policy.max_delay_s is None else round(policy.max_delay_s * PS)
    rules = Rules(policy.max_batch, delay, policy.preferred_sizes, fleet.router, fleet.n_engines)
    found = SlowBatcher(since, rules, times, fits)
    found.run()
    return found


def check_times(found: Outcome, expected: SlowBatcher, *, slack: float) -> None:
    rows = range(len(found.requests))
    arrive = np.array(expected.arrive)
    for times_s, instants in (
        (found.times.wait_s, expected.start),
        (found.times.ttft_s, expected.first),
        (found.times.e2e_s, expected.end),
    ):
        wanted = np.array([instants[i] for i in rows]) - arrive
        np.testing.assert_allclose(times_s * PS, wanted, rtol=1e-12, atol=slack)


def arrivals(seed: int, n: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    gaps_s = draw.exponential(10.0 ** draw.uniform(-4, 0), n)
    arrive_s = np.cumsum(gaps_s)
    return np.round(arrive_s, 2) if draw.integers(0, 2) else arrive_s


@given(
    policy=policies(),
    seed=some.integers(0, 10**6),
    router=some.sampled_from(["round_robin", "least_outstanding"]),
    n_engines=some.integers(1, 3),
)
@settings(max_examples=150, deadline=None)
def test_servers_agree_with_a_slow_batcher(policy, seed, router, n_engines):
    requests = ones(arrivals(seed, 60))
    times_s = np.random.default_rng(seed).choice([0.01, 0.02, 0.1, 0.35], policy.max_batch)
    table = table_of(list(times_s))
    servers = BatchServers(policy=policy, table=table, n_engines=n_engines, router=router)
    found = simulate_servers(requests, servers)
    ticks = picoseconds(table.batch_s)
    expected = slow(
        requests, policy, servers, lambda m: (ticks[len(m)], ticks[len(m)]), lambda m: True
    )
    check_times(found, expected, slack=0.5)
    assert found.totals.n_steps == len(expected.batches)
    assert sum(map(len, expected.batches)) == found.n_completed == len(requests)
    busy_s = sum(table.batch_s[len(m)] for m in expected.batches)
    assert found.totals.busy_s == pytest.approx(busy_s)


def padded_time(fleet: Fleet, requests: Requests):
    """Iterations of a batch, one by one, from the engine's own time of a single iteration."""
    step_time = exact_time(fleet)

    def time(members: list[int]) -> tuple[int, int]:
        longest = max(int(requests.input_tokens[i]) for i in members)
        answer = max(int(requests.output_tokens[i]) for i in members)
        left, lasts = [longest] * len(members), 0
        while any(left):
            budget, n_read, pairs, n_ended = fleet.limits.max_batch_tokens, 0, 0, 0
            for k, rest in enumerate(left):
                chunk = min(rest, budget)
                pairs += chunk * (2 * (longest - rest) + chunk)
                n_ended += chunk == rest and chunk > 0
                left[k], budget, n_read = rest - chunk, budget - chunk, n_read + chunk
            lasts += step_time(n_read, pairs, n_ended, [])
        first = lasts
        for made in range(1, answer):
            lasts += step_time(0, 0, 0, [longest + made] * len(members))
        return first >> 16, lasts >> 16

    return time


@given(policy=policies(), seed=some.integers(0, 10**6), n_engines=some.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_language_models_agree_with_a_slow_batcher(policy, seed, n_engines):
    draw = np.random.default_rng(seed)
    requests = stream_of(draw, 25)
    largest = -(-int((requests.input_tokens + requests.output_tokens).max()) // 16)
    n_blocks = int(largest * draw.choice([1, 2, 50]))
    limits = EngineLimits(
        max_batch_tokens=policy.max_batch + int(draw.integers(1, 600)),
        max_sequences=policy.max_batch, n_blocks=n_blocks, block_tokens=16,
    )  # fmt: skip
    fleet = Fleet(
        limits=limits, table=bent_table(draw, limits), n_engines=n_engines,
        router="least_outstanding", batching=policy,
    )  # fmt: skip

    def fits(members: list[int]) -> bool:
        longest = max(int(requests.input_tokens[i]) for i in members)
        answer = max(int(requests.output_tokens[i]) for i in members)
        is_room = len(members) * (longest + answer - 1) <= n_blocks * 16
        return is_room or len(members) == 1

    found = simulate_serving(requests, fleet)
    expected = slow(requests, policy, fleet, padded_time(fleet, requests), fits)
    # Parts of a picosecond are carried from batch to batch by the kernel alone.
    check_times(found, expected, slack=30.0)
    assert found.n_completed == len(requests)


def test_batches_of_one_are_the_continuous_engine_with_one_sequence():
    """Two engines with nothing in common but the step table, bit for bit."""
    for seed in range(10):
        draw = np.random.default_rng(seed)
        requests = stream_of(draw, 200)
        limits = EngineLimits(
            max_batch_tokens=256, max_sequences=1, n_blocks=10**4, block_tokens=16
        )
        fleet = Fleet(limits=limits, table=bent_table(draw, limits))
        policy = BatchPolicy(max_batch=1, max_delay_s=0.0)
        joined = simulate_serving(requests, fleet)
        fixed = simulate_serving(requests, replace(fleet, batching=policy))
        for name in ("wait_s", "ttft_s", "e2e_s", "tpot_s"):
            assert getattr(joined.times, name).tobytes() == getattr(fixed.times, name).tobytes()
        assert joined.totals.n_computed_tokens == fixed.totals.n_computed_tokens
        # A batch spreads its work evenly over its time; the sums are the same.
        for part in ("compute_frac", "bandwidth_frac", "busy_frac"):
            both = [getattr(run.use, part).sum() for run in (joined, fixed)]
            assert both[0] == pytest.approx(both[1], rel=1e-9)


@pytest.mark.parametrize("load_frac", [0.5, 0.8])
def test_batches_of_one_are_m_d_1(load_frac: float):
    """Mean wait = rho s / 2(1 - rho) [Kleinrock1975]."""
    service_s, means = 0.05, []
    policy = BatchPolicy(max_batch=1, max_delay_s=0.0)
    for seed in range(N_SEEDS):
        draw = np.random.default_rng(seed)
        requests = ones(np.cumsum(draw.exponential(service_s / load_frac, 20_000)))
        servers = BatchServers(policy=policy, table=table_of([service_s]))
        means.append(float(simulate_servers(requests, servers).times.wait_s.mean()))
    half = T_95 * np.std(means, ddof=1) / math.sqrt(N_SEEDS)
    assert abs(np.mean(means) - load_frac * service_s / (2 * (1 - load_frac))) < half


def test_full_batches_only_are_a_bulk_queue_of_equal_gaps():
    """With batches of n that never queue, the k-th member waits n - k gaps: mean (n-1)/2 rate."""
    n, rate, means = 8, 100.0, []
    policy = BatchPolicy(max_batch=n)
    for seed in range(N_SEEDS):
        draw = np.random.default_rng(seed)
        requests = ones(np.cumsum(draw.exponential(1 / rate, 8_000)))
        servers = BatchServers(policy=policy, table=table_of([1e-6] * n))
        means.append(float(simulate_servers(requests, servers).times.wait_s.mean()))
    half = T_95 * np.std(means, ddof=1) / math.sqrt(N_SEEDS)
    assert abs(np.mean(means) - (n - 1) / 2 / rate) < half


def test_an_overloaded_server_does_full_batches():
    """The rate tends to max_batch / its time, whatever the delay."""
    for delay_s in (None, 0.0, 0.01):
        policy = BatchPolicy(max_batch=4, max_delay_s=delay_s)
        requests = ones(np.linspace(0.0, 1.0, 4000))
        servers = BatchServers(policy=policy, table=table_of([0.1, 0.11, 0.12, 0.125]))
        found = simulate_servers(requests, servers)
        assert len(requests) / found.totals.span_s == pytest.approx(4 / 0.125, rel=0.01)


@given(policy=policies(), seed=some.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_nobody_waits_longer_than_the_delay_beside_a_free_server(policy, seed):
    requests = ones(arrivals(seed, 100))
    servers = BatchServers(policy=policy, table=table_of([1e-9] * policy.max_batch))
    wait_s = simulate_servers(requests, servers).times.wait_s
    if policy.max_delay_s is not None:
        # A batch in the way takes a nanosecond; a hundred of them at most.
        assert wait_s.max() <= policy.max_delay_s + 1e-7


def test_a_longer_batch_makes_padding_waste():
    """Tokens computed: members x (longest prompt + longest answer - 1)."""
    requests = requests_of([0.0, 0.0], [10, 100], [50, 5])
    limits = EngineLimits(max_batch_tokens=512, max_sequences=2, n_blocks=100, block_tokens=16)
    table = constant_table(0.01, max_tokens=512, max_sequences=2)
    fleet = Fleet(limits=limits, table=table, batching=BatchPolicy(max_batch=2))
    found = simulate_serving(requests, fleet)
    assert found.totals.n_computed_tokens == 2 * (100 + 50 - 1)
    np.testing.assert_allclose(found.times.e2e_s, 0.01 * 50)
    np.testing.assert_allclose(found.times.ttft_s, 0.01)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"max_batch": 0}, "max batch"),
        ({"max_delay_s": -1.0}, "max delay"),
        ({"max_delay_s": math.nan}, "max delay"),
        ({"preferred_sizes": (0, 9)}, "preferred sizes"),
        ({"max_batch": 5}, "batch times"),
    ],
)
def test_what_cannot_be_formed_is_named(changes: dict[str, object], where: str):
    policy = replace(BatchPolicy(max_batch=4), **changes)
    servers = BatchServers(policy=policy, table=table_of([0.1] * 4))
    with pytest.raises(InputError, match=where):
        simulate_servers(ones(np.arange(3.0)), servers)


def test_no_request_is_a_defined_result():
    servers = BatchServers(policy=BatchPolicy(max_batch=2), table=table_of([0.1, 0.1]))
    found = simulate_servers(ones(np.array([])), servers)
    assert found.n_completed == 0
    assert found.totals.span_s == 0.0
