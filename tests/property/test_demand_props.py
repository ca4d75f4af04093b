"""Load held to theory: counts, gaps, dispersion, dimensions, order, and the same bytes by seed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.demand.arrivals import gamma_bursts, mmpp, poisson, weibull_bursts
from gpuplan.demand.lengths import draw_lengths
from gpuplan.demand.profile import growing, warped
from gpuplan.demand.scale import retained_by_client, scaled_rows
from gpuplan.demand.sessions import Conversation, conversations
from gpuplan.demand.statistics import counts, dispersion, gap_cv
from gpuplan.demand.streams import stream
from gpuplan.domain.columns import floats
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.traffic.stream import Grouping, requests_of

SEEDS = range(20)
seeds = st.integers(0, 2**32 - 1)
rates = st.floats(0.05, 50.0)
spreads = st.floats(0.2, 5.0)


def within(values, expected, *, n_sigma=4.0):
    """The mean of independent runs lies within its own standard errors of theory."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - expected) <= n_sigma * error + 1e-12, (
        values.mean(),
        expected,
        error,
    )


def test_poisson_counts_have_the_mean_and_variance_of_theory():
    runs = [poisson(20.0, 500.0, seed=seed) for seed in SEEDS]
    within([len(run) for run in runs], 10_000)
    within([dispersion(run, 1.0, duration_s=500.0) for run in runs], 1.0)
    within([gap_cv(run) for run in runs], 1.0)


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("draw", [gamma_bursts, weibull_bursts])
def test_bursts_keep_rate_and_deviation(draw, cv):
    runs = [draw(10.0, 3000.0, cv_ratio=cv, seed=seed) for seed in SEEDS]
    within([len(run) for run in runs], 30_000)
    within([np.diff(run).std() / 0.1 for run in runs], cv)


@pytest.mark.parametrize("draw", [gamma_bursts, weibull_bursts])
def test_renewals_start_in_equilibrium(draw):
    """An ordinary renewal process would count (cv^2 - 1) / 2 = 7.5 too many, however short."""
    n = [len(draw(5.0, 10.0, cv_ratio=4.0, seed=seed)) for seed in range(2000)]
    within(n, 50.0)


def test_long_run_dispersion_of_renewals_is_the_square_of_the_deviation():
    runs = [gamma_bursts(50.0, 4000.0, cv_ratio=3.0, seed=seed) for seed in SEEDS]
    found = np.mean([dispersion(run, 20.0, duration_s=4000.0) for run in runs])
    assert found == pytest.approx(9.0, rel=0.1)


def test_phases_have_the_mean_and_dispersion_of_theory():
    """Two phases: I(inf) = 1 + 2 (a-b)^2 pq / ((p+q)^2 (aq + bp)), p and q the rates of change."""
    high, low, p, q = 40.0, 5.0, 1 / 4.0, 1 / 12.0
    runs = [
        mmpp(floats([high, low]), floats([4.0, 12.0]), duration_s=8000.0, seed=seed)
        for seed in SEEDS
    ]
    mean = (high * q + low * p) / (p + q)
    within([len(run) / 8000.0 for run in runs], mean)
    theory = 1 + 2 * (high - low) ** 2 * p * q / ((p + q) ** 2 * (high * q + low * p))
    found = np.mean([dispersion(run, 160.0, duration_s=8000.0) for run in runs])
    assert found == pytest.approx(theory, rel=0.15)


DAY_SHAPE = tuple(1.0 + math.sin(2 * math.pi * hour / 24) for hour in range(24))


def test_warping_keeps_the_rate_of_each_hour_and_the_deviation_of_gaps():
    weights = np.array(DAY_SHAPE) / np.mean(DAY_SHAPE)
    runs = [
        warped(gamma_bursts(0.5, 86400.0, cv_ratio=3.0, seed=seed), DAY_SHAPE) for seed in SEEDS
    ]
    by_hour = np.array([counts(run, 3600.0, duration_s=86400.0) for run in runs])
    for hour in (0, 6, 12, 20):
        within(by_hour[:, hour], 1800.0 * weights[hour])
    busy = [np.diff(run[(run >= 6 * 3600) & (run < 7 * 3600)]) for run in runs]
    within([gaps.std() / (2.0 / weights[6]) for gaps in busy], 3.0)


def test_growth_compounds():
    run = growing(poisson(1.0, 5 * 365 * 86400 / 12, seed=1), 1.0)
    month = 365 * 86400 / 12
    n = counts(run, month, duration_s=2 * month)
    assert n[1] / n[0] == pytest.approx(2.0, rel=0.01)
    # Twice the rate after a month: the mean over the first is 1 / ln 2.
    assert n[0] / month == pytest.approx(1 / math.log(2), rel=0.01)


@pytest.mark.parametrize("factor", [2.0, 3.5, 6.0])
def test_scaling_up_keeps_the_index_of_dispersion(factor):
    """Squeezed time would multiply the index at a fixed window by about the factor."""
    ratio, rate = [], []
    for seed in range(8):
        arrive = mmpp(floats([30.0, 2.0]), floats([2.0, 6.0]), duration_s=4000.0, seed=seed)
        trace = requests_of(arrive, np.full(len(arrive), 9), np.full(len(arrive), 5))
        larger = scaled_rows(trace, factor, seed=seed).requests
        rate.append(len(larger) / len(trace))
        ratio.append(dispersion(larger.arrive_s, 5.0) / dispersion(arrive, 5.0))
    assert np.mean(rate) == pytest.approx(factor, rel=0.02)
    # Half a copy is thinned request by request here, which is milder: a little is lost.
    assert np.mean(ratio) == pytest.approx(1.0, abs=0.15)


