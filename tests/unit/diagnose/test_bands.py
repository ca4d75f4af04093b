"""Time in bands, peak minutes and what a pool can bear, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.diagnose.bands import (
    band_shares,
    mean_hides_peak,
    minute_means,
    pooled,
    safe_use,
)
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import BandEdges
from gpuplan.domain.telemetry.observation import Series

EDGES = BandEdges()


def series(value, at_s=None, metric="gpu_util_frac", subject=0) -> Series:
    times = np.arange(len(value)) * 10.0 if at_s is None else at_s
    return Series(metric=metric, subject=subject, at_s=floats(times), value=floats(value))


def shares(values, weights) -> dict[str, float]:
    return {one.name: one.time_frac for one in band_shares(floats(values), floats(weights), EDGES)}


def test_time_counts_and_not_samples():
    found = shares([0.1, 0.5, 0.8, 0.92, 0.99], [10.0, 20.0, 40.0, 20.0, 10.0])
    assert found == pytest.approx(
        {"waste": 0.1, "under-used": 0.2, "good": 0.4, "hot": 0.2, "overload": 0.1}
    )


def test_the_edges_belong_where_the_documents_put_them():
    found = shares([0.30, 0.70, 0.90, 0.95], [1.0, 2.0, 3.0, 4.0])
    assert found == pytest.approx(
        {"waste": 0.0, "under-used": 0.1, "good": 0.5, "hot": 0.4, "overload": 0.0}
    )


def test_sums_that_miss_an_edge_by_the_last_bit_are_on_it():
    assert EDGES.band(0.1 + 0.2) == "under-used"
    assert EDGES.band(0.95 + 1e-12) == "hot"
    assert EDGES.band(0.7 - 1e-12) == "good"


def test_no_time_has_no_shares():
    assert set(shares([], []).values()) == {0.0}


def test_own_edges_are_obeyed():
    edges = BandEdges(waste_frac=0.1, good_frac=0.2, hot_frac=0.3, overload_frac=0.4)
    names = [edges.band(use) for use in (0.05, 0.1, 0.2, 0.3, 0.4, 0.41)]
    assert names == ["waste", "under-used", "good", "good", "hot", "overload"]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.floats(0.1, 1e4))
def test_shares_add_up_whatever_the_unit_of_time(values, scale):
    weights = np.arange(1.0, len(values) + 1.0)
    first, second = shares(values, weights), shares(values, weights * scale)
    assert sum(first.values()) == pytest.approx(1.0)
    assert first == pytest.approx(second)


def test_a_peak_is_a_minute_and_no_instant():
    # Six samples a minute: one instant of 100 % in a minute of 40 % is a minute of 50 %.
    value = [0.4] * 5 + [1.0] + [0.6] * 6
    assert minute_means([series(value)]).tolist() == pytest.approx([0.5, 0.6])


def test_minutes_are_shared_by_all_devices_and_holes_are_left_out():
    one = series([0.2, 0.8], at_s=[0.0, 120.0])
    other = series([0.6, np.nan], at_s=[30.0, 120.0], subject=1)
    assert minute_means([one, other]).tolist() == pytest.approx([0.4, 0.8])
    assert len(minute_means([series([np.nan])])) == 0


def test_a_sample_stands_until_the_next_but_never_over_a_gap():
    value, weight_s = pooled([series([0.1, 0.2, 0.3, np.nan, 0.5], at_s=[0, 10, 20, 30, 1000])])
    assert value.tolist() == [0.1, 0.2, 0.3, 0.5]
    assert weight_s.tolist() == [10.0, 10.0, 10.0, 10.0]
    assert series([0.0, 1.0, 0.0], at_s=[0, 10, 1000]).weight_s[1] == pytest.approx(990.0)
    # Usual step 10: a hole of 970 counts for 30 at most.
    assert series([0.0, 0.0, 0.0, 1.0], at_s=[0, 10, 20, 990]).weight_s.tolist() == [10, 10, 30, 10]


def test_the_mean_is_weighted_by_time():
    assert series([1.0, 0.0, 0.5], at_s=[0, 20, 30]).mean() == pytest.approx(
        (20.0 * 1.0 + 10.0 * 0.0 + 15.0 * 0.5) / 45.0
    )


def test_two_servers_by_erlangs_formula():
    # C(2, a) = a^2 / (2 + a) in offered load a; one in five: a^2 - a / 5 - 2 / 5 = 0.
    load = (0.2 + (0.04 + 1.6) ** 0.5) / 2.0
    assert safe_use(2) == pytest.approx(load / 2.0)


def test_larger_pools_bear_more_but_never_all():
    found = [safe_use(n) for n in (1, 2, 3, 8, 32, 128, 512)]
    assert found == sorted(found)
    assert found[-1] < 1.0


@pytest.mark.parametrize(
    ("mean", "peak", "is_told"),
    [(0.68, 0.95, True), (0.5, 0.69, False), (0.68, 0.92, False), (0.69, 0.94, True)],
    ids=["far", "one band", "near", "just far enough"],
)
def test_a_mean_that_hides_its_peak_is_told(mean, peak, is_told):
    assert bool(mean_hides_peak(mean, peak, EDGES)) == is_told
