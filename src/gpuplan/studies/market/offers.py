"""Every way to pay for nodes, in: a scenario and the catalog's offers; out: rates and refusals.

The user's own offers stand for the market where there are any. Discounts that no price list
backs, and purchases without a place to stand, are kept apart: shown, never chosen in silence.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_discounts, rentable
from gpuplan.catalog.regions import read_regions
from gpuplan.cost.rates import OLD_DAYS, STALE_DAYS, catalog_rates, sorted_out, user_rates
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.money.market import Offer
from gpuplan.domain.money.rates import NodeRate, PriceRefusal, Rates
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.packing import nodes_for
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.terms import Choice, Purchase
from gpuplan.errors import CatalogError, PlannerError, one
from gpuplan.studies.market.owned import Standing, bought_nodes, place_of, standing_nodes
from gpuplan.studies.naming import allowed_ids, group_ids

LEAST_HOST_FRAC = 0.25  # Assumption: host memory over accelerator memory
ON_DEMAND: tuple[Purchase, ...] = ("on_demand",)
# Clouds whose large instances carry the CPU that the catalog knows [product-names].
CPU_INSTANCES = {"cpu-xeon-8480": ("c7i.", "m7i.", "c3-")}
CPU_VCPUS = {"cpu-xeon-8480": 112}


class Market(NamedTuple):
    """What can be had, and what cannot."""

    rates: tuple[NodeRate, ...]
    shown: tuple[NodeRate, ...]  # weak evidence, or not allowed: for alternatives only
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
        if is_own and rate.node.accelerator == candidate.accelerator and rate.purchase != "spot":
            yield rate


def market_of(
    scenario: Scenario, catalog: Catalog, *, offers: Sequence[Offer], today: date
) -> Market:
    """Rates for this scenario: the user's offers, else the cheapest published ones."""
    own = _own_rates(scenario, catalog)
    named = _named_accelerators(scenario, catalog)
    assumptions: list[Assumption] = []
    whole = rentable(offers)
    known = [offer for offer in whole if has_room(offer, catalog)]
    if own.kept:
        covered = {rate.node.accelerator for rate in own.kept}
        wanted = named - covered
        assumptions.append(_own_market_note(wanted))
        published = _published(scenario, known, today=today, only=wanted)
    else:
        (allowed, forbidden), _ = allowed_ids(scenario.policy, catalog)
        only = (set(allowed) or {str(name) for name in catalog.accelerators}) - set(forbidden)
        published = _published(scenario, known, today=today, only=only)
        assumptions += [*_age_note(offers, today), *_room_note(len(whole) - len(known))]
    kept, shown = _apart(scenario, published.kept)
    place = place_of(scenario)
    bought = sorted_out(bought_nodes(scenario, catalog, place))
    standing = tuple(standing_nodes(scenario, catalog, place))
    if standing:
        assumptions += place.assumptions
    for rate in bought.kept:
        assumptions += rate.assumptions
    market = Market(
        rates=(*own.kept, *bought.kept, *kept),
        shown=shown,
        refused=(*own.refused, *bought.refused, *published.refused),
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
    return one(CatalogError, "plan", "prices", f"none is left to plan with ({why})", fix)


def _price(rate: NodeRate, candidate: Candidate, n_replicas: int) -> float | None:
    nodes = nodes_for(candidate, n_replicas, rate.node.n_accelerators)
    limit = rate.terms.n_nodes_max
    if nodes is None or (limit is not None and nodes > limit):
        return None
    return nodes * rate.price_usd_per_h.mid


def _own_rates(scenario: Scenario, catalog: Catalog) -> Rates:
    found = user_rates(scenario.prices.offers, purchases=scenario.policy.purchases)
    kept = tuple(
        replace(rate, node=replace(rate.node, accelerator=_id(rate.node.accelerator, catalog)))
        for rate in found.kept
    )
    return Rates(kept=kept, refused=found.refused)


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


def _published(scenario: Scenario, known: Sequence[Offer], *, today: date, only: set[str]) -> Rates:
    purchases: tuple[Purchase, ...] = ("on_demand", "reserved", "spot")
    oldest = oldest_days(known, today)
    best = _cheapest(_allowed(scenario, known, only), today, oldest)
    found = [
        catalog_rates(
            [offer], today, discounts=read_discounts(), purchases=purchases, max_age_days=oldest
        )
        for offer in best
    ]
    return Rates(
        kept=tuple(_as_sockets(rate) for part in found for rate in part.kept),
        refused=tuple(refusal for part in found for refusal in part.refused),
    )


def _allowed(
    scenario: Scenario, offers: Iterable[Offer], only: set[str]
) -> Iterator[tuple[str, Offer]]:
    """Offers that the policy lets in, each with what it carries."""
    policy = scenario.policy
    is_free = policy.clouds == policy.regions == Choice()
    for offer in offers:
        name = _carried(offer)
        if name is None or name not in only:
            continue
        if is_free or (
            fits(policy.clouds, offer.cloud) and is_place_allowed(offer, policy.regions)
        ):
            yield name, offer


def _carried(offer: Offer) -> str | None:
    """The accelerator of the offer; an instance without one counts by its CPU."""
    if (accelerator := offer.accelerator) is not None or offer.n_accelerators != 0:
        return accelerator
    for cpu, prefixes in CPU_INSTANCES.items():
        is_whole = (offer.shape.n_vcpu or 0) >= CPU_VCPUS[cpu]
        if offer.instance.startswith(prefixes) and is_whole:
            return cpu
    return None


def _as_sockets(rate: NodeRate) -> NodeRate:
    """An instance without accelerators as a node of whole CPUs."""
    if rate.node.accelerator:
        return rate
    for cpu, prefixes in CPU_INSTANCES.items():
        if rate.node.name.startswith(prefixes):
            n = (rate.node.n_vcpus or 0) // CPU_VCPUS[cpu]
            return replace(rate, node=replace(rate.node, accelerator=cpu, n_accelerators=n))
    return rate


def oldest_days(offers: Iterable[Offer], today: date) -> int:
    """Age beyond which a price is stale: half a year behind the newest, never above the limit."""
    newest = _newest_days(offers, today)
    return min(OLD_DAYS, max(0, newest) + STALE_DAYS)


def _newest_days(offers: Iterable[Offer], today: date) -> int:
    newest = max((offer.price_date for offer in offers), default=today)
    return (today - newest).days


def has_room(offer: Offer, catalog: Catalog) -> bool:
    """Whether the host can stage what its accelerators hold; unknown memory is let pass."""
    card = catalog.accelerators.get(AcceleratorId(offer.accelerator or ""))
    if card is None or offer.shape.ram_bytes is None:
        return True
    held = card.memory.marketed_bytes * offer.n_accelerators
    return offer.shape.ram_bytes >= LEAST_HOST_FRAC * held


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
    newest = _newest_days(offers, today)
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


def _cheapest(offers: Iterable[tuple[str, Offer]], today: date, oldest: int) -> list[Offer]:
    """The cheapest of equal instances that has a price: more expensive ones can never win."""
    groups: dict[tuple[str, float], list[Offer]] = defaultdict(list)
    for name, offer in offers:
        groups[name, offer.n_accelerators].append(offer)
    best = []
    for equal in groups.values():
        ordered = sorted(equal, key=lambda offer: (offer.usd_per_h, offer.cloud, offer.region))
        for offer in ordered:
            best.append(offer)
            if catalog_rates([offer], today, purchases=ON_DEMAND, max_age_days=oldest).kept:
                break
    return best


def _apart(
    scenario: Scenario, rates: tuple[NodeRate, ...]
) -> tuple[tuple[NodeRate, ...], tuple[NodeRate, ...]]:
    """Rates that may win, and those that are only shown."""
    is_default = any(note.change == "policy.purchases" for note in scenario.assumptions)
    allowed = [p for p in scenario.policy.purchases if p == "on_demand" or not is_default]
    kept = tuple(rate for rate in rates if rate.purchase in allowed)
    return kept, tuple(rate for rate in rates if rate.purchase not in allowed)


# Members of the European Union, ISO 3166 alpha-3.
EU_COUNTRIES = frozenset(
    (
        "AUT",
        "BEL",
        "BGR",
        "HRV",
        "CYP",
        "CZE",
        "DNK",
        "EST",
        "FIN",
        "FRA",
        "DEU",
        "GRC",
        "HUN",
        "IRL",
        "ITA",
        "LVA",
        "LTU",
        "LUX",
        "MLT",
        "NLD",
        "POL",
        "PRT",
        "ROU",
        "SVK",
        "SVN",
        "ESP",
        "SWE",
    )
)


@cache
def countries() -> dict[str, str]:
    """Country of each region that clouds are known to have, by cloud:region."""
    return {r.id: r.country for r in read_regions() if r.kind == "cloud" and r.country}


def is_place_allowed(offer: Offer, regions: Choice) -> bool:
    """Whether the region, its country or its union is allowed; an unknown country is in none."""
    own = f"{offer.cloud}:{offer.region}"
    country = countries().get(own, "")
    union = ("EU",) if country in EU_COUNTRIES else ()
    return fits(regions, offer.region, own, *((country,) if country else ()), *union)


def fits(choice: Choice, *names: str) -> bool:
    """Whether any of the names is allowed and none forbidden."""
    is_allowed = not choice.allowed or any(name in choice.allowed for name in names)
    return is_allowed and not any(name in choice.forbidden for name in names)
