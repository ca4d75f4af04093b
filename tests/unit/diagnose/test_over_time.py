"""Minutes, stretches with hysteresis, and the tail of a full pool."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.diagnose.over_time import over_time
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import BandEdges
from gpuplan.domain.telemetry.observation import Series

EDGES = BandEdges()


def times(percent, n_devices=8):
    values = floats(np.asarray(percent, dtype=float) / 100)
    at_s = floats(60.0 * np.arange(len(values)))
    series = Series(metric="gpu_util_frac", subject=0, at_s=at_s, value=values)
    return over_time([series], EDGES, n_devices=n_devices, mean_frac=float(values.mean()))


def test_every_minute_has_its_band():
    found = times([20, 50, 90, 85, 95])
    assert [one.band for one in found.minutes] == ["waste", "under-used", "good", "good", "hot"]


def test_a_level_around_an_edge_is_one_stretch():
    found = times([94, 96] * 20)
    assert found.n_crossings == 39
    assert [one.band for one in found.episodes] == ["hot"] or len(found.episodes) == 1


def test_a_short_visit_is_no_stretch():
    found = times([80] * 10 + [97, 97] + [80] * 10)
    assert [one.band for one in found.episodes] == ["good"]
    longer = times([80] * 10 + [97] * 5 + [80] * 10)
    assert [one.band for one in longer.episodes] == ["good", "overload", "good"]


@given(st.lists(st.integers(0, 100), min_size=3, max_size=60))
def test_stretches_follow_one_another_and_change_band(percent):
    found = times(percent).episodes
    for one, after in pairwise(found):
        assert one.end_s <= after.begin_s
        assert one.band != after.band
    assert all(one.end_s > one.begin_s for one in found)


def test_a_larger_pool_bears_more_and_its_tail_grows_otherwise():
    few, many = times([97] * 10, 4), times([97] * 10, 64)
    assert few.suggested_high_frac < many.suggested_high_frac
    assert few.tail.wait_growth_ratio > 1
    assert many.tail.wait_growth_ratio > few.tail.wait_growth_ratio  # calm at 80 % was calmer
    assert times([80] * 10).tail is None


def test_one_server_waits_as_theory_says():
    """M/M/1: rho / (1 - rho) over that at 80 %."""
    assert times([96] * 10, 1).tail.wait_growth_ratio == pytest.approx((0.96 / 0.04) / (0.8 / 0.2))
