"""Services and training runs: solved within the limits they share, and joined into one plan.

Each group is solved exactly within what the other leaves. Where the limits leave both their own
best choice, that is the best of all. Where they do not, every kind of fleet that a run could take
is tried with the best services beside it, cheapest first, until no dearer one can win.

Deadlines of documents that come every day, in: the choice; out: how long one of them takes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice, product
from math import inf
from typing import NamedTuple

from gpuplan.domain.plan.answer import ChosenPlan, PlanProof, Replay, SloResult, SloResults
from gpuplan.domain.plan.bill import PeriodCost, PlanBill
from gpuplan.domain.plan.selection import Conflict, FleetOption, Selection, SelectionProblem
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch
from gpuplan.selection.choose import select
from gpuplan.stages import begin
from gpuplan.studies.planning.bill import plan_bill
from gpuplan.studies.planning.chosen import Choice, carbon_kg_per_month, chosen_plan
from gpuplan.studies.planning.options import FleetTable
from gpuplan.studies.planning.runs import as_fleets, deadline_result, job_behind
from gpuplan.studies.planning.shared import shared_uses
from gpuplan.units import DAY

ROUNDS = range(1, 9)  # of choosing and replaying; beyond, replicas are not what is missing
MOST_MIXES = 400  # of runs with each other; beyond, what was tried so far counts


class SolvedGroup(NamedTuple):
    """What was chosen together: all services, or all runs."""

    choice: Choice
    sizings: Sequence[Sizing]
    n_rounds: int
    replays: tuple[Replay, ...] = ()

    @property
    def score(self) -> float:
        """What is to be least: cost, energy, carbon, time or regret."""
        return self.choice.selection.proof.value


# Sizings, whether they are runs, and what was chosen before: a group of the plan, or why not.
Solve = Callable[[Sequence[Sizing], bool, Sequence[Choice]], SolvedGroup | tuple[str, ...]]


# The services that were chosen, and runs: those in idle hours of the services' nodes, if in time.
ShareTime = Callable[[SolvedGroup, Sequence[Sizing]], SolvedGroup | None]


def solve_groups(
    scenario: Scenario, sizings: Sequence[Sizing], solve: Solve, share_time: ShareTime
) -> list[SolvedGroup] | tuple[str, ...]:
    """Services share their fleet, runs with an end are bought apart; or why there is no plan."""
    begin("selecting the fleet")
    ending = {work.name: work.interval_s is not None for work in scenario.workloads if work.has_end}
    services = [s for s in sizings if s.workload not in ending]
    kinds = ([s for s in sizings if ending.get(s.workload) is again] for again in (False, True))
    runs = [as_fleets(scenario, mine) for mine in kinds if mine]
    if services and runs:
        found = _both_solved(services, runs[0], solve, share_time)
    else:
        alone = solve(services or runs[0], not services, ())
        found = [alone] if isinstance(alone, SolvedGroup) else alone
    return _beside(found, runs[1], solve) if len(runs) > 1 else found


def _beside(
    found: list[SolvedGroup] | tuple[str, ...], runs: Sequence[Sizing], solve: Solve
) -> list[SolvedGroup] | tuple[str, ...]:
    """What was found with the runs of schedules beside it, within what is left."""
    if isinstance(found, tuple):
        return found
    last = solve(runs, True, [group.choice for group in found])
    return [*found, last] if isinstance(last, SolvedGroup) else last


def _both_solved(
    services: Sequence[Sizing], runs: Sequence[Sizing], solve: Solve, share_time: ShareTime
) -> list[SolvedGroup] | tuple[str, ...]:
    """The best plan of both; why there is none, where none was found."""
    first = solve(services, False, ())
    if not isinstance(first, SolvedGroup):
        return first
    turns = share_time(first, runs)
    if turns is not None:
        return [first, turns]  # no plan costs less than the services alone
    alone = solve(runs, True, ())
    if not isinstance(alone, SolvedGroup):
        return alone
    last = solve(runs, True, [first.choice])
    if isinstance(last, SolvedGroup) and last.score <= alone.score * (1 + 1e-9):
        return [first, last]  # neither gives way to the other
    known = first.score + last.score if isinstance(last, SolvedGroup) else inf
    better = [*_better_mixes(services, runs, solve, best=known, floor=first.score)]
    if better:
        return better[-1]
    return [first, last] if isinstance(last, SolvedGroup) else last


def _better_mixes(
    services: Sequence[Sizing], runs: Sequence[Sizing], solve: Solve, *, best: float, floor: float
) -> Iterator[list[SolvedGroup]]:
    """Plans that are better than any before them; services never cost less than the floor."""
    mixes = (solve(mix, True, ()) for mix in _mixes(runs))
    solved = [run for run in mixes if isinstance(run, SolvedGroup)]
    for run in sorted(solved, key=lambda run: run.score):
        if run.score + floor >= best:
            return
        beside = solve(services, False, [run.choice])
        if isinstance(beside, SolvedGroup) and run.score + beside.score < best:
            best = run.score + beside.score
            yield [beside, run]


def _mixes(runs: Sequence[Sizing]) -> Iterator[list[Sizing]]:
    """Every run on every kind of fleet that could do it, one kind each."""
    kinds = [[replace(sizing, sized=(each,)) for each in sizing.sized] for sizing in runs]
    yield from (list(mix) for mix in islice(product(*kinds), MOST_MIXES))


def select_from(problem: SelectionProblem, table: FleetTable) -> Selection | Conflict:
    """The best choice; a conflict where the limits already leave a workload without any fleet."""
    lost = [name for name in table.problem.workloads if name not in problem.workloads]
    if lost:
        what = f"{', '.join(lost)}: the budget that others leave pays for none of its fleets"
        return Conflict(limits=(), alone=(), together=None, without_limits=what)
    return select(problem)


def whole_plan(scenario: Scenario, groups: Sequence[SolvedGroup]) -> ChosenPlan:
    """All pools, one bill; a run counts by the months that it takes."""
    plans = [_group_plan(scenario, group) for group in groups]
    limits = shared_uses([group.choice for group in groups])
    return replace(reduce(_joined, plans), limits=limits)


def _group_plan(scenario: Scenario, group: SolvedGroup) -> ChosenPlan:
    plan = replace(
        chosen_plan(group.choice, plan_bill(group.choice)),
        carbon_kg_per_month=carbon_kg_per_month(group.choice, scenario),
        replays=group.replays,
    )
    if not group.choice.is_jobs:
        return replace(
            plan, slo=_slo((*plan.slo.promises, *recurring_deadlines(scenario, group.choice)))
        )
    behind = [job_behind(group.sizings, option) for option in group.choice.selection.chosen]
    jobs = [job for job in behind if job is not None]
    deadlines = [deadline_result(scenario, job) for job in jobs]
    if jobs:
        # The month's cost, as dear or cheap as the longest run may be long or short.
        wall = max((job.wall_s for job in jobs), key=lambda wall: wall.value)
        cost = plan.cost_usd_per_month
        low, high = cost.low * wall.low / wall.value, cost.high * wall.high / wall.value
        plan = replace(plan, cost_usd_per_month=replace(cost, low=low, high=high, sources=()))
    return replace(plan, slo=_slo([found for found in deadlines if found is not None]))


def _slo(results: Sequence[SloResult]) -> SloResults:
    return SloResults(is_kept=all(result.is_kept for result in results), promises=tuple(results))


def _joined(first: ChosenPlan, second: ChosenPlan) -> ChosenPlan:
    return ChosenPlan(
        pools=first.pools + second.pools,
        cost_usd_per_month=_sum(first.cost_usd_per_month, second.cost_usd_per_month),
        power_w=_sum(first.power_w, second.power_w) if first.power_w and second.power_w else None,
        slo=_slo(first.slo.promises + second.slo.promises),
        bill=_joined_bill(first.bill, second.bill),
        limits=first.limits + second.limits,
        energy_j_per_month=_both(first.energy_j_per_month, second.energy_j_per_month),
        carbon_kg_per_month=_both(first.carbon_kg_per_month, second.carbon_kg_per_month),
        replays=first.replays + second.replays,
    )


def _both(first: float | None, second: float | None) -> float | None:
    """The sum; None where a part is not known."""
    return None if first is None or second is None else first + second


def _joined_bill(first: PlanBill, second: PlanBill) -> PlanBill:
    """Services with the runs beside them: periods are those of services and of schedules."""
    return PlanBill(
        cost_lines=first.cost_lines + second.cost_lines,
        once_usd=first.once_usd + second.once_usd,
        total_usd=first.total_usd + second.total_usd,
        span_s=max(first.span_s, second.span_s),
        present_value_usd=first.present_value_usd + second.present_value_usd,
        cash_flow=first.cash_flow + second.cash_flow,
        by_period=_joined_periods(first.by_period, second.by_period),
        orders=first.orders + second.orders,
    )


def _joined_periods(
    first: tuple[PeriodCost, ...], second: tuple[PeriodCost, ...]
) -> tuple[PeriodCost, ...]:
    """Each period of the first with what the second costs in it, where it has the same ones."""
    ends = [[round(each.start_s + each.span_s) for each in given] for given in (first, second)]
    if ends[0] != ends[1]:
        return first  # runs that end before
    return tuple(
        replace(
            one,
            n_accelerators=one.n_accelerators + other.n_accelerators,
            usd_per_month=one.usd_per_month + other.usd_per_month,
        )
        for one, other in zip(first, second, strict=True)
    )


def _sum(first: Estimate, second: Estimate) -> Estimate:
    return Estimate(
        value=first.value + second.value,
        low=first.low + second.low,
        high=first.high + second.high,
        tier=first.tier,
    )


def whole_proof(groups: Sequence[SolvedGroup]) -> PlanProof:
    """How good the whole is known to be: bills and bounds add up."""
    proofs = [group.choice.selection.proof for group in groups]
    bill = sum(group.choice.selection.worth_usd for group in groups)
    is_cost = all(proof.objective == "cost" for proof in proofs)
    bound = sum(proof.bound for proof in proofs) if is_cost else bill
    return PlanProof(
        objective=proofs[0].objective,
        bill_usd=bill,
        bound_usd=min(bound, bill),
        gap_frac=max(proof.gap_frac for proof in proofs),
        n_rounds=max(group.n_rounds for group in groups),
        status=", ".join(dict.fromkeys(proof.status for proof in proofs)),
    )


def by_priority(scenario: Scenario) -> Iterator[tuple[str, ...]]:
    """Workloads that go first where limits do not leave room for all: fewer and fewer of them."""
    levels = sorted({work.priority for work in scenario.workloads})
    for least in levels[1:]:
        yield tuple(work.name for work in scenario.workloads if work.priority >= least)


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
