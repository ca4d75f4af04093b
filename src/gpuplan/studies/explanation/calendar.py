"""The week of a plan, in: what was chosen; out: accelerators of every workload by the hour."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.plan.comparison import Calendar, CalendarRow
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.units import HOUR, HOURS_PER_WEEK

N_HOURS = int(HOURS_PER_WEEK)
IN_ORDER = (24, 168)  # kinds of hours that are the hours of a day or a week, in their order
UNORDERED = "a load-duration curve says how long, not when: the busiest hours are shown first"
JOBS = "jobs start at the first hour"


def calendar_of(groups: Sequence[SolvedGroup]) -> Calendar:
    """Accelerators by workload and hour of the first week; spares are held in every hour."""
    rows = tuple(row for group in groups for row in _rows(group.choice))
    remarks = dict.fromkeys(note for group in groups for note in _remarks(group.choice))
    hours = tuple(range(N_HOURS)) if rows else ()
    return Calendar(hours=hours, rows=rows, remark="; ".join(remarks))


def _rows(choice: Choice) -> Iterator[CalendarRow]:
    place = _place(choice)
    for option in choice.selection.chosen:
        need = _accelerators(choice, option)[place.clip(0)]
        yield CalendarRow(
            workload=option.workload,
            accelerator=choice.pool(option.pool).accelerator,
            kind="job" if choice.is_jobs else "service",
            accelerators=tuple(int(n) for n in np.where(place >= 0, need, 0)),
        )


def _accelerators(choice: Choice, option: FleetOption) -> Ints:
    """Whole accelerators in each kind of hour, spares included while any is needed."""
    need = np.asarray(option.need[0, option.first_period])
    held = np.where(need > 0, need + option.n_reserve, 0)
    if option.slice_kind:
        sized = choice.table.row_of(option).sized
        held = np.array([sized.candidate.n_accelerators_for(int(n)) for n in held])
    return ints(held)


def _place(choice: Choice) -> Ints:
    """For each hour of the week, its kind in the choice's own hours; -1: after the last job."""
    hour_s = np.asarray(choice.table.problem.horizon.hour_s)
    if choice.is_jobs:
        ends_h = np.cumsum(hour_s) / HOUR
        found = np.searchsorted(ends_h, np.arange(N_HOURS) + 0.5, side="right")
        return ints(np.where(found < len(hour_s), found, -1))
    if len(hour_s) in IN_ORDER:
        return ints(np.arange(N_HOURS) % len(hour_s))
    ends_h = np.cumsum(hour_s) / hour_s.sum() * N_HOURS
    found = np.searchsorted(ends_h, np.arange(N_HOURS) + 0.5, side="right")
    return ints(np.minimum(found, len(hour_s) - 1))


def _remarks(choice: Choice) -> Iterator[str]:
    n = len(choice.table.problem.horizon.hour_s)
    if choice.is_jobs:
        yield JOBS
    elif n > 1 and n not in IN_ORDER:
        yield UNORDERED
