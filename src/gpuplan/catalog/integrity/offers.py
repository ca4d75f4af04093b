"""Are the offers sound? in: offers and a day; out: findings, one per cause and not one per row."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date
from functools import cache
from statistics import median
from typing import NamedTuple

from gpuplan.catalog.offers import own_lists
from gpuplan.catalog.regions import read_regions
from gpuplan.catalog.update.clean import (
    COUNTED,
    PLAUSIBLE_USD_PER_ACCELERATOR_H,
    PLAUSIBLE_USD_PER_MACHINE_H,
    RAM_GROWTH,
)
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.money.market import Offer
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.units import GBIT, GIB

STALE_DAYS = 180
OLD_DAYS = 540
SPREAD_FACTOR = 4.0  # of the clouds' median
HOST_FACTOR = 10.0  # a single accelerator with a very large host costs up to nine times the usual
LARGE_HOST_VCPU = 30  # for each accelerator
RAM_GIB, VCPUS = (1.5, 1200.0), (1.0, 200.0)  # for each accelerator
RETIRED = "data/retired.csv"
RDMA = ("efa", "infiniband", "roce")
WHOLE_SERVER = 4  # accelerators, from which on a machine has its network to itself
FABRIC_SPREAD = 1.9  # a generation of adapters doubles the rate
UPDATE = "run `gpuplan catalog update`"
REPAIR = "repair the row, or fetch the cloud anew"


class OfferRule(NamedTuple):
    """One rule: what it looks at, and what it objects to."""

    name: str
    subjects: Callable[[Collection[Offer]], Sequence[Offer]]
    objections: Callable[[Sequence[Offer], "Judging"], Iterator[Finding]]


class Judging(NamedTuple):
    """What rules hold offers against."""

    today: date
    known_accelerators: frozenset[str] | None = None  # None: accelerators are not judged


def check_offers(
    offers: Collection[Offer], today: date, *, known_accelerators: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """What is wrong, old, ambiguous or unknown; accelerators are only judged against known ids."""
    known = None if known_accelerators is None else frozenset(known_accelerators)
    judging = Judging(today, known)
    return tuple(
        found for rule in RULES for found in rule.objections(rule.subjects(offers), judging)
    )


def looked_at(offers: Collection[Offer]) -> dict[str, int]:
    """Rows that each rule looks at."""
    return {rule.name: len(rule.subjects(offers)) for rule in RULES}


def _all(offers: Collection[Offer]) -> Sequence[Offer]:
    return tuple(offers)


def _machines(offers: Collection[Offer]) -> Sequence[Offer]:
    """Each kind of machine with accelerators once."""
    kinds = {(o.cloud, o.instance, o.shape.ram_bytes): o for o in offers if o.n_accelerators}
    return tuple(kinds.values())


def _priced_boards(offers: Collection[Offer]) -> Sequence[Offer]:
    return tuple(o for o in offers if o.accelerator and o.is_rate and _is_price(o.usd_per_h))


def _ambiguous(offers: Collection[Offer]) -> Sequence[Offer]:
    return tuple(o for o in offers if o.n_accelerators)


def _finding(severity: Severity, rule: str, where: str, what: str, fix: str) -> Finding:
    return Finding(severity=severity, rule=rule, where=where, what=what, fix=fix)


def _where(offer: Offer) -> str:
    return f"{offer.cloud} {offer.instance} {offer.region}".rstrip()


def _price_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
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


def _spread_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    """Prices far from the median over clouds of what the same accelerator costs."""
    boards: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for offer in offers:
        boards[offer.accelerator or ""][offer.cloud].append(_each(offer))
    usual = {board: median(map(median, clouds.values())) for board, clouds in boards.items()}
    far = {
        (o.cloud, o.instance): o
        for o in offers
        if not _is_near(_each(o), usual[o.accelerator or ""], o)
    }
    for (cloud, instance), offer in sorted(far.items()):
        typical, board = usual[offer.accelerator or ""], offer.accelerator
        what = f"${_each(offer):.3g} per {board} and hour; ${typical:.3g} is the clouds' median"
        fix = "look it up at the cloud before relying on it"
        yield _finding("warning", "price-spread", f"{cloud} {instance}", what, fix)


def _each(offer: Offer) -> float:
    return offer.usd_per_accelerator_h or offer.usd_per_h


def _is_near(value: float, usual: float, offer: Offer) -> bool:
    """Within the factor; single accelerators of large hosts may cost more."""
    n_vcpu = offer.shape.n_vcpu or 0
    most = HOST_FACTOR if n_vcpu > LARGE_HOST_VCPU * offer.n_accelerators else SPREAD_FACTOR
    return usual / SPREAD_FACTOR <= value <= usual * most


def _sibling_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    """Machines of one cloud with the same board, processors and numbers in their names agree."""
    groups: dict[tuple[object, ...], dict[float, str]] = defaultdict(dict)
    for offer in offers:
        shape = offer.shape
        numbers = tuple(re.findall(r"\d+", shape.name))
        key = (shape.cloud, shape.accelerators, shape.n_vcpu, numbers)
        if shape.n_accelerators >= 1:  # a share of a card bears the numbers of the whole one
            groups[key][shape.n_accelerators] = shape.name
    for (cloud, *_), counts in groups.items():
        if len(counts) > 1:
            what = " but ".join(f"{n:g} in {name}" for n, name in sorted(counts.items()))
            yield _finding("error", "siblings-agree", str(cloud), what, REPAIR)


def _host_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    """Processors and memory for each accelerator are within what hosts have."""
    for offer in offers:
        shape, n = offer.shape, offer.n_accelerators
        if n < 1:
            continue
        ram = None if shape.ram_bytes is None else shape.ram_bytes / GIB / n
        cpus = None if shape.n_vcpu is None else shape.n_vcpu / n
        for value, (low, high), unit in ((ram, RAM_GIB, "GiB"), (cpus, VCPUS, "vCPU")):
            if value is not None and not low <= value <= high:
                what = f"{value:,.0f} {unit} for each of {n:g} {'|'.join(shape.accelerators)}"
                where = f"{offer.cloud} {offer.instance}"
                yield _finding("warning", "host-plausible", where, what, REPAIR)


def _memory_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    """Memory grows in proportion over machines that differ by their count alone."""
    families: dict[tuple[str, str], dict[float, float]] = defaultdict(dict)
    for offer in offers:
        family, ram = COUNTED.sub("", offer.instance), offer.shape.ram_bytes
        if ram is not None and family != offer.instance:
            families[offer.cloud, family][offer.n_accelerators] = ram / offer.n_accelerators
    for (cloud, family), each in sorted(families.items()):
        if each[max(each)] > RAM_GROWTH * each[min(each)]:
            what = f"{each[min(each)] / GIB:,.0f} GiB per accelerator of {min(each):g}, "
            what += f"{each[max(each)] / GIB:,.0f} of {max(each):g}"
            yield _finding("error", "memory-proportional", f"{cloud} {family}", what, REPAIR)


def _availability_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    """Offers whose region no source confirms."""
    clouds = Counter(o.cloud for o in offers if not o.region)
    for cloud, n_offers in sorted(clouds.items()):
        what = f"{n_offers} servers without a confirmed region"
        fix = "ask the cloud; no carbon and no power price is taken from them"
        yield _finding("note", "region-confirmed", cloud, what, fix)


def _fabric_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    """Machines whose network towards others no source states."""
    known = Counter((o.cloud, o.shape.fabric is not None) for o in offers)
    for cloud in sorted({cloud for cloud, _ in known}):
        if n_unknown := known[cloud, False]:
            what = f"{n_unknown} of {n_unknown + known[cloud, True]} kinds of server: none known"
            fix = "such servers carry nothing that spans servers"
            yield _finding("note", "fabric-known", cloud, what, fix)


def _rate_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    """Networks for direct access to memory: Gbit/s of one accelerator differ little by cloud."""
    rates: dict[str, dict[str, float]] = defaultdict(dict)
    for offer in offers:
        shape, fabric = offer.shape, offer.shape.fabric
        is_whole = shape.n_accelerators >= WHOLE_SERVER and not offer.is_ambiguous
        if is_whole and fabric and fabric.kind in RDMA and shape.network_bytes_per_s:
            rate = shape.network_bytes_per_s / GBIT / shape.n_accelerators
            rates[str(offer.accelerator)][f"{shape.cloud} {shape.name}"] = rate
    for accelerator, by_machine in sorted(rates.items()):
        usual = median(by_machine.values())
        for where, rate in sorted(by_machine.items()):
            if not usual / FABRIC_SPREAD < rate < usual * FABRIC_SPREAD:
                what = f"{rate:,.0f} Gbit/s for each {accelerator}; {usual:,.0f} elsewhere"
                yield _finding("note", "fabric-spread", where, what, "look it up at the cloud")


@cache
def _retired() -> frozenset[str]:
    """Boards that no current framework builds for; the table gives why and who says so."""
    return frozenset(r["accelerator"] for r in packaged_rows("gpuplan.catalog", RETIRED))


def _duplicate_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    count = Counter((o.cloud, o.instance, o.shape.ram_bytes, o.region) for o in offers)
    for (cloud, instance, _, region), n_rows in count.items():
        if n_rows > 1:
            where = f"{cloud} {instance} {region}"
            yield _finding("error", "duplicate", where, f"{n_rows} prices", "keep one")


def _age_findings(offers: Sequence[Offer], judging: Judging) -> Iterator[Finding]:
    today = judging.today
    days: dict[str, set[date]] = defaultdict(set)
    for offer in own_lists(offers):
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


def _region_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    known = {region.id for region in read_regions()}
    unknown = {
        (o.cloud, o.region)
        for o in offers
        if not o.listed_regions and f"{o.cloud}:{o.region}" not in known
    }
    for cloud, region in sorted(unknown):
        what = f"region {region!r} is not in the table of places" if region else "states no region"
        fix = "give the country, so that power and carbon can be priced"
        yield _finding("note", "region-known", cloud, what, fix)


def _ambiguity_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    groups = Counter((o.cloud, o.shape.accelerators) for o in offers if o.is_ambiguous)
    for (cloud, ids), n_offers in sorted(groups.items()):
        what = f"{n_offers} offers may carry {' or '.join(ids)}"
        fix = "ask the cloud; such offers are used only when asked for"
        yield _finding("note", "accelerator-ambiguous", cloud, what, fix)


def _basis_findings(offers: Sequence[Offer], _judging: Judging) -> Iterator[Finding]:
    groups = Counter((o.cloud, o.shape.basis) for o in offers if not o.is_rate)
    for (cloud, basis), n_offers in sorted(groups.items()):
        what = f"{n_offers} offers priced as {basis}"
        yield _finding("note", "price-basis", cloud, what, "never compared with whole servers")


def _unknown_findings(offers: Sequence[Offer], judging: Judging) -> Iterator[Finding]:
    known = judging.known_accelerators
    if known is None:
        return
    unknown: dict[str, set[str]] = defaultdict(set)
    for offer in offers:
        for accelerator in offer.shape.accelerators:
            if accelerator not in known:
                unknown[accelerator].add(offer.cloud)
    for accelerator, clouds in sorted(unknown.items()):
        what = f"offered by {', '.join(sorted(clouds))}, and without facts in the catalog"
        fix = "add it by an overlay to plan with it"
        yield _finding("note", "accelerator-known", accelerator, what, fix)
    n_lost = sum(not known & {*offer.shape.accelerators} for offer in offers)
    if n_lost:
        n_retired = sum({*offer.shape.accelerators} <= _retired() for offer in offers)
        what = f"{n_lost} of {len(offers)} offers carry {len(unknown)} boards without facts, "
        what += f"{n_retired} of them boards that no current framework builds for"
        fix = "no plan can choose them; see the notes of accelerator-known"
        yield _finding("warning", "offers-without-facts", "offers", what, fix)


RULES: tuple[OfferRule, ...] = (
    OfferRule("price-positive, price-band, spot-below-on-demand", _all, _price_findings),
    OfferRule("price-spread", _priced_boards, _spread_findings),
    OfferRule("duplicate", _all, _duplicate_findings),
    OfferRule("price-old, price-stale, price-date", _all, _age_findings),
    OfferRule("region-known", _all, _region_findings),
    OfferRule("region-confirmed", _machines, _availability_findings),
    OfferRule("fabric-known", _machines, _fabric_findings),
    OfferRule("fabric-spread", _machines, _rate_findings),
    OfferRule("siblings-agree", _machines, _sibling_findings),
    OfferRule("host-plausible", _machines, _host_findings),
    OfferRule("memory-proportional", _machines, _memory_findings),
    OfferRule("accelerator-ambiguous", _ambiguous, _ambiguity_findings),
    OfferRule("price-basis", _all, _basis_findings),
    OfferRule("accelerator-known, offers-without-facts", _ambiguous, _unknown_findings),
)
