"""The hardware catalog, in: the package's tables; out: a Catalog of domain nouns.

The package's tables, in: CSV and TOML files beside this module; out: facts and sources.

Publications that the market tables cite, in: sources_market.toml; out: Source nouns by key.
"""

import csv
import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, cast, get_args

from gpuplan.catalog import build
from gpuplan.catalog.schema import Kind
from gpuplan.csv_rows import noun_from
from gpuplan.domain.hardware.catalog import Catalog, Fact, Network
from gpuplan.domain.hardware.devices import MigProfile
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Override, Source
from gpuplan.errors import CatalogError, Problem, one
from gpuplan.units import GIB

FACT_COLUMNS = ("item", "quantity", "value", "unit", "source", "preferred", "note")
KIND_TABLES: Mapping[str, Kind | None] = {
    "facts.csv": "accelerator",
    "servers.csv": "server",
    "network.csv": None,  # a row `kind` says whether it is a switch, a nic or a link
    "storage.csv": "storage",
}
MIG_TABLE = "mig.csv"
SOURCE_TABLE = "sources.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Everything that the hardware tables say, not yet made into nouns."""

    facts: Mapping[str, tuple[Fact, ...]]  # by item
    kinds: Mapping[str, Kind]  # of each item
    mig_profiles: tuple[MigProfile, ...]
    sources: Mapping[str, Source]
    content_hash: str


@cache
def read_catalog() -> Catalog:
    """The catalog as shipped; a user's overlay is laid on it by `overlay.apply_overlay`."""
    return catalog_from(read_tables())


def catalog_from(tables: Tables, overrides: tuple[Override, ...] = ()) -> Catalog:
    """The catalog that these tables describe; every incomplete item is named at once."""
    problems = incomplete(tables)
    if problems:
        raise CatalogError("catalog", problems)

    def nouns(kind: Kind) -> Mapping[Any, Any]:
        items = build.items_of(tables.kinds, kind)
        made = {item: build.described(item, tables.facts[item], kind=kind) for item in items}
        return MappingProxyType(made)

    return Catalog(
        accelerators=nouns("accelerator"),
        servers=nouns("server"),
        network=Network(switches=nouns("switch"), nics=nouns("nic"), links=nouns("link")),
        storage=nouns("storage"),
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


def read_tables() -> Tables:
    """The tables as shipped."""
    texts = {name: _text(name) for name in (*KIND_TABLES, MIG_TABLE, SOURCE_TABLE)}
    facts: dict[str, list[Fact]] = {}
    kinds: dict[str, Kind] = {}
    for name, kind in KIND_TABLES.items():
        for fact in parse_facts(texts[name], table=name):
            facts.setdefault(fact.item, []).append(fact)
            if kind is not None:
                kinds[fact.item] = kind
            elif fact.quantity == "kind":
                kinds[fact.item] = _kind(fact)
    digest = hashlib.sha256("\0".join(texts[name] for name in sorted(texts)).encode())
    return Tables(
        facts={item: tuple(rows) for item, rows in facts.items()},
        kinds=kinds,
        mig_profiles=tuple(parse_mig(texts[MIG_TABLE])),
        sources=parse_sources(texts[SOURCE_TABLE]),
        content_hash=digest.hexdigest(),
    )


def parse_facts(text: str, *, table: str) -> Iterator[Fact]:
    """One fact per line of a table in the fact format."""
    rows = csv.reader(text.splitlines())
    _expect_columns(next(rows, []), FACT_COLUMNS, table=table)
    for n_line, row in enumerate(rows, start=2):
        if len(row) != len(FACT_COLUMNS):
            raise one(
                CatalogError,
                table,
                f"line {n_line}",
                f"{len(row)} columns",
                f"write {len(FACT_COLUMNS)}: {','.join(FACT_COLUMNS)}",
            )
        cells: dict[str, Any] = dict(zip(FACT_COLUMNS, row, strict=True))
        yield Fact(**cells | {"preferred": cells["preferred"] == "yes"})


def parse_sources(text: str) -> dict[str, Source]:
    """The publications that facts cite, by key."""
    return {key: Source(key=key, **entry) for key, entry in tomllib.loads(text).items()}


def parse_mig(text: str) -> Iterator[MigProfile]:
    """One way to cut an accelerator per line; the vendor's GB are GiB, as in marketed memory."""
    for row in csv.DictReader(text.splitlines()):
        memory_bytes = float(row["memory_gib"]) * GIB
        yield noun_from(MigProfile, row, name=row["profile"], memory_bytes=memory_bytes)


def _expect_columns(found: Iterable[str], expected: Iterable[str], *, table: str) -> None:
    if list(found) != list(expected):
        raise one(
            CatalogError, table, "line 1", f"columns {list(found)}", f"write {','.join(expected)}"
        )


def _kind(fact: Fact) -> Kind:
    if fact.value not in get_args(Kind):
        raise one(
            CatalogError,
            "network.csv",
            fact.item,
            f"kind {fact.value!r}",
            f"one of {', '.join(get_args(Kind))}",
        )
    return cast(Kind, fact.value)


def _text(name: str) -> str:
    return files("gpuplan.catalog").joinpath("data", name).read_text(encoding="utf-8")


@cache
def read_market_sources() -> dict[str, Source]:
    """The sources of offers, regions and the software matrix, by key."""
    return parse_sources(_text("sources_market.toml"))
