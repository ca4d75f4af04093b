"""Rent, buy or both for each group of a plan, in: groups, prices; out: three ways over life."""

from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_offers
from gpuplan.cost.rent_or_own import npv_by_utilization, rent_or_own
from gpuplan.cost.value import book_years, break_even, npv_range_usd
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.rates import NodeKind, NodeRate, PriceEvidence, RatePart
from gpuplan.domain.money.statement import OwnNode
from gpuplan.domain.money.worth import LoadBlock
from gpuplan.domain.plan.answer import ChosenPlan
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.system.designed import MachineGroup, WaysCompared
from gpuplan.domain.system.findings import Finding
from gpuplan.studies.market.owned import bought_terms, place_of
from gpuplan.studies.system_check.alternatives import boards, machine_usd
from gpuplan.studies.whole_design.money import span_of
from gpuplan.units import HOURS_PER_MONTH, MONTH

# Shares of the hours that are paid now, for the chart.
SHARES = tuple(n / 20 for n in range(1, 21))


class Rent(NamedTuple):
    """What one accelerator costs by the hour, and who asks it."""

    usd_per_h: float
    name: str
    source: str


class Ways(NamedTuple):
    """Comparisons, what stood in the way of others, and what was assumed."""

    found: tuple[WaysCompared, ...]
    findings: tuple[Finding, ...]
    assumptions: tuple[Assumption, ...]


def ways_of(
    groups: tuple[MachineGroup, ...],
    scenario: Scenario,
    catalog: Catalog,
    *,
    plan: ChosenPlan,
    begins: str,
) -> Ways:
    """Each group rented, owned, and the best of both, over the life of an owned machine."""
    found: list[WaysCompared] = []
    missing: list[Finding] = []
    told: list[Assumption] = []
    for group in groups:
        if not _is_open(group, scenario):
            continue
        own, notes = own_node(scenario, catalog, group)
        rent = _rent(group, scenario, catalog)
        if own is None or rent is None:
            missing.append(_missing(group, "to buy" if own is None else "to rent"))
            continue
        span_s = span_of(plan, scenario.workload(group.workload))
        used, note = _used_frac(group, own, scenario, span_s=span_s)
        compared = _compared(group, own, rent, used_frac=used, scenario=scenario)
        found.append(replace(compared, begins=begins))
        told += [*notes, note]
    return Ways(tuple(found), tuple(missing), tuple(dict.fromkeys(told)))


def _is_open(group: MachineGroup, scenario: Scenario) -> bool:
    """Whether there is a choice: not for what stands there, nor for an hour priced as owned."""
    if group.purchase == "existing" or not group.n_accelerators_per_node:
        return False
    return not group.is_own or bool(scenario.prices.hardware)


def _used_frac(
    group: MachineGroup, own: OwnNode, scenario: Scenario, *, span_s: float
) -> tuple[float, Assumption]:
    """Share of a machine's life in which the group is needed: a run is over when it is done."""
    paid = 1.0 if group.is_own else min(1.0, group.paid_frac)
    work = scenario.workload(group.workload)
    life_s = own.life_months * MONTH
    is_run = work is not None and isinstance(work.work, Training)
    share = min(1.0, span_s / life_s) if is_run else 1.0
    value = "as long as the machine lives"
    if is_run and share < 1:
        value = f"{span_s / MONTH:.1f} of {own.life_months} months; then machines stand idle"
    return paid * share, Assumption(
        what=f"how long {group.workload} needs its machines",
        value=value,
        why="owning is compared with renting over a machine's life",
        change="budget.depreciation_years",
    )


