"""The verb of the room: a problem in, the best choice or the reason for none out."""

from dataclasses import replace

from gpuplan.domain.selection import Conflict, Objective, Selection, SelectionProblem
from gpuplan.selection.check import check
from gpuplan.selection.conflict import conflict
from gpuplan.selection.exact import cost_selection, solve_exactly
from gpuplan.selection.measures import Total
from gpuplan.selection.program import Goal, Model, model
from gpuplan.selection.regret import only
from gpuplan.selection.solver import Answer, Effort, solve
from gpuplan.selection.tables import Tables, tables

MEASURES: dict[Objective, Total] = {
    "cost": "worth",
    "time": "time",
    "energy": "energy",
    "carbon": "carbon",
}
# Ties are broken by cost within so much of the best.
TIE = 1e-7


def select(problem: SelectionProblem, effort: Effort | None = None) -> Selection | Conflict:
    """The best choice with its proof, or what stands in the way of any."""
    check(problem)
    found = best(problem, effort or Effort())
    return conflict(problem) if found is None else found


def best(problem: SelectionProblem, effort: Effort) -> Selection | None:
    """The best choice by the problem's objective; None where there is none."""
    if problem.objective == "cost":
        return solve_exactly(model(tables(problem)), effort)
    tab = tables(problem)
    if problem.objective == "regret":
        return _least_regret(tab, effort)
    return cheapest_of_best(tab, MEASURES[problem.objective], effort)


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


def _least_regret(tab: Tables, effort: Effort) -> Selection | None:
    alone = [
        solve_exactly(model(tables(only(tab.problem, s))), effort) for s in range(tab.shape[0])
    ]
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
