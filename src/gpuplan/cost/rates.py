"""Prices of a node-hour: every offer and discount becomes a rate, or a refusal with its reason."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from math import isfinite

from gpuplan.domain.money import market
from gpuplan.domain.money.rates import (
    Day,
    NodeKind,
    NodeRate,
    PriceEvidence,
    PriceRefusal,
    RatePart,
    Rates,
    RateTerms,
    RefusalCode,
)
from gpuplan.domain.provenance import assume
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario import terms
from gpuplan.units import DAY

STALE_DAYS = 180  # older than this the price is weak evidence
OLD_DAYS = 540  # older than this it is no price
TERMS_S = {"1yr": 365 * DAY, "3yr": 3 * 365 * DAY}
UPDATE = "run `gpuplan catalog update`, or give your own under prices.offers"

Outcome = NodeRate | PriceRefusal
Fault = tuple[RefusalCode, str]


def catalog_rates(
    offers: Iterable[market.Offer],
    today: Day,
    *,
    discounts: Collection[market.Discount] = (),
    purchases: Collection[terms.Purchase] = ("on_demand", "spot", "reserved"),
    max_age_days: int = OLD_DAYS,
) -> Rates:
    """Every published offer as a rate for each allowed purchase option, or as a refusal."""
    found: list[Outcome] = []
    for offer in offers:
        fault = _offer_fault(offer, today, max_age_days)
        if fault is not None:
            found.append(refused(offer, "on_demand", fault))
            continue
        if "on_demand" in purchases:
            found.append(_rate(offer, today, exactly(offer.usd_per_h)))
        if "spot" in purchases and offer.spot_usd_per_h is not None:
            found.append(_spot(offer, today, offer.spot_usd_per_h))
        if "reserved" in purchases:
            found += _reserved(offer, today, discounts)
    return sorted_out(found)


def user_rates(
    offers: Iterable[terms.StatedOffer], *, purchases: Collection[terms.Purchase] | None = None
) -> Rates:
    """The user's own prices, of the purchase options that are allowed; None allows all."""
    allowed = [offer for offer in offers if purchases is None or offer.purchase in purchases]
    return sorted_out(_user_rate(index, offer) for index, offer in enumerate(allowed))


def sorted_out(found: Iterable[Outcome]) -> Rates:
    """Rates and refusals as two lists that together hold everything found."""
    outcomes = tuple(found)
    return Rates(
        accepted=tuple(item for item in outcomes if isinstance(item, NodeRate)),
        refused=tuple(item for item in outcomes if isinstance(item, PriceRefusal)),
    )


def price_fault(usd_per_h: float | None) -> Fault | None:
    """The reason why this is no price, or None: nothing is free, and NaN is not cheap."""
    if usd_per_h is None:
        return "missing", "no price is published"
    if not isfinite(usd_per_h):
        return "not-finite", f"price is {usd_per_h}"
    if usd_per_h <= 0:
        return "zero", f"price is ${usd_per_h:g} an hour"
    return None


def effective_spot_usd_per_h(
    price_usd_per_h: Range,
    *,
    interruptions_per_s: float,
    lost_s_per_interruption: float,
    n_nodes_together: int = 1,
) -> Range | None:
    """The spot price of an hour of useful work: each interruption loses work and a restart.

    Nodes of one replica or run stop together, so it is interrupted as often as all its nodes.
    None where interruptions leave no useful time.
    """
    useful_frac = 1.0 - interruptions_per_s * n_nodes_together * lost_s_per_interruption
    return price_usd_per_h.times(1.0 / useful_frac) if useful_frac > 0 else None


def _node(offer: market.Offer) -> NodeKind:
    names, fabric = "|".join(offer.shape.accelerators), offer.shape.fabric
    return NodeKind(
        name=offer.instance,
        accelerator=names,
        n_accelerators=int(offer.n_accelerators),
        n_vcpus=offer.shape.n_vcpu,
        cloud=offer.cloud,
        region=offer.region or None,
        network_bytes_per_s=offer.shape.network_bytes_per_s if fabric else None,
        fabric_kind=fabric.kind if fabric else "",
        placement=fabric.placement if fabric else "",
    )


def _id(offer: market.Offer, option: str) -> str:
    return "/".join((offer.cloud, offer.region or "any", offer.instance, option))


def refused(offer: market.Offer, purchase: terms.Purchase, fault: Fault) -> PriceRefusal:
    """The refusal of an offer under a purchase option, with the fault that is its reason."""
    code, what = fault
    return PriceRefusal(
        id=_id(offer, purchase.replace("_", "-")),
        node=_node(offer),
        purchase=purchase,
        code=code,
        what=what,
        fix=UPDATE,
    )


def _offer_fault(offer: market.Offer, today: Day, max_age_days: int) -> Fault | None:
    """The first reason why nothing of this offer may be priced."""
    fault = _shape_fault(offer) or price_fault(offer.usd_per_h)
    age = offer.age_days(today)
    if fault is None and age > max_age_days:
        return "stale", f"price of {offer.price_date} is {age} days old, limit {max_age_days}"
    return fault


