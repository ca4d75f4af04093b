"""The week as bands of hours, and the years as quarters."""

import pytest

from gpuplan.demand.profile import MONTH
from gpuplan.demand.statistics import (
    constant_hours,
    hours_of_profile,
    hours_of_steps,
    periods_of,
)
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.demand import Growth, LoadStep
from gpuplan.errors import InputError
from gpuplan.units import HOUR


def test_load_duration_becomes_bands():
    """16 always, 40 for 50 hours, 60 for 20 of those."""
    steps = [
        LoadStep(held_s=h * HOUR, n_accelerators=n) for n, h in ((16, 168), (40, 50), (60, 20))
    ]
    hours = hours_of_steps(steps, [16, 40, 60])
    assert (hours.load_frac * 60).tolist() == pytest.approx([60, 40, 16])
    assert hours.hours_per_week.tolist() == pytest.approx([20, 30, 118])
    assert hours.mean_frac * 60 == pytest.approx((20 * 60 + 30 * 40 + 118 * 16) / 168)


def test_hours_that_no_step_covers_are_empty():
    hours = hours_of_steps([LoadStep(held_s=10 * HOUR, requests_per_s=5.0)], [5.0])
    assert hours.load_frac.tolist() == [1.0, 0.0]
    assert hours.hours_per_week.sum() == 168


def test_steps_that_contradict_are_refused():
    steps = [LoadStep(held_s=h * HOUR, requests_per_s=r) for r, h in ((1.0, 10), (2.0, 20))]
    with pytest.raises(InputError, match="held longer"):
        hours_of_steps(steps, [1.0, 2.0])


def test_profile_is_over_its_peak():
    hours = hours_of_profile((*[1.0] * 12, *[4.0] * 12))
    assert hours.load_frac.max() == 1.0
    assert hours.mean_frac == pytest.approx(2.5 / 4)
    assert hours.hours_per_week.sum() == pytest.approx(168)
    assert constant_hours().mean_frac == 1.0


def test_without_growth_there_is_one_period():
    found = periods_of(Growth(per_month_frac=exactly(0.0)), 36 * MONTH)
    assert found.scenarios == ("mid",)
    assert found.load_ratio.tolist() == [[1.0]]
    assert found.length_s.sum() == pytest.approx(36 * MONTH)


def test_quarters_carry_their_highest_month():
    growth = Growth(per_month_frac=Range(low=0.0, mid=0.08, high=0.12))
    found = periods_of(growth, 12 * MONTH)
    assert found.scenarios == ("mid", "low", "high")
    assert found.load_ratio.shape == (3, 4)
    assert found.load_ratio[0].tolist() == pytest.approx([1.08**m for m in (2, 5, 8, 11)])
    assert found.load_ratio[1].tolist() == pytest.approx([1.0] * 4)


def test_seasons_turn_over_the_first_month():
    profile = (1.0, 1.0, 2.0, *[1.0] * 8, 3.0)
    found = periods_of(Growth(per_month_frac=exactly(0.0), monthly_profile=profile), 12 * MONTH)
    assert found.load_ratio[0].tolist() == pytest.approx([2.0, 1.0, 1.0, 3.0])


@pytest.mark.parametrize("rate", [0.35, 1.0, 9.0])
def test_growth_beyond_all_reason_is_refused(rate):
    with pytest.raises(InputError, match="times the load in 36 months"):
        periods_of(Growth(per_month_frac=exactly(rate)), 36 * MONTH)
    assert periods_of(Growth(per_month_frac=exactly(0.25)), 36 * MONTH).load_ratio.max() < 1e4
