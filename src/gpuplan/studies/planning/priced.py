"""What a fleet would cost if it were chosen, in: a choice and other options; out: their bill.

The bill is that of the selection itself, so that an alternative costs to the cent what a plan costs
that is forced to take it.
"""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.domain.plan.selection import FleetOption, NodeTerms, Selection, SelectionProblem
from gpuplan.selection.choose import select
from gpuplan.studies.planning.chosen import Choice


def priced(choice: Choice, *options: FleetOption, has_limits: bool = True) -> Choice | None:
    """The choice with these options in place of those of their workloads, paid for at the least.

    None where the limits, or what can be had, do not allow it.
    """
    problem = choice.table.problem
    given = {option.workload for option in options}
    rest = [option for option in choice.selection.chosen if option.workload not in given]
    limits = problem.limits if has_limits else ()
    requested = replace(problem, options=(*rest, *options), limits=limits, objective="cost")
    found = select(_without_idle_pools(requested))
    return choice._replace(selection=found) if isinstance(found, Selection) else None


def paid_by(choice: Choice, terms: Sequence[NodeTerms]) -> Choice | None:
    """The same options paid for on these terms alone; None where they are not enough."""
    problem = replace(choice.table.problem, terms=tuple(terms))
    offered = choice._replace(table=choice.table._replace(problem=problem))
    return priced(offered, *choice.selection.chosen)


def _without_idle_pools(problem: SelectionProblem) -> SelectionProblem:
    """The problem without pools that nothing could run in: they cost nothing but time."""
    used = {option.pool for option in problem.options}
    return replace(
        problem,
        pools=tuple(pool for pool in problem.pools if pool.name in used),
        terms=tuple(terms for terms in problem.terms if terms.pool in used),
        geometries=tuple(given for given in problem.geometries if given.pool in used),
    )
