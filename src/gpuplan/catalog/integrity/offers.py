"""Are the offers sound? in: offers and a day; out: findings, one per cause and not one per row."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from statistics import median

from gpuplan.catalog.regions import read_regions
from gpuplan.catalog.update.clean import (
    PLAUSIBLE_USD_PER_ACCELERATOR_H,
    PLAUSIBLE_USD_PER_MACHINE_H,
)
from gpuplan.domain.money.market import Offer
from gpuplan.domain.system.findings import Finding, Severity

STALE_DAYS = 180
OLD_DAYS = 540
# Machines with one accelerator and a very large host cost up to nine times the usual.
SPREAD_FACTOR = 10.0
UPDATE = "run `gpuplan catalog update`"
REPAIR = "repair the row, or fetch the cloud anew"


def check_offers(
    offers: Collection[Offer], today: date, *, known_accelerators: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """What is wrong, old, ambiguous or unknown; accelerators are only judged against known ids."""
    findings = [
        *_price_findings(offers),
        *_spread_findings(offers),
        *_duplicate_findings(offers),
        *_age_findings(offers, today),
        *_region_findings(offers),
        *_ambiguity_findings(offers),
        *_basis_findings(offers),
    ]
    if known_accelerators is not None:
        findings += _unknown_findings(offers, frozenset(known_accelerators))
    return tuple(findings)


def _finding(severity: Severity, rule: str, where: str, what: str, fix: str) -> Finding:
    return Finding(severity=severity, rule=rule, where=where, what=what, fix=fix)


def _where(offer: Offer) -> str:
    return f"{offer.cloud} {offer.instance} {offer.region}".rstrip()


def _price_findings(offers: Iterable[Offer]) -> Iterator[Finding]:
    for offer in offers:
        usd, spot = offer.usd_per_h, offer.spot_usd_per_h
        if not _is_price(usd):
            yield _finding("error", "price-positive", _where(offer), f"${usd} an hour", REPAIR)
            continue
        if spot is not None and not _is_price(spot):
            yield _finding("error", "spot-positive", _where(offer), f"spot ${spot} an hour", REPAIR)
        elif spot is not None and spot > usd:
            what = f"spot ${spot:g} above on-demand ${usd:g}"
            yield _finding("error", "spot-below-on-demand", _where(offer), what, REPAIR)
        if not _is_in_band(offer):
            what = f"${usd:g} an hour for {offer.n_accelerators:g} accelerators"
            yield _finding("error", "price-band", _where(offer), what, REPAIR)


def _is_price(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _is_in_band(offer: Offer) -> bool:
    each = offer.usd_per_accelerator_h
    low, high = PLAUSIBLE_USD_PER_MACHINE_H if each is None else PLAUSIBLE_USD_PER_ACCELERATOR_H
    return low <= (offer.usd_per_h if each is None else each) <= high


def _spread_findings(offers: Iterable[Offer]) -> Iterator[Finding]:
    """Prices far from what the same accelerator costs elsewhere."""
    groups: dict[str, list[tuple[float, Offer]]] = defaultdict(list)
    for offer in offers:
        each = offer.usd_per_accelerator_h
        if offer.accelerator and offer.is_rate and each is not None and _is_price(each):
            groups[offer.accelerator].append((each, offer))
    for accelerator, priced in groups.items():
        usual = median(each for each, _ in priced)
        far = [(each, o) for each, o in priced if not _is_near(each, usual)]
        by_machine = {(o.cloud, o.instance): each for each, o in far}
        for (cloud, instance), each in sorted(by_machine.items()):
            what = f"${each:.3g} per {accelerator} and hour; elsewhere ${usual:.3g} is usual"
            fix = "look it up at the cloud before relying on it"
            yield _finding("warning", "price-spread", f"{cloud} {instance}", what, fix)


def _is_near(value: float, usual: float) -> bool:
    return usual / SPREAD_FACTOR <= value <= usual * SPREAD_FACTOR


def _duplicate_findings(offers: Iterable[Offer]) -> Iterator[Finding]:
    count = Counter((o.cloud, o.instance, o.shape.ram_bytes, o.region) for o in offers)
    for (cloud, instance, _, region), n_rows in count.items():
        if n_rows > 1:
            where = f"{cloud} {instance} {region}"
            yield _finding("error", "duplicate", where, f"{n_rows} prices", "keep one")


def _age_findings(offers: Iterable[Offer], today: date) -> Iterator[Finding]:
    days: dict[str, set[date]] = defaultdict(set)
    for offer in offers:
        days[offer.cloud].add(offer.price_date)
    for cloud in sorted(days):
        oldest, newest = min(days[cloud]), max(days[cloud])
        age = (today - oldest).days
        what = f"prices of {oldest.isoformat()} are {age} days old"
        if newest > today:
            what = f"price date {newest.isoformat()} lies ahead of {today.isoformat()}"
            yield _finding("error", "price-date", cloud, what, REPAIR)
        elif age > OLD_DAYS:
            fix = f"{UPDATE}, or give your own prices: these may be far off"
            yield _finding("warning", "price-old", cloud, what, fix)
        elif age > STALE_DAYS:
            yield _finding("warning", "price-stale", cloud, what, UPDATE)


def _region_findings(offers: Iterable[Offer]) -> Iterator[Finding]:
    known = {region.id for region in read_regions()}
    unknown = {(o.cloud, o.region) for o in offers if f"{o.cloud}:{o.region}" not in known}
    for cloud, region in sorted(unknown):
        what = f"region {region!r} is not in the table of places" if region else "states no region"
        fix = "give the country, so that power and carbon can be priced"
        yield _finding("note", "region-known", cloud, what, fix)


def _ambiguity_findings(offers: Iterable[Offer]) -> Iterator[Finding]:
    groups = Counter((o.cloud, o.shape.accelerators) for o in offers if o.is_ambiguous)
    for (cloud, ids), n_offers in sorted(groups.items()):
        what = f"{n_offers} offers may carry {' or '.join(ids)}"
        fix = "ask the cloud; such offers are used only when asked for"
        yield _finding("note", "accelerator-ambiguous", cloud, what, fix)


def _basis_findings(offers: Iterable[Offer]) -> Iterator[Finding]:
    groups = Counter((o.cloud, o.shape.basis) for o in offers if not o.is_rate)
    for (cloud, basis), n_offers in sorted(groups.items()):
        what = f"{n_offers} offers priced as {basis}"
        yield _finding("note", "price-basis", cloud, what, "never compared with whole machines")


def _unknown_findings(offers: Iterable[Offer], known: frozenset[str]) -> Iterator[Finding]:
    unknown: dict[str, set[str]] = defaultdict(set)
    for offer in offers:
        for accelerator in offer.shape.accelerators:
            if accelerator not in known:
                unknown[accelerator].add(offer.cloud)
    for accelerator, clouds in sorted(unknown.items()):
        what = f"offered by {', '.join(sorted(clouds))}, and without facts in the catalog"
        fix = "add it by an overlay to plan with it"
        yield _finding("note", "accelerator-known", accelerator, what, fix)
