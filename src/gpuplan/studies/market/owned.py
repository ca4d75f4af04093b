"""Nodes of one's own, in: what stands there and what hardware costs; out: rates with causes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.nodes import node_sizes
from gpuplan.cost.defaults import colocation_of, purchase_of, support_of
from gpuplan.cost.owned import hardware_price, owned_rate, standing_rate
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.money.rates import (
    Capital,
    NodeKind,
    NodePurchase,
    NodeRate,
    NodeRunning,
    Ownership,
    PriceEvidence,
    PriceRefusal,
)
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes
from gpuplan.domain.scenario.terms import HardwarePrice
from gpuplan.studies.naming import allowed_ids
from gpuplan.studies.power.carbon import CARBON_KEY, EnergyPlace, place_at
from gpuplan.studies.power.node_draw import NodeWatts, node_watts
from gpuplan.units import HOURS_PER_YEAR, MONTH, YEAR

# Assumptions, each told where it is used.
LIFE_S = 4 * YEAR
RESIDUAL_FRAC = Range(low=0.0, mid=0.1, high=0.25)


class BoughtTerms(NamedTuple):
    """All that buying one node and running it takes."""

    purchase: NodePurchase
    running: NodeRunning
    ownership: Ownership


class Standing(NamedTuple):
    """Nodes that are there already, with what running one costs."""

    rate: NodeRate
    n_nodes: int
    mean_w: float = 0.0  # of one node, that its energy is reckoned with


def site_power(scenario: Scenario) -> EnergyPlace:
    """What power costs where owned nodes stand, and what that rests on."""
    site = scenario.site
    if site is not None and None not in (site.pue_ratio, site.electricity_usd_per_j):
        site = replace(site, region=None)  # nothing is asked of it, so it need not be known
    place = place_at(None, site=site)
    return place._replace(assumptions=place.without(CARBON_KEY))


def standing_nodes(scenario: Scenario, catalog: Catalog, place: EnergyPlace) -> Iterator[Standing]:
    """Every kind of node that the user has: its purchase is past."""
    for owned in scenario.owned:
        accelerator = find_accelerator(owned.accelerator, catalog).accelerator
        n = owned.n_accelerators_per_node
        name = owned.name or f"your {accelerator.id} x{n}"
        power = node_watts(catalog, str(accelerator.id), n)
        if owned.node_max_w is not None:
            share = power.mean_w / power.max_w if power.max_w else 0.7
            power = NodeWatts(max_w=owned.node_max_w, mean_w=owned.node_max_w * share)
        node = NodeKind(
            name=name,
            accelerator=str(accelerator.id),
            n_accelerators=n,
            network_bytes_per_s=_network(scenario, owned),
        )
        rate = standing_rate(
            node,
            _running(scenario, power, place),
            evidence=PriceEvidence(source="user"),
        )
        terms = replace(rate.terms, n_nodes_max=owned.n_nodes)
        yield Standing(
            rate=replace(rate, id=f"existing/{name}", terms=terms),
            n_nodes=owned.n_nodes,
            mean_w=power.mean_w,
        )


def _network(scenario: Scenario, owned: OwnedNodes | None) -> float | None:
    """What one own node has towards others: its NICs, else the site's; None where neither is."""
    if owned is not None and owned.n_nics and owned.nic_bytes_per_s:
        return owned.n_nics * owned.nic_bytes_per_s
    network = scenario.site.network if scenario.site else None
    if network is None:
        return None
    return network.n_nics_per_node * network.nic_bytes_per_s / network.oversubscription_ratio


def bought_nodes(
    scenario: Scenario, catalog: Catalog, place: EnergyPlace
) -> Iterator[NodeRate | PriceRefusal]:
    """Every kind of node whose price is known, bought and run."""
    if "owned" not in scenario.policy.purchases:
        return
    sizes = node_sizes(catalog)
    for accelerator, given in _for_sale(scenario, catalog):
        n = sizes[str(accelerator.id)]
        street = None if given else catalog.node_price(str(accelerator.id), n)
        price, assumed = hardware_price(accelerator, n, given=given, street=street)
        if price is None:
            continue
        node = NodeKind(
            name=f"bought {accelerator.id} x{n}",
            accelerator=str(accelerator.id),
            n_accelerators=n,
            network_bytes_per_s=_network(scenario, None),
        )
        terms, notes = bought_terms(scenario, catalog, str(accelerator.id), n, price=price)
        yield owned_rate(
            node,
            terms.purchase,
            ownership=terms.ownership,
            running=terms.running,
            evidence=PriceEvidence(source=street.source if street else "user"),
            assumptions=(*assumed, *notes, *place.assumptions),
        )


def _for_sale(
    scenario: Scenario, catalog: Catalog
) -> Iterator[tuple[Accelerator, HardwarePrice | None]]:
    """Accelerators at the user's price; at street prices where none is given."""
    given = {
        find_accelerator(price.accelerator, catalog).accelerator.id: price
        for price in scenario.prices.hardware
    }
    for name, price in given.items():
        yield catalog.accelerators[name], price
    if given or any(offer.purchase == "owned" for offer in scenario.prices.offers):
        return
    (allowed, forbidden), _ = allowed_ids(scenario.policy, catalog)
    for accelerator in catalog.accelerators.values():
        is_allowed = not allowed or str(accelerator.id) in allowed
        if is_allowed and str(accelerator.id) not in forbidden:
            yield accelerator, None


