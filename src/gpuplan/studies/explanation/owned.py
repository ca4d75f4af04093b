"""What becomes of owned nodes, in: plans with and without them; out: one answer that says so."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

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
from gpuplan.domain.plan.comparison import ComparisonRow
from gpuplan.domain.plan.facts import ReplayedRequests
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.studies.day_replay.fresh import fresh_replay
from gpuplan.studies.day_replay.replay import FRESH_DRAW
from gpuplan.studies.explanation.answer import planned_answer
from gpuplan.studies.market.owned import Standing, staff_usd_per_h
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.owned_first import OwnedParts, OwnedReach
from gpuplan.studies.planning.runs import length
from gpuplan.units import HOURS_PER_MONTH

WARMUP_FRAC = 0.1  # of a run, in which a fleet fills
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
            pools=_renamed(_with_shares(plan.pools, parts), names),
            bill=replace(plan.bill, cash_flow=flow),
            slo=_worst(plan, names),
            replays=_renamed(plan.replays, names),
        ),
    )


def _with_shares(pools: Sequence[PlannedPool], parts: OwnedParts) -> list[PlannedPool]:
    """The pools with the share of the peak that each part of the workload carries today."""
    works = {w.name for w in parts.inputs.scenario.workloads if w.band is not None}
    loads = {s.workload: _load_now(s) for s in parts.sizings if s.workload in works}
    total = sum(loads.values())
    return [
        replace(pool, use=replace(pool.use, load_frac=loads[pool.workload] / total))
        if pool.workload in loads
        else pool
        for pool in pools
    ]


def _load_now(sizing: Sizing) -> float:
    """At the peak of the first period; a part that begins later has none yet."""
    is_there = sizing.demand.periods.start_s[0] <= 0
    return sizing.demand.peak_of(0, 0) if is_there else 0.0


def _renamed(given: Sequence[OfWorkload], names: dict[str, str]) -> tuple[OfWorkload, ...]:
    """The same under the name of the whole workload."""
    return tuple(replace(each, workload=names.get(each.workload, each.workload)) for each in given)


def _worst(plan: ChosenPlan, names: dict[str, str]) -> SloResults:
    """Of all parts the one that comes nearest to its limit, or violates it."""
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


def with_joint_latency(inputs: PlanInputs, answer: Answer, name: str) -> Answer:
    """The answer with latencies over the requests of all pools, which one router sends by weight.

    Every pool meets its SLOs by itself: the range is as wide as that of the one nearest to them.
    """
    replay = fresh_replay(inputs, answer, name, draw=FRESH_DRAW)
    if replay is None or answer.plan is None:
        return answer
    found = tuple(
        _joint(each, replay) if each.workload == name else each for each in answer.plan.slo.promises
    )
    slo = replace(answer.plan.slo, promises=found)
    return replace(answer, plan=replace(answer.plan, slo=slo))


def _joint(result: SloResult, replay: ReplayedRequests) -> SloResult:
    metric, _, statistic = result.what.partition(" ")
    columns = {"ttft": replay.ttft_s, "tpot": replay.tpot_s, "e2e": replay.e2e_s}
    if metric not in columns or result.reached_s is None:
        return result
    values = columns[metric][replay.output_tokens > 1] if metric == "tpot" else columns[metric]
    values = values[int(WARMUP_FRAC * len(values)) :]
    is_mean = statistic == "mean"
    value_s = float(values.mean() if is_mean else np.percentile(values, float(statistic[1:])))
    ratio = value_s / result.reached_s.value
    bound_s = None if result.bound_s is None else result.bound_s * ratio
    return replace(result, reached_s=result.reached_s.scaled(ratio), bound_s=bound_s)


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
    answer = with_joint_latency(inputs, answer, reach.workload)
    usd = usd_per_month(groups)
    line = f"{_reach_text(inputs, reach)}; the rest is served beside them"
    lines = [line]
    if usd_without is not None:
        lines.append(
            f"{reach.workload}: without them it would cost ${usd_without:,.0f}/month, not "
            f"${usd:,.0f}"
        )
    return _reported(answer, lines, "replace owned nodes", usd_without)


def without_owned(
    inputs: PlanInputs, reach: OwnedReach, answer: Answer, *, usd_with: float | None
) -> Answer:
    """The plan that replaces owned nodes, with what keeping them would cost."""
    line = _reach_text(inputs, reach)
    taken = _owned_in(answer)
    if taken:
        why = f"{line}: the plan keeps your {' and '.join(sorted(taken))}, with more of the same"
    elif usd_with is None:
        why = f"{line}, but no fleet for the rest fits beside them: they are not used"
    else:
        why = f"{line}: with the rest beside them ${usd_with:,.0f}/month, so they are replaced"
    return _reported(answer, [why], "keep owned nodes", usd_with)


def with_idle_owned(inputs: PlanInputs, answer: Answer) -> Answer:
    """The answer with what stands idle of one's own, and why, before all other reasons."""
    lines = tuple(_idle_lines(inputs, answer))
    explanation = replace(answer.explanation, why=(*lines, *answer.explanation.why))
    return replace(answer, explanation=explanation) if lines else answer


