"""Growth models by hand arithmetic, and the back-test that chooses between them."""

import math

import numpy as np
import pytest

from gpuplan.domain.columns import floats
from gpuplan.forecast.orders import (
    DAMPING,
    back_tested,
    growth_ratio,
    trend_of,
    weekly_error_frac,
    weeks_until,
)

MONTH = 52 / 12


def test_ratios_after_a_quarter():
    assert growth_ratio("compound", 0.1, 3 * MONTH) == pytest.approx(1.331)
    assert growth_ratio("linear", 0.1, 3 * MONTH) == pytest.approx(1.3)
    left = (1 - DAMPING ** (3 * MONTH)) / -math.log(DAMPING) / MONTH
    assert growth_ratio("damped", 0.1, 3 * MONTH) == pytest.approx(1.1**left)


def test_linear_decline_ends_at_zero():
    assert growth_ratio("linear", -0.5, 10 * MONTH) == 0.0


@pytest.mark.parametrize("model", ["compound", "linear", "damped"])
def test_waiting_is_the_inverse_of_growing(model):
    ratio = growth_ratio(model, 0.08, 9.0)
    assert weeks_until(model, 0.08, ratio) == pytest.approx(9.0)
    assert weeks_until(model, 0.0, 1.2) is None
    assert weeks_until(model, 0.08, 0.9) == 0.0


def test_damped_growth_has_a_ceiling():
    assert weeks_until("damped", 0.08, 3.0) is None
    assert weeks_until("compound", 0.08, 3.0) > 0


@pytest.mark.parametrize(
    ("model", "peaks"),
    [
        ("compound", 100 * 1.06 ** np.arange(16)),
        ("linear", 100 + 12.0 * np.arange(16)),
        ("damped", 100 * np.exp(0.1 * (1 - 0.85 ** np.arange(16)) / 0.15)),
    ],
)
def test_the_back_test_chooses_the_model_that_made_the_peaks(model, peaks):
    record = back_tested(floats(peaks))
    assert record[0].model == model
    assert [row.error_frac for row in record] == sorted(row.error_frac for row in record)


def test_a_short_past_has_no_record():
    assert back_tested(floats([1.0, 2.0, 3.0, 4.0, 5.0])) == ()


def test_a_linear_trend_is_a_share_of_the_last_peak():
    trend = trend_of(floats(100 + 10.0 * np.arange(11)), "linear")
    assert trend.per_month_frac == pytest.approx(10 * MONTH / 200)


def test_the_weekly_error_is_what_the_trend_misses():
    steady = floats(100 * 1.02 ** np.arange(8))
    assert weekly_error_frac(steady, trend_of(steady)) == pytest.approx(0.0, abs=1e-9)
    noisy = floats([100.0, 110.0, 100.0, 110.0, 100.0])
    trend = trend_of(noisy)
    assert weekly_error_frac(noisy, trend) == pytest.approx(0.1, abs=0.01)
