"""Catalog verbs: lists, single items, integrity, a user's overlay, refresh."""

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from gpuplan.catalog.integrity.models import check_models
from gpuplan.catalog.integrity.models import looked_at as models_looked_at
from gpuplan.catalog.integrity.offers import check_offers
from gpuplan.catalog.integrity.offers import looked_at as offers_looked_at
from gpuplan.catalog.integrity.places import check_places
from gpuplan.catalog.integrity.places import looked_at as places_looked_at
from gpuplan.catalog.integrity.run import check_catalog
from gpuplan.catalog.integrity.run import looked_at as facts_looked_at
from gpuplan.catalog.load import read_catalog, read_market_sources
from gpuplan.catalog.models import find_model, models_in_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import (
    offers_in,
    offers_with,
    read_discounts,
    read_offers,
    rentable,
)
from gpuplan.catalog.place_names import find_cloud
from gpuplan.catalog.regions import find_region, read_regions
from gpuplan.catalog.software.tables import read_software
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.market import Offer
from gpuplan.domain.sheet import Sheet
from gpuplan.domain.system.findings import Finding
from gpuplan.errors import InputError, PlannerError, one, unknown_choice
from gpuplan.report.catalog import rows
from gpuplan.report.catalog import sheets as report
from gpuplan.studies.naming import model_named, with_overlays

KINDS = (*rows.LISTERS, "models", "offers", "discounts", "regions", "software", "sources")


def list_items(
    kind: str,
    *,
    accelerator: str | None = None,
    cloud: str | None = None,
    region: str | None = None,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> Sheet:
    """Everything of one kind."""
    catalog = with_overlays(read_catalog(), overlays)
    if kind not in KINDS:
        raise unknown_choice("catalog list", "KIND", kind, KINDS)
    if kind == "offers":
        found = _offers(catalog, accelerator, store)
        found = offers_in(found, cloud=find_cloud(cloud) if cloud else None, region=region)
        return report.list_sheet(kind, rows.offer_rows(found), catalog.overrides)
    return report.list_sheet(kind, _rows(kind, catalog), catalog.overrides)


def _rows(kind: str, catalog: Catalog) -> list[rows.Row]:
    if kind in rows.LISTERS:
        return rows.LISTERS[kind](catalog)
    others: dict[str, Callable[[], list[rows.Row]]] = {
        "models": lambda: rows.model_rows([find_model(name) for name in models_in_catalog()]),
        "discounts": lambda: rows.discount_rows(read_discounts()),
        "regions": lambda: rows.region_rows(read_regions()),
        "software": lambda: rows.software_rows(read_software()),
        "sources": lambda: rows.source_rows(
            [*catalog.sources.values(), *read_market_sources().values()]
        ),
    }
    return others[kind]()


def _offers(catalog: Catalog, accelerator: str | None, store: Path | None) -> tuple[Offer, ...]:
    offers = read_offers(store)
    if accelerator is None:
        return offers
    return offers_with(offers, find_accelerator(accelerator, catalog).accelerator.id)


def show_item(text: str, *, overlays: Sequence[Path] = (), store: Path | None = None) -> Sheet:
    """One item by whatever name: an accelerator, a server, a part, a model, a region."""
    catalog = with_overlays(read_catalog(), overlays)
    item = text.strip().lower()
    if item in catalog.facts:
        return report.facts_sheet(item, catalog, _rented(item, catalog, store))
    try:
        found = find_accelerator(text, catalog).accelerator
    except PlannerError as no_accelerator:
        return _show_other(text, no_accelerator, store)
    return report.facts_sheet(found.id, catalog, _rented(found.id, catalog, store))


def _show_other(text: str, no_accelerator: PlannerError, store: Path | None) -> Sheet:
    hints = [*no_accelerator.problems]
    try:
        return report.model_sheet(model_named(text, store))
    except InputError as no_model:
        hints.extend(no_model.problems)
    try:
        return report.region_sheet(*find_region(text))
    except InputError as no_region:
        hints.extend(no_region.problems)
    fix = "; ".join(dict.fromkeys(problem.fix for problem in hints))
    what = "is neither an accelerator, a server, a part, a model nor a region"
    raise one(InputError, "catalog show", text, what, fix)


def _rented(item: str, catalog: Catalog, store: Path | None) -> tuple[Offer, ...]:
    if item not in catalog.accelerators:
        return ()
    return offers_with(rentable(read_offers(store)), item)


def check(
    *, today: date, overlays: Sequence[Path] = (), store: Path | None = None
) -> tuple[Finding, ...]:
    """Every objection of every rule to the facts, the models, the offers and the overlays."""
    catalog = with_overlays(read_catalog(), overlays)
    known = frozenset(str(item) for item in catalog.accelerators)
    return (
        *check_catalog(catalog, today=today),
        *check_models(),
        *check_offers(read_offers(store), today, known_accelerators=known),
        *check_places(read_regions(), today),
    )


def findings_sheet(findings: Sequence[Finding], *, store: Path | None = None) -> Sheet:
    """Findings with what each rule looked at, ready to show."""
    looked = {**facts_looked_at(read_catalog()), **offers_looked_at(read_offers(store))}
    looked |= {**models_looked_at(), **places_looked_at(read_regions())}
    return report.findings_sheet(findings, "catalog", looked)


def overlay(path: Path) -> Sheet:
    """What a user's file changes, after every rule has passed."""
    catalog = with_overlays(read_catalog(), [path])
    changes = [
        {
            "item": o.item,
            "quantity": o.quantity,
            "catalog": o.catalog_value or None,
            "overlay": o.overlay_value,
        }
        for o in catalog.overrides
    ]
    return report.list_sheet("overrides", changes, catalog.overrides)
