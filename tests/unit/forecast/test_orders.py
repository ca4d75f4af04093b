"""Weekly peaks, Sen's slope and order dates, by hand arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.columns import floats
from gpuplan.forecast.orders import advice, seconds_until, trend_of, weekly_peaks

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
    (row,) = advice(use, (growth,), n_devices=10, lead_s=WEEK_S, trigger_frac=0.85, target_frac=0.5)
    assert (row.trigger_in_s, row.order_in_s, row.bridge_s) == (None, None, 0.0)
    assert row.n_needed_in_a_year == math.ceil(10 * use * (1 + growth) ** 12 / 0.5)


def test_the_order_goes_out_a_lead_time_before_the_trigger():
    (row,) = advice(0.2, (1.0,), n_devices=8, lead_s=MONTH_S / 2, trigger_frac=0.8, target_frac=0.8)
    assert row.trigger_in_s == pytest.approx(2 * MONTH_S)
    assert row.order_in_s == pytest.approx(1.5 * MONTH_S)
    assert row.bridge_s == 0.0
    assert row.use_at_arrival_frac == pytest.approx(0.2 * 2**0.5)
    assert row.n_needed_in_a_year == 8192  # 8 x 0.2 x 2^12 / 0.8


def test_whole_devices_are_not_rounded_up_by_the_last_bit():
    (row,) = advice(0.8, (0.0,), n_devices=30, lead_s=WEEK_S, trigger_frac=0.9, target_frac=0.6)
    assert row.n_needed_in_a_year == 40
