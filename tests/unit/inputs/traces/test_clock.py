"""Times as files write them, against hand arithmetic and the standard library."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.inputs.traces.clock import Clock, numbers


@pytest.mark.parametrize(
    ("unit", "cells", "seconds"),
    [
        ("s", ["1.5", 2], [1.5, 2.0]),
        ("ms", [1500, "2500"], [1.5, 2.5]),
        ("us", [1_500_000], [1.5]),
        ("ns", [2_000_000_000], [2.0]),
    ],
)
def test_numbers_in_a_named_unit(unit, cells, seconds):
    assert Clock(unit).seconds(cells).tolist() == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("name", "first", "unit", "is_guessed"),
    [
        ("start_ms", 12, "ms", False),
        ("arrive_s", 1_700_000_000_000, "s", False),  # the name wins over the size
        ("timestamp", 1_700_000_000, "s", True),
        ("timestamp", 1_700_000_000_000, "ms", True),
        ("timestamp", 1_700_000_000_000_000, "us", True),
        ("timestamp", 1_700_000_000_000_000_000, "ns", True),
        ("timestamp", 3.5, "s", True),
    ],
)
def test_the_unit_is_that_of_the_name_else_of_the_size(name, first, unit, is_guessed):
    clock = Clock(None, name=name)
    clock.seconds([first])
    assert (clock.unit, clock.is_guessed) == (unit, is_guessed)


def test_stamps_count_from_the_first_one():
    clock = Clock(None)
    cells = ["2024-05-10 00:00:00.5", "2024-05-10 00:01:00", "2024-05-11T00:00:00.5"]
    assert clock.seconds(cells).tolist() == pytest.approx([0.0, 59.5, 86400.0])
    assert clock.start_at(0.0) == "2024-05-10T00:00:00.500000+00:00"
    # The next block goes on from the same zero.
    assert clock.seconds(["2024-05-10 00:00:01.5"]).tolist() == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("stamp", "later"),
    [
        ("2024-05-10 12:00:00Z", "2024-05-10 14:30:00+02:00"),
        ("2024-05-10 12:00:00+0000", "2024-05-10 07:30:00-05:00"),
    ],
)
def test_zones_are_turned_to_utc(stamp, later):
    clock = Clock(None)
    assert clock.seconds([stamp, later]).tolist() == pytest.approx([0.0, 1800.0])
    assert len(clock.zones) == 2


@pytest.mark.parametrize("bad", ["", "soon", None, "2024-13-40 00:00:00", "9999-01-01 00:00:00"])
def test_what_is_no_stamp_is_no_time(bad):
    clock = Clock(None)
    found = clock.seconds(["2024-05-10 00:00:00", bad])
    assert found[0] == 0
    assert np.isnan(found[1])


def test_marks_of_absent_times_are_zero_and_others_are_bad():
    clock = Clock(None)
    found = clock.seconds(["XXX", "XXX", "5"])
    assert clock.is_absent
    assert found[:2].tolist() == [0, 0]
    assert np.isnan(found[2])


def test_only_instants_are_dated():
    assert Clock("s").is_dated(np.array([1.7e9]))
    assert not Clock("s").is_dated(np.array([5.0]))
    assert Clock("s").start_at(5.0) == ""


@given(st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1)), min_size=1, max_size=5))
def test_stamps_agree_with_the_standard_library(instants):
    texts = [instant.isoformat(sep=" ", timespec="microseconds") for instant in instants]
    found = Clock(None).seconds(list(texts))
    first = instants[0].replace(tzinfo=UTC)
    wanted = [(instant.replace(tzinfo=UTC) - first).total_seconds() for instant in instants]
    np.testing.assert_allclose(found, wanted, atol=1e-6, rtol=1e-12)


@given(
    st.lists(st.one_of(st.floats(), st.integers(), st.text(max_size=5), st.none(), st.booleans()))
)
def test_numbers_are_finite_or_missing(cells):
    found = numbers(cells)
    assert len(found) == len(cells)
    assert not np.isinf(found).any()
