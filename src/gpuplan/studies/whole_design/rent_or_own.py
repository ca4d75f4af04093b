"""Rent, own or both for each group of a plan, over the life of an owned server."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_offers
from gpuplan.cost.rent_or_own import npv_by_utilization, own_or_burst, rent_or_own
from gpuplan.cost.value import book_years, break_even, npv_range_usd
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.rates import NodeKind, NodeRate, PriceEvidence, RatePart
from gpuplan.domain.money.statement import OwnNode
from gpuplan.domain.money.worth import LoadBlock
from gpuplan.domain.plan.answer import ChosenPlan
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.system.designed import OwnInstead, RentOrOwn, ServerGroup
from gpuplan.domain.system.findings import note
from gpuplan.studies.market.owned import bought_nodes, bought_terms, site_power
from gpuplan.studies.planning.draw import at_ratio
from gpuplan.studies.power.node_draw import moved_w, node_watts
from gpuplan.studies.system_check.alternatives import boards, server_usd
from gpuplan.studies.system_check.placement import Remark
from gpuplan.studies.whole_design.statement import span_of
from gpuplan.units import HOURS_PER_MONTH, MONTH

SHARES = tuple(n / 20 for n in range(1, 21))  # utilizations of the chart


class Rent(NamedTuple):
    """The price of one accelerator by the hour, and who asks it."""

    usd_per_h: float
    name: str
    source: str


def rent_or_own_of(
    groups: tuple[ServerGroup, ...],
    scenario: Scenario,
    catalog: Catalog,
    *,
    plan: ChosenPlan,
    begins: str,
) -> Iterator[RentOrOwn | Remark]:
    """Each group rented, owned, and the best of both, over the life of an owned server."""
    for group in groups:
        if not _is_open(group, scenario):
            continue
        own, notes = own_node(scenario, catalog, group)
        rent = _rent(group, scenario, catalog)
        if own is None or rent is None:
            missing = "to buy" if own is None else "to rent"
            what = f"no price {missing} {group.accelerator} is known: "
            what += "renting and owning are not compared"
            fix = "give prices.hardware and prices.offers"
            yield note("price-unknown", group.server, what, fix)
            continue
        span_s = span_of(plan, group.workload)
        used, lifetime = _used_frac(group, own, scenario, span_s=span_s)
        compared = _compared(group, own, rent, used_frac=used, scenario=scenario)
        yield replace(compared, begins=begins)
        yield from notes
        yield lifetime


def _is_open(group: ServerGroup, scenario: Scenario) -> bool:
    """Whether there is a choice: not for existing servers, nor for an hour priced as owned."""
    if group.purchase == "existing" or not group.n_accelerators_per_node:
        return False
    return not group.is_own or bool(scenario.prices.hardware)


def _used_frac(
    group: ServerGroup, own: OwnNode, scenario: Scenario, *, span_s: float
) -> tuple[float, Assumption]:
    """The share of a server's life in which the group is needed: a run is over when it is done."""
    paid = 1.0 if group.is_own else min(1.0, group.paid_frac)
    work = scenario.workload(group.workload)
    is_run = work is not None and isinstance(work.work, Training)
    share = min(1.0, span_s / (own.life_months * MONTH)) if is_run else 1.0
    value = "as long as the server lives"
    if is_run and share < 1:
        value = f"{span_s / MONTH:.1f} of {own.life_months} months; then servers stand idle"
    what = f"how long {group.workload} needs its servers"
    why = "owning is compared with renting over a server's life"
    return paid * share, assume(what, value, why, "budget.depreciation_years")


def own_node(
    scenario: Scenario, catalog: Catalog, group: ServerGroup
) -> tuple[OwnNode | None, tuple[Assumption, ...]]:
    """The server that would be bought for the group: the smallest that is sold and holds it."""
    card = find_accelerator(group.accelerator, catalog).accelerator
    sold = sorted(boards(card))
    size = next((n for n in sold if n >= group.n_accelerators), sold[-1])
    if group.is_own:
        size = group.n_accelerators_per_node
    price, price_notes = server_usd(scenario, catalog, card, size)
    if price is None:
        return None, ()
    mean_w = moved_w(
        catalog, str(card.id), group.mean_w_per_node, n=group.n_accelerators_per_node, n_new=size
    )
    terms, notes = bought_terms(scenario, catalog, str(card.id), size, price=price, mean_w=mean_w)
    is_given = any(
        find_accelerator(p.accelerator, catalog).accelerator.id == card.id
        for p in scenario.prices.hardware
    )
    source = "user" if is_given else "street-prices"
    return OwnNode(
        node=NodeKind(name=f"{card.id} x{size}", accelerator=str(card.id), n_accelerators=size),
        purchase=terms.purchase,
        running=terms.running,
        life_months=max(1, round(terms.ownership.life_s / MONTH)),
        residual_frac=terms.ownership.residual_frac,
        evidence=PriceEvidence(source=source, is_weak=not is_given),
    ), (*price_notes, *notes, *site_power(scenario).assumptions)


