"""What a little more of each limit would save."""

from dataclasses import replace

from gpuplan.domain.plan.selection import LimitPrice, NamedLimit, Selection, SelectionProblem
from gpuplan.selection.choose import best
from gpuplan.selection.program.solver import Effort

STEP_FRAC = 0.01


def limit_prices(
    problem: SelectionProblem,
    found: Selection,
    *,
    step_frac: float = STEP_FRAC,
) -> tuple[LimitPrice, ...]:
    """What a little more of each limit saves, by solving again with it."""
    prices = []
    for limit in problem.limits:
        wider = replace(limit, most=limit.most * (1.0 + step_frac))
        again = best(_with_limit(problem, wider), Effort())
        saved = 0.0 if again is None else max(0.0, found.worth_usd - again.worth_usd)
        prices.append(LimitPrice(limit=limit.name, step_frac=step_frac, saved_usd=saved))
    return tuple(prices)


def _with_limit(problem: SelectionProblem, wider: NamedLimit) -> SelectionProblem:
    limits = tuple(wider if given.name == wider.name else given for given in problem.limits)
    return replace(problem, limits=limits)
