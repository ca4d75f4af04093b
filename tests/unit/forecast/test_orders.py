"""Weekly peaks, Sen's slope and order dates, by hand arithmetic."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.forecast import OrderTerms
from gpuplan.forecast.orders import advice, seconds_until, trend_of, weekly_peaks
from gpuplan.units import WEEK

HOUR_S, WEEK_S = 3600.0, 7 * 86400.0
MONTH_S = 52 / 12 * WEEK_S


def test_the_last_week_ends_with_the_series():
    # Ten odd hours first, then two weeks: the odd ones belong to no whole week.
    level = np.concatenate([np.full(10, 99.0), np.full(168, 1.0), np.full(168, 2.0)])
    level[10 + 50], level[-1] = 7.0, 5.0
    assert weekly_peaks(floats(level), HOUR_S).tolist() == [7.0, 5.0]


def test_a_peak_is_an_hours_mean_and_no_single_sample():
    level = np.zeros(168 * 6)  # ten-minute steps
    level[6:12] = [0.0, 0.0, 60.0, 0.0, 0.0, 0.0]
    assert weekly_peaks(floats(level), 600.0).tolist() == [10.0]


def test_less_than_a_week_has_one_peak_and_less_than_an_hour_none():
    assert weekly_peaks(floats([1.0, 4.0, 2.0]), HOUR_S).tolist() == [4.0]
    assert len(weekly_peaks(floats([1.0, 4.0]), 600.0)) == 0


def test_sens_slope_is_the_median_of_all_pairs():
    logs = [0.0, 1.0, 1.0, 3.0]
    # Pairs: 1, 1/2, 1, 0, 1, 2 → ordered 0, 1/2, 1, 1, 1, 2 → the median is 1 a week.
    trend = trend_of(floats(np.exp(logs)))
    assert trend.per_month_frac == pytest.approx(math.expm1(52 / 12))
    assert trend.n_weeks == 4


def test_growth_by_the_week_compounds_to_a_month():
    trend = trend_of(floats(100.0 * 1.02 ** np.arange(8)))
    expected = 1.02 ** (52 / 12) - 1.0
    assert trend.per_month_frac == pytest.approx(expected)
    assert (trend.low_frac, trend.high_frac) == pytest.approx((expected, expected))


def test_a_week_without_data_keeps_its_place():
    # Doubling every week; the third week is lost, yet the fourth is still two weeks after it.
    assert trend_of(floats([1.0, 2.0, 0.0, 8.0])).per_month_frac == pytest.approx(
        2.0 ** (52 / 12) - 1.0
    )


def test_two_weeks_are_no_trend():
    assert trend_of(floats([1.0, 2.0])) is None
    assert trend_of(floats([1.0, 0.0, 2.0])) is None


@given(st.lists(st.floats(0.1, 1e3), min_size=3, max_size=10), st.floats(0.01, 100.0))
def test_the_unit_of_the_load_does_not_matter(peaks, scale):
    first, second = trend_of(floats(peaks)), trend_of(floats(np.array(peaks) * scale))
    assert first.per_month_frac == pytest.approx(second.per_month_frac, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("use", "level", "growth", "months"),
    [(0.4, 0.8, 1.0, 1.0), (0.2, 0.8, 1.0, 2.0), (0.5, 0.605, 0.1, 2.0), (0.85, 0.85, 0.1, 0.0)],
)
def test_months_until_a_level(use, level, growth, months):
    assert seconds_until(use, level, growth) == pytest.approx(months * MONTH_S)


@pytest.mark.parametrize(("use", "growth"), [(0.5, 0.0), (0.5, -0.1), (0.0, 0.5)])
def test_what_does_not_grow_never_gets_there(use, growth):
    assert seconds_until(use, 0.85, growth) is None
    (row,) = advice(
        use, (growth,), OrderTerms(n_devices=10, lead_s=WEEK_S, trigger_frac=0.85, target_frac=0.5)
    )
    assert (row.trigger_in_s, row.order_in_s, row.bridge_s) == (None, None, 0.0)
    assert row.n_needed_in_a_year == math.ceil(10 * use * (1 + growth) ** 12 / 0.5)


def test_the_order_goes_out_a_lead_time_before_the_trigger():
    (row,) = advice(
        0.2, (1.0,), OrderTerms(n_devices=8, lead_s=MONTH_S / 2, trigger_frac=0.8, target_frac=0.8)
    )
    assert row.trigger_in_s == pytest.approx(2 * MONTH_S)
    assert row.order_in_s == pytest.approx(1.5 * MONTH_S)
    assert row.bridge_s == 0.0
    assert row.use_at_arrival_frac == pytest.approx(0.2 * 2**0.5)
    assert row.n_needed_in_a_year == 8192  # 8 x 0.2 x 2^12 / 0.8


def test_whole_devices_are_not_rounded_up_by_the_last_bit():
    (row,) = advice(
        0.8, (0.0,), OrderTerms(n_devices=30, lead_s=WEEK_S, trigger_frac=0.9, target_frac=0.6)
    )
    assert row.n_needed_in_a_year == 40


TERMS = OrderTerms(
    n_devices=100, lead_s=16 * WEEK_S, trigger_frac=0.85, target_frac=0.8, now_s=1.8e9
)


def test_an_order_has_a_date():
    (row,) = advice(0.4, (0.08,), TERMS)
    weeks = math.log(0.85 / 0.4) / math.log(1.08) * 52 / 12
    assert row.order_at_s == pytest.approx(1.8e9 + (weeks - 16) * WEEK_S)
    assert advice(0.4, (0.0,), TERMS)[0].order_at_s is None
    assert advice(0.4, (0.08,), replace(TERMS, now_s=None))[0].order_at_s is None


def test_safety_stock_covers_demand_and_lead_time():
    # z(95 %) = 1.645; demand: sqrt(16) x 5 % of 0.4; lead time: growth by the week x deviation.
    calm = replace(TERMS, weekly_error_frac=0.05)
    (row,) = advice(0.4, (0.0,), calm)
    assert row.n_safety_stock == math.ceil(1.6449 * 4 * 0.05 * 0.4 * 100 / 0.8)
    late = replace(calm, lead_high_s=30 * WEEK_S)
    (row,) = advice(0.4, (0.08,), late)
    per_week = 0.4 * (1.08 ** (17 / (52 / 12)) - 1) / 17
    both = math.hypot(4 * 0.05 * 0.4, per_week * 14 / 1.2816)
    assert row.n_safety_stock == math.ceil(1.6449 * both * 100 / 0.8)
    assert row.late.bridge_s == pytest.approx(max(0.0, 30 * WEEK_S - row.trigger_in_s))
    assert row.late.use_at_arrival_frac > row.use_at_arrival_frac


def test_the_reorder_point_lies_a_lead_time_below_the_trigger():
    (row,) = advice(0.4, (0.08,), TERMS)
    assert row.reorder_at_frac * 1.08 ** (16 / (52 / 12)) == pytest.approx(0.85)


def test_steps_longer_than_a_week_have_weeks_between_them():
    found = weekly_peaks(np.array([10.0, 14.0, 18.0]), 4 * WEEK)
    assert found.tolist() == [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0]
