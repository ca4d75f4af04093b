"""Limits that services and runs share, in: choices of each; out: what is left, and the sums.

Both hold their nodes at the same time, so what one group uses the other cannot have. Of a limit
by the month or the year a run uses what it costs in the dearest month or year of its life.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.domain.plan.answer import LimitUse
from gpuplan.domain.plan.selection import FleetOption, NamedLimit, SelectionProblem
from gpuplan.selection.result.verify import limit_used
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.limits import amount_text
from gpuplan.studies.planning.options import FleetTable
from gpuplan.units import HOUR, MONTH, YEAR

SPANS_S = {"budget.usd_per_month": MONTH, "budget.opex_usd_per_year": YEAR}


def within_what_is_left(
    table: FleetTable, before: Sequence[Choice], *, is_jobs: bool
) -> SelectionProblem:
    """The problem with its limits less what the choices before it use."""
    problem = table.problem
    limits = tuple(
        replace(limit, most=limit.most * max(0.0, 1.0 - _used_frac(limit, problem, before)))
        for limit in problem.limits
    )
    problem = replace(problem, limits=limits)
    if not is_jobs or any(_base(limit) in SPANS_S for limit in limits):
        return problem
    for name, span_s in SPANS_S.items():
        left = _left_usd(before, name, span_s)
        if left is not None:
            affordable = [o for o in problem.options if _least_usd(table, o, span_s) <= left]
            problem = replace(problem, options=tuple(affordable))
    return problem


def used_lines(table: FleetTable, before: Sequence[Choice]) -> Iterator[str]:
    """What the choices before use of each limit of this problem, in sentences."""
    period_s = table.problem.horizon.period_s
    names = ", ".join(o.workload for choice in before for o in choice.selection.chosen)
    for limit in table.problem.limits:
        frac = _used_frac(limit, table.problem, before)
        if frac > 0:
            used, most = (amount_text(limit, x * limit.most, period_s) for x in (frac, 1.0))
            yield f"{limit.name}: {used} of {most} are used by {names}"


def shared_uses(choices: Sequence[Choice]) -> tuple[LimitUse, ...]:
    """How much of each limit all choices use together, each limit once."""
    found: dict[str, LimitUse] = {}
    for choice in choices:
        others = [each for each in choices if each is not choice]
        for limit in choice.table.problem.limits:
            if limit.name not in found:
                found[limit.name] = _limit_use(limit, choice, others)
    return tuple(found.values())


def _limit_use(limit: NamedLimit, choice: Choice, others: Sequence[Choice]) -> LimitUse:
    """How much of a limit the plan uses, others included."""
    problem = choice.table.problem
    used = limit_used(problem, choice.selection, limit)
    frac, is_kept = _share(used, limit.most), used <= limit.most * (1 + 1e-6) + 1e-9
    more = _used_frac(limit, problem, others)
    if more:
        frac += more
        used, is_kept = frac * limit.most, frac <= 1 + 1e-6
    return LimitUse(
        name=limit.name,
        used=amount_text(limit, used, problem.horizon.period_s),
        limit=amount_text(limit, limit.most, problem.horizon.period_s),
        used_frac=frac,
        is_kept=is_kept,
    )


def _used_frac(limit: NamedLimit, owner: SelectionProblem, others: Sequence[Choice]) -> float:
    """Share of a limit that other choices use, whatever span they count it over."""
    return sum(_frac_of(limit, owner, choice) for choice in others)


def _frac_of(limit: NamedLimit, owner: SelectionProblem, choice: Choice) -> float:
    problem = choice.table.problem
    same = next((each for each in problem.limits if each.name == limit.name), None)
    if same is not None:
        return _share(limit_used(problem, choice.selection, same), same.most)
    span_s = SPANS_S.get(_base(limit))
    if not choice.is_jobs or span_s is None or _begins_later(limit):
        return 0.0
    # The dearest month or year of a run; all of it, where it is shorter.
    usd = sum(line.nominal_cents for line in choice.bill) / 100.0
    dearest = usd * min(1.0, span_s / max(choice.span_s, 1e-9))
    return _share(dearest, _each_usd(limit, owner, span_s))


def _base(limit: NamedLimit) -> str:
    """The key of the scenario that sets the limit."""
    return limit.name.split(" in period ")[0]


def _share(used: float, most: float) -> float:
    return used / most if most > 0 else float(used > 0)


def _each_usd(limit: NamedLimit, owner: SelectionProblem, span_s: float) -> float:
    """The limit of one month or year, which the program counts over whole periods."""
    n_periods = len(limit.periods) or owner.horizon.shape[1]
    return limit.most * span_s / (owner.horizon.period_s * n_periods)


def _begins_later(limit: NamedLimit) -> bool:
    """The limit is of a period after the first; runs are taken to begin now."""
    return bool(limit.periods) and 0 not in limit.periods


def _left_usd(before: Sequence[Choice], name: str, span_s: float) -> float | None:
    """USD of a month or year that services leave to runs; None: no such limit."""
    for choice in before:
        problem = choice.table.problem
        for limit in problem.limits:
            if _base(limit) == name and not _begins_later(limit):
                used = _share(limit_used(problem, choice.selection, limit), limit.most)
                return _each_usd(limit, problem, span_s) * max(0.0, 1.0 - used)
    return None


def _least_usd(table: FleetTable, option: FleetOption, span_s: float) -> float:
    """The least that a run costs in its dearest month or year."""
    problem = table.problem
    size = problem.pool(option.pool).n_accelerators_per_node
    prices = [t.usd_per_node_h for t in problem.terms if t.pool == option.pool]
    need = option.need[0, 0]
    hours = float(problem.horizon.hour_s[need > 0].sum()) / HOUR
    nodes = -(-int(need.max(initial=0)) // size)
    return nodes * min(prices, default=0.0) * min(hours, span_s / HOUR)
