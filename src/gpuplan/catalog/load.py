"""The hardware catalog, in: the package's tables; out: a Catalog of domain nouns."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from gpuplan.catalog import build
from gpuplan.catalog.schema import Kind
from gpuplan.catalog.tables import Tables, read_tables
from gpuplan.domain.hardware.catalog import Catalog, Fact, Network
from gpuplan.domain.hardware.devices import AcceleratorId, PartId, ServerId
from gpuplan.domain.provenance import Override
from gpuplan.errors import CatalogError, Problem

Noun = TypeVar("Noun")
Key = TypeVar("Key")


@cache
def read_catalog() -> Catalog:
    """The catalog as shipped; a user's overlay is laid on it by `overlay.apply_overlay`."""
    return catalog_from(read_tables())


def catalog_from(tables: Tables, overrides: tuple[Override, ...] = ()) -> Catalog:
    """The catalog that these tables describe; every incomplete item is named at once."""
    problems = incomplete(tables)
    if problems:
        raise CatalogError("catalog", problems)

    def nouns(
        kind: Kind, key: Callable[[str], Key], make: Callable[[str, Iterable[Fact]], Noun]
    ) -> Mapping[Key, Noun]:
        items = build.items_of(tables.kinds, kind)
        return MappingProxyType({key(item): make(item, tables.facts[item]) for item in items})

    return Catalog(
        accelerators=nouns("accelerator", AcceleratorId, build.accelerator),
        servers=nouns("server", ServerId, build.server),
        network=Network(
            switches=nouns("switch", PartId, build.switch),
            nics=nouns("nic", PartId, build.nic),
            links=nouns("link", PartId, build.link),
        ),
        storage=nouns("storage", PartId, build.storage),
        mig_profiles=tables.mig_profiles,
        facts=MappingProxyType(dict(tables.facts)),
        sources=MappingProxyType(dict(tables.sources)),
        content_hash=tables.content_hash,
        overrides=overrides,
    )


def tables_of(catalog: Catalog) -> Tables:
    """The tables that would give this catalog: to change a fact and build anew."""
    kinds: dict[str, Kind] = dict.fromkeys(catalog.accelerators, "accelerator")
    kinds |= dict.fromkeys(catalog.servers, "server")
    kinds |= dict.fromkeys(catalog.network.switches, "switch")
    kinds |= dict.fromkeys(catalog.network.nics, "nic")
    kinds |= dict.fromkeys(catalog.network.links, "link")
    kinds |= dict.fromkeys(catalog.storage, "storage")
    return Tables(
        facts=catalog.facts,
        kinds=kinds,
        mig_profiles=catalog.mig_profiles,
        sources=catalog.sources,
        content_hash=catalog.content_hash,
    )


def incomplete(tables: Tables) -> list[Problem]:
    """What is missing before every item can be planned with."""
    problems: list[Problem] = []
    for item, facts in tables.facts.items():
        if item not in tables.kinds:
            problems.append(Problem(item, "of no kind", "add a fact `kind`"))
        else:
            problems += build.missing(item, facts, kind=tables.kinds[item])
    return problems
