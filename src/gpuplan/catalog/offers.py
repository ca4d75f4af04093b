"""What can be rented, in: the package's tables and a user's store; out: Offers and Discounts."""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path

from gpuplan.catalog.regions import PREFERRED_CLOUDS
from gpuplan.catalog.update.rows import shape_from
from gpuplan.catalog.update.store import read_stored_offers
from gpuplan.csv_rows import noun_from, packaged_rows
from gpuplan.domain.money.market import Discount, InstanceShape, Offer, Seller

OLDEST_DATE = date.min


# A source that lists every machine in every region at one price says nothing of regions.
LEAST_REGIONS, LEAST_MACHINES = 5, 5


def read_offers(store: Path | None = None) -> tuple[Offer, ...]:
    """Every offer, in regions where a source says so; elsewhere one without a region."""
    stored = {} if store is None else read_stored_offers(store)
    return with_known_regions(listed_offers(store)) if stored else _known_offers()


@cache
def _known_offers() -> tuple[Offer, ...]:
    return with_known_regions(_packaged_offers())


def with_known_regions(offers: Collection[Offer]) -> tuple[Offer, ...]:
    """Offers of clouds that are listed everywhere alike, once each and without a region."""
    by_cloud: dict[str, dict[tuple[str, float | None], list[Offer]]] = {}
    for offer in offers:
        if offer.n_accelerators and not is_surveyed(offer):
            key = (offer.instance, offer.shape.ram_bytes)
            by_cloud.setdefault(offer.cloud, {}).setdefault(key, []).append(offer)
    alike = {cloud for cloud, machines in by_cloud.items() if _is_everywhere(machines.values())}
    retained = [o for o in offers if o.cloud not in alike or not o.n_accelerators or is_surveyed(o)]
    for cloud in sorted(alike):
        for same in by_cloud[cloud].values():
            regions = tuple(sorted(offer.region for offer in same))
            retained.append(replace(same[0], region="", listed_regions=regions))
    return tuple(retained)


def _is_everywhere(machines: Collection[Sequence[Offer]]) -> bool:
    """Whether every machine is listed in all of many regions at one price: a product of lists."""
    regions = {offer.region for same in machines for offer in same}
    if len(regions) < LEAST_REGIONS or len(machines) < LEAST_MACHINES:
        return False
    return all(
        len(same) == len(regions) and len({offer.usd_per_h for offer in same}) == 1
        for same in machines
    )


def listed_offers(store: Path | None = None) -> tuple[Offer, ...]:
    """Every line of the lists; a cloud's prices come from the store where it holds newer ones."""
    packaged = _packaged_offers()
    stored = {} if store is None else read_stored_offers(store)
    if not stored:
        return packaged
    dates = price_dates(packaged)
    newer = {
        cloud: offers
        for cloud, offers in stored.items()
        if offers and offers[0].price_date >= dates.get(cloud, OLDEST_DATE)
    }
    # A source of accelerators says nothing of the other machines, so those stay.
    retained = (o for o in packaged if o.cloud not in newer or o.n_accelerators == 0)
    return (*retained, *(offer for offers in newer.values() for offer in offers))


def price_dates(offers: Collection[Offer]) -> dict[str, date]:
    """The day of the newest price, by cloud."""
    dates: dict[str, date] = {}
    for offer in own_lists(offers):
        dates[offer.cloud] = max(offer.price_date, dates.get(offer.cloud, OLDEST_DATE))
    return dates


def is_surveyed(offer: Offer) -> bool:
    """Whether somebody else reports the price: weak evidence, for what no list has."""
    return offer.source in _surveys()


def own_lists(offers: Collection[Offer]) -> list[Offer]:
    """Offers of the clouds' own lists; surveyed ones only of clouds that have none here."""
    listed = {offer.cloud for offer in offers if not is_surveyed(offer)}
    return [o for o in offers if not (is_surveyed(o) and o.cloud in listed)]


def offers_with(offers: Collection[Offer], accelerator: str) -> tuple[Offer, ...]:
    """Offers that carry this accelerator, without those that may carry another."""
    return tuple(
        offer
        for offer in offers
        if accelerator in offer.shape.accelerators and not offer.is_ambiguous
    )


def offers_in(
    offers: Collection[Offer], *, cloud: str | None = None, region: str | None = None
) -> tuple[Offer, ...]:
    """Offers of this cloud, in this region by the cloud's own name."""
    return tuple(
        offer for offer in offers if cloud in (None, offer.cloud) and region in (None, offer.region)
    )


