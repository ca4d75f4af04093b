"""Each simple forecast at one origin, by hand."""

import numpy as np
import pytest

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.forecast import DemandSeries
from gpuplan.forecast.combine import NAMES, Experts, Past, Season, _groups, _tail, _weights
from gpuplan.forecast.predict import backtest, forecast, season_of

SEASON = Season(day=2, week=4)
PAST = floats([1.0, 10.0, 3.0, 20.0, 5.0, 30.0])


def said(origin: int, ahead: int) -> np.ndarray:
    return Experts(PAST, SEASON).stated(np.array([origin]), ahead)[0]


def test_every_expert_one_step_after_the_last_value():
    found = dict(zip(NAMES, said(5, 1), strict=True))
    assert found["last"] == 30.0
    assert found["day ago"] == 5.0
    assert found["day's shape"] == 3.0  # of 5, 3, 1
    assert found["week ago"] == 3.0
    assert found["day's level"] == 17.5  # of 5 and 30
    assert found["week's level"] == 12.5  # of 3, 20, 5, 30
    assert found["shifted shape"] == 30.0 + 3.0 - 15.0  # the shape of now: of 20 and 10


def test_steps_beyond_a_day_use_the_last_known_day():
    assert said(5, 3)[1] == said(5, 1)[1] == 5.0
    assert said(5, 4)[1] == said(5, 2)[1] == 30.0


def test_without_a_past_an_expert_says_nothing():
    assert np.isnan(said(0, 1)[1])
    assert said(0, 1)[0] == 1.0


def test_the_right_expert_gets_the_weight():
    rows = np.random.default_rng(0).uniform(1.0, 9.0, (200, len(NAMES)))
    weights = _weights(Past(rows, rows[:, 3].copy(), np.ones(200)))
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0).all()
    assert weights[3] > 0.95


def test_no_past_means_the_last_value():
    assert _weights(Past(np.zeros((0, 7)), np.zeros(0), np.zeros(0))).tolist() == [1.0] + [0.0] * 6


@pytest.mark.parametrize("horizon", [1, 2, 3, 8, 24, 168])
def test_groups_hold_every_step_once(horizon):
    assert [step for group in _groups(horizon) for step in group] == list(range(1, horizon + 1))


def test_short_records_widen_the_range():
    assert _tail(1.0) == pytest.approx(1.0)  # 0.9 x 9 / 8 is more than all
    assert _tail(10.0) == pytest.approx(0.9 * 81 / 80)


@pytest.mark.parametrize(
    ("step_s", "season"), [(3600.0, (24, 168)), (86400.0, (1, 7)), (604800.0, (1, 2))]
)
def test_seasons_in_steps(step_s, season):
    assert season_of(step_s) == season


def test_the_errors_of_a_line_by_hand():
    # A rise of one a step: the last value is 1.5 behind on average, a day ago 2; the scale is 2.
    rows, held = backtest(floats(np.arange(40.0)), SEASON, 2)
    errors = {row.method: row.mase_ratio for row in rows}
    assert errors["last value"] == pytest.approx(0.75)
    assert errors["as a day ago"] == pytest.approx(1.0)
    assert 0.0 <= held <= 1.0


def test_a_day_and_a_bit_is_repeated_as_a_day_ago():
    level = floats(np.arange(30.0))
    series = DemandSeries(name="x", unit="", begin_s=100.0, step_s=3600.0, level=level)
    found = forecast(series, 26 * 3600.0)
    assert found.method == "as a day ago"
    assert found.middle.tolist() == [*range(6, 30), 6, 7]
    assert found.at_s[0] == 100.0 + 30 * 3600.0
    assert (found.low <= found.middle).all()
    assert (found.high >= found.middle).all()
