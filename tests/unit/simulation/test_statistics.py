"""Percentiles, confidence, useful time and overload."""

import numpy as np
import pytest

from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import Outcome, SloTargets
from gpuplan.domain.traffic.stream import no_requests, requests_of
from gpuplan.simulation.serving.intervals import summary
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.statistics import growth_of, statistics_of
from kernels.cases import constant_table


def run(rate: float, *, n: int = 4000, n_blocks: int = 10**5, seed: int = 0) -> Outcome:
    """Eight sequences at 10 ms a token and 50 tokens an answer: 16 requests a second at most."""
    draw = np.random.default_rng(seed)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    limits = EngineLimits(
        max_batch_tokens=4096, max_sequences=8, n_blocks=n_blocks, block_tokens=16
    )
    table = constant_table(0.01, max_tokens=4096, max_sequences=8)
    stream = requests_of(arrive_s, np.full(n, 60), draw.integers(1, 100, n))
    return simulate_serving(stream, Fleet(limits=limits, table=table))


def test_summary_is_of_the_values():
    found = summary(np.arange(1, 101, dtype=np.float64))
    assert found is not None
    assert (found.mean_s, found.p50_s, found.p90_s) == pytest.approx((50.5, 50.5, 90.1))
    assert found.mean_low_s < found.mean_s < found.mean_high_s
    assert summary(np.array([])) is None


def test_interval_holds_the_mean_about_as_often_as_it_says():
    hits = 0
    for seed in range(200):
        values = np.random.default_rng(seed).exponential(1.0, 2000)
        found = summary(values)
        assert found is not None
        hits += found.mean_low_s <= 1.0 <= found.mean_high_s
    assert 180 <= hits <= 199


def test_warm_up_is_left_out():
    outcome = run(10.0)
    whole, later = statistics_of(outcome), statistics_of(outcome, warmup_s=100.0)
    since_s = outcome.requests.arrive_s - outcome.requests.arrive_s[0]
    assert later.n_measured == int((since_s >= 100.0).sum()) < whole.n_measured
    assert later.ttft is not None
    assert later.ttft.mean_s == pytest.approx(outcome.times.ttft_s[since_s >= 100.0].mean())


@pytest.mark.parametrize(
    ("rate", "expected"), [(4.0, False), (14.0, False), (19.0, True), (24.0, True), (60.0, True)]
)
def test_overload_is_what_capacity_says(rate: float, expected: bool):
    for seed in range(5):
        found = statistics_of(run(rate, seed=seed))
        assert found.is_overloaded is expected
        if expected:  # the queue grows by what is offered above 16 a second
            assert found.backlog_requests_per_s == pytest.approx(rate - 16, rel=0.15, abs=1.0)


def test_recall_counts_refused_requests_and_broken_promises():
    outcome = run(12.0)
    assert statistics_of(outcome).recall_frac == 1.0
    median = float(np.median(outcome.times.ttft_s))
    assert statistics_of(outcome, slo=SloTargets(ttft_s=median)).recall_frac == pytest.approx(
        0.5, abs=0.01
    )
    stream = requests_of([0.0, 1.0], [0, 5], [5, 5])
    limits = EngineLimits(max_batch_tokens=64, max_sequences=4, n_blocks=10, block_tokens=16)
    table = constant_table(0.01, max_tokens=64, max_sequences=4)
    refused = simulate_serving(stream, Fleet(limits=limits, table=table))
    assert statistics_of(refused).recall_frac == 0.5


def test_preemptions_lower_precision():
    ample, tight = run(30.0), run(30.0, n_blocks=30)
    assert tight.totals.n_preemptions > 0
    a, b = statistics_of(ample), statistics_of(tight)
    assert a.precision_frac == pytest.approx(a.busy_frac)
    assert b.precision_frac < 0.99 * b.busy_frac


def test_nothing_measured_is_no_number():
    limits = EngineLimits(max_batch_tokens=64, max_sequences=4, n_blocks=10, block_tokens=16)
    table = constant_table(0.01, max_tokens=64, max_sequences=4)
    found = statistics_of(simulate_serving(no_requests(), Fleet(limits=limits, table=table)))
    assert found.ttft is None
    assert found.output_tokens_per_s == 0.0
    assert found.recall_frac == 0.0


def test_even_growth_at_any_slope_is_overload():
    """The ratio of the end to the middle is two for every straight queue, steep or flat."""
    instants = np.linspace(300.0, 600.0, 9)
    for slope in (3.0, 18.0, 70.0, 900.0):
        found, is_overloaded = growth_of(instants, slope * instants, 30_000)
        assert found == pytest.approx(slope)
        assert is_overloaded
    assert not growth_of(instants, np.full(9, 5000.0), 30_000)[1]
    assert not growth_of(instants, 100.0 + 0.1 * instants, 30_000)[1]
