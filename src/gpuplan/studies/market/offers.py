"""Every way to pay for nodes, in: a scenario and the catalog's offers; out: rates and refusals.

The user's own offers stand for the market where there are any. Discounts that no price list
backs, and purchases without a place to stand, are kept apart: shown, never chosen in silence.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import rentable
from gpuplan.cost.rates import STALE_DAYS, sorted_out, user_rates
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.money.market import Offer
from gpuplan.domain.money.rates import NodeRate, PriceRefusal, Rates
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.packing import nodes_for
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import CatalogError, PlannerError, one
from gpuplan.studies.market.owned import Standing, bought_nodes, site_power, standing_nodes
from gpuplan.studies.market.published import CPU_VCPUS, newest_days, published
from gpuplan.studies.naming import allowed_ids, group_ids

LEAST_HOST_FRAC = 0.25  # Assumption: host memory over accelerator memory


class Market(NamedTuple):
    """What can be had, and what cannot."""

    rates: tuple[NodeRate, ...]
    shown: tuple[NodeRate, ...]  # indicative, or not allowed: for alternatives only
    refused: tuple[PriceRefusal, ...]
    assumptions: tuple[Assumption, ...]
    porting_usd: Mapping[str, float]  # by accelerator: software that does not run there yet
    standing: tuple[Standing, ...] = ()  # nodes that are there already
    by_kind: Mapping[str, tuple[NodeRate, ...]] = MappingProxyType({})  # all ways, by accelerator

    @property
    def ways(self) -> tuple[NodeRate, ...]:
        """All that nodes can be had by, those that are there already included."""
        return (*(each.rate for each in self.standing), *self.rates)

    def price_usd_per_h(self, candidate: Candidate, n_replicas: int) -> float | None:
        """Least price of so many replicas in whole nodes; None where there is none."""
        ways = self.by_kind.get(str(candidate.accelerator), ())
        prices = (_price(rate, candidate, n_replicas) for rate in rates_for(ways, candidate))
        return min((price for price in prices if price is not None), default=None)


def networks_of(market: Market) -> dict[str, tuple[float, ...]]:
    """Rates between nodes that are stated, by accelerator, the slowest first."""
    stated: dict[str, set[float]] = {}
    for rate in market.ways:
        if rate.node.network_bytes_per_s is not None and rate.purchase != "spot":
            stated.setdefault(rate.node.accelerator, set()).add(rate.node.network_bytes_per_s)
    return {name: tuple(sorted(found)) for name, found in stated.items()}


def indexed(market: Market) -> Market:
    """The market with its ways in order of accelerators: prices are asked for very often."""
    ways: dict[str, tuple[NodeRate, ...]] = {}
    for rate in market.ways:
        ways[rate.node.accelerator] = (*ways.get(rate.node.accelerator, ()), rate)
    return market._replace(by_kind=MappingProxyType(ways))


def rates_for(rates: Iterable[NodeRate], candidate: Candidate) -> Iterator[NodeRate]:
    """Rates of nodes that carry the candidate's accelerator, or of the offer it was given for.

    What is known of one accelerator of an offer holds for one's own nodes too; what is known of a
    whole node holds for that node alone.
    """
    for rate in rates:
        is_mine = rate.capital is not None and not candidate.is_node
        is_own = not candidate.offer or rate.node.name == candidate.offer or is_mine
        is_kind = rate.node.accelerator == candidate.accelerator and rate.purchase != "spot"
        if is_own and is_kind and _can_stand(rate, candidate):
            yield rate


def _can_stand(rate: NodeRate, candidate: Candidate) -> bool:
    """Whether a replica stands inside a node of this rate, or over its stated network; a run, where
    it was sized for.
    """
    if candidate.run is not None:
        return candidate.run.stands_on(rate.node)
    if candidate.layout.network_bytes_per_s is None and rate.terms.is_for_spanning:
        return False
    is_judged = candidate.engine is not None and not candidate.is_node
    return not is_judged or rate.node.joins(candidate.layout)


def market_of(
    scenario: Scenario, catalog: Catalog, *, offers: Sequence[Offer], today: date
) -> Market:
    """Rates for this scenario: the user's offers, else the cheapest published ones."""
    own = _own_rates(scenario, catalog)
    named = _named_accelerators(scenario, catalog)
    assumptions: list[Assumption] = []
    whole = rentable(offers)
    known = [offer for offer in whole if has_room(offer, catalog)]
    if own.accepted:
        covered = {rate.node.accelerator for rate in own.accepted}
        wanted = named - covered
        assumptions.append(_own_market_note(wanted))
        listed = published(scenario, known, today=today, only=wanted, named=wanted)
    else:
        (allowed, forbidden), _ = allowed_ids(scenario.policy, catalog)
        only = (set(allowed) or {str(name) for name in catalog.accelerators}) - set(forbidden)
        listed = published(scenario, known, today=today, only=only, named=named)
        assumptions += [*_age_note(offers, today), *_room_note(len(whole) - len(known))]
    place = site_power(scenario)
    bought = sorted_out(bought_nodes(scenario, catalog, place))
    standing = tuple(standing_nodes(scenario, catalog, place))
    if standing:
        assumptions += place.assumptions
    for rate in bought.accepted:
        assumptions += rate.assumptions
    market = Market(
        rates=(*own.accepted, *bought.accepted, *listed.accepted),
        shown=listed.shown,
        refused=(*own.refused, *bought.refused, *listed.refused),
        assumptions=tuple(dict.fromkeys(assumptions)),
        standing=standing,
        porting_usd={
            _id(price.accelerator, catalog): price.porting_usd.mid
            for price in scenario.prices.hardware
            if price.porting_usd is not None
        },
    )
    return indexed(market)