def bought_terms(
    scenario: Scenario,
    catalog: Catalog,
    accelerator: str,
    n: int,
    *,
    price: Range,
    mean_w: float | None = None,
) -> tuple[BoughtTerms, tuple[Assumption, ...]]:
    """Outlay, running and life of a node with n accelerators that is bought at this price.

    Its draw is that of the load it would carry, where this is known.
    """
    ownership, notes = _ownership(scenario)
    purchase, extra = purchase_of(price, scenario.prices.extras)
    power, place = node_watts(catalog, accelerator, n), site_power(scenario)
    power = power if mean_w is None else power._replace(mean_w=mean_w)
    running, rest = _bought_running(scenario, power, place)
    return BoughtTerms(purchase, running, ownership), (*extra, *rest, *notes)


def lead_time_s(scenario: Scenario, given: HardwarePrice | None) -> float:
    """From order to service; 0 where nobody said."""
    lead = given.lead_time_s if given and given.lead_time_s else scenario.growth.lead_time_s
    return lead.mid if lead else 0.0


def staff_usd_per_h(scenario: Scenario) -> float:
    """What the staff of a site costs, however many nodes stand there."""
    return (scenario.prices.staff_usd_per_year or 0.0) / HOURS_PER_YEAR


def worth_by_age(capital: Capital, period_s: float, n_periods: int) -> Floats:
    """What a node sells for after so many periods: straight from its price to its residual value.

    Freight, tax, installation and gear are not got back.
    """
    price, residual = capital.hardware_usd.mid, capital.residuals_usd[1]
    used = [min(1.0, age * period_s / capital.life_s) for age in range(n_periods + 1)]
    return floats([price + (residual - price) * share for share in used])


def _ownership(scenario: Scenario) -> tuple[Ownership, list[Assumption]]:
    """Bought nodes are held to the end of the horizon, at most as long as they live, then sold."""
    budget = scenario.budget
    life_s, residual = budget.depreciation_s or LIFE_S, budget.residual_frac or RESIDUAL_FRAC
    held_s = min(life_s, budget.horizon_s)
    left = 1.0 - held_s / life_s
    resale = Range(
        low=residual.low + (1.0 - residual.low) * left,
        mid=residual.mid + (1.0 - residual.mid) * left,
        high=residual.high + (1.0 - residual.high) * left,
    )
    ownership = Ownership(
        life_s=held_s,
        residual_frac=resale,
        discount_frac_per_year=budget.discount_frac_per_year,
    )
    return ownership, [*_ownership_notes(scenario, ownership)]


def _ownership_notes(scenario: Scenario, found: Ownership) -> Iterator[Assumption]:
    budget, resale = scenario.budget, found.residual_frac
    if budget.depreciation_s is None:
        yield assume(
            "life of bought nodes",
            "4 years",
            "a usual life in the books",
            "budget.depreciation_years",
        )
    if budget.residual_frac is None:
        yield assume(
            "worth of bought nodes at the end of life",
            "0 … 10 … 25 %",
            "second-hand prices vary widely",
            "budget.residual_frac",
        )
    if found.life_s < (budget.depreciation_s or LIFE_S):
        yield assume(
            f"resale of bought nodes after {found.life_s / MONTH:.0f} months",
            f"{resale.low:.0%} … {resale.mid:.0%} … {resale.high:.0%} of their price",
            "the horizon ends before their life: a straight line to their worth at its end",
            "budget.horizon_months",
        )


def _running(scenario: Scenario, power: NodeWatts, place: EnergyPlace) -> NodeRunning:
    prices, site = scenario.prices, scenario.site
    return NodeRunning(
        average_w=power.mean_w,
        highest_w=power.max_w,
        pue_ratio=place.pue_ratio,
        electricity_usd_per_j=place.electricity_usd_per_j,
        demand_usd_per_w_month=(site.demand_usd_per_w_month or 0.0) if site else 0.0,
        colocation_usd_per_w_month=prices.colocation_usd_per_w_month or 0.0,
        support_frac_per_year=prices.support_frac_per_year or 0.0,
        licence_usd_per_accelerator_year=prices.licence_usd_per_accelerator_year or 0.0,
    )


def _bought_running(
    scenario: Scenario, power: NodeWatts, place: EnergyPlace
) -> tuple[NodeRunning, tuple[Assumption, ...]]:
    """Running costs of a bought node: space and support are told where nobody gave them."""
    running = _running(scenario, power, place)
    support, notes = support_of(scenario.prices.support_frac_per_year)
    space, more = colocation_of(
        scenario.prices.colocation_usd_per_w_month, has_own_site=scenario.site is not None
    )
    return replace(running, support_frac_per_year=support, colocation_usd_per_w_month=space), (
        *notes,
        *more,
    )
