"""Goodput: reference arithmetic of a large run, with other numbers, and what is not known."""

import pytest

from gpuplan.domain.training.time import CheckpointWrites, FailureRate
from gpuplan.errors import InputError
from gpuplan.performance.training.goodput import goodput, young_interval_s
from gpuplan.units import DAY, GB, HOUR, TB

# 419 unexpected stops in 54 days on 16,384 accelerators [Llama3].
MTBF_1024_S = 54 * DAY / 419 * 16384 / 1024


@pytest.mark.parametrize(
    ("rate", "minutes", "lost"), [(2 * GB, 263, 0.092), (20 * GB, 83, 0.031), (100 * GB, 37, 0.016)]
)
def test_storage_bandwidth_is_justified_by_goodput(rate, minutes, lost):
    found = goodput(
        FailureRate(mtbf_s=MTBF_1024_S, restart_s=600.0),
        CheckpointWrites(size_bytes=1.4 * TB, write_bytes_per_s=rate),
    )
    assert found.interval_s / 60 == pytest.approx(minutes, abs=0.6)
    assert 1 - found.goodput_frac == pytest.approx(lost, abs=0.0006)


def test_other_numbers_follow_the_formula():
    found = goodput(
        FailureRate(mtbf_s=10 * HOUR, restart_s=900.0),
        CheckpointWrites(size_bytes=480 * GB, write_bytes_per_s=8 * GB, interval_s=1800.0),
    )
    assert found.write_s == pytest.approx(60.0)
    assert found.checkpoint_frac == pytest.approx(60 / 1800)
    assert found.lost_work_frac == pytest.approx(1800 / 72000)
    assert found.restart_frac == pytest.approx(900 / 36000)
    assert found.goodput_frac == pytest.approx(1 - 60 / 1800 - 1800 / 72000 - 900 / 36000)


def test_without_a_failure_rate_goodput_is_unknown_and_never_zero():
    found = goodput(
        FailureRate(mtbf_s=None, restart_s=600.0),
        CheckpointWrites(size_bytes=TB, write_bytes_per_s=10 * GB, interval_s=3600.0),
    )
    assert found.goodput_frac is None
    assert found.lost_work_frac is None
    assert "failure rate" in found.why_unknown
    assert found.checkpoint_frac == pytest.approx(100 / 3600)


def test_a_job_that_cannot_save_says_so():
    found = goodput(
        FailureRate(mtbf_s=600.0, restart_s=900.0),
        CheckpointWrites(size_bytes=TB, write_bytes_per_s=1 * GB),
    )
    assert found.goodput_frac == 0.0
    assert "nothing is left" in found.why_unknown


def test_writes_beside_the_work_stop_it_less():
    failures = FailureRate(mtbf_s=MTBF_1024_S, restart_s=600.0)
    blocking = CheckpointWrites(size_bytes=1.4 * TB, write_bytes_per_s=2 * GB)
    beside = CheckpointWrites(
        size_bytes=1.4 * TB, write_bytes_per_s=2 * GB, is_asynchronous=True, blocking_frac=0.05
    )
    assert goodput(failures, beside).goodput_frac > goodput(failures, blocking).goodput_frac
    assert goodput(failures, beside).interval_s >= 700.0


def test_young_loses_least_to_first_order():
    write_s, mtbf = 120.0, 20 * HOUR
    best = young_interval_s(write_s, mtbf)

    def lost(interval_s: float) -> float:
        return write_s / interval_s + interval_s / (2 * mtbf)

    assert lost(best) < min(lost(0.9 * best), lost(1.1 * best))


def test_nonsense_is_refused_with_every_fault():
    with pytest.raises(InputError) as caught:
        goodput(
            FailureRate(mtbf_s=1.0, restart_s=0.0),
            CheckpointWrites(size_bytes=0.0, write_bytes_per_s=-1.0),
        )
    assert len(caught.value.problems) == 2
