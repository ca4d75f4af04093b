"""The collector, the garbage and the clock: order, repeats, resets, marks, times."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.observation import Subject
from gpuplan.observe.clock import seconds, time_of_day_s
from gpuplan.observe.collect import Buckets, Collector, is_blank, is_impossible
from gpuplan.observe.formats import is_ratio
from gpuplan.observe.names import Word

UTIL, TOKENS = Word("gpu_util_frac", 0.01), Word("output_tokens_per_s", is_counter=True)


def collected(word: Word, readings, *, is_sum: bool = False):
    collector = Collector("test", "")
    subject = collector.subject(Subject(device="0"))
    if is_sum:
        collector.add_up(subject, word)
    for at_s, value in readings:
        collector.sample(subject, word, at_s, value)
    return collector.finish()


def quirks(telemetry) -> dict[str, int]:
    return {quirk.what: quirk.n_cases for quirk in telemetry.quirks}


@given(st.permutations(range(8)))
def test_the_order_of_rows_does_not_matter(order):
    readings = [(float(k), 10.0 * k) for k in range(8)]
    (series,) = collected(UTIL, [readings[k] for k in order]).series
    assert series.at_s.tolist() == [float(k) for k in range(8)]
    assert series.value == pytest.approx([0.1 * k for k in range(8)])


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20), st.floats(0.5, 100.0))
def test_rates_never_fall_below_zero_and_add_up_to_what_was_counted(rises, step_s):
    total = np.cumsum(rises)
    (series,) = collected(TOKENS, [(k * step_s, float(v)) for k, v in enumerate(total)]).series
    assert (series.value >= 0).all()
    assert (series.value * step_s).sum() == pytest.approx(total[-1] - total[0])


def test_two_resets_are_counted_on_from_zero():
    found = collected(TOKENS, [(0, 50.0), (10, 20.0), (20, 30.0), (30, 5.0)])
    assert found.series[0].value == pytest.approx([2.0, 1.0, 0.5])
    assert quirks(found) == {"a counter was reset": 2}


def test_a_missing_sample_of_a_counter_is_bridged():
    (series,) = collected(TOKENS, [(0, 0.0), (10, math.nan), (20, 40.0)]).series
    assert (series.at_s.tolist(), series.value.tolist()) == ([0.0], [2.0])


def test_parts_of_one_instant_add_up_and_repeats_do_not():
    readings = [(0.0, 10.0), (0.0, 20.0), (10.0, 5.0)]
    summed, last = collected(UTIL, readings, is_sum=True), collected(UTIL, readings)
    assert summed.series[0].value == pytest.approx([0.3, 0.05])
    assert last.series[0].value == pytest.approx([0.2, 0.05])
    assert quirks(last) == {"two readings of one instant": 1}


def test_of_two_names_for_one_metric_the_longer_series_counts():
    collector = Collector("test", "")
    subject = collector.subject(Subject())
    collector.sample(subject, UTIL, 0.0, 50.0)
    for at_s in (0.0, 1.0):
        collector.sample(subject, Word("gpu_util_frac"), at_s, 0.7)
    found = collector.finish()
    assert found.series[0].value.tolist() == [0.7, 0.7]
    assert quirks(found) == {"two names for one metric": 1}


def test_only_three_places_of_a_quirk_are_named_but_all_are_counted():
    collector = Collector("test", "")
    for k in range(5):
        collector.quirk("odd", f"line {k}", "left out")
    (quirk,) = collector.finish().quirks
    assert (quirk.n_cases, quirk.where) == (5, "line 0; line 1; line 2")


@pytest.mark.parametrize(("at_s", "is_dated"), [(1.7e9, True), (1e9, True), (999.0, False)])
def test_large_times_are_dates(at_s, is_dated):
    assert collected(UTIL, [(at_s, 1.0)]).is_dated == is_dated


@pytest.mark.parametrize(
    ("value", "is_mark"),
    [
        (2**31 - 17, False), (2**31 - 16, True), (2**31 - 1, True), (2**31, False),
        (2**32 - 1, True), (2**32, False), (2**47, True), (2**47 + 15, True), (2**47 + 16, False),
        (2**63 - 1, True), (0, False), (100, False),
    ],
)  # fmt: skip
def test_marks_for_no_value_at_their_edges(value, is_mark):
    assert is_blank(floats([float(value)])).tolist() == [is_mark]


@pytest.mark.parametrize(
    ("metric", "possible", "impossible"),
    [
        ("gpu_util_frac", (0.0, 1.0, 1.05), (-0.01, 1.06)),
        ("power_w", (0.0, 20_000.0), (-1.0, 20_001.0)),
        ("temperature_c", (-60.0, 200.0), (-61.0, 201.0)),
        ("sm_clock_hz", (2e9,), (3e10,)),
        ("link_tx_bytes_per_s", (9e11,), (2e14,)),
        ("memory_used_bytes", (8e10,), (3e15,)),
        ("requests_waiting_count", (1e9,), (-1.0,)),
    ],
)
def test_what_no_device_can_show(metric, possible, impossible):
    assert not is_impossible(metric, floats(possible)).any()
    assert is_impossible(metric, floats(impossible)).all()
    assert not is_impossible(metric, floats([math.nan])).any()


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("1700000000", 1.7e9),
        ("1700000000000", 1.7e9),
        ("1700000000000000", 1.7e9),
        ("1700000000000000000", 1.7e9),
        ("12.5", 12.5),
        ("2023-11-14T22:13:20Z", 1.7e9),
        ("2023-11-14T23:13:20+01:00", 1.7e9),
        ("2023/11/14 22:13:20", 1.7e9),
        ("2023-11-14 22:13:20 UTC", 1.7e9),
        ("10:05", 36300.0),
        ("10:05:30", 36330.0),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_as_sources_write_them(text, at_s):
    assert seconds(text, Collector("test", "")) == pytest.approx(at_s)


@pytest.mark.parametrize("text", ["10:60", "10", "10:5", "1:2:3", "a:b"])
def test_no_time_of_the_day(text):
    assert time_of_day_s(text) is None


@pytest.mark.parametrize(
    ("text", "is_assumed"), [("2023-11-14 22:13:20", True), ("2023-11-14T22:13:20Z", False)]
)
def test_a_time_without_a_zone_is_an_assumption(text, is_assumed):
    collector = Collector("test", "")
    seconds(text, collector)
    assert ("time zone" in collector.assumptions) == is_assumed


@pytest.mark.parametrize(
    ("values", "ratio"),
    [
        ([0.5, 1.0], True),
        ([0.0, 1.0], False),
        ([0.5, 2.0], False),
        ([], False),
        ([math.nan], False),
    ],
)
def test_old_names_with_ratios(values, ratio):
    assert is_ratio("DCGM_FI_DEV_GPU_UTIL", values) == ratio
    assert not is_ratio("DCGM_FI_PROF_SM_ACTIVE", values)


def histogram(rows: dict[float, dict[float, float]], numbers=None):
    buckets, odd = Buckets(), []
    for at_s, row in rows.items():
        for upper, count in row.items():
            buckets.bucket(at_s, upper, count)
    for at_s, count in (numbers or {}).items():
        buckets.number(at_s, count)
    return buckets.histogram("ttft_s", 0, lambda what, *_: odd.append(what)), odd


def test_a_restarted_histogram_counts_from_zero():
    made, _ = histogram({0: {1: 10, math.inf: 20}, 10: {1: 3, math.inf: 5}})
    assert made.count.tolist() == [[3.0, 2.0]]


def test_the_count_stands_in_for_a_missing_last_bucket():
    made, odd = histogram({0: {1: 4}, 10: {1: 7}}, numbers={0: 5, 10: 10})
    assert made.upper.tolist() == [1.0, math.inf]
    assert made.count.tolist() == [[3.0, 2.0]]
    assert odd == []


def test_a_bucket_that_is_missing_once_is_told():
    made, odd = histogram({0: {1: 0, 2: 0, math.inf: 0}, 10: {1: 4, math.inf: 6}})
    assert made.count.tolist() == [[4.0, 0.0, 2.0]]
    assert odd == ["a bucket is missing in some samples"]


def test_without_any_end_the_last_bound_is_told():
    assert histogram({0: {1: 4}, 10: {1: 7}})[1] == ["no infinite bucket"]
    assert histogram({})[0] is None
