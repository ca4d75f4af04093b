"""The planner, in order: inputs, sizes, choice, replay, choice again, explanation, gate, answer."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.selection import Conflict, Selection, SelectionProblem
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.workload import Training
from gpuplan.pipeline.saved import certified
from gpuplan.studies.day_replay.joint_odds import is_sure, sure_together
from gpuplan.studies.day_replay.replay import replay_chosen, with_safe_utilization
from gpuplan.studies.explanation.answer import infeasible_answer, planned_answer
from gpuplan.studies.explanation.engines import best_engine, request_for
from gpuplan.studies.explanation.owned import (
    is_better,
    usd_per_month,
    with_idle_owned,
    with_owned,
    without_owned,
)
from gpuplan.studies.explanation.rejected import (
    conflict_lines,
    first_served_lines,
    infeasible_lines,
    narrower_lines,
    unsettled_lines,
    without_fleet,
)
from gpuplan.studies.market.ranks import joint_market, market_for_ranks
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.deferrable import is_recurring
from gpuplan.studies.planning.draw import at_expected_draw, with_draw
from gpuplan.studies.planning.groups import (
    ROUNDS,
    SolvedGroup,
    by_priority,
    select_from,
    solve_groups,
)
from gpuplan.studies.planning.inputs import PlanInputs, plan_inputs
from gpuplan.studies.planning.largest import asks_largest, at_largest_load, with_largest
from gpuplan.studies.planning.options import FleetTable, fleet_table
from gpuplan.studies.planning.owned_first import (
    OwnedParts,
    OwnedReach,
    markets_of_owned,
    owned_parts,
    owned_reach,
)
from gpuplan.studies.planning.question import at_even_odds, with_question
from gpuplan.studies.planning.runs import market_for_jobs, staggered_lines
from gpuplan.studies.planning.shared import used_lines, within_what_is_left
from gpuplan.studies.planning.time_sharing import in_idle_hours
from gpuplan.studies.sizing.workload import size_workload


def plan(request: PlanRequest) -> Answer:
    """The plan that was asked for, with its reasons; without one, what stands in the way."""
    engines = request.basis.engines
    if engines:
        return best_engine(engines, [plan(request_for(request, name)) for name in engines])
    if asks_largest(request):
        return at_largest_load(request, plan)
    inputs = plan_inputs(request)
    scenario = inputs.scenario
    sizings = [size_workload(work, scenario, inputs.around) for work in scenario.workloads]
    lost = without_fleet(sizings)
    if lost:
        none = infeasible_answer(inputs, sizings, infeasible_lines(lost))
        return at_even_odds(request, with_question(request, none), plan)
    found = _groups(inputs, sizings)
    reach = owned_reach(inputs, sizings)
    if reach is None:
        answer = _answer(inputs, sizings, found)
    else:
        answer = _beside_owned(inputs, sizings, found, reach)
    whole = with_largest(request, with_question(request, with_idle_owned(inputs, answer)))
    whole = whole if request.basis.is_brief else certified(inputs, whole)
    return at_even_odds(request, whole, plan)


def solved_services(inputs: PlanInputs) -> list[SolvedGroup] | tuple[str, ...]:
    """What is chosen for the services of a scenario; or why there is no plan."""
    sizings = [
        size_workload(work, inputs.scenario, inputs.around) for work in inputs.scenario.workloads
    ]
    lost = without_fleet(sizings)
    found = infeasible_lines(lost) if lost else _groups(inputs, sizings)
    if isinstance(found, tuple):
        return found
    return [group for group in found if not group.choice.is_jobs]


def _groups(inputs: PlanInputs, sizings: Sequence[Sizing]) -> list[SolvedGroup] | tuple[str, ...]:
    """What is chosen for all workloads; or why there is no plan."""

    def solve(
        mine: Sequence[Sizing], is_jobs: bool, before: Sequence[Choice]
    ) -> SolvedGroup | tuple[str, ...]:
        return _solved(inputs, mine, is_jobs=is_jobs, before=before)

    def share_time(host: SolvedGroup, runs: Sequence[Sizing]) -> SolvedGroup | None:
        return in_idle_hours(inputs, host, runs)

    return solve_groups(inputs.scenario, sizings, solve, share_time)


def _answer(
    inputs: PlanInputs, sizings: Sequence[Sizing], found: list[SolvedGroup] | tuple[str, ...]
) -> Answer:
    if isinstance(found, tuple):
        return infeasible_answer(inputs, sizings, (*found, *_priority_lines(inputs, sizings)))
    return planned_answer(inputs, found)


def _priority_lines(inputs: PlanInputs, sizings: Sequence[Sizing]) -> tuple[str, ...]:
    """Who gets what there is where not all fit, and what has to wait."""
    for names in by_priority(inputs.scenario):
        works = [work for work in inputs.scenario.workloads if work.name in names]
        first = inputs._replace(scenario=replace(inputs.scenario, workloads=tuple(works)))
        found = _groups(first, [sizing for sizing in sizings if sizing.workload in names])
        if isinstance(found, list):
            return first_served_lines(inputs.scenario, names, found)
    return ()


def _beside_owned(
    inputs: PlanInputs,
    sizings: Sequence[Sizing],
    found: list[SolvedGroup] | tuple[str, ...],
    reach: OwnedReach,
) -> Answer:
    """The better of two plans: others beside owned nodes that are not enough, or in their place."""
    beside = _with_parts(inputs, sizings, reach, is_needed=isinstance(found, tuple))
    if beside is None or not is_better(beside[1], found):
        usd = None if beside is None else usd_per_month(beside[1])
        answer = _answer(inputs, sizings, found)
        return without_owned(inputs, reach, answer, usd_with=usd)
    parts, both = beside
    bare = infeasible_answer(inputs, sizings, ())
    usd = None if isinstance(found, tuple) else usd_per_month(found)
    return with_owned(inputs, (reach, parts), both, whole=bare, usd_without=usd)


def _with_parts(
    inputs: PlanInputs, sizings: Sequence[Sizing], reach: OwnedReach, *, is_needed: bool
) -> tuple[OwnedParts, list[SolvedGroup]] | None:
    """Owned nodes and others, replayed, all together as sure as is asked for.

    Less sure where nothing is surer and there is no plan without them.
    """
    last = None
    for parts in owned_parts(inputs, sizings, reach):
        both = _groups(parts.inputs, parts.sizings)
        if isinstance(both, tuple):
            continue  # what is owned is not enough after all
        if all(is_sure(parts.inputs, each.sizings, each.choice.selection) for each in both):
            return parts, both
        last = parts, both
    return last if is_needed else None


def what_if(request: PlanRequest, changes: tuple[str, ...]) -> tuple[Answer, Answer]:
    """The plan as asked and with keys of the scenario changed, under the same seed."""
    return plan(request), plan(replace(request, changes=(*request.changes, *changes)))


def _solved(
    inputs: PlanInputs, sizings: Sequence[Sizing], *, is_jobs: bool, before: Sequence[Choice]
) -> SolvedGroup | tuple[str, ...]:
    """Choose, replay, and choose again with more replicas where an SLO was violated."""
    for n_rounds in ROUNDS:
        standing = () if is_jobs else inputs.market.standing
        table = _table(inputs, sizings, is_jobs=is_jobs, before=before)
        table = at_expected_draw(table, standing)
        if not table.covers(sizings):
            return infeasible_lines(sizings)
        problem = _problem(inputs, table, before, is_jobs=is_jobs)
        found = select_from(problem, table)
        if isinstance(found, Conflict):
            what, *short = conflict_lines(found, problem, table.problem)
            cheaper = narrower_lines(found, problem, sizings, inputs.around.price)
            lines = (what, *cheaper, *short, *used_lines(table, before))
            return (*lines, *staggered_lines(inputs.scenario, problem, sizings))
        replay = replay_chosen(inputs, sizings, found)
        sizings = replay.sizings
        surer = None if replay.is_tightened else sure_together(inputs, sizings, found)
        sizings = surer or sizings
        if not replay.is_tightened and surer is None:
            choose = partial(_selected, inputs, before=before, is_jobs=is_jobs)
            table, found = with_draw(table, found, standing, choose=choose)
            table, sizings = with_safe_utilization(inputs, table, sizings, chosen=found)
            repeats = is_jobs and is_recurring(inputs.scenario, sizings)
            choice = Choice(table=table, selection=found, is_jobs=is_jobs, repeats=repeats)
            return SolvedGroup(choice, sizings, n_rounds, replay.replays)
    return unsettled_lines(ROUNDS)


def _selected(
    inputs: PlanInputs, table: FleetTable, *, before: Sequence[Choice], is_jobs: bool
) -> Selection | Conflict:
    """The best choice from the table within what earlier choices leave."""
    return select_from(_problem(inputs, table, before, is_jobs=is_jobs), table)


def _problem(
    inputs: PlanInputs, table: FleetTable, before: Sequence[Choice], *, is_jobs: bool
) -> SelectionProblem:
    """What is left to choose from; a check of given fleets knows no limits."""
    if inputs.request.is_check:
        return replace(table.problem, limits=())
    return within_what_is_left(table, before, is_jobs=is_jobs)


def _table(
    inputs: PlanInputs, sizings: Sequence[Sizing], *, is_jobs: bool, before: Sequence[Choice]
) -> FleetTable:
    """What can be chosen: jobs may take one's own nodes by the hour, training whole nodes only."""
    scenario, catalog = inputs.scenario, inputs.catalog
    if not is_jobs:
        owned = markets_of_owned(inputs)
        return fleet_table(scenario, catalog, sizings, market=inputs.market, markets=owned)
    market = market_for_jobs(inputs.market, before)
    ranks = market_for_ranks(market, scenario, catalog)
    markets = {
        work.name: ranks if isinstance(work.work, Training) else market
        for work in scenario.workloads
    }
    joint = joint_market(market, ranks)
    return fleet_table(scenario, catalog, sizings, market=joint, is_jobs=True, markets=markets)
