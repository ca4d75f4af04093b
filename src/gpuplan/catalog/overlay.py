"""A user's own facts, in: a parsed overlay document; out: the catalog with them laid on top.

Nothing is replaced in silence: every change is an Override that the catalog carries along.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from gpuplan.catalog import build
from gpuplan.catalog.integrity.run import FACT_RULES, HARDWARE_RULES
from gpuplan.catalog.load import Tables, catalog_from, tables_of
from gpuplan.catalog.schema import (
    QUANTITIES,
    SECTIONS,
    Kind,
    Quantity,
    in_base_units,
    overlay_key,
)
from gpuplan.domain.hardware.catalog import Catalog, Fact
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Override, Source
from gpuplan.errors import InputError, Problem

KeyPath = tuple[str | int, ...]
Where = Callable[[KeyPath], str]

MAX_ITEMS = 10_000
MAX_TEXT = 200
_OWN_KEYS = ("like", "source")
_MEMORY = ("memory_driver", "memory_visible")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """What an overlay says of one item."""

    item: str
    kind: Kind
    path: KeyPath
    like: str | None
    source: str
    values: Mapping[str, str]  # by quantity, in its own unit


def apply_overlay(
    catalog: Catalog, document: object, *, overlay: str, where: Where | None = None
) -> Catalog:
    """The catalog with the document's facts preferred; InputError names every problem at once.

    `where` turns a key path into a place such as file and line.
    """
    place = where or _dotted
    problems: list[Problem] = []
    entries = list(_entries(document, catalog, place, problems))
    if problems:
        raise InputError(overlay, problems)
    tables, overrides = tables_of(catalog), list(catalog.overrides)
    for entry in entries:
        tables, changed = _laid(tables, entry, overlay=overlay)
        overrides += changed
    problems = [p for entry in entries for p in _incomplete(tables, entry, place)]
    if problems:
        raise InputError(overlay, problems)
    laid = catalog_from(
        replace(tables, content_hash=_hash(catalog, overrides)), overrides=tuple(overrides)
    )
    problems = list(_unsound(laid, entries, place))
    if problems:
        raise InputError(overlay, problems)
    return laid


def overlay_keys(kind: Kind) -> dict[str, Quantity]:
    """Every key that an overlay may give for this kind, with its quantity."""
    return {overlay_key(kind, quantity): quantity for quantity in QUANTITIES[kind].values()}


def _entries(
    document: object, catalog: Catalog, place: Where, problems: list[Problem]
) -> Iterator[_Entry]:
    for section, items in _mapping(document, (), place, problems).items():
        if section not in SECTIONS:
            problems.append(_unknown(place((section,)), section, list(SECTIONS)))
            continue
        for item, values in _mapping(items, (section,), place, problems).items():
            path: KeyPath = (section, item)
            given = _mapping(values, path, place, problems)
            if not item.strip() or len(item) > MAX_TEXT:
                problems.append(Problem(place(path), "no usable id", "write a short id"))
            entry = _entry(item, given, path=path, place=place, problems=problems)
            problems += _id_problems(entry, catalog, place)
            yield entry


def _entry(
    item: str,
    given: Mapping[str, object],
    *,
    path: KeyPath,
    place: Where,
    problems: list[Problem],
) -> _Entry:
    kind = SECTIONS[str(path[0])]
    known = overlay_keys(kind)
    values: dict[str, str] = {}
    for key, value in given.items():
        if key in _OWN_KEYS:
            if not isinstance(value, str) or not value.strip():
                problems.append(Problem(place((*path, key)), f"got {value!r}", "write a text"))
        elif key not in known:
            problems.append(_unknown(place((*path, key)), key, [*known, *_OWN_KEYS]))
        else:
            problem = _value_problem(value, known[key], place((*path, key)))
            problems += [problem] if problem else []
            values[known[key].name] = str(value)
    like, source = given.get("like"), given.get("source")
    return _Entry(
        item=item,
        kind=kind,
        path=path,
        like=like if isinstance(like, str) else None,
        source=source if isinstance(source, str) else "",
        values=values,
    )


def _id_problems(entry: _Entry, catalog: Catalog, place: Where) -> list[Problem]:
    kinds = tables_of(catalog).kinds
    of_kind = build.items_of(kinds, entry.kind)
    if entry.item in kinds and kinds[entry.item] != entry.kind:
        return [Problem(place(entry.path), f"is a {kinds[entry.item]}", "choose another id")]
    if entry.like is not None and entry.item in kinds:
        return [
            Problem(
                place((*entry.path, "like")),
                f"{entry.item} is in the catalog already",
                "leave out `like`, or choose a new id",
            )
        ]
    if entry.like is not None and entry.like not in of_kind:
        return [_unknown(place((*entry.path, "like")), entry.like, of_kind)]
    if entry.like is None and entry.item not in kinds:
        close = get_close_matches(entry.item, of_kind, n=3)
        needed = any(
            q.required and q.name not in entry.values for q in QUANTITIES[entry.kind].values()
        )
        if needed:
            hint = f"did you mean {', '.join(close)}; or " if close else ""
            return [
                Problem(
                    place(entry.path),
                    "not in the catalog",
                    f"{hint}add `like: <id>` or every required key",
                )
            ]
    return []


def _laid(tables: Tables, entry: _Entry, *, overlay: str) -> tuple[Tables, list[Override]]:
    """The tables with one entry's facts preferred, and what that changed."""
    source = Source(
        key=f"overlay:{overlay}:{entry.item}",
        title=entry.source or overlay,
        publisher="user",
        url="",
        retrieved="",
        licence="user",
        kind="user",
    )
    old = _copied(tables, entry) if entry.like else tables.facts.get(entry.item, ())
    values = {**_scaled_memory(old, entry), **entry.values}
    if entry.like and "name" not in values:
        values["name"] = entry.item
    before = {fact.quantity: fact for fact in old if fact.preferred}
    retained = [
        replace(f, preferred=False, note=f.note or "replaced by the overlay")
        if f.quantity in values
        else f
        for f in old
    ]
    new = [
        Fact(
            item=entry.item,
            quantity=name,
            value=value,
            unit=QUANTITIES[entry.kind][name].unit,
            source=source.key,
            preferred=True,
        )
        for name, value in values.items()
    ]
    changed = [_override(fact, before.get(fact.quantity), overlay) for fact in new]
    if entry.like:
        changed.insert(
            0,
            Override(
                item=entry.item,
                quantity="like",
                catalog_value="",
                overlay_value=entry.like,
                overlay=overlay,
            ),
        )
    laid = replace(
        tables,
        facts={**tables.facts, entry.item: (*retained, *new)},
        kinds={**tables.kinds, entry.item: entry.kind},
        sources={**tables.sources, source.key: source},
    )
    return laid, changed


