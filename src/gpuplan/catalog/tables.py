"""The package's tables, in: CSV and TOML files beside this module; out: facts and sources."""

import csv
import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import cast, get_args

from gpuplan.catalog.schema import Kind
from gpuplan.domain.hardware.catalog import Fact
from gpuplan.domain.hardware.devices import AcceleratorId, MigProfile
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Source
from gpuplan.errors import CatalogError, one
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
        item, quantity, value, unit, source, preferred, note = row
        yield Fact(
            item=item,
            quantity=quantity,
            value=value,
            unit=unit,
            source=source,
            preferred=preferred == "yes",
            note=note,
        )


def parse_sources(text: str) -> dict[str, Source]:
    """The publications that facts cite, by key."""
    return {key: Source(key=key, **entry) for key, entry in tomllib.loads(text).items()}


def parse_mig(text: str) -> Iterator[MigProfile]:
    """One way to cut an accelerator per line; the vendor's GB are GiB, as in marketed memory."""
    rows = csv.DictReader(text.splitlines())
    for row in rows:
        yield MigProfile(
            accelerator=AcceleratorId(row["accelerator"]),
            name=row["profile"],
            n_max=int(row["n_max"]),
            n_compute_slices=int(row["n_compute_slices"]),
            n_compute_slices_total=int(row["n_compute_slices_total"]),
            memory_bytes=float(row["memory_gib"]) * GIB,
        )


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
