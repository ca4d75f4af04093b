"""The verb of the room: a problem in, the best choice or the reason for none out.

One workload over one period: option by option, the cheapest bound first, to the proven best.

A run or a one-off job has as many blocks of time as there are ways to do it, so that the whole
problem is large although each way is a program of one pool.
"""

from dataclasses import replace

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    Conflict,
    FleetOption,
    Objective,
    Selection,
    SelectionProblem,
)
from gpuplan.errors import SolverError
from gpuplan.selection.check import check
from gpuplan.selection.exact import cost_selection, solve_exactly, with_proof
from gpuplan.selection.program.measures import Total
from gpuplan.selection.program.model import Goal, Model, model
from gpuplan.selection.program.solver import Answer, Effort, solve
from gpuplan.selection.program.tables import Tables, tables
from gpuplan.selection.sensitivity.conflict import conflict
from gpuplan.selection.site import best_with_site
from gpuplan.units import HOUR

METHOD = "option by option"
CENT = 0.01  # bills are rounded, bounds are not


MEASURES: dict[Objective, Total] = {
    "cost": "worth",
    "time": "time",
    "energy": "energy",
    "carbon": "carbon",
}
# Up to here one program takes a moment; up to the second it is given a while to improve.
N_SMALL_CELLS, N_SMALL_OPTIONS = 400, 200
N_MEDIUM_CELLS, MEDIUM_S = 2500, 10.0
# Ties are broken by cost within so much of the best.
TIE = 1e-7


def select(problem: SelectionProblem, effort: Effort | None = None) -> Selection | Conflict:
    """The best choice with its proof, or what stands in the way of any."""
    check(problem)
    found = best(problem, effort or Effort())
    return conflict(problem) if found is None else found


def best(problem: SelectionProblem, effort: Effort) -> Selection | None:
    """The best choice by the problem's objective; None where there is none."""
    if problem.site_usd_per_h:
        return best_with_site(problem, lambda given: best(given, effort))
    if problem.objective == "cost":
        return cheapest(problem, effort)
    tab = tables(problem)
    if problem.objective == "regret":
        return _least_regret(tab, effort)
    if problem.objective == "weighted":
        return _weighted(tab, effort)
    return cheapest_of_best(tab, MEASURES[problem.objective], effort)


def _weighted(tab: Tables, effort: Effort) -> Selection | None:
    """The least weighted sum of quantities, each over the least that any choice needs of it."""
    shares = []
    for measure, weight in tab.problem.weights:
        built = model(tab, goal=Goal(measure=measure))
        least = solve(built.program, effort)
        if least is None:
            return None
        size = abs(least.objective * built.cost_scale)
        # A probability is its own share, and what can be nothing at all has no share of it.
        shares.append((measure, weight if measure == "risk" or size == 0 else weight / size))
    problem = replace(tab.problem, weights=tuple(shares))
    return cheapest_of_best(replace(tab, problem=problem), "weighted", effort)


def cheapest(problem: SelectionProblem, effort: Effort) -> Selection | None:
    """The cheapest choice: one program where that is quick, else in parts with a proven gap."""
    if is_small(problem) or any(limit.workloads for limit in problem.limits):
        return solve_exactly(model(tables(problem)), effort)
    if is_single(problem):
        return solve_single(problem, effort)
    # Its parts take as long to load as a small problem takes to solve.
    from gpuplan.selection.large.solve import solve_large  # noqa: PLC0415

    found = solve_large(problem, effort)
    if found is not None and found.proof.gap_frac > effort.gap_frac and is_medium(problem):
        return _better(problem, found, effort)
    return found


def is_small(problem: SelectionProblem) -> bool:
    """Whether one program proves the optimum in a moment."""
    return n_cells(problem) <= N_SMALL_CELLS and len(problem.options) <= N_SMALL_OPTIONS


def is_medium(problem: SelectionProblem) -> bool:
    """Whether one program may still do better than the parts."""
    return n_cells(problem) <= N_MEDIUM_CELLS


def n_cells(problem: SelectionProblem) -> int:
    """Pools that something could run in, times scenarios, periods and hours."""
    pools = {option.pool for option in problem.options}
    pools |= {option.pool for work in problem.deferrable for option in work.options}
    pools |= {part.pool for fleet in problem.mixed for part in fleet.parts}
    n_scenarios, n_periods, n_hours = problem.horizon.shape
    return len(pools) * n_scenarios * n_periods * n_hours


def _better(problem: SelectionProblem, found: Selection, effort: Effort) -> Selection:
    """One program for a while; the better plan and the better bound of the two."""
    max_s = MEDIUM_S if effort.max_s is None else min(MEDIUM_S, effort.max_s)
    try:
        other = solve_exactly(model(tables(problem)), replace(effort, max_s=max_s))
    except SolverError:
        return found
    if other is None:
        return found
    plan = min(found, other, key=lambda plan: plan.worth_cents)
    bound = max(found.proof.bound, other.proof.bound)
    is_proven = plan.worth_usd - bound <= effort.gap_frac * plan.worth_usd
    return with_proof(plan, bound=bound, is_proven=is_proven, method=plan.proof.method)


