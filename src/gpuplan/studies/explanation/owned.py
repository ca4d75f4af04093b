"""What becomes of owned nodes, in: plans with and without them; out: one answer that says so."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from gpuplan.domain.plan.answer import (
    Alternative,
    Answer,
    ChosenPlan,
    PlannedLoad,
    PlannedPool,
    Rejected,
    Replay,
    SloResult,
    SloResults,
)
from gpuplan.domain.plan.bill import CashLine
from gpuplan.studies.explanation.answer import planned_answer
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.owned_first import OwnedParts, OwnedReach

OfWorkload = TypeVar("OfWorkload", CashLine, PlannedPool, Rejected, Replay)


def usd_per_month(groups: Sequence[SolvedGroup]) -> float:
    """What all groups cost by the month."""
    return sum(group.choice.usd_per_month for group in groups)


def is_better(mine: Sequence[SolvedGroup], other: Sequence[SolvedGroup] | tuple[str, ...]) -> bool:
    """Whether a plan is better by what is to be least; any is better than none."""
    if isinstance(other, tuple):
        return True
    return sum(group.score for group in mine) < sum(group.score for group in other)


def as_one_workload(answer: Answer, parts: OwnedParts, whole: PlannedLoad) -> Answer:
    """The answer with both parts under the name of their workload."""
    assert answer.plan is not None
    names = {w.name: w.band.of for w in parts.inputs.scenario.workloads if w.band is not None}
    plan = answer.plan
    flow = _renamed(plan.bill.cash_flow, names)
    return replace(
        answer,
        load=(whole, *(load for load in answer.load if load.workload not in names)),
        rejected=_renamed(answer.rejected, names),
        plan=replace(
            plan,
            pools=_renamed(plan.pools, names),
            bill=replace(plan.bill, cash_flow=flow),
            slo=_worst(plan, names),
            replays=_renamed(plan.replays, names),
        ),
    )


def _renamed(given: Sequence[OfWorkload], names: dict[str, str]) -> tuple[OfWorkload, ...]:
    """The same under the name of the whole workload."""
    return tuple(replace(each, workload=names.get(each.workload, each.workload)) for each in given)


def _worst(plan: ChosenPlan, names: dict[str, str]) -> SloResults:
    """Of both parts the one that comes nearest to its limit, or violates it."""
    found: dict[tuple[str, str], SloResult] = {}
    for each in plan.slo.promises:
        mine = replace(each, workload=names.get(each.workload, each.workload))
        key = mine.workload, mine.what
        known = found.get(key)
        if known is None or _reached_s(mine) > _reached_s(known):
            found[key] = mine
    return replace(plan.slo, promises=tuple(found.values()))


def _reached_s(result: SloResult) -> float:
    return result.reached_s.value if result.reached_s else 0.0


def with_owned(
    inputs: PlanInputs,
    found: tuple[OwnedReach, OwnedParts],
    groups: Sequence[SolvedGroup],
    *,
    whole: Answer,
    usd_without: float | None,
) -> Answer:
    """The plan in which owned nodes carry what they can and others the rest."""
    reach, parts = found
    answer = as_one_workload(planned_answer(parts.inputs, groups), parts, whole.load[0])
    usd = usd_per_month(groups)
    line = f"{_reach_text(inputs, reach)}; the rest is served beside them"
    lines = [line]
    if usd_without is not None:
        lines.append(
            f"{reach.workload}: without them it would cost ${usd_without:,.0f}/month, not "
            f"${usd:,.0f}"
        )
    return _told(answer, lines, "replace owned nodes", usd_without)


def without_owned(
    inputs: PlanInputs, reach: OwnedReach, answer: Answer, *, usd_with: float | None
) -> Answer:
    """The plan that replaces owned nodes, with what keeping them would cost."""
    line = _reach_text(inputs, reach)
    if usd_with is None:
        why = f"{line}, but no fleet for the rest fits beside them: they are not used"
    else:
        why = f"{line}: with the rest beside them ${usd_with:,.0f}/month, so they are replaced"
    return _told(answer, [why], "keep owned nodes", usd_with)


def _reach_text(inputs: PlanInputs, reach: OwnedReach) -> str:
    nodes = " and ".join(
        f"{each.n_nodes * each.n_accelerators_per_node} x {each.accelerator}"
        for each in inputs.scenario.owned
    )
    return (
        f"{reach.workload}: your {nodes} carry about {reach.load_per_s:.3g} requests/s of "
        f"{reach.peak_per_s:.3g} now" + _later(reach)
    )


def _later(reach: OwnedReach) -> str:
    is_more = reach.most_per_s > reach.peak_per_s * 1.001
    return f" and {reach.most_per_s:.3g} at the end" if is_more else ""


def _told(answer: Answer, lines: Sequence[str], kind: str, usd: float | None) -> Answer:
    """The answer with these lines first, and the other way as an alternative."""
    explanation = replace(answer.explanation, why=(*lines, *answer.explanation.why))
    answer = replace(answer, explanation=explanation)
    if usd is None or answer.plan is None:
        return answer
    other = Alternative(
        kind=kind,
        fleet="the cheapest fleet without them" if kind.startswith("replace") else "both",
        usd_per_month=usd,
        extra_usd_per_month=usd - answer.plan.cost_usd_per_month.value,
        remark=lines[-1],
    )
    return replace(answer, alternatives=(*answer.alternatives, other))