def test_thinning_single_requests_is_as_mild_as_arithmetic_says():
    before, after = [], []
    for seed in range(8):
        arrive = mmpp(floats([30.0, 2.0]), floats([2.0, 6.0]), duration_s=4000.0, seed=seed)
        trace = requests_of(arrive, np.ones(len(arrive)), np.ones(len(arrive)))
        before.append(dispersion(arrive, 5.0))
        after.append(
            dispersion(trace.take(retained_by_client(trace, 0.3, seed=seed)).arrive_s, 5.0)
        )
    assert np.mean(after) == pytest.approx(1 + 0.3 * (np.mean(before) - 1), rel=0.05)


def test_thinning_by_client_keeps_whole_clients():
    session = np.repeat(np.arange(500), 20)
    order = np.random.default_rng(0).permutation(len(session))
    trace = requests_of(
        np.arange(10_000.0), np.ones(10_000), np.ones(10_000),
        grouping=Grouping(session=session[order]),
    )  # fmt: skip
    kept = trace.take(retained_by_client(trace, 0.4, seed=3))
    _, n_each = np.unique(kept.session, return_counts=True)
    assert set(n_each) == {20}
    assert len(n_each) == pytest.approx(200, abs=45)


@given(rate=rates, cv=spreads, seed=seeds)
@settings(max_examples=30, deadline=None)
def test_same_seed_same_bytes_and_sorted(rate, cv, seed):
    for draw in (gamma_bursts, weibull_bursts):
        one, two = (draw(rate, 60.0, cv_ratio=cv, seed=seed) for _ in range(2))
        assert one.tobytes() == two.tobytes()
        assert np.all(np.diff(one) >= 0)
        assert len(one) == 0 or (one[0] >= 0 and one[-1] < 60.0)
        assert not one.flags.writeable


@given(second=st.floats(1e-3, 1e3), cv=spreads, seed=seeds)
@settings(max_examples=30, deadline=None)
def test_arrivals_are_times(second, cv, seed):
    """Resize the second: every arrival resizes with it, and their number stays."""
    for draw in (gamma_bursts, weibull_bursts):
        plain = draw(4.0, 50.0, cv_ratio=cv, seed=seed)
        resized = draw(4.0 / second, 50.0 * second, cv_ratio=cv, seed=seed)
        # The last arrival may fall on either side of the end by rounding.
        n = min(len(plain), len(resized))
        assert abs(len(plain) - len(resized)) <= 1
        np.testing.assert_allclose(resized[:n], plain[:n] * second, rtol=1e-9)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_causes_do_not_touch_each_other(seed):
    """Drawing more of one cause leaves every other as it was."""
    stream(seed, "arrivals").uniform(size=1000)
    one = stream(seed, "input lengths").uniform(size=5)
    assert np.array_equal(one, stream(seed, "input lengths").uniform(size=5))
    assert not np.array_equal(one, stream(seed, "output lengths").uniform(size=5))
    place = np.random.SeedSequence(seed).spawn(3)[2]
    assert np.array_equal(one, np.random.default_rng(place).uniform(size=5))


@given(
    n_turns=st.floats(1.0, 8.0), think=st.floats(0.0, 60.0), limit=st.integers(200, 5000),
    seed=seeds,
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_conversations_grow_and_never_pass_the_limit(n_turns, think, limit, seed):
    fixed = TokenLengths(shape="fixed", mean_tokens=50.0)
    shape = Conversation(
        message=fixed, answer=fixed, n_turns_mean=n_turns, think_s=think,
        answer_s_per_token=0.01, system_tokens=20, max_context_tokens=limit,
    )  # fmt: skip
    found = conversations(poisson(2.0, 30.0, seed=seed), shape, seed=seed)
    assert np.all(np.diff(found.arrive_s) >= 0)
    assert np.all(found.input_tokens + found.output_tokens <= limit)
    for session in np.unique(found.session):
        own = found.take(found.session == session)
        turn = np.arange(len(own))
        assert np.array_equal(own.input_tokens, 20 + 50 + 100 * turn)
        assert np.array_equal(own.prefix_tokens[1:], (own.input_tokens + 50)[:-1])
        assert own.prefix_tokens[0] == 0
        assert np.all(np.diff(own.arrive_s) >= 0.5 - 1e-9)


@given(mean=st.floats(2.0, 5000.0), ratio=st.floats(1.05, 3.5), seed=seeds)
@settings(max_examples=30, deadline=None)
def test_lengths_are_whole_and_at_least_one(mean, ratio, seed):
    lengths = TokenLengths(
        shape="lognormal", mean_tokens=mean, p95_tokens=mean * ratio, max_tokens=mean * 4
    )
    drawn = draw_lengths(lengths, 200, np.random.default_rng(seed))
    assert drawn.dtype == np.int64
    assert drawn.min() >= 1
    assert drawn.max() <= math.ceil(mean * 4)
