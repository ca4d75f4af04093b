"""What a watch retains between two looks, and what it expects of the coming day."""

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.domain.telemetry.monitoring import WatchPoint
from gpuplan.studies.monitoring.watch import KEPT_HOURS, expected, remembered
from gpuplan.units import DAY, HOUR

NOW_S = 1.7e9


def look(level: float):
    return Scene(n_samples=8).device(0, gpu_util=level).telemetry()


def points(levels, metric="gpu_util_frac"):
    return tuple(
        WatchPoint(at_s=HOUR * k, n_demand=float(level), metric=metric)
        for k, level in enumerate(levels)
    )


def test_the_present_hour_is_written_once_however_often_one_looks():
    first = remembered(look(0.4), (), now_s=NOW_S)
    again = remembered(look(0.6), first, now_s=NOW_S + 60)
    assert len(first) == len(again) == 1
    assert first[0].at_s == NOW_S // HOUR * HOUR
    assert again[0].n_demand > first[0].n_demand


def test_a_later_hour_is_added_and_the_past_is_bounded():
    metric = remembered(look(0.4), (), now_s=NOW_S)[0].metric
    past = points(np.full(KEPT_HOURS, 0.5), metric)
    kept = remembered(look(0.4), past, now_s=HOUR * (KEPT_HOURS + 5))
    assert len(kept) == KEPT_HOURS
    assert kept[0] == past[1]


def test_a_look_that_saw_no_demand_forgets_nothing():
    past = points([0.4, 0.5])
    silent = Scene(n_samples=8).telemetry()
    assert remembered(silent, past, now_s=NOW_S) == past


def test_less_than_two_days_expect_nothing():
    assert expected((), 0.85) == (None, None, "")
    assert expected(points(np.full(47, 0.5)), 0.85) == (None, None, "gpu_util_frac")


def test_a_steady_day_is_expected_again():
    daily = 0.5 + 0.3 * np.sin(2 * np.pi * np.arange(24 * 14) / 24)
    until_s, peak, metric = expected(points(daily), 0.85)
    assert metric == "gpu_util_frac"
    assert peak == pytest.approx(0.8, abs=0.05)
    assert until_s is None or until_s > 7 * DAY


def test_growing_peaks_reach_the_trigger_when_arithmetic_says():
    """Peaks grow by a tenth a week, so 0.85 comes in ln(0.85 / last) / ln(1.1) weeks."""
    weeks = np.repeat(0.4 * 1.1 ** np.arange(6), 168)
    until_s, _, _ = expected(points(weeks), 0.85)
    last = weeks[-1]
    wanted_weeks = np.log(0.85 / last) / np.log(1.1)
    assert until_s / (7 * DAY) == pytest.approx(wanted_weeks, rel=0.05)


def test_a_gap_in_the_past_repeats_the_last_value():
    past = tuple(p for p in points(np.full(24 * 7, 0.5)) if not 30 <= p.at_s / HOUR < 40)
    _, peak, _ = expected(past, 0.85)
    assert peak == pytest.approx(0.5, abs=0.02)
