"""Plan against actual, in: a plan and allocations of a cost tool; out: dollars by workload."""

import re
from collections.abc import Iterator, Mapping, Sequence

from gpuplan.domain.money.statement import ActualComparison, ActualCost, CostRow
from gpuplan.domain.plan.answer import Answer, ChosenPlan
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.units import MONTH

UNPLANNED, IDLE = "not in the plan", "idle"


def compare_costs(
    answer: Answer, plan: ChosenPlan, scenario: Scenario, costs: Sequence[ActualCost]
) -> ActualComparison:
    """What every workload of the plan was to cost over the window, and what it did cost."""
    window_s, notes = _window(costs)
    planned = _planned(plan, window_s)
    models = {load.workload: load.model for load in answer.load}
    teams = {work.name: work.team or "" for work in scenario.workloads}
    taken = {name: [c for c in costs if _is_of(c, name)] for name in planned}
    shared = {id(cost) for found in taken.values() for cost in found}
    rows = [
        _row(name, planned[name], taken[name], of=(teams.get(name, ""), models.get(name, "")))
        for name in planned
    ]
    rest = [cost for cost in costs if id(cost) not in shared]
    rows += [_beside(cost) for cost in rest]
    by_team = _teams(rows, rest, [team.name for team in scenario.teams])
    return ActualComparison(
        name=answer.name,
        window_s=window_s,
        rows=tuple(rows),
        teams=tuple(by_team),
        assumptions=notes,
    )


def _row(
    name: str, planned: tuple[float, float], taken: Sequence[ActualCost], *, of: tuple[str, str]
) -> CostRow:
    return CostRow(
        what=name,
        team=of[0],
        model=of[1],
        planned_usd=planned[0],
        actual_usd=sum(cost.usd for cost in taken) if taken else None,
        planned_accelerator_s=planned[1],
        actual_accelerator_s=sum(cost.accelerator_s for cost in taken),
    )


def _window(costs: Sequence[ActualCost]) -> tuple[float, tuple[Assumption, ...]]:
    spans = [cost.window_s for cost in costs if cost.window_s]
    if spans:
        return max(spans), ()
    why = "the export names no window"
    return MONTH, (assume("window of the costs", "one month", why, "window of the allocations"),)


def _planned(plan: ChosenPlan, window_s: float) -> Mapping[str, tuple[float, float]]:
    """USD and accelerator-seconds of each workload over the window, by its part of the bill."""
    lines = [line for line in plan.bill.cash_flow if line.workload]
    whole = sum(line.usd for line in lines)
    share = window_s / plan.span_s if plan.span_s else 0.0
    found: dict[str, tuple[float, float]] = {}
    for pool in plan.pools:
        mine = sum(line.usd for line in lines if line.workload == pool.workload)
        usd = plan.total_usd * mine / whole if whole else 0.0
        hours = sum(
            line.n_nodes * line.n_accelerators_per_node * line.paid_frac for line in pool.purchases
        )
        before = found.get(pool.workload, (0.0, 0.0))
        cost = before[0] if before[0] else usd * min(1.0, share)
        found[pool.workload] = cost, before[1] + hours * window_s
    return found


def _is_of(cost: ActualCost, workload: str) -> bool:
    return not cost.is_idle and _plain(workload) in {_plain(name) for name in cost.names}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _beside(cost: ActualCost) -> CostRow:
    return CostRow(
        what=IDLE if cost.is_idle else f"{cost.name} ({UNPLANNED})",
        team="",
        model="",
        planned_usd=None,
        actual_usd=cost.usd,
        actual_accelerator_s=cost.accelerator_s,
    )


def _teams(
    rows: Sequence[CostRow], rest: Sequence[ActualCost], teams: Sequence[str]
) -> Iterator[CostRow]:
    """Sums by team; allocations that carry a team's name and no workload's count for it."""
    named = dict.fromkeys([*teams, *(row.team for row in rows if row.team)])
    for team in named:
        mine = [row for row in rows if row.team == team]
        others = [cost for cost in rest if _is_of(cost, team)]
        actual = [row.actual_usd for row in mine if row.actual_usd is not None]
        actual += [cost.usd for cost in others]
        if mine or others:
            yield CostRow(
                what=team,
                team=team,
                model="",
                planned_usd=sum(row.planned_usd or 0.0 for row in mine) if mine else None,
                actual_usd=sum(actual) if actual else None,
            )
