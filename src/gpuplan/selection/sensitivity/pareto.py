"""Trade-offs: the cheapest plan at each level of another measure, between the two extremes."""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.plan.selection import Objective, ParetoPoint, Selection, SelectionProblem
from gpuplan.selection.choose import MEASURES, cheapest_of_best
from gpuplan.selection.exact import solve_exactly
from gpuplan.selection.program.measures import Total
from gpuplan.selection.program.model import Goal, model
from gpuplan.selection.program.solver import Effort
from gpuplan.selection.program.tables import Tables, tables
from gpuplan.selection.result.verify import expected_measure


def pareto(
    problem: SelectionProblem,
    other: Objective,
    *,
    n_points: int = 5,
    effort: Effort | None = None,
) -> tuple[ParetoPoint, ...]:
    """Plans of which none is both cheaper and lower in the other measure; lowest first.

    The other measure is capped row by row: weights would miss points that lie off the hull.
    """
    effort = effort or Effort()
    tab, measure = tables(problem), MEASURES[other]
    lowest = cheapest_of_best(tab, measure, effort)
    cheapest = solve_exactly(model(tab), effort)
    if lowest is None or cheapest is None:
        return ()
    ends = [expected_measure(problem, plan, other) for plan in (lowest, cheapest)]
    caps = np.linspace(ends[0], ends[1], n_points)[1:-1]
    between = [_capped(tab, measure, float(cap), effort) for cap in caps]
    plans = [lowest, *(plan for plan in between if plan is not None), cheapest]
    points = [
        ParetoPoint(
            cost_usd=plan.worth_usd, other=expected_measure(problem, plan, other), selection=plan
        )
        for plan in plans
    ]
    return tuple(_undominated(points))


def _capped(tab: Tables, measure: Total, most: float, effort: Effort) -> Selection | None:
    return solve_exactly(model(tab, goal=Goal(ceilings=((measure, most),))), effort)


def _undominated(points: Sequence[ParetoPoint]) -> list[ParetoPoint]:
    retained: list[ParetoPoint] = []
    for point in sorted(points, key=lambda p: (p.other, p.cost_usd)):
        if not retained or point.cost_usd < retained[-1].cost_usd - 0.005:
            retained.append(point)
    return retained
