"""Forecasts: exact where the past is exact, blind to the future, never negative, honest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.forecast import DemandSeries, OrderTerms
from gpuplan.errors import InputError
from gpuplan.forecast.combine import Experts, Season, _rolling_median, combined
from gpuplan.forecast.orders import advice, seconds_until, trend_of, weekly_peaks
from gpuplan.forecast.predict import MOST_CELLS, backtest, forecast, season_of, trusted

DAY_S, WEEK_S = 86400.0, 7 * 86400.0
HOURS = Season(day=24, week=168)


def load(level, step_s: float = 3600.0) -> DemandSeries:
    return DemandSeries(name="load", unit="", begin_s=0.0, step_s=step_s, level=floats(level))


def day_shape(n_days: int) -> np.ndarray:
    return np.tile(100.0 + 50.0 * np.sin(np.arange(24) / 24 * 2 * np.pi), n_days)


def test_a_constant_stays():
    found = forecast(load(np.full(24 * 10, 7.0)), DAY_S)
    assert found.middle == pytest.approx(np.full(24, 7.0))
    assert found.high == pytest.approx(found.low)


def test_a_daily_shape_is_repeated():
    found = forecast(load(day_shape(14)), DAY_S)
    assert found.middle == pytest.approx(day_shape(1), rel=1e-6)
    assert found.method == "combination of simple forecasts"


def test_steps_too_short_are_refused_with_steps_that_are_not():
    n = 1 + MOST_CELLS // 43_200
    with pytest.raises(InputError, match=r"--step-s \d+"):
        forecast(load(np.ones(n), step_s=2.0), DAY_S)


def test_minutes_are_forecast_as_hours_are():
    """Ten days of minutes: fitted to a part of the origins, with the same figures."""
    smooth = np.interp(np.arange(14_400) / 60, np.arange(24), day_shape(1), period=24)
    minutes = forecast(load(smooth, step_s=60.0), DAY_S)
    hours = forecast(load(day_shape(10)), DAY_S)
    assert len(minutes.middle) == 1_440
    assert minutes.middle[::60] == pytest.approx(hours.middle, rel=0.02)


def test_levels_are_medians_of_what_is_there():
    values = np.random.default_rng(2).integers(0, 9, 80).astype(float)
    values[[0, 5, 6, 40]] = np.nan
    windows = [values[max(0, k - 6) : k + 1] for k in range(1, 80)]
    found = _rolling_median(values, 7)
    assert np.isnan(found[0])
    assert found[1:].tolist() == [np.nanmedian(window) for window in windows]


def test_an_outage_does_not_move_the_level():
    values = day_shape(14)
    values[24 * 9 : 24 * 10] = 0.0
    found = forecast(load(values), DAY_S)
    assert found.middle == pytest.approx(day_shape(1), rel=0.05)


def test_steps_beyond_a_day_repeat_the_last_day_known():
    found = forecast(load(day_shape(14)), 3 * DAY_S)
    assert found.middle == pytest.approx(day_shape(3), rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_the_future_is_not_seen(seed):
    random = np.random.default_rng(seed)
    values = random.gamma(2.0, 10.0, 24 * 8)
    origin = 24 * 6
    changed = values.copy()
    changed[origin + 1 :] = random.gamma(2.0, 1000.0, len(values) - origin - 1)
    for way in (combined, lambda *given, **named: trusted(*given, **named, memo={})):
        first, second = (
            way(Experts(v, HOURS), v, origin, season=HOURS, horizon=24) for v in (values, changed)
        )
        assert first.middle == pytest.approx(second.middle)
        assert first.high == pytest.approx(second.high)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=24 * 4, max_size=24 * 5))
def test_never_negative_and_in_order(values):
    found = forecast(load(values), DAY_S)
    assert (found.low >= 0).all()
    assert (found.low <= found.middle + 1e-6 * (1 + found.middle)).all() or found.backtest
    assert (found.high >= found.low - 1e-9).all()


def test_a_random_walk_is_told_as_such():
    random = np.random.default_rng(3)
    walk = 1000.0 + np.cumsum(np.where(random.random(24 * 20) < 0.05, random.normal(0, 30, 480), 0))
    rows, _ = backtest(walk, HOURS, 24)
    errors = {row.method: row.mase_ratio for row in rows}
    assert errors["combination"] < errors["as a day ago"]
    assert errors["combination"] == pytest.approx(errors["last value"], rel=0.25)


def test_where_a_baseline_wins_it_is_leaned_to_and_told():
    # Long plateaus with jumps: nothing beats the last value.
    random = np.random.default_rng(1)
    level = np.repeat(random.choice([10.0, 500.0, 90.0, 4000.0], 12), 37)
    found = forecast(load(level), DAY_S)
    assert {row.method for row in found.backtest} == {"combination", "last value", "as a day ago"}
    errors = {row.method: row.mase_ratio for row in found.backtest}
    told = any("'last value' did better" in warning for warning in found.warnings)
    assert told == (errors["last value"] < errors["combination"])


def test_a_baseline_that_was_right_all_week_is_followed():
    # Each hour repeats the last one until the day the level jumps; the fit still holds old days.
    random = np.random.default_rng(5)
    wild = random.uniform(10.0, 90.0, 24 * 10)
    calm = np.full(24 * 9, 50.0) + np.repeat(random.normal(0.0, 8.0, 9), 24)
    values = np.concatenate([wild, calm])
    experts, origin = Experts(values, HOURS), len(values) - 1
    plain = combined(experts, values, origin, season=HOURS, horizon=24)
    lean = trusted(experts, values, origin, season=HOURS, horizon=24, memo={})
    last = values[origin]
    assert np.abs(lean.middle - last).mean() <= np.abs(plain.middle - last).mean() + 1e-9


def test_a_sparse_past_is_left_to_the_combination():
    values = np.zeros(24 * 12)
    values[::7] = 30.0
    experts, origin = Experts(values, HOURS), len(values) - 1
    plain = combined(experts, values, origin, season=HOURS, horizon=24)
    lean = trusted(experts, values, origin, season=HOURS, horizon=24, memo={})
    assert lean.middle == pytest.approx(plain.middle)


def test_ranges_of_independent_days_hold_four_of_five():
    random = np.random.default_rng(11)
    held = [backtest(random.gamma(4.0, 25.0, 24 * 12), HOURS, 24)[1] for _ in range(6)]
    assert 0.72 < float(np.mean(held)) < 0.9


def test_short_pasts_say_so():
    found = forecast(load([5.0, 6.0, 7.0]), DAY_S)
    assert found.method == "last value"
    assert found.range_held_frac is None
    with pytest.raises(InputError, match="at least two"):
        forecast(load([5.0]), DAY_S)
    with pytest.raises(InputError, match="a week at most"):
        forecast(load(day_shape(14)), 30 * DAY_S)


def test_a9_order_now_and_bridge_five_weeks():
    rows = advice(
        0.70,
        (0.04, 0.08, 0.12),
        OrderTerms(n_devices=48, lead_s=16 * WEEK_S, trigger_frac=0.85, target_frac=0.80),
    )
    middle = rows[1]
    assert middle.trigger_in_s / WEEK_S == pytest.approx(10.9, abs=0.05)
    assert middle.order_in_s == 0.0
    assert middle.bridge_s / WEEK_S == pytest.approx(5.07, abs=0.05)
    assert middle.use_at_arrival_frac == pytest.approx(0.93, abs=0.001)
    assert middle.n_needed_in_a_year == 106
    assert rows[0].order_in_s > 0.0  # at 4 % there is time
    assert rows[2].bridge_s > middle.bridge_s


def test_a9_with_other_numbers():
    (row,) = advice(
        0.5, (0.1,), OrderTerms(n_devices=100, lead_s=8 * WEEK_S, trigger_frac=0.9, target_frac=0.7)
    )
    months = np.log(0.9 / 0.5) / np.log(1.1)
    assert row.trigger_in_s == pytest.approx(months * 52 / 12 * WEEK_S)
    assert row.order_in_s == pytest.approx(row.trigger_in_s - 8 * WEEK_S)
    assert row.n_needed_in_a_year == int(np.ceil(100 * 0.5 * 1.1**12 / 0.7))


def test_shrinking_demand_never_triggers():
    assert seconds_until(0.5, 0.85, -0.02) is None
    assert seconds_until(0.9, 0.85, 0.1) == 0.0


def test_growth_of_weekly_peaks_is_found_in_spite_of_a_bad_week():
    hours = np.arange(24 * 7 * 12)
    level = day_shape(7 * 12) * 1.08 ** (hours / (24 * 7 * 52 / 12))
    level[24 * 7 * 5 : 24 * 7 * 6] *= 3.0
    trend = trend_of(weekly_peaks(floats(level), 3600.0))
    assert trend.per_month_frac == pytest.approx(0.08, abs=0.02)
    assert trend.low_frac <= trend.per_month_frac <= trend.high_frac


def test_season_of_ten_minutes():
    assert season_of(600.0) == Season(day=144, week=1008)