def _rent(group: ServerGroup, scenario: Scenario, catalog: Catalog) -> Rent | None:
    """The group's own price; of a bought group the user's offer, else the cheapest published."""
    if not group.is_own:
        usd_per_h = group.price_usd_per_node_h / group.n_accelerators_per_node
        return Rent(usd_per_h, group.server, "the plan")
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


def _month(n_nodes: int, used_frac: float) -> list[LoadBlock]:
    """A month in which so many nodes are needed for this share of the hours."""
    return [
        LoadBlock(n_nodes=n_nodes, n_hours=HOURS_PER_MONTH * used_frac),
        LoadBlock(n_nodes=0, n_hours=HOURS_PER_MONTH * (1 - used_frac)),
    ]


def _compared(
    group: ServerGroup, own: OwnNode, rent: Rent, *, used_frac: float, scenario: Scenario
) -> RentOrOwn:
    n_own = ceil(group.n_accelerators / own.node.n_accelerators)
    # Renting pays for the accelerators that are needed, owning for whole servers.
    price = exactly(rent.usd_per_h * group.n_accelerators / n_own)
    rate = NodeRate(
        id=f"rent/{rent.name}",
        node=own.node,
        purchase="on_demand",
        price_usd_per_h=price,
        parts=(RatePart(name="rent", usd_per_h=price),),
        evidence=PriceEvidence(source=rent.source),
    )
    yearly = scenario.budget.discount_frac_per_year
    options = rent_or_own(_month(n_own, used_frac), own, rate, discount_frac_per_year=yearly)
    whole = [LoadBlock(n_nodes=n_own, n_hours=HOURS_PER_MONTH)]
    curves = npv_by_utilization(
        whole, own, rate, utilizations=SHARES, discount_frac_per_year=yearly
    )
    owned = next(option.statement for option in options if option.n_owned == n_own)
    return RentOrOwn(
        group=group,
        rent_from=f"{rent.name} ({rent.source})",
        options=options,
        used_frac=used_frac,
        break_even=break_even(
            owned,
            rent_usd_per_accelerator_h=rent.usd_per_h,
            n_accelerators=group.n_accelerators,
        ),
        shares=SHARES,
        curves=tuple(curves.items()),
        book=book_years(owned),
        npv_usd=tuple(npv_range_usd(option.statement) for option in options),
        begins="",
    )


def own_instead(
    groups: tuple[ServerGroup, ...], scenario: Scenario, catalog: Catalog
) -> Iterator[OwnInstead | Assumption]:
    """Rented servers against bought ones, where the user knows what hardware costs."""
    allowed = (*scenario.policy.purchases, "owned")
    asked = replace(scenario, policy=replace(scenario.policy, purchases=allowed))
    rates = {
        rate.node.accelerator: rate
        for rate in bought_nodes(asked, catalog, site_power(scenario))
        if isinstance(rate, NodeRate)
    }
    for group in groups:
        rate, n = rates.get(group.accelerator), group.n_accelerators_per_node
        if group.is_own or rate is None:
            continue
        each = _at_load(group, rate, catalog).usd_per_accelerator_h
        if each is None:
            continue
        best = own_or_burst(
            _month(group.n_nodes, min(1.0, group.paid_frac)),
            own_usd_per_node_h=each.mid * n,
            cloud_usd_per_node_h=group.price_usd_per_node_h,
        )
        rented_usd = group.price_usd_per_node_h / n
        yield OwnInstead(
            group=group,
            own_usd_per_accelerator_h=each,
            rent_usd_per_accelerator_h=rented_usd,
            best=best,
        )
        yield from rate.assumptions


def _at_load(group: ServerGroup, rate: NodeRate, catalog: Catalog) -> NodeRate:
    """The bought node with the draw of the load that the group carries."""
    name, n, n_new = group.accelerator, group.n_accelerators_per_node, rate.node.n_accelerators
    drawn = moved_w(catalog, name, group.mean_w_per_node, n=n, n_new=n_new)
    assumed = node_watts(catalog, name, n_new).mean_w
    return rate if drawn is None or not assumed else at_ratio(rate, drawn / assumed)
