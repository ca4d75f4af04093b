"""Failures and checkpoints: as given, else those of published runs, by hand."""

import pytest

from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.workload import CheckpointPlan
from gpuplan.studies.training.interruptions import Interruptions
from gpuplan.units import DAY, HOUR


def test_what_is_not_known_is_taken_from_published_runs():
    stops = Interruptions(CheckpointPlan(restart_s=600.0), 405e9)
    assert stops.state_bytes == pytest.approx(14 * 405e9)
    assert [told.what for told in stops.assumptions] == ["time between failures", "storage"]
    # By hand: 5.67 TB over 16,384 x 33.3 MB/s are 10.4 s; a stop in 3.09 h: a write each 480 s.
    found = stops.goodput(16_384)
    assert found.write_s == pytest.approx(10.4, rel=0.01)
    assert found.interval_s == pytest.approx(480, rel=0.01)
    assert found.goodput_frac == pytest.approx(
        1 - 10.4 / 480 - 480 / 2 / 11_135 - 600 / 11_135, abs=1e-3
    )
    assert stops.useful_frac(1).mid > 0.99


def test_more_accelerators_fail_more_often():
    given = CheckpointPlan(write_bytes_per_s=Range(low=1e9, mid=1e10, high=1e11), restart_s=600.0)
    stops = Interruptions(given, 70e9, 2000 * DAY)
    few, many = stops.useful_frac(64), stops.useful_frac(4096)
    assert few.low < few.mid < few.high
    assert many.mid < few.mid
    assert stops.assumptions == ()


def test_what_is_given_counts_and_is_not_assumed():
    given = CheckpointPlan(write_bytes_per_s=exactly(14e9), restart_s=0.0)
    stops = Interruptions(given, 1e9, 1000 * HOUR)
    # A checkpoint of 14 GB takes a second; one accelerator stops every 1,000 h.
    found = stops.goodput(1)
    assert found.interval_s == pytest.approx((2 * 1000 * HOUR) ** 0.5)
    assert stops.useful_frac(1).low == stops.useful_frac(1).high == found.goodput_frac
    assert stops.assumptions == ()


def test_an_interval_and_a_size_of_its_own_are_kept():
    stops = Interruptions(CheckpointPlan(interval_s=1800.0, state_bytes=1e12), 1e9)
    found = stops.goodput(8)
    assert found.interval_s == 1800.0
    assert found.write_s == pytest.approx(1e12 / 1e9)  # a server writes at least 1 GB/s
    assert "restart after a failure" in {told.what for told in stops.assumptions}
