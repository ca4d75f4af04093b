"""Rent, own or both for each group of a plan, over the life of an owned server."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_offers
from gpuplan.cost.rent_or_own import npv_by_utilization, own_or_burst, rent_or_own
from gpuplan.cost.statement import book_years, break_even, evidence_text, npv_range_usd
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.rates import NodeKind, NodeRate, PriceEvidence, RatePart
from gpuplan.domain.money.statement import OwnNode
from gpuplan.domain.money.worth import LoadBlock
from gpuplan.domain.plan.answer import ChosenPlan
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.terms import Purchase
from gpuplan.domain.system.designed import OwnInstead, RentOrOwn, ServerGroup
from gpuplan.domain.system.findings import note
from gpuplan.studies.market.offers import Market, market_of
from gpuplan.studies.market.owned import bought_terms, site_power
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
    market: Market,
    begins: str,
) -> Iterator[RentOrOwn | Remark]:
    """Each group rented, owned, and the best of both, over the time a server is held."""
    for group in groups:
        if not _is_open(group, market):
            continue
        own, notes = own_node(scenario, catalog, group)
        rent = _rent(group, market)
        if own is None or rent is None:
            missing = "to buy" if own is None else "to rent"
            what = f"no price {missing} {group.accelerator} is known: "
            what += "renting and owning are not compared"
            fix = "give prices.hardware and prices.offers"
            yield note("price-unknown", group.server, what, fix)
            continue
        if not group.is_own and any(each.is_own for each in groups):
            own = replace(own, staff_usd_per_year=0.0)  # it is there for the others already
        span_s = span_of(plan, group.workload)
        used, lifetime = _used_frac(group, own, scenario, span_s=span_s)
        compared = _compared(group, own, rent, used_frac=used, scenario=scenario)
        yield replace(compared, begins=begins)
        yield from notes
        yield lifetime


def _is_open(group: ServerGroup, market: Market) -> bool:
    """Whether there is a choice: not for existing servers, nor where only an hour has a price."""
    if group.purchase == "existing" or not group.n_accelerators_per_node:
        return False
    rate = _own_rate(market, group.accelerator)
    return not group.is_own if rate is None else rate.capital is not None


def _used_frac(
    group: ServerGroup, own: OwnNode, scenario: Scenario, *, span_s: float
) -> tuple[float, Assumption]:
    """The share of the time a server is held in which it is needed: a run ends when it is done."""
    paid = 1.0 if group.is_own else min(1.0, group.paid_frac)
    work = scenario.workload(group.workload)
    is_run = work is not None and work.has_end and work.interval_s is None
    share = min(1.0, span_s / (own.life_months * MONTH)) if is_run else 1.0
    value = f"all {own.life_months} months that a server is owned"
    if is_run and share < 1:
        value = f"{span_s / MONTH:.1f} of {own.life_months} months; then servers stand idle"
    what = f"how long {group.workload} needs its servers"
    why = "owning is compared with renting over the life of a server"
    return paid * share, assume(what, value, why, "budget.horizon_months")


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
    street = catalog.node_price(str(card.id), size)
    source = "user" if is_given or street is None else street.source
    return OwnNode(
        node=NodeKind(name=f"{card.id} x{size}", accelerator=str(card.id), n_accelerators=size),
        purchase=terms.purchase,
        running=terms.running,
        life_months=max(1, round(terms.ownership.life_s / MONTH)),
        residual_frac=terms.ownership.residual_frac,
        evidence=PriceEvidence(source=source, is_weak=not is_given),
        staff_usd_per_year=scenario.prices.staff_usd_per_year or 0.0,
    ), (*price_notes, *notes, *site_power(scenario).assumptions)


def design_market(scenario: Scenario, catalog: Catalog, today: date) -> Market:
    """What a plan of that day could have rented or bought, nodes of one's own with it."""
    allowed: tuple[Purchase, ...] = (*scenario.policy.purchases, "owned", "on_demand")
    policy = replace(scenario.policy, purchases=tuple(dict.fromkeys(allowed)))
    requested = replace(scenario, policy=policy)
    return market_of(requested, catalog, offers=read_offers(), today=today)


def _rent(group: ServerGroup, market: Market) -> Rent | None:
    """The group's own price; of a bought group the cheapest that a plan could have rented."""
    if not group.is_own:
        usd_per_h = group.price_usd_per_node_h / group.n_accelerators_per_node
        return Rent(usd_per_h, group.server, "the plan")
    found = [
        Rent(rate.price_usd_per_h.mid / rate.node.n_accelerators, _name(rate), evidence_text(rate))
        for rate in market.rates
        if rate.purchase == "on_demand" and rate.node.accelerator == group.accelerator
    ]
    return min(found, key=lambda rent: rent.usd_per_h, default=None)


def _name(rate: NodeRate) -> str:
    return " ".join(filter(None, (rate.node.cloud, rate.node.name)))


def _own_rate(market: Market, accelerator: str) -> NodeRate | None:
    """The cheapest hour of a node of one's own: as the user prices it, or bought."""
    mine = [r for r in market.rates if r.purchase == "owned" and r.node.accelerator == accelerator]
    return min(
        mine, key=lambda r: r.price_usd_per_h.mid / max(1, r.node.n_accelerators), default=None
    )


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
    groups: tuple[ServerGroup, ...], market: Market, catalog: Catalog
) -> Iterator[OwnInstead | Assumption]:
    """Rented servers against owned ones, where the user knows what these cost."""
    for group in groups:
        rate, n = _own_rate(market, group.accelerator), group.n_accelerators_per_node
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
