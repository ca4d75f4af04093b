"""Limits that services and runs share, in: choices of each; out: what is left, and the sums.

Both hold their nodes at the same time, so what one group takes the other cannot have. Of a limit
by the month or the year a run takes what it costs in the dearest month or year of its life.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.domain.plan.answer import LimitUse
from gpuplan.domain.plan.selection import FleetOption, NamedLimit, SelectionProblem
from gpuplan.selection.result.verify import limit_used
from gpuplan.studies.planning.chosen import Choice, limit_use
from gpuplan.studies.planning.limits import amount_text
from gpuplan.studies.planning.options import Rows
from gpuplan.units import HOUR, MONTH, YEAR

MONTHLY, YEARLY = "budget.usd_per_month", "budget.opex_usd_per_year"
_SPANS_S = {MONTHLY: MONTH, YEARLY: YEAR}


def within_what_is_left(rows: Rows, before: Sequence[Choice], *, is_jobs: bool) -> SelectionProblem:
    """The problem with its limits less what the choices before it take."""
    problem = rows.problem
    limits = tuple(
        replace(limit, most=limit.most * max(0.0, 1.0 - _taken_frac(limit, rows.problem, before)))
        for limit in problem.limits
    )
    problem = replace(problem, limits=limits)
    if not is_jobs:
        return problem
    for name, span_s in _SPANS_S.items():
        left = _left_usd(before, name, span_s)
        if left is not None:
            affordable = [o for o in problem.options if _least_usd(rows, o, span_s) <= left]
            problem = replace(problem, options=tuple(affordable))
    return problem


def taken_lines(rows: Rows, before: Sequence[Choice]) -> Iterator[str]:
    """What the choices before took of each limit of this problem."""
    period_s = rows.problem.horizon.period_s
    names = ", ".join(o.workload for choice in before for o in choice.selection.chosen)
    for limit in rows.problem.limits:
        frac = _taken_frac(limit, rows.problem, before)
        if frac > 0:
            taken, most = (amount_text(limit, x * limit.most, period_s) for x in (frac, 1.0))
            yield f"{limit.name}: {names} take {taken} of {most}"


def shared_uses(choices: Sequence[Choice]) -> tuple[LimitUse, ...]:
    """How much of each limit all choices take together, each limit once."""
    found: dict[str, LimitUse] = {}
    for choice in choices:
        for limit in choice.rows.problem.limits:
            if limit.name not in found:
                others = [each for each in choices if each is not choice]
                found[limit.name] = _summed(limit, choice, others)
    return tuple(found.values())


def _summed(limit: NamedLimit, choice: Choice, others: Sequence[Choice]) -> LimitUse:
    alone = limit_use(limit, choice)
    more = _taken_frac(limit, choice.rows.problem, others)
    if not more:
        return alone
    frac = alone.used_frac + more
    period_s = choice.rows.problem.horizon.period_s
    return replace(
        alone,
        used=amount_text(limit, frac * limit.most, period_s),
        used_frac=frac,
        is_kept=frac <= 1 + 1e-6,
    )


def _taken_frac(limit: NamedLimit, owner: SelectionProblem, others: Sequence[Choice]) -> float:
    """Share of a limit that other choices take, whatever span they count it over."""
    return sum(_frac_of(limit, owner, choice) for choice in others)


def _frac_of(limit: NamedLimit, owner: SelectionProblem, choice: Choice) -> float:
    problem = choice.rows.problem
    same = next((each for each in problem.limits if each.name == limit.name), None)
    if same is not None:
        return _share(limit_used(problem, choice.selection, same), same.most)
    base = limit.name.split(" in period ")[0]
    if not choice.is_jobs or base not in _SPANS_S or _begins_later(limit):
        return 0.0
    return _share(_run_usd(choice, _SPANS_S[base]), _each_usd(limit, owner, _SPANS_S[base]))


def _share(used: float, most: float) -> float:
    return used / most if most > 0 else float(used > 0)


def _each_usd(limit: NamedLimit, owner: SelectionProblem, span_s: float) -> float:
    """The limit of one month or year, which the program counts over whole periods."""
    n_periods = len(limit.periods) or owner.horizon.shape[1]
    return limit.most * span_s / (owner.horizon.period_s * n_periods)


def _begins_later(limit: NamedLimit) -> bool:
    """The limit is of a period after the first; runs are held to begin now."""
    return bool(limit.periods) and 0 not in limit.periods


def _run_usd(choice: Choice, span_s: float) -> float:
    """The dearest month or year of a run; all of it, where it is shorter."""
    usd = sum(line.nominal_cents for line in choice.bill) / 100.0
    return usd * min(1.0, span_s / max(choice.span_s, 1e-9))


def _left_usd(before: Sequence[Choice], name: str, span_s: float) -> float | None:
    """USD of a month or year that services leave to runs; None: no such limit."""
    for choice in before:
        problem = choice.rows.problem
        for limit in problem.limits:
            if limit.name.split(" in period ")[0] == name and not _begins_later(limit):
                used = _share(limit_used(problem, choice.selection, limit), limit.most)
                return _each_usd(limit, problem, span_s) * max(0.0, 1.0 - used)
    return None


def _least_usd(rows: Rows, option: FleetOption, span_s: float) -> float:
    """The least that a run costs in its dearest month or year."""
    size = next(p.n_accelerators_per_node for p in rows.problem.pools if p.name == option.pool)
    prices = [t.usd_per_node_h for t in rows.problem.terms if t.pool == option.pool]
    need = option.need[0, 0]
    hours = float(rows.problem.horizon.hour_s[need > 0].sum()) / HOUR
    nodes = -(-int(need.max(initial=0)) // size)
    return nodes * min(prices, default=0.0) * min(hours, span_s / HOUR)
