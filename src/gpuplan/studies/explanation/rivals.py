"""Why not the priciest, the cheapest per hour, the largest, or what simpler reasoning would buy.

Work per dollar and joule of each accelerator, and what of a plan touches output quality.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId
from gpuplan.domain.model.precision import format_named, quality_risk
from gpuplan.domain.plan.answer import ChosenPlan, PlannedPool, WhyNot
from gpuplan.domain.plan.comparison import TradeRow
from gpuplan.domain.plan.sizing import DemandProfile, Sizing
from gpuplan.studies.explanation.comparison import FleetComparison, row_name, row_usd
from gpuplan.studies.explanation.rejected import ORDER
from gpuplan.studies.explanation.rows import PricedRow
from gpuplan.studies.market.offers import Market
from gpuplan.studies.planning.chosen import Choice, provisioned_in
from gpuplan.studies.planning.curves import cost_usd_per_month
from gpuplan.units import GIB, HOUR, HOURS_PER_MONTH

ACCURACY = (
    "hardware does not change accuracy: the same weights in the same precision give outputs of the "
    "same quality on any accelerator, faster or slower"
)


UNLISTED = {
    "reserved": "no price list of these providers has a reserved price of it: ask for "
    "terms of 1 and 3 years, and enter them under prices.offers with purchase: reserved",
    "spot": "no spot price of this accelerator is published here",
}


class Rival(NamedTuple):
    """An accelerator that can be paid for and is not forbidden."""

    kind: str
    usd_per_h: float  # of one accelerator, at its cheapest
    memory_bytes: float
    fleet: str
    usd_per_month: float | None  # None: it cannot do the work
    why: str


def rival_answers(fleets: FleetComparison, market: Market, catalog: Catalog) -> Iterator[WhyNot]:
    """Answers to the three questions that everyone asks; none where there is no rival."""
    found = [*_rivals(fleets, market, catalog)]
    if len(found) < 2:
        return
    requested = (
        ("the priciest accelerator", max(found, key=lambda r: (r.usd_per_h, r.kind))),
        ("the cheapest per hour", min(found, key=lambda r: (r.usd_per_h, r.kind))),
        ("the largest by memory", max(found, key=lambda r: (r.memory_bytes, r.kind))),
    )
    for question, rival in requested:
        is_chosen = rival.kind == fleets.chosen.kind
        usd = None if is_chosen else rival.usd_per_month
        yield WhyNot(
            question=f"{question}, for {fleets.sizing.workload}",
            fleet=rival.fleet,
            answer="it was chosen" if is_chosen else rival.why,
            extra_usd_per_month=None if usd is None else usd - fleets.chosen_usd,
        )


def purchase_answers(fleets: FleetComparison, market: Market) -> Iterator[WhyNot]:
    """Why a purchase option is not planned with: nobody publishes its price, or it may vanish."""
    kind = fleets.chosen.kind
    known = {r.purchase for r in (*market.rates, *market.shown) if r.node.accelerator == kind}
    for purchase, why in UNLISTED.items():
        if purchase not in known:
            yield WhyNot(
                question=f"{purchase} capacity, for {fleets.sizing.workload}",
                fleet=fleets.fleet_name(fleets.chosen),
                answer=why,
                extra_usd_per_month=None,
            )


def _rivals(fleets: FleetComparison, market: Market, catalog: Catalog) -> Iterator[Rival]:
    prices: dict[str, float] = {}
    for rate in market.rates:
        each = rate.price_usd_per_h.mid / max(1, rate.node.n_accelerators)
        kind = rate.node.accelerator
        prices[kind] = min(each, prices.get(kind, each))
    priced: dict[str, tuple[str, float]] = {}
    for row in [*([fleets.row] if fleets.row else []), *fleets.rivals]:
        priced.setdefault(row.accelerator, (row_name(row), row_usd(row)))
    for kind, usd_per_h in prices.items():
        card = catalog.accelerators.get(AcceleratorId(kind))
        if kind in priced:
            fleet, usd = priced[kind]
            state: tuple[str, float | None, str] | None = (
                fleet,
                usd,
                f"; {fleet} would do the same work",
            )
        else:
            state = _bounded(fleets.sizing, kind) or _rejected(fleets.sizing, kind)
        if card is not None and state is not None:
            # A processor's memory is the host's: it is no large accelerator.
            memory = 0.0 if card.is_cpu else card.memory.marketed_bytes
            size = "" if card.is_cpu else f"{memory / GIB:.0f} GiB; "
            fleet, usd_per_month, why = state
            text = f"{size}${usd_per_h:,.2f}/h each{why}"
            yield Rival(kind, usd_per_h, memory, fleet, usd_per_month, text)


def _bounded(sizing: Sizing, kind: str) -> tuple[str, float | None, str] | None:
    """Fleet, least cost and reason of an accelerator that was too dear to be sized."""
    bounds = [
        (skipped.cost_least_usd_per_h, skipped)
        for skipped in sizing.skipped
        if skipped.candidate.accelerator == kind and skipped.cost_least_usd_per_h is not None
    ]
    if not bounds:
        return None
    least, skipped = min(bounds, key=lambda pair: pair[0])
    n = skipped.candidate.n_accelerators_for(skipped.n_replicas_least)
    why = f"; at least {n} would be needed, billed in whole nodes: the cost is a lower bound"
    return f"{n}+ x {kind}", least * HOURS_PER_MONTH, why


def _rejected(sizing: Sizing, kind: str) -> tuple[str, float | None, str] | None:
    """The nearest miss of an accelerator; None where policy forbids it or nothing was proposed."""
    mine = [r for r in sizing.rejected if r.candidate.accelerator == kind]
    if not mine or any(r.constraint == "policy" for r in mine):
        return None
    nearest = min(mine, key=lambda r: ORDER.index(r.constraint))
    return nearest.candidate.name, None, f", but rejected: {nearest.reason}"


def naive_choices(fleets: FleetComparison) -> Iterator[WhyNot]:
    """Rate over capacity, and the dearest accelerator: what they cost, and what they violate."""
    yield from _by_throughput(fleets)
    counted = [row for row in fleets.rivals if row.n_accelerators]  # CPU nodes have none
    dearest = max(counted, key=lambda row: row_usd(row) / row.n_accelerators, default=None)
    mine = fleets.row
    if dearest is not None and mine is not None and dearest.accelerator != mine.accelerator:
        yield WhyNot(
            question="buy the priciest accelerator",
            fleet=row_name(dearest),
            answer="does the same work; the extra cost buys nothing that was asked for",
            extra_usd_per_month=row_usd(dearest) - fleets.chosen_usd,
        )


def _by_throughput(fleets: FleetComparison) -> Iterator[WhyNot]:
    sized, demand = fleets.sized, fleets.demand
    share = sized.utilization.peak_frac
    if share is None:
        return
    n = max(1, ceil(share * sized.n_serving - 1e-9))
    bare = replace(fleets.chosen, n_load_per_replica=demand.peak_of(0, 0) / n, n_spare=0)
    if n < sized.n_serving:
        load = share * sized.n_serving / n
        answer = f"runs at {load:.0%} utilization and violates the SLOs"
    elif n < sized.n_replicas:
        answer = f"meets the SLOs only while nothing fails; {sized.reserve.why}"
    else:
        answer = "is enough here: SLOs and failures need no more"
    yield WhyNot(
        question="load over throughput, rounded up",
        fleet=f"{n} replica{'s' if n > 1 else ''} instead of {sized.n_replicas}",
        answer=answer,
        extra_usd_per_month=cost_usd_per_month(bare, demand)
        - cost_usd_per_month(fleets.chosen, demand),
    )


def trade_rows(
    rows: Sequence[PricedRow], demand: DemandProfile, catalog: Catalog
) -> Iterator[TradeRow]:
    """One row for each accelerator and precision with a fleet and a capacity."""
    for priced in rows:
        card = catalog.accelerators.get(AcceleratorId(priced.row.accelerator))
        if priced.choice is not None and card is not None:
            yield from _row(priced, priced.choice, demand, card)


def _row(
    priced: PricedRow, choice: Choice, demand: DemandProfile, card: Accelerator
) -> Iterator[TradeRow]:
    row, sized = priced.row, priced.sized
    if sized is None or sized.capacity_per_s is None:
        return
    has_tokens = demand.unit == "requests" and demand.output_tokens > 0
    each = demand.output_tokens if has_tokens else 1.0  # work of one request
    per_s = sized.capacity_per_s.value * each / max(1, sized.candidate.n_accelerators_for(1))
    usd_per_h = _usd_per_h(choice, row.n_accelerators > 0)
    peaks, power_w = card.peak_flop_per_s, row.evidence.power_w
    yield TradeRow(
        workload=row.workload,
        accelerator=row.accelerator,
        precision=row.precision,
        unit="output tokens" if has_tokens else demand.unit,
        n_work_per_s=per_s,
        n_work_per_usd=per_s * HOUR / usd_per_h if usd_per_h else None,
        n_work_per_j=demand.peak_of(0, 0) * each / power_w if power_w else None,
        usd_per_h=usd_per_h,
        memory_bytes=card.memory.visible_bytes,
        memory_bytes_per_s=card.memory.bytes_per_s,
        peak_flop_per_s=max(peaks.get("bf16", 0.0), peaks.get("fp16", 0.0)),
    )


def _usd_per_h(choice: Choice, is_accelerated: bool) -> float | None:
    """Of one accelerator, or of one node without any, as the fleet pays for it on average."""
    pool = choice.pool(choice.selection.chosen[0].pool)
    n_nodes, usd = 0, 0.0
    for provisioned in provisioned_in(choice, pool.name):
        rate, n = choice.table.rates.get(provisioned.terms), int(provisioned.n_nodes[0, 0].max())
        price = rate.price_usd_per_h.mid if rate else pool.existing_usd_per_node_h
        n_nodes, usd = n_nodes + n, usd + n * price
    each = pool.n_accelerators_per_node if is_accelerated else 1
    return usd / n_nodes / each if n_nodes and usd else None


def quality_lines(plan: ChosenPlan) -> tuple[str, ...]:
    """What hardware leaves alone, and each choice of the plan that touches quality."""
    return (ACCURACY, *(line for pool in plan.pools if (line := _quality(pool))))


def _quality(pool: PlannedPool) -> str:
    form = format_named(pool.precision)
    risk = quality_risk(form) if form else ""
    return f"{pool.workload} in {pool.precision}: {risk}" if risk else ""