def no_price(market: Market) -> PlannerError:
    """Nothing can be had: why prices were refused, and how to get better ones."""
    codes = Counter(refusal.code for refusal in market.refused)
    why = ", ".join(f"{n} {code}" for code, n in codes.most_common(4)) or "none is known"
    fix = "run `gpuplan catalog update`, or give prices.offers"
    if "indicative" in codes:
        fix = "set policy.indicative_prices_allowed: true, or give prices.offers"
    return one(CatalogError, "plan", "prices", f"none is left to plan with ({why})", fix)


def _price(rate: NodeRate, candidate: Candidate, n_replicas: int) -> float | None:
    nodes = nodes_for(candidate, n_replicas, rate.node.n_accelerators)
    limit = rate.terms.n_nodes_max
    if nodes is None or (limit is not None and nodes > limit):
        return None
    return nodes * rate.price_usd_per_h.mid


def _own_rates(scenario: Scenario, catalog: Catalog) -> Rates:
    found = user_rates(scenario.prices.offers, purchases=scenario.policy.purchases)
    measured = {each.accelerator for work in scenario.workloads for each in work.capacities}
    named = (
        replace(rate, node=replace(rate.node, accelerator=_id(rate.node.accelerator, catalog)))
        for rate in found.accepted
    )
    retained = tuple(rate if rate.node.name in measured else _whole_cpus(rate) for rate in named)
    return Rates(accepted=retained, refused=found.refused)


def _whole_cpus(rate: NodeRate) -> NodeRate:
    """Nodes of fewer vCPUs than a CPU has, as many together as make one; larger ones as several.

    Predictions are of whole CPUs; what the user measured on a node holds for that node.
    """
    node = rate.node
    n_whole, n_here = CPU_VCPUS.get(node.accelerator), node.n_vcpus
    if n_whole is None or n_here is None or n_here == n_whole:
        return rate
    if n_here > n_whole:
        return replace(rate, node=replace(node, n_accelerators=n_here // n_whole))
    n, most = -(-n_whole // n_here), rate.terms.n_nodes_max
    name = f"{n} x {node.name}"
    return replace(
        rate,
        node=replace(node, name=name, n_accelerators=1, n_vcpus=n * n_here),
        price_usd_per_h=rate.price_usd_per_h.times(n),
        parts=tuple(replace(part, usd_per_h=part.usd_per_h.times(n)) for part in rate.parts),
        terms=replace(rate.terms, n_nodes_max=None if most is None else most // n),
    )


def _id(name: str, catalog: Catalog) -> str:
    return str(find_accelerator(name, catalog).accelerator.id)


def _named_accelerators(scenario: Scenario, catalog: Catalog) -> set[str]:
    """Accelerators that the user speaks of by name: what is allowed, and where speed is known."""
    own_offers = {offer.name for offer in scenario.prices.offers}
    names = set(scenario.policy.accelerators.allowed)
    for work in scenario.workloads:
        names |= {capacity.accelerator for capacity in work.capacities}
    groups = {name: group_ids(name, catalog) for name in names - own_offers}
    single = {_id(name, catalog) for name, group in groups.items() if not group}
    return single.union(*groups.values())


def _own_market_note(wanted: set[str]) -> Assumption:
    rest = f", and the catalog for {', '.join(sorted(wanted))}" if wanted else ""
    return assume(
        "offers",
        f"your own offers{rest}",
        "prices.offers says what is on offer; other prices of the catalog are not used",
        "prices.offers",
    )


def has_room(offer: Offer, catalog: Catalog) -> bool:
    """Whether the host can stage what its accelerators hold; unknown memory is let pass."""
    card = catalog.accelerators.get(AcceleratorId(offer.accelerator or ""))
    if card is None or offer.shape.ram_bytes is None:
        return True
    resident = card.memory.marketed_bytes * offer.n_accelerators
    return offer.shape.ram_bytes >= LEAST_HOST_FRAC * resident


def _room_note(n: int) -> list[Assumption]:
    if n == 0:
        return []
    return [
        assume(
            "hosts of rented accelerators",
            f"{n} offers are rejected",
            (
                f"their memory is below {LEAST_HOST_FRAC:.0%} of their accelerators': too little "
                "to load a model through"
            ),
            "prices.offers",
        )
    ]


def _age_note(offers: Iterable[Offer], today: date) -> list[Assumption]:
    newest = newest_days(offers, today)
    if newest <= STALE_DAYS:
        return []
    return [
        assume(
            "age of the prices",
            f"the newest is {newest} days old",
            "the catalog was not refreshed since",
            "gpuplan catalog update",
        )
    ]
