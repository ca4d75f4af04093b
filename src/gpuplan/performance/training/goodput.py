"""Useful share of a long job: checkpoints, failures, restarts.

In: what a checkpoint costs and how often the job is stopped. Out: the share of the wall clock
that moves training on, and the interval that loses least. To first order a job that writes for
d seconds every t seconds, and fails every M, loses d/t + t/(2M) + R/M [Young1974, Daly2006].
"""

import math

from gpuplan.domain.ranges import Range
from gpuplan.domain.training.time import CheckpointWrites, FailureRate, Goodput
from gpuplan.errors import InputError, Problem
from gpuplan.units import DAY, GB

# Accelerator time between unexpected stops: 54 days of 16,384 over 419 stops [Llama3-2024]; its
# ends are 6.50 and 2.34 failures in 1,000 days of servers with 8 accelerators [Kokolis2025].
USUAL_MTBF_S = Range(
    low=8 * 1000 * DAY / 6.50, mid=54 * DAY * 16_384 / 419, high=8 * 1000 * DAY / 2.34
)
# Of storage, over its 7,500 servers of 8: 2 TB/s sustained, 7 at the peak [Llama3-2024].
STORAGE_BYTES_PER_S = Range(low=1e12, mid=2e12, high=7e12).times(1 / (7500 * 8))
LEAST_BYTES_PER_S = 1.0 * GB  # Assumption: one network disk, however small the job
NO_FAILURE_RATE = "no failure rate is given: give the mean time between failures"
NO_PROGRESS = "failures come faster than work can be saved: nothing is left"


def young_interval_s(write_s: float, mtbf: float) -> float:
    """Work between two checkpoints that loses least: sqrt(2 d M) [Young1974]."""
    _positive("interval", {"write_s": write_s, "mtbf": mtbf})
    return math.sqrt(2.0 * write_s * mtbf)


def usual_write_bytes_per_s(n_accelerators: int) -> Range:
    """What so many accelerators write to storage of the usual size."""
    share = STORAGE_BYTES_PER_S.times(n_accelerators)
    low, mid, high = (max(LEAST_BYTES_PER_S, each) for each in (share.low, share.mid, share.high))
    return Range(low=low, mid=mid, high=high)


def goodput(
    failures: FailureRate, writes: CheckpointWrites, *, straggler_frac: float = 0.0
) -> Goodput:
    """The useful share; unknown, with the reason, where nobody said how often the job stops."""
    _positive("writes", {"size": writes.size_bytes, "rate": writes.write_bytes_per_s})
    write_s = writes.size_bytes / writes.write_bytes_per_s
    stopped_s = write_s * writes.blocking_frac
    mtbf = failures.mtbf_s
    if mtbf is None:
        return _unknown(writes, write_s, stopped_s, straggler_frac=straggler_frac)
    interval_s = writes.interval_s or young_interval_s(stopped_s, mtbf)
    # A write that runs beside the work cannot start before the last one has ended.
    interval_s = max(interval_s, write_s if writes.is_asynchronous else 0.0)
    checkpoint = stopped_s / interval_s
    lost = interval_s / (2.0 * mtbf)
    restart = failures.restart_s / mtbf
    useful = (1.0 - checkpoint - lost - restart) * (1.0 - straggler_frac)
    return Goodput(
        goodput_frac=max(0.0, useful),
        why_unknown="" if useful > 0 else NO_PROGRESS,
        interval_s=interval_s,
        write_s=write_s,
        checkpoint_frac=checkpoint,
        lost_work_frac=lost,
        restart_frac=restart,
        straggler_frac=straggler_frac,
    )


def _unknown(
    writes: CheckpointWrites, write_s: float, stopped_s: float, *, straggler_frac: float
) -> Goodput:
    every = writes.interval_s
    return Goodput(
        goodput_frac=None,
        why_unknown=NO_FAILURE_RATE,
        interval_s=every,
        write_s=write_s,
        checkpoint_frac=None if every is None else stopped_s / every,
        lost_work_frac=None,
        restart_frac=None,
        straggler_frac=straggler_frac,
    )


def _positive(where: str, given: dict[str, float]) -> None:
    problems = [
        Problem(f"{where}.{name}", f"got {value:g}", "must be above 0")
        for name, value in given.items()
        if not value > 0
    ]
    if problems:
        raise InputError("goodput", problems)
