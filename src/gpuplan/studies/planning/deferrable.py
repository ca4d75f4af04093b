"""Recurring documents that need not be done at once, in: a sized fleet; out: it, in quiet hours.

Work of which each document has a day may run around the clock, or on more replicas in the hours in
which services are quiet: each such shape is one more fleet to choose from. A window of k hours a
day leaves the longest wait at 24 - k hours, so a deadline of a day is met.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.plan.sizing import DemandProfile, ReplicaNeed, Sized, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch
from gpuplan.units import DAY, HOURS_PER_WEEK

WINDOWS_H = (4.0, 8.0, 12.0)  # of a day; around the clock besides


def is_deferrable(scenario: Scenario, sizing: Sizing) -> bool:
    """Whether it is a stream of documents that need not be done the same day, beside others."""
    workload = scenario.workload(sizing.workload)
    work = workload.work if workload else None
    if not isinstance(work, Batch) or len(scenario.workloads) == 1:
        return False
    return work.docs_per_s is not None and work.deadline_s >= DAY


def quietest_first(sizings: Sequence[Sizing], places: Sequence[Ints]) -> Ints:
    """Hours of the common axis in order of the load that all workloads put on them."""
    loads = [
        sizing.demand.hours.load_frac[place] for sizing, place in zip(sizings, places, strict=True)
    ]
    return ints(np.argsort(np.sum(loads, axis=0), kind="stable"))


def in_quiet_hours(
    sized: Sized, demand: DemandProfile, hours: Floats, order: Ints
) -> Iterator[tuple[Sized, Floats]]:
    """The fleet with enough replicas to do each day's work in its quietest hours, window by window.

    With each, the load of every hour over the highest.
    """
    if sized.capacity_per_s is None:
        return
    ends = np.cumsum(hours[order])
    for n_last in dict.fromkeys(int(np.searchsorted(ends, h * 7 - 1e-9)) for h in WINDOWS_H):
        is_in = np.zeros(len(hours), dtype=np.int64)
        is_in[order[: n_last + 1]] = 1
        if not is_in.all():
            rate = demand.peak_requests_per_s or 0.0
            busier = HOURS_PER_WEEK / float(ends[n_last])
            loads = rate * busier * np.asarray(demand.periods.load_ratio)
            least = np.ceil(loads / sized.capacity_per_s.value - 1e-9)
            n = np.maximum(least, loads > 0).astype(np.int64)
            need = ReplicaNeed(n_replicas=ints(n[:, :, None] * is_in))
            yield (
                replace(sized, need=need, remarks=(*sized.remarks, _remark(ends[n_last]))),
                floats(is_in),
            )


def _remark(hours_per_week: float) -> str:
    return f"deferrable: it runs in the quietest {hours_per_week / 7:.3g} hours of the day"


def interval_of(scenario: Scenario, sizing: Sizing) -> float | None:
    """Seconds from the start of a run to that of the next; None where it has no schedule."""
    workload = scenario.workload(sizing.workload)
    return workload.interval_s if workload else None


def is_recurring(scenario: Scenario, sizings: Iterable[Sizing]) -> bool:
    """Whether these are runs of a schedule, over the whole horizon."""
    return any(interval_of(scenario, sizing) is not None for sizing in sizings)
