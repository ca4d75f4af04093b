"""What a site costs whatever stands there, in: a problem with such a cost; out: the best choice.

Staff is paid as soon as one node of one's own runs, and not again for the next: a choice with such
nodes is held against the best one without any. Nodes that stand idle are no part of a bill.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from gpuplan.domain.plan.selection import BillLine, Selection, SelectionProblem
from gpuplan.selection.result.bill import running_cents
from gpuplan.units import HOUR

Best = Callable[[SelectionProblem], Selection | None]


def best_with_site(problem: SelectionProblem, best: Best) -> Selection | None:
    """The best choice, its site counted once where any of its nodes is one's own."""
    free = _within_what_is_left(problem)
    own = best(free)
    found = [] if own is None else [_with_lines(problem, own)]
    if own is None or _is_on_site(problem, own):
        # Nodes that exist are kept whatever is chosen: no reason to rent beside them.
        rented = None if _has_existing(problem) else best(_rented_alone(problem))
        found += [] if rented is None else [rented]
    return min(found, key=lambda each: (each.proof.value, each.worth_cents), default=None)


def _site_usd(problem: SelectionProblem) -> float:
    """What the site costs in one period."""
    return problem.site_usd_per_h * problem.horizon.period_s / HOUR


def _within_what_is_left(problem: SelectionProblem) -> SelectionProblem:
    """The problem without the site's cost, and with that much less to spend."""
    n_periods, each = problem.horizon.shape[1], _site_usd(problem)
    limits = tuple(
        replace(limit, most=limit.most - each * (len(limit.periods) or n_periods))
        if limit.kind == "spend" and not limit.pools and not limit.purchases
        else limit
        for limit in problem.limits
    )
    return replace(problem, site_usd_per_h=0.0, limits=limits)


def _rented_alone(problem: SelectionProblem) -> SelectionProblem:
    terms = tuple(given for given in problem.terms if not given.is_on_site)
    return replace(problem, site_usd_per_h=0.0, terms=terms)


def _has_existing(problem: SelectionProblem) -> bool:
    return any(pool.n_nodes_existing for pool in problem.pools)


def _is_on_site(problem: SelectionProblem, found: Selection) -> bool:
    here = {given.name for given in problem.terms if given.is_on_site}
    runs_own = any(
        provisioned.terms == "existing" and provisioned.n_nodes.any()
        for provisioned in found.provisioned
    )
    return runs_own or any(order.terms in here for order in found.orders)


def _with_lines(problem: SelectionProblem, found: Selection) -> Selection:
    """The choice with the site's cost in its bill, and in the proof of what it costs."""
    if not _is_on_site(problem, found):
        return found
    lines = tuple(_lines(problem))
    worth = sum(line.worth_cents for line in lines) / 100.0
    proof = found.proof
    if proof.objective == "cost":
        proof = replace(proof, value=proof.value + worth, bound=proof.bound + worth)
    return replace(found, bill=(*found.bill, *lines), proof=proof)


def _lines(problem: SelectionProblem) -> Iterator[BillLine]:
    each, discounts = _site_usd(problem), problem.horizon.running_discount_frac
    nominal = running_cents([each] * len(discounts))
    worth = running_cents([each * float(share) for share in discounts])
    for period, (cents, today) in enumerate(zip(nominal, worth, strict=True)):
        yield BillLine(
            kind="staff",
            pool="",
            terms="site",
            period=period,
            scenario=None,
            nominal_cents=cents,
            worth_cents=today,
        )