def cheapest_of_best(tab: Tables, measure: Total, effort: Effort) -> Selection | None:
    """Best by the measure; among the equals the cheapest."""
    built = model(tab, goal=Goal(measure=measure))
    first = solve(built.program, effort)
    if first is None:
        return None
    most = first.objective * built.cost_scale
    room = TIE * abs(most) + TIE * built.cost_scale
    second = model(tab, goal=Goal(ceilings=((measure, most + room),)))
    return _finish(second, effort, first=(built, first))


def only(problem: SelectionProblem, scenario: int) -> SelectionProblem:
    """The problem as if this scenario were certain."""
    at = slice(scenario, scenario + 1)
    return replace(
        problem,
        horizon=replace(problem.horizon, probability_frac=floats([1.0]), n_shared_periods=None),
        terms=tuple(
            given
            if given.price_ratio is None
            else replace(given, price_ratio=floats(given.price_ratio[at]))
            for given in problem.terms
        ),
        options=tuple(replace(given, need=ints(given.need[at])) for given in problem.options),
        deferrable=tuple(
            replace(given, n_work=floats(given.n_work[at])) for given in problem.deferrable
        ),
        mixed=tuple(replace(given, n_load=floats(given.n_load[at])) for given in problem.mixed),
        objective="cost",
    )


def _least_regret(tab: Tables, effort: Effort) -> Selection | None:
    alone = [cheapest(only(tab.problem, s), effort) for s in range(tab.shape[0])]
    if any(found is None for found in alone):
        return None
    best_usd = tuple(found.proof.value for found in alone if found is not None)
    built = model(tab, goal=Goal(measure="regret", best_usd=best_usd))
    first = solve(built.program, effort)
    if first is None:
        return None
    most = first.objective * built.cost_scale
    goal = Goal(best_usd=best_usd, most_regret_usd=most + TIE * max(best_usd))
    return _finish(model(tab, goal=goal), effort, first=(built, first))


def _finish(second: Model, effort: Effort, *, first: tuple[Model, Answer]) -> Selection | None:
    """The cheaper of the equals, with the proof of what was asked for."""
    built, answer = first
    cheap = solve(second.program, effort)
    if cheap is None:
        return None
    found = cost_selection(second, cheap)
    value, bound = answer.objective * built.cost_scale, answer.bound * built.cost_scale
    gap = (value - bound) / value if value > bound else 0.0
    proof = replace(
        found.proof,
        status="optimal" if gap <= 1e-9 else "within gap" if answer.is_proven else "not proven",
        objective=built.tab.problem.objective,
        value=value,
        bound=bound,
        gap_frac=gap,
    )
    return replace(found, proof=proof)


def is_single(problem: SelectionProblem) -> bool:
    """Whether one workload over one period is all there is to choose for."""
    is_alone = not (problem.deferrable or problem.mixed or problem.geometries)
    return is_alone and len(problem.workloads) == 1 and problem.horizon.shape[:2] == (1, 1)


def solve_single(problem: SelectionProblem, effort: Effort) -> Selection | None:
    """The cheapest option with its nodes; None where the limits leave none."""
    prices = {pool.name: _least_usd_per_h(problem, pool.name) for pool in problem.pools}
    bounds = sorted(
        (_bound_usd(problem, option, prices[option.pool]), i)
        for i, option in enumerate(problem.options)
    )
    best: Selection | None = None
    for bound, i in bounds:
        if best is not None and bound >= best.worth_usd - CENT:
            break
        alone = replace(problem, options=(problem.options[i],))
        found = solve_exactly(model(tables(alone)), effort)
        if found is not None and (best is None or found.worth_cents < best.worth_cents):
            best = found
    if best is None:
        return None
    return with_proof(best, bound=best.proof.bound, is_proven=True, method=METHOD)


def _least_usd_per_h(problem: SelectionProblem, pool: str) -> float:
    """The cheapest hour of a node, what is paid besides left out."""
    there = problem.pool(pool)
    own = [there.existing_usd_per_node_h] if there.n_nodes_existing else []
    rents = [given.usd_per_node_h for given in problem.terms if given.pool == pool]
    return min((*rents, *own), default=0.0)


def _bound_usd(problem: SelectionProblem, option: FleetOption, usd_per_h: float) -> float:
    """What the option costs at least: parts of nodes, for the hours in which they are needed."""
    horizon = problem.horizon
    size = problem.pool(option.pool).n_accelerators_per_node
    node_h = float((option.need[0, 0] * horizon.hour_s).sum()) / HOUR / size
    return node_h * usd_per_h * float(horizon.running_discount_frac[0]) + option.once_usd
