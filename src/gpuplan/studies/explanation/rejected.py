"""Rejected candidates, near misses first, and why there is no plan where there is none."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import inf

from gpuplan.domain.model.precision import format_named
from gpuplan.domain.plan.answer import Rejected
from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.plan.selection import Conflict, SelectionProblem
from gpuplan.domain.plan.sizing import PriceOf, Sized, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.studies.market.offers import Market, rates_for
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.limits import amount_text
from gpuplan.units import HOURS_PER_MONTH, MONTH

# The later a test fails, the nearer the candidate came.
ORDER = (
    *("slo", "deadline", "accelerators", "e2e", "tpot", "ttft", "context", "memory", "cost"),
    *("price", "island", "layout", "precision", "software", "policy"),
)
N_SHOWN = 5
BUDGET = "budget.usd_per_month"
GIVE_A_PRICE = "give a price under prices.offers"


def rejected_of(sizing: Sizing, market: Market) -> list[Rejected]:
    """Every rejected candidate; those that policy forbids by accelerator."""
    rows = [
        *_unpriced(sizing, market),
        *(
            (r.candidate.name, r.constraint, r.reason, r.relaxation)
            for r in nearest_first(sizing.rejected)
            if r.constraint != "policy"
        ),
        *(
            (s.candidate.name, "price", s.why, GIVE_A_PRICE)
            if s.cost_least_usd_per_h is None
            else (s.candidate.name, "cost", s.why, "a lower price")
            for s in sizing.skipped
        ),
        *_forbidden(sizing),
    ]
    return [
        Rejected(
            candidate=candidate,
            workload=sizing.workload,
            constraint=constraint,
            reason=reason,
            relaxation=relaxation,
        )
        for candidate, constraint, reason, relaxation in sorted(
            rows, key=lambda row: ORDER.index(row[1])
        )
    ]


def nearest_first(rejected: Iterable[Rejection]) -> list[Rejection]:
    """Those that miss by least first; where no distance is known the order stays."""
    return sorted(rejected, key=lambda r: inf if r.gap_ratio is None else r.gap_ratio)


def _unpriced(sizing: Sizing, market: Market) -> Iterator[tuple[str, str, str, str]]:
    """Feasible fleets that nobody sells at a price that counts."""
    fleets = [fleet.candidate for fleet in (*sizing.sized, *sizing.compared)]
    runs = [job.candidate for job in sizing.jobs]
    # Runs that were made fleets of stand in both.
    for candidate in dict.fromkeys(fleets + runs):
        if next(rates_for(market.ways, candidate), None) is None:
            refused = [r for r in market.refused if r.node.accelerator == candidate.accelerator]
            why = f": {refused[0].what}" if refused else " among the offers"
            yield candidate.name, "price", f"feasible, but there is no price{why}", GIVE_A_PRICE


def _forbidden(sizing: Sizing) -> Iterator[tuple[str, str, str, str]]:
    ruled_out = [r for r in sizing.rejected if r.constraint == "policy"]

    def key(found: Rejection) -> tuple[str, str]:
        return str(found.candidate.accelerator), found.reason

    for (accelerator, reason), group in groupby(sorted(ruled_out, key=key), key=key):
        first, *others = group
        name = f"{accelerator}, any layout" if others else first.candidate.name
        yield name, "policy", reason, first.relaxation


def without_fleet(sizings: Sequence[Sizing]) -> list[Sizing]:
    """The workloads for which no candidate is feasible."""
    return [sizing for sizing in sizings if not sizing.sized and not sizing.jobs]


def infeasible_lines(lost: Sequence[Sizing]) -> tuple[str, ...]:
    """For each workload without a fleet: the commonest reasons, and what would help."""
    return tuple(line for sizing in lost for line in _infeasible(sizing))


def _infeasible(sizing: Sizing) -> Iterator[str]:
    counts = Counter(r.constraint for r in sizing.rejected)
    unpriced = sum(s.cost_least_usd_per_h is None for s in sizing.skipped)
    n = len(sizing.rejected) + len(sizing.skipped)
    why = ", ".join(f"{count} by {name}" for name, count in counts.most_common(N_SHOWN))
    yield f"{sizing.workload}: none of {n} candidates is feasible (rejected: {why or 'no price'})"
    if sizing.compared:
        yield _beside(sizing.compared[0])
    nearest: dict[str, Rejection] = {}
    # Narrower weights are the user's call: as published comes first.
    nearer = nearest_first(reversed(sizing.rejected))
    for rejection in sorted(nearer, key=lambda r: r.candidate.is_quantized_below):
        if rejection.relaxation:
            nearest.setdefault(rejection.constraint, rejection)
    # What the user rules out is no change that helps, as long as there is another.
    known = [name for name in sorted(nearest, key=ORDER.index) if name != "policy"] or [*nearest]
    for constraint in known[:N_SHOWN]:
        found = nearest[constraint]
        # What holds for all alike is no matter of one of them.
        name = "" if constraint == "context" else f"{found.candidate.name}: "
        yield f"{name}{found.reason}; {found.relaxation}"
    if unpriced:
        fix = "give prices.offers"
        yield f"{sizing.workload}: {unpriced} candidates have no price; {fix}"


def _beside(found: Sized) -> str:
    """The cheapest fleet that was sized but may not be chosen unasked, and how to ask for it."""
    candidate = found.candidate
    fleet = f"{found.n_accelerators} x {candidate.accelerator} {candidate.layout.name}"
    if candidate.is_quantized_below:
        fix = f"name it (workloads[].precision: {candidate.precision}) and check the quality"
        return f"{fleet} {candidate.precision}: meets the SLOs; {fix}"
    fix = "name it (policy.accelerators.allowed), or lower policy.min_probability_frac"
    return f"{fleet} {candidate.precision}: may do, but is not sure enough; {fix}"


def narrower_lines(
    found: Conflict, problem: SelectionProblem, sizings: Sequence[Sizing], price: PriceOf
) -> Iterator[str]:
    """A fleet of narrower weights that a budget per month would pay for, where there is one."""
    if found.limits != (BUDGET,) or len(sizings) != 1:
        return
    spend = next(limit.most for limit in problem.limits if limit.name == BUDGET)
    most = spend / (problem.horizon.period_s / MONTH)
    hourly = [(each, price(each.candidate, each.n_replicas)) for each in sizings[0].compared]
    retained = [
        (each, usd * HOURS_PER_MONTH)
        for each, usd in hourly
        if each.candidate.is_quantized_below and usd and usd * HOURS_PER_MONTH <= most
    ]
    # The widest weights first: the least that quality is asked to give.
    for fleet, usd in sorted(retained, key=lambda row: (-_width(row[0]), row[1]))[:1]:
        yield f"{_beside(fleet)}; ${usd:,.0f}/month"


def _width(fleet: Sized) -> float:
    form = format_named(fleet.candidate.precision)
    return form.element_bytes if form else 0.0


def conflict_lines(
    found: Conflict, problem: SelectionProblem, whole: SelectionProblem
) -> Iterator[str]:
    """Each limit of the conflict, with the least that would be enough for all together.

    The whole problem has the limits as they were given, before others took their part.
    """
    if found.without_limits:
        yield found.without_limits
        return
    limits = {limit.name: limit for limit in problem.limits}
    others = {each.name: each.most - limits[each.name].most for each in whole.limits}
    together = "cannot be met together" if len(found.limits) > 1 else "cannot be met"
    yield f"{', '.join(found.limits)}: {together}"
    for alone in found.alone:
        for name, most, needed in zip(alone.limits, alone.most, alone.needed, strict=True):
            gap, enough, now = (
                amount_text(limits[name], amount, problem.horizon.period_s)
                for amount in (needed - most, needed + others[name], most + others[name])
            )
            yield f"{name}: {gap} short; {enough} would be enough (now {now})"


def unsettled_lines(rounds: range) -> tuple[str, ...]:
    """The replay violates an SLO however many replicas were added."""
    return (f"an SLO is still violated after {len(rounds)} rounds of adding replicas",)


def first_served_lines(
    scenario: Scenario, names: Sequence[str], groups: Sequence[SolvedGroup]
) -> tuple[str, ...]:
    """Workloads of higher priority with what they would get and cost; the others have to wait."""
    fleets = ", ".join(o.name for group in groups for o in group.choice.selection.chosen)
    usd = sum(group.choice.usd_per_month for group in groups)
    late = [work for work in scenario.workloads if work.name not in names]
    waiting = ", ".join(f"{work.name} (priority {work.priority})" for work in late)
    return (
        f"by priority {', '.join(names)} would be served first: {fleets}, ${usd:,.0f}/month",
        f"{waiting}: no room is left for it within the limits above",
    )
