"""Why this choice: what limits are worth, what other options would cost, what comes close."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gpuplan.domain.plan.selection import (
    FleetOption,
    LimitPrice,
    NamedLimit,
    Selection,
    SelectionProblem,
    WhyNotOption,
)
from gpuplan.selection.choose import best
from gpuplan.selection.exact import solve_exactly
from gpuplan.selection.program import Goal, limit_key, model
from gpuplan.selection.solver import Effort, solve
from gpuplan.selection.tables import tables

STEP_FRAC = 0.01


def limit_prices(
    problem: SelectionProblem,
    found: Selection,
    *,
    effort: Effort | None = None,
    step_frac: float = STEP_FRAC,
) -> tuple[LimitPrice, ...]:
    """What a little more of each limit saves: the slope, and a step solved again."""
    built = model(tables(problem), integer=False)
    answer = solve(built.program)
    if answer is None or answer.row_duals is None:
        return ()
    prices = []
    for limit in problem.limits:
        key = limit_key(limit.name)
        slope = -float(answer.row_duals[built.rows[key]].sum()) / built.scale[key]
        wider = replace(limit, most=limit.most * (1.0 + step_frac))
        again = best(_with_limit(problem, wider), effort or Effort())
        saved = 0.0 if again is None else max(0.0, found.worth_usd - again.worth_usd)
        prices.append(
            LimitPrice(
                limit=limit.name,
                usd_per_unit=abs(slope),
                step_frac=step_frac,
                saved_usd=saved,
            )
        )
    return tuple(prices)


def _with_limit(problem: SelectionProblem, wider: NamedLimit) -> SelectionProblem:
    limits = tuple(wider if given.name == wider.name else given for given in problem.limits)
    return replace(problem, limits=limits)


def why_not_all(problem: SelectionProblem, found: Selection) -> tuple[WhyNotOption, ...]:
    """For every option that was not chosen: what it costs more, at the least.

    One relaxed solve serves all: forcing an option in costs its reduced cost or more.
    """
    built = model(tables(problem), integer=False)
    answer = solve(built.program)
    if answer is None or answer.reduced_costs is None:
        return ()
    reduced = answer.reduced_costs[built.lay.choose]
    more = np.maximum(0.0, answer.objective + np.maximum(0.0, reduced) - found.worth_usd)
    return tuple(
        WhyNotOption(workload=option.workload, option=option.name, at_least_usd=float(usd))
        for option, usd in zip(problem.options, more, strict=True)
        if not any(option is chosen for chosen in found.chosen)
    )


def why_not(
    problem: SelectionProblem,
    found: Selection,
    option: FleetOption,
    *,
    effort: Effort | None = None,
) -> WhyNotOption:
    """What forcing the option costs more, solved again."""
    forced = tuple(o for o in problem.options if o.workload != option.workload or o is option)
    again = best(replace(problem, options=forced), effort or Effort())
    if again is None:
        reason = "no plan exists with it within the limits"
        return WhyNotOption(
            workload=option.workload, option=option.name, at_least_usd=0.0, reason=reason
        )
    least = max(0.0, again.proof.bound - found.worth_usd)
    return WhyNotOption(
        workload=option.workload,
        option=option.name,
        at_least_usd=least,
        forced_usd=again.worth_usd - found.worth_usd,
    )


def alternatives(
    problem: SelectionProblem,
    found: Selection,
    *,
    within_frac: float = 0.1,
    n_most: int = 3,
    effort: Effort | None = None,
) -> tuple[Selection, ...]:
    """The next best plans that use another set of pools, cheapest first."""
    seen = [_pools(found)]
    others: list[Selection] = []
    ceiling_usd = found.worth_usd * (1.0 + within_frac)
    while len(others) < n_most:
        again = _cheapest_unlike(problem, seen, effort or Effort())
        if again is None or again.worth_usd > ceiling_usd:
            break
        others.append(again)
        seen.append(_pools(again))
    return tuple(others)


def _pools(found: Selection) -> frozenset[str]:
    return frozenset(option.pool for option in found.chosen)


def _cheapest_unlike(
    problem: SelectionProblem, seen: Iterable[frozenset[str]], effort: Effort
) -> Selection | None:
    """The best plan whose set of pools is none of those seen."""
    return solve_exactly(model(tables(problem), goal=Goal(unlike=tuple(seen))), effort)