def _shape_fault(offer: market.Offer) -> Fault | None:
    """The reason why the price is not that of one whole, known server, or None."""
    if offer.shape.basis == "bid-floor":
        return "bid-floor", "the lowest bid of an auction is no price"
    if offer.shape.basis == "accelerator-only":
        return "accelerator-only", "the price lacks the server around the accelerator"
    if offer.is_ambiguous:
        return "ambiguous", f"may be any of {', '.join(offer.shape.accelerators)}"
    if offer.n_accelerators != int(offer.n_accelerators):
        return "share-of-card", f"carries {offer.n_accelerators:g} of a card"
    return None


def _rate(offer: market.Offer, today: Day, price: Range) -> NodeRate:
    is_old = offer.age_days(today) > STALE_DAYS
    note = f"{offer.age_days(today)} days old" if is_old else ""
    evidence = PriceEvidence(
        source=offer.source, price_date=offer.price_date, is_weak=is_old, note=note
    )
    return NodeRate(
        id=_id(offer, "on-demand"),
        node=_node(offer),
        purchase="on_demand",
        price_usd_per_h=price,
        parts=(RatePart(name="rent", usd_per_h=price),),
        evidence=evidence,
    )


def _spot(offer: market.Offer, today: Day, spot_usd_per_h: float) -> Outcome:
    fault = price_fault(spot_usd_per_h)
    if fault is None and spot_usd_per_h > offer.usd_per_h:
        what = f"spot ${spot_usd_per_h:g} above on-demand ${offer.usd_per_h:g}"
        fault = "spot-above-on-demand", what
    if fault is not None:
        return refused(offer, "spot", fault)
    # When spot runs out one pays the on-demand price: nothing is more expensive.
    price = Range(low=spot_usd_per_h, mid=spot_usd_per_h, high=offer.usd_per_h)
    assumed = assume(
        f"highest spot price of {offer.instance}",
        f"{offer.usd_per_h:g} USD/h",
        "spot moves by the hour; at worst the on-demand price is paid",
        "prices.offers",
        offer.source,
    )
    rate = _rate(offer, today, price)
    return replace(rate, id=_id(offer, "spot"), purchase="spot", assumptions=(assumed,))


def _reserved(
    offer: market.Offer, today: Day, discounts: Collection[market.Discount]
) -> Iterator[Outcome]:
    for discount in _discounts_for(offer.cloud, discounts):
        option = f"reserved-{discount.term.replace(' ', '-')}-{discount.instrument}"
        if discount.term not in TERMS_S:
            yield PriceRefusal(
                id=_id(offer, option),
                node=_node(offer),
                purchase="reserved",
                code="unclear-term",
                what=f"{discount.instrument}: {discount.term!r} is no term of commitment",
                fix="give the price and term_months under prices.offers",
            )
            continue
        yield _committed(offer, today, discount, option)


def _committed(offer: market.Offer, today: Day, discount: market.Discount, option: str) -> NodeRate:
    high, low = 1 - discount.low_frac, 1 - discount.high_frac
    price = Range(low=low, mid=(low + high) / 2, high=high).times(offer.usd_per_h)
    rate = _rate(offer, today, price)
    span = f"{discount.low_frac:.0%} to {discount.high_frac:.0%}"
    assumed = assume(
        f"{discount.instrument} {discount.term} discount at {offer.cloud}",
        span,
        f"no price list of reserved accelerators is published; {discount.applies or 'general'}",
        "prices.offers with purchase: reserved",
        discount.source,
    )
    note = f"on-demand less {span} ({discount.source})"
    return replace(
        rate,
        id=_id(offer, option),
        purchase="reserved",
        parts=(RatePart(name="reservation", usd_per_h=price),),
        terms=RateTerms(term_s=TERMS_S[discount.term]),
        evidence=replace(
            rate.evidence, is_weak=rate.evidence.is_weak or discount.is_weak, note=note
        ),
        assumptions=(assumed,),
    )


def _discounts_for(
    cloud: str, discounts: Collection[market.Discount]
) -> tuple[market.Discount, ...]:
    """The cloud's own commitments: what others give in general says nothing of this cloud."""
    return tuple(d for d in discounts if d.provider == cloud and d.instrument.casefold() != "spot")


def _user_rate(index: int, offer: terms.StatedOffer) -> Outcome:
    node = NodeKind(
        name=offer.name,
        accelerator=offer.accelerator,
        n_accelerators=offer.n_accelerators_per_node,
        n_vcpus=offer.host.n_vcpus,
        cloud=offer.cloud,
        region=offer.region,
        network_bytes_per_s=offer.host.network_bytes_per_s,
    )
    key = f"user/{index}/{offer.name}/{offer.purchase}"
    price = offer.price_usd_per_h
    faults = (price_fault(value) for value in (price.low, price.mid, price.high))
    fault = next((found for found in faults if found is not None), None)
    if fault is not None:
        code, what = fault
        fix = f"give a price above 0 in prices.offers[{index}]"
        return PriceRefusal(
            id=key, node=node, purchase=offer.purchase, code=code, what=what, fix=fix
        )
    return NodeRate(
        id=key,
        node=node,
        purchase=offer.purchase,
        price_usd_per_h=price,
        parts=(RatePart(name="your price", usd_per_h=price),),
        evidence=PriceEvidence(source="user"),
        terms=RateTerms(
            term_s=offer.term_s,
            n_nodes_max=offer.n_nodes_max,
            cold_start_s=offer.cold_start_s,
            interruptions_per_s=offer.interruptions_per_s,
        ),
    )
