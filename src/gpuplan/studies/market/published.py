"""Published prices, in: a scenario and the catalog's offers; out: rates that may win, and others.

A plan rests on fresh list prices of those who run the machines. Marketplaces and auctions, older
prices and advertised discounts are indicative: shown beside a plan, and used where asked for.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from math import inf
from typing import NamedTuple

from gpuplan.catalog.offers import is_surveyed, read_discounts, seller_of
from gpuplan.cost.rates import OLD_DAYS, STALE_DAYS, catalog_rates, refused
from gpuplan.domain.money.market import Offer
from gpuplan.domain.money.rates import NodeKind, NodeRate, PriceRefusal, Rates
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.terms import Choice, Policy, Purchase
from gpuplan.studies.market.places import fits, is_place_allowed

PURCHASES: tuple[Purchase, ...] = ("on_demand", "reserved", "spot")
ON_DEMAND: tuple[Purchase, ...] = ("on_demand",)
UNCONFIRMED = "region unconfirmed: its source lists every server in all regions alike"
TCP_FRAC = 0.65  # of the line rate in collectives, against RDMA [links]
# Clouds whose large instances carry the CPU that the catalog knows [product-names].
CPU_INSTANCES = {"cpu-xeon-8480": ("c7i.", "m7i.", "c3-")}
CPU_VCPUS = {"cpu-xeon-8480": 112}


class Published(NamedTuple):
    """Published rates: those that may carry a plan, those that are only shown, and refusals."""

    accepted: tuple[NodeRate, ...]
    shown: tuple[NodeRate, ...]
    refused: tuple[PriceRefusal, ...]


class Carried(NamedTuple):
    """An offer with the accelerator that it carries, and why its price is only indicative."""

    accelerator: str
    offer: Offer
    indicative: str  # empty: it is a list price
    doubt: str = ""  # what is not known of it, used all the same where it is asked for


def published(
    scenario: Scenario,
    known: Sequence[Offer],
    *,
    today: date,
    only: Collection[str],
    named: Collection[str],
) -> Published:
    """The cheapest offer of equal machines; indicative ones where only they carry what is named."""
    carried = [*_carried_offers(scenario.policy, known, only, today)]
    listed = {each.accelerator for each in carried if not each.indicative}
    requested = {*named} - listed
    usable = [each for each in carried if not each.indicative or each.accelerator in requested]
    rest = [each for each in carried if each.indicative and each.accelerator not in requested]
    oldest = oldest_days(known, today)
    found = _rates(_cheapest(usable, today, oldest), today, oldest, purchases=PURCHASES)
    others = _rates(_cheapest(rest, today, oldest), today, oldest, purchases=ON_DEMAND)
    retained, shown = _apart(scenario, found.accepted)
    return Published(
        accepted=retained,
        shown=(*shown, *others.accepted),
        refused=(*found.refused, *others.refused, *_only_indicative(rest, listed)),
    )


def _carried_offers(
    policy: Policy, offers: Sequence[Offer], only: Collection[str], today: date
) -> Iterator[Carried]:
    """Offers that the policy lets in, each with what it carries and how far it is to be trusted."""
    fresh = fresh_days(offers, today)
    for offer in offers:
        name = _carried(offer)
        if name is None or name not in only or not fits(policy.clouds, offer.cloud):
            continue
        if policy.regions == Choice() or is_place_allowed(offer, policy.regions):
            is_requested = (
                policy.is_indicative_price_allowed or offer.cloud in policy.clouds.allowed
            )
            doubt = UNCONFIRMED if policy.regions != Choice() and not offer.region else ""
            why = "" if is_requested else indicative(offer, today, fresh) or doubt
            yield Carried(name, offer, why, doubt)


def indicative(offer: Offer, today: date, fresh: int) -> str:
    """Why the price is no list price of today; empty where it is one."""
    seller, age = seller_of(offer), offer.age_days(today)
    if seller != "provider":
        return f"{seller} price"
    return f"price of {offer.price_date} is {age} days old" if age > fresh else ""


def fresh_days(offers: Iterable[Offer], today: date) -> int:
    """Age up to which a price may carry a plan: half a year; where all are older, the newest do."""
    newest = newest_days(offers, today)
    return STALE_DAYS if newest <= STALE_DAYS else oldest_days(offers, today)


def oldest_days(offers: Iterable[Offer], today: date) -> int:
    """Age beyond which a price is stale: half a year behind the newest, never above the limit."""
    newest = newest_days(offers, today)
    return min(OLD_DAYS, max(0, newest) + STALE_DAYS)


def newest_days(offers: Iterable[Offer], today: date) -> int:
    """Age of the newest list price, or of the newest at all; 0 where there is none."""
    known = [*offers]
    listed = [offer for offer in known if not is_surveyed(offer)] or known
    newest = max((offer.price_date for offer in listed), default=today)
    return (today - newest).days


def _cheapest(offers: Iterable[Carried], today: date, oldest: int) -> list[Carried]:
    """Offers that can win: of equal instances none is both as cheap and as well joined to others.

    The first of them is the cheapest that has a price; each further one has a better network.
    """
    groups: dict[tuple[str, float], list[Carried]] = defaultdict(list)
    for each in offers:
        groups[each.accelerator, each.offer.n_accelerators].append(each)
    best = []
    for equal in groups.values():
        usable = -1.0
        for each in sorted(equal, key=_price_order):
            if _usable_bytes_per_s(each.offer) > usable:
                best.append(each)
                if catalog_rates(
                    [each.offer], today, purchases=ON_DEMAND, max_age_days=oldest
                ).accepted:
                    usable = _usable_bytes_per_s(each.offer)
    return best


def _price_order(each: Carried) -> tuple[float, float, str, str]:
    offer = each.offer
    return offer.usd_per_h, -_usable_bytes_per_s(offer), offer.cloud, offer.region


def _usable_bytes_per_s(offer: Offer) -> float:
    """What collectives between such servers reach of the line rate; 0 where no fabric is stated."""
    fabric, rate = offer.shape.fabric, offer.shape.network_bytes_per_s
    if fabric is None or rate is None:
        return 0.0
    return rate * (TCP_FRAC if fabric.kind == "tcp" else 1.0)


def _rates(
    offers: Iterable[Carried], today: date, oldest: int, *, purchases: tuple[Purchase, ...]
) -> Rates:
    def of(offer: Offer) -> Rates:
        discounts = read_discounts()
        return catalog_rates(
            [offer], today, discounts=discounts, purchases=purchases, max_age_days=oldest
        )

    found = [(each, of(each.offer)) for each in offers]
    retained = (
        _marked(_as_sockets(rate), e.indicative or e.doubt)
        for e, part in found
        for rate in part.accepted
    )
    return Rates(
        accepted=tuple(_for_spanning([*retained])),
        refused=tuple(refusal for _, part in found for refusal in part.refused),
    )


def _for_spanning(rates: Sequence[NodeRate]) -> Iterator[NodeRate]:
    """Dearer servers of a size, whose network is better, only on demand and for what spans them."""
    least: dict[tuple[str, int], float] = {}
    own: dict[NodeKind, float] = {}
    for rate in rates:
        if rate.purchase == "on_demand":
            kind = (rate.node.accelerator, rate.node.n_accelerators)
            usd = own.setdefault(rate.node, rate.price_usd_per_h.mid)
            least[kind] = min(usd, least.get(kind, inf))
    for rate in rates:
        kind = (rate.node.accelerator, rate.node.n_accelerators)
        if own.get(rate.node, inf) <= least.get(kind, inf) or kind not in least:
            yield rate
        elif rate.purchase == "on_demand":
            yield replace(rate, terms=replace(rate.terms, is_for_spanning=True))


def _marked(rate: NodeRate, why: str) -> NodeRate:
    """The rate with the reason why its price is only indicative."""
    if not why:
        return rate
    note = "; ".join(filter(None, (why, rate.evidence.note if "days old" not in why else "")))
    return replace(rate, evidence=replace(rate.evidence, is_weak=True, note=note))


def _only_indicative(rest: Iterable[Carried], listed: Collection[str]) -> Iterator[PriceRefusal]:
    """One refusal for each accelerator that only indicative prices are published for."""
    lost = {each.accelerator: each for each in rest if each.accelerator not in listed}
    for each in lost.values():
        what = f"only indicative prices are published ({each.indicative} at {each.offer.cloud})"
        fix = "set policy.indicative_prices_allowed: true, or give prices.offers"
        yield replace(refused(each.offer, "on_demand", ("indicative", what)), fix=fix)


def _apart(
    scenario: Scenario, rates: tuple[NodeRate, ...]
) -> tuple[tuple[NodeRate, ...], tuple[NodeRate, ...]]:
    """Rates that may win, and those that are only shown: discounts that no price list backs."""
    policy = scenario.policy
    is_default = any(note.change == "policy.purchases" for note in scenario.assumptions)
    allowed = [p for p in policy.purchases if p == "on_demand" or not is_default]

    def may_win(rate: NodeRate) -> bool:
        is_advertised = rate.purchase == "reserved" and rate.evidence.is_weak
        is_trusted = policy.is_indicative_price_allowed or not is_advertised
        return rate.purchase in allowed and is_trusted

    retained = tuple(rate for rate in rates if may_win(rate))
    return retained, tuple(rate for rate in rates if not may_win(rate))


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
