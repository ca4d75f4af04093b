"""Why there is no choice: which of the user's limits cannot hold together, and what would do."""

from collections.abc import Collection
from dataclasses import replace

from gpuplan.domain.plan.selection import Conflict, Relaxation, SelectionProblem
from gpuplan.selection.program.model import Goal, limit_key, model
from gpuplan.selection.program.solver import solve
from gpuplan.selection.program.tables import tables

# Above this many rows whole numbers are let go: answers become "at least".
N_EXACT_ROWS = 6000


def conflict(problem: SelectionProblem) -> Conflict:
    """The limits that clash, the least change to each alone, and to all together."""
    names = tuple(limit.name for limit in problem.limits)
    integer = _is_small(problem)
    if not _is_feasible(without(problem, names), integer=integer):
        text = _hopeless(problem, integer=integer)
        return Conflict(limits=(), alone=(), together=None, without_limits=text)
    clash = _clash(problem, integer=integer)
    alone = [relaxation(problem, (name,), integer=integer) for name in clash]
    return Conflict(
        limits=clash,
        alone=tuple(found for found in alone if found is not None),
        together=relaxation(problem, names, integer=integer),
        is_exact=integer,
    )


def without(problem: SelectionProblem, names: Collection[str]) -> SelectionProblem:
    """The problem with these limits dropped."""
    return replace(problem, limits=tuple(x for x in problem.limits if x.name not in names))


def relaxation(
    problem: SelectionProblem, names: tuple[str, ...], *, integer: bool = True
) -> Relaxation | None:
    """The least that the named limits must give, each by its own size; None: not enough."""
    built = model(tables(problem), integer=integer, goal=Goal(measure="slack", slack_on=names))
    answer = solve(built.program)
    if answer is None:
        return None
    slack = answer.values[built.lay.n_columns :]
    given = {limit.name: limit.most for limit in problem.limits}
    wider = [
        (name, given[name], given[name] + float(amount) * built.scale[limit_key(name)])
        for name, amount in zip(names, slack, strict=True)
        if amount > 1e-9
    ]
    return Relaxation(
        limits=tuple(name for name, _, _ in wider),
        most=tuple(most for _, most, _ in wider),
        needed=tuple(needed for _, _, needed in wider),
    )


def _is_small(problem: SelectionProblem) -> bool:
    n_scenarios, n_periods, n_hours = problem.horizon.shape
    pools = {option.pool for option in problem.options}
    return len(pools) * n_scenarios * n_periods * n_hours <= N_EXACT_ROWS


def _is_feasible(problem: SelectionProblem, *, integer: bool) -> bool:
    built = model(tables(problem), integer=integer, goal=Goal(measure="slack"))
    return solve(built.program) is not None


def _clash(problem: SelectionProblem, *, integer: bool) -> tuple[str, ...]:
    """Deletion filter: what is left is needed, every one of it, for the contradiction."""
    dropped: list[str] = []
    for limit in problem.limits:
        if not _is_feasible(without(problem, [*dropped, limit.name]), integer=integer):
            dropped.append(limit.name)
    return tuple(limit.name for limit in problem.limits if limit.name not in dropped)


def _hopeless(problem: SelectionProblem, *, integer: bool) -> str:
    """Which workload cannot run even alone, for want of nodes."""
    bare = replace(problem, limits=())
    lost = []
    for name in problem.workloads:
        mine = tuple(option for option in problem.options if option.workload == name)
        alone = replace(bare, options=mine, deferrable=(), mixed=())
        if not _is_feasible(alone, integer=integer):
            lost.append(name)
    for work in problem.deferrable:
        alone = replace(bare, options=(), deferrable=(work,), mixed=())
        if not _is_feasible(alone, integer=integer):
            lost.append(work.workload)
    if lost:
        return f"{', '.join(lost)}: no option has enough nodes to be had (quota, stock, lead time)"
    return "each workload could run alone, but together they need more nodes than are to be had"
