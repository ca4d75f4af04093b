"""A stream that keeps nothing says what a run that keeps all says, within its stated error."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.intervals import PERCENTILES
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.sketch import ERROR_FRAC, N_BINS, Sketch, counts_of, middles
from gpuplan.simulation.serving.statistics import flow_of, statistics_of
from gpuplan.simulation.serving.stream import ServingStream
from gpuplan.simulation.serving.tally import Spent, Tally
from kernels.cases import constant_table


def fleet() -> Fleet:
    limits = EngineLimits(max_batch_tokens=512, max_sequences=8, n_blocks=3000, block_tokens=16)
    return Fleet(limits=limits, table=constant_table(0.01, max_tokens=512, max_sequences=8))


def load(n: int, rate: float, seed: int = 0):
    draw = np.random.default_rng(seed)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    return requests_of(arrive_s, draw.integers(0, 120, n), draw.integers(1, 100, n))


def tallied(requests, *, slo: SloTargets, warmup_s: float | None, n_block: int = 3000):
    stream, tally = ServingStream(fleet()), Tally(slo=slo, warmup_s=warmup_s)
    for first in range(0, len(requests), n_block):
        rows = np.arange(first, min(first + n_block, len(requests)))
        tally.add(*stream.feed(requests.take(rows)))
    tally.add(*stream.finish())
    tally.close()
    totals = stream.totals()
    spent = Spent(totals=totals, paid_s=totals.span_s, last_s=stream.last_s)
    return tally, tally.statistics(spent), stream


def measured(outcome, name: str, warmup_s: float) -> np.ndarray:
    is_in = outcome.requests.arrive_s - outcome.requests.arrive_s[0] >= warmup_s
    is_in = is_in & (outcome.times.is_finished == 1)
    if name == "tpot":
        is_in = is_in & (outcome.requests.output_tokens > 1)
    return getattr(outcome.times, f"{name}_s")[is_in]


@given(st.floats(2.0**-29, 2.0**21))
def test_the_middle_of_a_bin_is_near_every_value_in_it(value: float):
    place = int(np.flatnonzero(counts_of(np.array([value])))[0])
    assert 0 < place < N_BINS
    assert middles()[place] == pytest.approx(value, rel=ERROR_FRAC * 1.001)


def test_zero_and_the_smallest_are_one_bin():
    assert counts_of(np.array([0.0, 0.0, 1e-12]))[0] == 3
    assert middles()[0] == 0.0


def test_joined_batches_say_the_same_as_one():
    values = np.random.default_rng(0).exponential(1.0, 4000)
    parts, whole = Sketch(4), Sketch(1)
    for batch in range(4):
        parts.add(batch, values[batch::4])
    whole.add(0, values)
    parts.halve()
    a, b = parts.summary(slice(0, 2)), whole.summary(slice(0, 1))
    assert (a.p50_s, a.p99_s, a.n, a.max_s) == (b.p50_s, b.p99_s, b.n, b.max_s)


@pytest.mark.parametrize("warmup_s", [0.0, 200.0])
def test_stream_and_memory_agree(warmup_s: float):
    requests, slo = load(60_000, 12.0), SloTargets(ttft_s=0.5, e2e_s=1.5)
    outcome = simulate_serving(requests, fleet())
    kept = statistics_of(outcome, warmup_s=warmup_s, slo=slo)
    tally, found, stream = tallied(requests, slo=slo, warmup_s=warmup_s)
    for name in ("ttft", "tpot", "e2e", "wait"):
        a, b = getattr(kept, name), getattr(found, name)
        assert b.n == a.n
        assert b.mean_s == pytest.approx(a.mean_s, rel=1e-9)
        assert b.max_s == a.max_s
        values = measured(outcome, name, warmup_s)
        for p, share in PERCENTILES.items():
            exact = np.quantile(values, share, method="inverted_cdf")
            assert getattr(b, f"{p}_s") == pytest.approx(exact, rel=1.001 * ERROR_FRAC), (name, p)
    assert found.recall_frac == pytest.approx(kept.recall_frac, abs=1e-12)
    assert found.precision_frac == pytest.approx(kept.precision_frac, rel=1e-12)
    assert found.is_overloaded is kept.is_overloaded is False
    for name in ("requests_per_s", "good_output_tokens_per_s", "token_recall_frac", "itl_mean_s"):
        a, b = getattr(kept.delivery, name), getattr(found.delivery, name)
        assert b == pytest.approx(a, rel=2e-3), name
    flow = flow_of(outcome)
    streamed = tally.flow(len(flow.n_arrived), flow.bin_s)
    for name in ("n_arrived", "n_ended", "output_tokens", "n_outstanding"):
        np.testing.assert_array_equal(getattr(streamed, name), getattr(flow, name))
    assert stream.refused == dict(outcome.refused)


def test_block_size_does_not_matter():
    requests = load(20_000, 12.0)
    _, a, _ = tallied(requests, slo=SloTargets(), warmup_s=None, n_block=777)
    _, b, _ = tallied(requests, slo=SloTargets(), warmup_s=None, n_block=20_000)
    for name in ("ttft", "tpot", "e2e", "wait"):
        one, other = getattr(a, name), getattr(b, name)
        assert replace(one, mean_s=0, mean_low_s=0, mean_high_s=0) == replace(
            other, mean_s=0, mean_low_s=0, mean_high_s=0
        )
        # Sums of floats depend on their order in the last bit.
        assert one.mean_s == pytest.approx(other.mean_s, rel=1e-12)


def test_the_warm_up_is_found_as_in_memory():
    requests = load(30_000, 15.0)
    kept = statistics_of(simulate_serving(requests, fleet()), warmup_s=None)
    _, found, _ = tallied(requests, slo=SloTargets(), warmup_s=None, n_block=1000)
    a, b = kept.delivery.warmup, found.delivery.warmup
    assert (b.cut_s, b.n_requests, b.is_settled) == (a.cut_s, a.n_requests, a.is_settled)
    assert found.n_measured == kept.n_measured


def test_overload_is_seen_and_given_up_runs_say_so():
    requests = load(40_000, 24.0)
    kept = statistics_of(simulate_serving(requests, fleet()))
    _, found, _ = tallied(requests, slo=SloTargets(), warmup_s=0.0)
    assert kept.is_overloaded is found.is_overloaded is True
    assert found.backlog_requests_per_s == pytest.approx(kept.backlog_requests_per_s, rel=0.1)
    stream, tally = ServingStream(fleet(), max_held=1000), Tally()
    tally.add(*stream.feed(requests))
    assert stream.is_full
    tally.close()
    totals = stream.totals()
    spent = Spent(totals=totals, paid_s=totals.span_s, last_s=stream.last_s)
    given_up = tally.statistics(spent, n_left=stream.n_held)
    assert given_up.is_overloaded
    assert given_up.backlog_requests_per_s == pytest.approx(8.0, rel=0.2)


def test_nothing_added_is_no_number():
    _, found, _ = tallied(load(0, 1.0), slo=SloTargets(), warmup_s=None)
    assert found.ttft is None
    assert found.recall_frac == 0.0
