"""Catalogs with one fault planted, to see that a rule catches it."""

from dataclasses import replace

from gpuplan.catalog.load import Tables, catalog_from, tables_of
from gpuplan.domain.hardware.catalog import Catalog, Fact


def planted(catalog: Catalog, item: str, quantity: str, **changes: object) -> Catalog:
    """The catalog with the preferred fact changed, e.g. value="1979"."""
    return rebuilt(
        catalog,
        item,
        tuple(
            replace(fact, **changes) if fact.quantity == quantity and fact.preferred else fact
            for fact in catalog.facts[item]
        ),
    )


def added(catalog: Catalog, fact: Fact) -> Catalog:
    """The catalog with one more line."""
    return rebuilt(catalog, fact.item, (*catalog.facts[fact.item], fact))


def removed(catalog: Catalog, item: str, quantity: str) -> Catalog:
    """The catalog without any line on the quantity."""
    kept = tuple(fact for fact in catalog.facts[item] if fact.quantity != quantity)
    return rebuilt(catalog, item, kept)


def rebuilt(catalog: Catalog, item: str, facts: tuple[Fact, ...]) -> Catalog:
    """The catalog with other lines on one item."""
    return catalog_from(tables_with(catalog, item, facts))


def tables_with(catalog: Catalog, item: str, facts: tuple[Fact, ...]) -> Tables:
    """The tables with other lines on one item, not yet built."""
    tables = tables_of(catalog)
    return replace(tables, facts={**tables.facts, item: facts})