def _idle_lines(inputs: PlanInputs, answer: Answer) -> Iterator[str]:
    used = _owned_in(answer)
    for standing in inputs.market.standing if answer.plan else ():
        node = standing.rate.node
        if node.accelerator not in used:
            n = standing.n_nodes * node.n_accelerators
            why = _why_idle(answer, node.accelerator, n)
            yield f"your {n} x {node.accelerator} stay idle: {why}{_upkeep(inputs, standing, used)}"


def _owned_in(answer: Answer) -> set[str]:
    """Accelerators of owned nodes that the plan runs."""
    pools = answer.plan.pools if answer.plan else ()
    return {p.accelerator for p in pools for x in p.purchases if x.purchase == "existing"}


def _upkeep(inputs: PlanInputs, standing: Standing, used: set[str]) -> str:
    """What idle nodes cost all the same: no part of the plan's bill."""
    running = standing.n_nodes * standing.rate.price_usd_per_h.mid * HOURS_PER_MONTH
    staff = 0.0 if used else staff_usd_per_h(inputs.scenario) * HOURS_PER_MONTH
    if running + staff <= 0:
        return ""
    people = f" and ${staff:,.0f} of staff" if staff else ""
    return f"; to keep them on costs ${running:,.0f}/month{people}, not in the total"


def _why_idle(answer: Answer, kind: str, n: int) -> str:
    """The nearest thing to a plan on them, and what it lacks."""
    rows = [row for row in answer.decision.comparison if row.accelerator == kind]
    rows.sort(key=lambda row: (row.n_accelerators == 0, not row.evidence.is_eligible))
    rejected = [each for each in answer.rejected if each.candidate.startswith(f"{kind} ")]
    if rows and rows[0].evidence.run is not None and rows[0].n_accelerators > n:
        alone_s = rows[0].evidence.run.wall_s * rows[0].n_accelerators / n
        return f"alone they would take about {length(alone_s)}"
    if rows and rows[0].n_accelerators:
        return _row_words(rows[0], n)
    if rows and rows[0].evidence.reason:
        return rows[0].evidence.reason
    return rejected[0].reason if rejected else "nothing that was asked for can run on them"


def _row_words(row: ComparisonRow, n: int) -> str:
    cost = "" if row.usd_per_month is None else f" at ${row.usd_per_month:,.0f}/month"
    odds = row.probability_frac
    chance = "" if odds is None else f", all SLOs met with {odds:.0%} probability"
    more = f"{row.n_accelerators} would be needed" if row.n_accelerators > n else "they would serve"
    return "; ".join(filter(None, (f"in {row.precision} {more}{cost}{chance}", row.evidence.note)))


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


def _reported(answer: Answer, lines: Sequence[str], kind: str, usd: float | None) -> Answer:
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
