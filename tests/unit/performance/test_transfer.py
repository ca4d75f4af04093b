"""Transfers against the published arithmetic of a batch of images and of an archive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.errors import InputError
from gpuplan.performance import transfer as t
from gpuplan.units import GBIT, HOUR, MS, TB

PIXELS = 256 * 224 * 224 * 3
GEN4, GEN5 = 16 * 1.969e9, 16 * 3.938e9  # sixteen lanes, one direction


@pytest.mark.parametrize(
    ("bytes_per_value", "is_pinned", "expected_ms"),
    [(4, False, 25.7), (4, True, 6.2), (1, True, 1.5)],
)
def test_batch_of_images(bytes_per_value: int, is_pinned: bool, expected_ms: float) -> None:
    seconds = t.host_copy_time_s(PIXELS * bytes_per_value, GEN4, is_pinned=is_pinned)
    assert seconds == pytest.approx(expected_ms * MS, rel=0.03)


def test_archive_over_ten_gigabits() -> None:
    """Bits are not bytes: 200 TB over 10 Gb/s at 70 % are 63.5 hours, not 7.9."""
    seconds = t.network_transfer_time_s(200 * TB, 10 * GBIT)
    assert seconds / HOUR == pytest.approx(63.5, abs=0.05)
    assert t.network_transfer_time_s(200 * TB, 100 * GBIT) / HOUR == pytest.approx(6.35, abs=0.01)


def test_pageable_gains_nothing_from_a_newer_bus() -> None:
    assert t.host_copy_time_s(1e9, GEN5, is_pinned=False) == t.host_copy_time_s(
        1e9, GEN4, is_pinned=False
    )
    assert t.host_copy_time_s(1e9, GEN5) < 0.6 * t.host_copy_time_s(1e9, GEN4)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="above 0"):
        t.network_transfer_time_s(1.0, 1.0, efficiency_frac=1.5)


@given(size=st.floats(0, 1e13), line=st.floats(1e6, 1e12), pinned=st.booleans())
def test_no_copy_beats_the_line(size: float, line: float, pinned: bool) -> None:
    assert t.host_copy_time_s(size, line, is_pinned=pinned) > size / line