def _copied(tables: Tables, entry: _Entry) -> tuple[Fact, ...]:
    base = tables.facts[str(entry.like)]
    return tuple(replace(fact, item=entry.item) for fact in base if fact.preferred)


def _scaled_memory(old: Sequence[Fact], entry: _Entry) -> dict[str, str]:
    """Driver and visible memory in the old proportion, where only the size was given."""
    before = {fact.quantity: fact for fact in old if fact.preferred}
    if "memory_marketed" not in entry.values or "memory_marketed" not in before:
        return {}
    size = in_base_units(entry.values["memory_marketed"], "GiB")
    grown = size / in_base_units(before["memory_marketed"].value, before["memory_marketed"].unit)
    return {
        name: f"{float(before[name].value) * grown:.6g}"
        for name in _MEMORY
        if name not in entry.values and name in before
    }


def _incomplete(tables: Tables, entry: _Entry, place: Where) -> list[Problem]:
    found = build.missing(entry.item, tables.facts[entry.item], kind=entry.kind)
    return [Problem(place(entry.path), f"{p.where} {p.what}", p.fix) for p in found]


def _unsound(catalog: Catalog, entries: Sequence[_Entry], place: Where) -> Iterator[Problem]:
    """What the integrity rules object to once the overlay lies on top."""
    places = {entry.item: place(entry.path) for entry in entries}
    for rule in (*FACT_RULES, *HARDWARE_RULES):
        for finding in rule(catalog):
            item = next((i for i in places if i == finding.where.split(".")[0]), None)
            if finding.severity == "error":
                where = places[item] if item else finding.where
                yield Problem(where, f"{finding.where}: {finding.what}", finding.fix)


def _value_problem(value: object, quantity: Quantity, where: str) -> Problem | None:
    if quantity.is_text:
        if isinstance(value, str) and value.strip() and len(value) <= MAX_TEXT:
            return None
        return Problem(where, f"got {_shown(value)}", "write a short text")
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        return Problem(where, f"got {_shown(value)}", f"write a number in {quantity.unit}")
    if not quantity.low <= value <= quantity.high:
        return Problem(
            where, f"got {_shown(value)}", f"must be from {quantity.low:g} to {quantity.high:g}"
        )
    if quantity.unit == "count" and value != int(value):
        return Problem(where, f"got {_shown(value)}", "write a whole number")
    return None


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _mapping(
    value: object, path: KeyPath, place: Where, problems: list[Problem]
) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > MAX_ITEMS:
        problems.append(
            Problem(place(path) or "document", f"got {_shown(value)}", "write `key: value` lines")
        )
        return {}
    return {str(key): inner for key, inner in value.items()}


def _override(fact: Fact, before: Fact | None, overlay: str) -> Override:
    return Override(
        item=fact.item,
        quantity=fact.quantity,
        catalog_value=_printed(before) if before else "",
        overlay_value=_printed(fact),
        overlay=overlay,
    )


def _printed(fact: Fact) -> str:
    return fact.value if fact.unit in ("text", "count") else f"{fact.value} {fact.unit}"


def _unknown(where: str, key: str, known: Sequence[str]) -> Problem:
    close = get_close_matches(key, known, n=3, cutoff=0.5)
    fix = f"did you mean {', '.join(close)}" if close else f"one of {', '.join(known[:12])}"
    return Problem(where, f"unknown {_shown(key)}", fix)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _hash(catalog: Catalog, overrides: Sequence[Override]) -> str:
    stated = "\0".join(f"{o.item}\0{o.quantity}\0{o.overlay_value}" for o in overrides)
    return hashlib.sha256(f"{catalog.content_hash}\0{stated}".encode()).hexdigest()


def _dotted(path: KeyPath) -> str:
    return ".".join(str(part) for part in path)
