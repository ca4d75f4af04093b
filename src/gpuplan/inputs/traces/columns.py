"""Which column of a file holds what: as typed by the user, or by the names that files use."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

from gpuplan.domain.traffic.trace import ColumnMap, TimeUnit
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.problems import nearest, other_names

NAMES = other_names("trace")
RUN = NAMES["run"]
# What is typed in --columns, the field of the column map, and the names that files use.
FIELDS = {"input": "input_tokens", "output": "output_tokens", "max": "max_tokens"}
KNOWN = {key: (FIELDS.get(key, key), NAMES[key]) for key in NAMES if key != "run"}


def column_map(text: str) -> ColumnMap:
    """The map of `arrive=ts,input=prompt,unit=ms`; InputError names every part that is unclear."""
    given: dict[str, str] = {}
    problems, keys = [], (*KNOWN, "unit")
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign or not value or key not in keys or key in given:
            what = f"{key} is given twice" if key in given else f"got {part[:60]!r}"
            problems.append(Problem("columns", what, f"write KEY=COLUMN, KEY of {', '.join(keys)}"))
        given.setdefault(key, value)
    unit = given.get("unit")
    if unit is not None and unit not in get_args(TimeUnit):
        problems.append(Problem("columns", f"unit is {unit[:20]!r}", "must be s, ms, us or ns"))
    if not given:
        fix = "e.g. arrive=ts,input=in,output=out"
        problems.append(Problem("columns", "nothing is mapped", fix))
    if problems:
        raise InputError("trace", problems)
    columns = {field: given.get(key) for key, (field, _) in KNOWN.items()}
    return ColumnMap(**columns, time_unit=cast("TimeUnit | None", unit))


def columns_taken(columns: ColumnMap) -> dict[str, str | None]:
    """The column of the file by what it holds; None where the file has none."""
    return {key: getattr(columns, field) for key, (field, _) in KNOWN.items()}


def columns_note(columns: ColumnMap) -> str:
    """A sentence on which column is taken for what."""
    pairs = [(k, name) for k, name in columns_taken(columns).items() if name or k != "max"]
    shown = (f"{'time' if key == 'arrive' else key} = {name or 'none'}" for key, name in pairs)
    return f"columns taken: {', '.join(shown)}"


def plain(name: str) -> str:
    """The name in lower case with one kind of gap."""
    return re.sub(r"[\s\-.]+", "_", name.strip().lower())


def find(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first column, in order of the wanted names, that the file has."""
    by_plain = {plain(name): name for name in reversed(names)}
    return next((by_plain[name] for name in wanted if name in by_plain), None)


def columns_of(path: Path, names: Sequence[str], given: ColumnMap | None) -> ColumnMap:
    """The column map of a file; InputError names what is missing and which columns there are."""
    if given is not None:
        _check(path, names, given)
        return given
    fields: dict[str, Any] = {field: find(names, known) for field, known in KNOWN.values()}
    found = ColumnMap(**fields)
    missing = [
        Problem(str(path), f"no column is known to hold {key} tokens", _choices(names, key))
        for key in ("input", "output")
        if columns_taken(found)[key] is None
    ]
    if missing:
        raise InputError("trace", missing)
    return found


def _check(path: Path, names: Sequence[str], given: ColumnMap) -> None:
    problems = []
    for key, column in columns_taken(given).items():
        if column is not None and column not in names:
            guess = nearest(column, list(names))
            hint = f"did you mean {guess}?" if guess else _choices(names, key)
            problems.append(Problem(str(path), f"has no column {column!r} for {key}", hint))
    if not problems and given.arrive is None and given.input_tokens is None:
        fix = "name at least the arrivals or the input tokens"
        problems.append(Problem(str(path), "the column map names neither time nor length", fix))
    if problems:
        raise InputError("trace", problems)


def _choices(names: Sequence[str], key: str) -> str:
    shown = ", ".join(str(name)[:40] for name in list(names)[:12])
    return f"map one with --columns {key}=COLUMN; the file has {shown}"