def own_node(
    scenario: Scenario, catalog: Catalog, group: MachineGroup
) -> tuple[OwnNode | None, tuple[Assumption, ...]]:
    """The machine that would be bought for the group: the smallest that is sold and holds it."""
    card = find_accelerator(group.accelerator, catalog).accelerator
    sold = sorted(boards(card))
    size = next((n for n in sold if n >= group.n_accelerators), sold[-1])
    if group.is_own:
        size = group.n_accelerators_per_node
    price, told = machine_usd(scenario, catalog, card, size)
    if price is None:
        return None, ()
    terms, notes = bought_terms(scenario, catalog, str(card.id), size, price=price)
    given = any(
        find_accelerator(p.accelerator, catalog).accelerator.id == card.id
        for p in scenario.prices.hardware
    )
    return OwnNode(
        node=NodeKind(name=f"{card.id} x{size}", accelerator=str(card.id), n_accelerators=size),
        purchase=terms.purchase,
        running=terms.running,
        life_months=max(1, round(terms.ownership.life_s / MONTH)),
        residual_frac=terms.ownership.residual_frac,
        evidence=PriceEvidence(source="user" if given else "street-prices", is_weak=not given),
    ), (*told, *notes, *place_of(scenario).assumptions)


def _rent(group: MachineGroup, scenario: Scenario, catalog: Catalog) -> Rent | None:
    """The group's own price; of a bought group the user's offer, else the cheapest published."""
    n = group.n_accelerators_per_node
    if not group.is_own:
        return Rent(group.price_usd_per_node_h / n, group.machine, "the plan")
    mine = [
        Rent(o.price_usd_per_h.mid / o.n_accelerators_per_node, o.name, "user")
        for o in scenario.prices.offers
        if o.purchase == "on_demand"
        and find_accelerator(o.accelerator, catalog).accelerator.id == group.accelerator
    ]
    published = [
        Rent(o.usd_per_h / o.n_accelerators, f"{o.cloud} {o.instance}", str(o.price_date))
        for o in read_offers()
        if o.accelerator == group.accelerator and o.n_accelerators and o.usd_per_h
    ]
    return min(mine or published, key=lambda rent: rent.usd_per_h, default=None)


def _compared(
    group: MachineGroup, own: OwnNode, rent: Rent, *, used_frac: float, scenario: Scenario
) -> WaysCompared:
    n_own = ceil(group.n_accelerators / own.node.n_accelerators)
    # Renting pays for the accelerators that are needed, owning for whole machines.
    each = rent.usd_per_h * group.n_accelerators / n_own
    rate = _rate(own.node, rent, each)
    blocks = [
        LoadBlock(n_nodes=n_own, n_hours=HOURS_PER_MONTH * used_frac),
        LoadBlock(n_nodes=0, n_hours=HOURS_PER_MONTH * (1 - used_frac)),
    ]
    yearly = scenario.budget.discount_frac_per_year
    ways = rent_or_own(blocks, own, rate, discount_frac_per_year=yearly)
    whole = [LoadBlock(n_nodes=n_own, n_hours=HOURS_PER_MONTH)]
    lines = npv_by_utilization(whole, own, rate, utilizations=SHARES, discount_frac_per_year=yearly)
    owned = next(way for way in ways if way.n_owned == n_own)
    return WaysCompared(
        group=group,
        rent_from=f"{rent.name} ({rent.source})",
        ways=ways,
        used_frac=used_frac,
        break_even=break_even(
            owned.statement,
            rent_usd_per_accelerator_h=rent.usd_per_h,
            n_accelerators=group.n_accelerators,
        ),
        shares=SHARES,
        curves=tuple(lines.items()),
        book=book_years(owned.statement),
        npv_usd=tuple(npv_range_usd(way.statement) for way in ways),
        begins="",
    )


def _rate(node: NodeKind, rent: Rent, usd_per_h: float) -> NodeRate:
    price = exactly(usd_per_h)
    return NodeRate(
        id=f"rent/{rent.name}",
        node=node,
        purchase="on_demand",
        price_usd_per_h=price,
        parts=(RatePart(name="rent", usd_per_h=price),),
        evidence=PriceEvidence(source=rent.source),
    )


def _missing(group: MachineGroup, what: str) -> Finding:
    return Finding(
        severity="note",
        rule="price-unknown",
        where=group.machine,
        what=f"no price {what} {group.accelerator} is known: rent and purchase are not compared",
        fix="give prices.hardware and prices.offers",
    )
