"""Probabilities of fleets against closed forms and plain Monte Carlo."""

import numpy as np
import pytest

from gpuplan.candidates.risk import (
    DEMAND_SPREAD_FRAC,
    DEVIATIONS,
    Z_80,
    FleetRisk,
    carried_by_range,
    error_ratio,
    risk_samples,
)
from gpuplan.domain.columns import floats
from gpuplan.domain.plan.sizing import CarriedLoad
from gpuplan.domain.provenance import Estimate

SAMPLES = risk_samples(0)


def carried(*, low=0.8, high=1.25, each=10.0, down_frac=0.0):
    load = Estimate(value=each, low=low * each, high=high * each, tier="fitted")
    return carried_by_range(load, down_frac=down_frac)


def brute_force(found: CarriedLoad, n: int, load: float, *, low: float, high: float) -> float:
    """A million fleets, drawn one cause after the other, with no code of the room."""
    rng = np.random.default_rng(7)
    z = rng.standard_normal(1_000_000)
    sd = np.log(1 + DEMAND_SPREAD_FRAC) / 1.2816
    demand = rng.lognormal(-(sd**2) / 2, sd, len(z))
    each = 10.0 * np.where(z > 0, low ** (z / 1.2816), high ** (-z / 1.2816))
    up = rng.binomial(n, 1 - found.down_frac, len(z))
    return float(np.mean(load * demand <= up * each))


@pytest.mark.parametrize(
    ("n", "load", "down_frac"), [(1, 8.0, 0.0), (3, 28.0, 0.02), (12, 101.0, 0.01), (40, 330, 0.05)]
)
def test_probability_is_that_of_a_million_drawn_fleets(n, load, down_frac):
    found = carried(low=0.7, high=1.3, down_frac=down_frac)
    expected = brute_force(found, n, load, low=0.7, high=1.3)
    assert FleetRisk(found, SAMPLES).probability(n, load) == pytest.approx(expected, abs=0.015)


def test_the_ends_of_the_range_hold_eighty_percent():
    unit = Estimate(value=1.0, low=0.9, high=1.7, tier="fitted")
    assert error_ratio(unit, floats([-Z_80, 0.0, Z_80])) == pytest.approx([0.9, 1.0, 1.7])
    ratios = error_ratio(unit, SAMPLES.n_deviations)
    assert np.percentile(ratios, [10, 90]) == pytest.approx([0.9, 1.7], rel=0.01)


def test_the_fewest_reach_the_level_and_one_fewer_does_not():
    risk = FleetRisk(carried(down_frac=0.01), SAMPLES)
    for level in (0.5, 0.8, 0.95):
        n = risk.fewest(95.0, level, most=200)
        assert risk.probability(n, 95.0) >= level > risk.probability(n - 1, 95.0)
        assert risk.most_load(n, level) >= 95.0


def test_more_replicas_help_no_candidate_that_is_late_when_idle():
    late = CarriedLoad(
        n_deviations=tuple(DEVIATIONS), load_per_s=tuple(np.where(DEVIATIONS < 0.5, 10.0, 0.0)),
        down_frac=0.0,
    )  # fmt: skip
    risk = FleetRisk(late, SAMPLES)
    assert risk.fewest(95.0, 0.8, most=10_000) is None
    assert risk.probability(10_000, 95.0) == pytest.approx(0.65, abs=0.05)
    assert risk.fewest(95.0, 0.5, most=10_000) is not None


def test_every_cause_alone_is_likelier_than_all_together():
    found = carried(down_frac=0.02)
    whole = FleetRisk(found, SAMPLES).probability(11, 95.0)
    for cause in SAMPLES._fields:
        assert FleetRisk(found, SAMPLES.only(cause)).probability(11, 95.0) >= whole


def test_probability_rises_with_replicas_and_falls_with_load():
    risk = FleetRisk(carried(down_frac=0.02), SAMPLES)
    by_n = [risk.probability(n, 95.0) for n in range(5, 20)]
    by_load = [risk.probability(10, load) for load in range(50, 150, 10)]
    assert by_n == sorted(by_n)
    assert by_load == sorted(by_load, reverse=True)


def test_no_load_needs_no_replica():
    assert FleetRisk(carried(), SAMPLES).fewest(0.0, 0.8, most=9) == 0


def test_models_are_off_each_on_its_own():
    first = risk_samples(0)
    second = first.of_kind(1)
    assert first.of_kind(0) is first
    assert sorted(second.n_deviations) == sorted(first.n_deviations)
    assert abs(np.corrcoef(first.n_deviations, second.n_deviations)[0, 1]) < 0.06
    assert np.array_equal(first.demand_ratio, second.demand_ratio)
    slow = [(each.n_deviations < 0.8416) for each in (first, second)]  # 80 % of each
    assert np.mean(slow[0]) == pytest.approx(0.8, abs=0.01)
    assert np.mean(slow[0] & slow[1]) == pytest.approx(0.64, abs=0.02)
