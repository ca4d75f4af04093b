"""One workload over one period: option by option, the cheapest bound first, to the proven best.

A run or a one-off job has as many blocks of time as there are ways to do it, so that the whole
problem is large although each way is a program of one pool.
"""

from dataclasses import replace

from gpuplan.domain.plan.selection import FleetOption, Selection, SelectionProblem
from gpuplan.selection.exact import solve_exactly, with_proof
from gpuplan.selection.program.model import model
from gpuplan.selection.program.solver import Effort
from gpuplan.selection.program.tables import tables
from gpuplan.units import HOUR

METHOD = "option by option"
CENT = 0.01  # bills are rounded, bounds are not


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
