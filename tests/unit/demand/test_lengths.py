import numpy as np
import pytest

from gpuplan.demand.lengths import draw_lengths, empirical_lengths, lognormal_from
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.errors import InputError

N = 200_000


def rng():
    return np.random.default_rng(7)


def lognormal(**known):
    return TokenLengths(shape="lognormal", **known)


def test_fixed_is_fixed():
    assert set(draw_lengths(TokenLengths(shape="fixed", mean_tokens=128.0), 5, rng())) == {128}


def test_near_is_within_a_tenth_of_the_mean():
    drawn = draw_lengths(TokenLengths(shape="near", mean_tokens=1000.0), N, rng())
    assert 900 <= drawn.min() < 905
    assert 1095 < drawn.max() <= 1100
    assert drawn.mean() == pytest.approx(1000, rel=0.001)


@pytest.mark.parametrize(
    "known",
    [
        {"mean_tokens": 1000.0, "p50_tokens": 800.0, "p95_tokens": 3000.0},
        {"mean_tokens": 1000.0, "p50_tokens": 800.0, "p99_tokens": 6000.0},
    ],
)
def test_percentiles_come_out_as_given(known):
    drawn = draw_lengths(lognormal(**known), N, rng())
    assert np.quantile(drawn, 0.5) == pytest.approx(800, rel=0.01)
    outer = 0.95 if "p95_tokens" in known else 0.99
    expected = known.get("p95_tokens", known.get("p99_tokens"))
    assert np.quantile(drawn, outer) == pytest.approx(expected, rel=0.03)


def test_mean_and_p95_come_out_as_given():
    drawn = draw_lengths(lognormal(mean_tokens=1000.0, p95_tokens=2500.0), N, rng())
    assert drawn.mean() == pytest.approx(1000, rel=0.01)
    assert np.quantile(drawn, 0.95) == pytest.approx(2500, rel=0.01)


def test_mean_and_deviation_come_out_as_given():
    drawn = draw_lengths(lognormal(mean_tokens=1000.0, spread_ratio=0.7), N, rng())
    assert drawn.mean() == pytest.approx(1000, rel=0.01)
    assert drawn.std() == pytest.approx(700, rel=0.02)


def test_mean_and_median_come_out_as_given():
    drawn = draw_lengths(lognormal(mean_tokens=1000.0, p50_tokens=700.0), N, rng())
    assert drawn.mean() == pytest.approx(1000, rel=0.02)
    assert np.median(drawn) == pytest.approx(700, rel=0.01)


@pytest.mark.parametrize(
    ("known", "word"),
    [
        ({"mean_tokens": 100.0}, "spread is unknown"),
        ({"mean_tokens": 100.0, "p95_tokens": 90.0}, "no lognormal distribution"),
        ({"mean_tokens": 100.0, "p95_tokens": 400.0}, "no lognormal distribution"),
        ({"mean_tokens": 100.0, "p50_tokens": 300.0, "p95_tokens": 200.0}, "percentiles fall"),
    ],
)
def test_figures_that_no_law_has_are_refused(known, word):
    with pytest.raises(InputError, match=word):
        lognormal_from(lognormal(**known))


def test_exponential_and_uniform_keep_their_mean():
    exponential = TokenLengths(shape="exponential", mean_tokens=300.0)
    assert draw_lengths(exponential, N, rng()).mean() == pytest.approx(300, rel=0.02)
    uniform = TokenLengths(shape="uniform", mean_tokens=300.0, spread_ratio=0.2)
    drawn = draw_lengths(uniform, N, rng())
    assert drawn.mean() == pytest.approx(300, rel=0.01)
    assert drawn.std() == pytest.approx(60, rel=0.02)
    with pytest.raises(InputError, match="uniform distribution"):
        draw_lengths(TokenLengths(shape="uniform", mean_tokens=9.0, spread_ratio=1.0), 5, rng())


def test_empirical_follows_its_weights():
    drawn = empirical_lengths([10, 20, 30], N, rng(), weights=[1, 0, 3])
    assert 20 not in drawn
    assert (drawn == 30).mean() == pytest.approx(0.75, abs=0.01)
    assert set(empirical_lengths([4, 5], 100, rng())) == {4, 5}


def test_empirical_without_values_is_refused():
    with pytest.raises(InputError, match="none are given"):
        empirical_lengths([], 3, rng())
    with pytest.raises(InputError, match="do not match"):
        empirical_lengths([1, 2], 3, rng(), weights=[1])