def machines_named(text: str) -> list[InstanceShape]:
    """Kinds of machine with accelerators that a cloud's name for them, or its words, stand for.

    Words begin as the name does: `p5`, `ND H100 v5` of Standard_ND96isr_H100_v5; never a number.
    """
    wanted, words = text.casefold(), _words_of(text)
    known = {offer.shape.name: offer.shape for offer in read_offers() if offer.n_accelerators}
    whole = [shape for name, shape in known.items() if name.casefold() == wanted]
    large = [shape for shape in known.values() if shape.cloud in PREFERRED_CLOUDS]
    named = [shape for shape in large if _is_named(words, _words_of(shape.name))]
    begun = [shape for shape in large if _is_begun(words, _words_of(shape.name))]
    return whole or named or begun


def _words_of(name: str) -> list[str]:
    words = [word for word in re.split(r"[^a-z0-9]+", name.casefold()) if word]
    return words[1:] if words[:1] in (["standard"], ["bm"], ["vm"]) else words


def _is_named(words: list[str], full: list[str]) -> bool:
    return words[:1] == full[:1] != [] and {*words} <= {*full}


def _is_begun(words: list[str], full: list[str]) -> bool:
    if len(words) < 2 or not full or not words[0].isalpha():
        return False
    return full[0].startswith(words[0]) and all(
        any(each.startswith(word) for each in full) for word in words
    )


def rentable(offers: Collection[Offer]) -> tuple[Offer, ...]:
    """Offers at the price of a whole machine: no bid floors, no accelerators without a host."""
    return tuple(offer for offer in offers if offer.is_rate)


@cache
def _sellers() -> tuple[tuple[str, str, Seller], ...]:
    """Cloud, end of the instance's name, and who sells it, where that is not the cloud itself."""
    kinds: dict[str, Seller] = {"marketplace": "marketplace", "auction": "auction"}
    rows = packaged_rows("gpuplan.catalog", "data/offers_sellers.csv")
    return tuple((row["cloud"], row["instance_ends"], kinds[row["seller"]]) for row in rows)


def seller_of(offer: Offer) -> Seller:
    """Who sets the price: the cloud by its list, a marketplace, an auction; or who surveyed it."""
    if is_surveyed(offer):
        return "survey"
    for cloud, end, seller in _sellers():
        if offer.cloud == cloud and offer.instance.endswith(end):
            return seller
    return "auction" if offer.shape.basis == "bid-floor" else "provider"


@cache
def read_discounts() -> tuple[Discount, ...]:
    """What commitments take off; general ranges, no price list of accelerators is published."""
    rows = packaged_rows("gpuplan.catalog", "data/discounts.csv")
    return tuple(noun_from(Discount, row) for row in rows)


@cache
def _packaged_offers() -> tuple[Offer, ...]:
    return (*_accelerator_offers(), *_cpu_offers(), *_surveyed_offers())


@cache
def clouds_priced() -> dict[str, tuple[date, str]]:
    """Clouds that the package has prices of, with the day and the source of those."""
    rows = _cells("offers_clouds.csv")
    return {cloud: (date.fromisoformat(day), source) for cloud, day, source in rows}


def _accelerator_offers() -> Iterator[Offer]:
    shapes = [shape_from(cloud, cells) for cloud, *cells in _cells("offers_instances.csv")]
    for line, usd, spot, regions in _cells("offers_prices.csv"):
        shape = shapes[int(line)]
        yield from _priced(shape, regions, usd, spot, *clouds_priced()[shape.cloud])


@cache
def _surveys() -> frozenset[str]:
    """Sources that report other people's prices: weak evidence, for what no list has."""
    return frozenset(source for _, _, source, *_ in _cells("offers_surveyed.csv"))


def _surveyed_offers() -> Iterator[Offer]:
    for cloud, day, source, *cells, usd, region in _cells("offers_surveyed.csv"):
        shape = shape_from(cloud, cells)
        yield from _priced(shape, region, usd, "", date.fromisoformat(day), source)


def _cpu_offers() -> Iterator[Offer]:
    shapes: dict[tuple[str, ...], InstanceShape] = {}
    for cloud, day, *cells, usd, spot, regions in _cells("offers_cpu.csv"):
        key = (cloud, *cells)
        if key not in shapes:
            shapes[key] = shape_from(cloud, cells)
        priced_at = date.fromisoformat(day)
        yield from _priced(shapes[key], regions, usd, spot, priced_at, "skypilot-catalog")


def _priced(
    shape: InstanceShape, regions: str, usd: str, spot: str, day: date, source: str
) -> Iterator[Offer]:
    """One offer in each region; an empty spot price is none."""
    usd_per_h, spot_usd_per_h = float(usd), float(spot) if spot else None
    for region in regions.split("|"):
        yield Offer(
            shape=shape,
            region=region,
            usd_per_h=usd_per_h,
            spot_usd_per_h=spot_usd_per_h,
            price_date=day,
            source=source,
        )


def _cells(name: str) -> list[list[str]]:
    """Cells of a table's rows, its heading left out."""
    path = files("gpuplan.catalog").joinpath("data", name)
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]
