"""Deadlines of documents that come every day, in: the choice; out: how long one of them takes."""

from collections.abc import Iterator

from gpuplan.domain.plan.answer import SloResult
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch
from gpuplan.studies.planning.chosen import Choice
from gpuplan.units import DAY


def recurring_deadlines(scenario: Scenario, choice: Choice) -> Iterator[SloResult]:
    """The deadline of every stream of documents, and how long the last of a batch takes."""
    for option in choice.selection.chosen:
        workload = scenario.workload(option.workload)
        work = workload.work if workload else None
        if not isinstance(work, Batch) or work.docs_per_s is None:
            continue
        reached = _reached_s(choice, option, work.deadline_s)
        if reached is not None:
            yield SloResult(
                workload=option.workload,
                what="deadline",
                limit_s=work.deadline_s,
                reached_s=reached,
                is_kept=reached.value <= work.deadline_s * (1 + 1e-9),
            )


def _reached_s(choice: Choice, option: FleetOption, deadline_s: float) -> Estimate | None:
    """What arrives within a deadline at the fullest rate; or the wait for quiet hours."""
    sized, hour_s = choice.table.row_of(option).sized, choice.table.problem.horizon.hour_s
    is_off = option.need[0, option.first_period] == 0
    if is_off.any():
        wait_s = DAY * float(hour_s[is_off].sum() / hour_s.sum())
        return Estimate(value=wait_s, low=wait_s, high=wait_s, tier="estimated")
    busy, rate = sized.utilization.peak_frac, sized.capacity_per_s
    if busy is None or rate is None:
        return None
    return rate.rate(busy * deadline_s * rate.value)
