"""Rows of CSV tables: a user's file, a text already read, or a table that the package ships.

All faults of a table are reported at once as an InputError; sizes of files and cells are limited.
"""

import csv
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from gpuplan.errors import InputError, PlannerError, Problem, one

MAX_BYTES = 200_000_000
MAX_SHOWN = 20
MAX_FIELD = 1_000_000
DECIMAL = re.compile(r"\d+,\d+")  # semicolons separate columns where the comma is a decimal point
DELIMITERS = (",", ";", "\t")  # the first wins where none is found
HEADER_FIX = "write a header line and one row per line"
# How cells are read; other kinds have a method `read`, or are words.
READERS: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: lambda cell: cell == "yes",
    date: date.fromisoformat,
}
Noun = TypeVar("Noun")


def read_csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a user's file by column name, whatever delimiter it uses."""
    return csv_rows(read_text(path), source=str(path))


def read_text(path: Path) -> str:
    """The text of a user's file."""
    source = str(path)
    try:
        with path.open("rb") as file:  # devices state no size, and may have no end
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _error(source, f"has more than {MAX_BYTES:,} bytes", "give less")
        text = content.decode("utf-8-sig")
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise _error(source, f"cannot be read: {why}", "give a file that exists") from None
    except UnicodeDecodeError as error:
        raise _error(source, f"is not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    if "\x00" in text:
        raise _error(source, "holds binary data", "give a CSV file")
    return text


@cache
def packaged_rows(package: str, path: str) -> tuple[dict[str, str], ...]:
    """The rows of a table that a package ships: `("gpuplan.catalog", "data/timm.csv")`."""
    text = files(package).joinpath(path).read_text("utf-8")
    return tuple(csv_rows(text, source=path, delimiter=","))


def noun_from(noun: type[Noun], row: Mapping[str, str], **own: Any) -> Noun:
    """The noun whose fields are the cells of their names, each read by the field's type.

    An empty cell is None where that may be; lists are words with spaces between them; `is_sure`
    may stand in the column `sure`. `own` are fields that the caller works out.
    """
    kind: Any = noun  # for the cache, which asks for what can be hashed
    read = {}
    for name, reader in _readers(kind).items():
        cell = row.get(name, row.get(name.removeprefix("is_")))
        if cell is not None and name not in own:
            read[name] = reader(cell)
    return noun(**read, **own)


@cache
def _readers(noun: Any) -> dict[str, Callable[[str], Any]]:
    return {name: _reader(kind) for name, kind in get_type_hints(noun).items()}


def _reader(kind: Any) -> Callable[[str], Any]:
    inner, many = get_args(kind), get_origin(kind)
    if type(None) in inner:
        read = _reader(inner[0])
        return lambda cell: read(cell) if cell else None
    if many in (tuple, frozenset):
        read = _reader(inner[0])
        return lambda cell: many(read(word) for word in cell.split())
    return READERS.get(kind, getattr(kind, "read", str))


def meanings(room: str, of: str) -> dict[str, str]:
    """What each word of a list means, in the order of the room's table `data/words.csv`."""
    rows = packaged_rows(f"gpuplan.{room}", "data/words.csv")
    return {row["word"]: row["means"] for row in rows if row["list"] == of}


def words(room: str, of: str) -> tuple[str, ...]:
    """The words of a list, the first to be looked for first."""
    return tuple(meanings(room, of))


def by_meaning(room: str, of: str) -> dict[str, tuple[str, ...]]:
    """The words of a list for each thing that they mean."""
    found: dict[str, list[str]] = {}
    for word, meaning in meanings(room, of).items():
        found.setdefault(meaning, []).append(word)
    return {meaning: tuple(names) for meaning, names in found.items()}


def csv_rows(text: str, *, source: str, delimiter: str | None = None) -> list[dict[str, str]]:
    """The rows of a table by column name; the header tells the delimiter unless it is given."""
    delimiter = delimiter or _delimiter(text)
    (_, header), *lines = csv_cells(text, source=source, delimiter=delimiter) or [(1, [])]
    names = [name.strip() for name in header]
    if not names:
        raise _error(source, "is empty", HEADER_FIX)
    if len(set(names)) < len(names):
        raise _error(source, "names a column twice", "keep one of them")
    problems = [
        Problem(f"line {n}", f"{len(cells)} cells under {len(names)} columns", "quote commas")
        for n, cells in lines
        if len(cells) != len(names)
    ]
    if problems:
        raise InputError(source, problems[:MAX_SHOWN])
    return [dict(zip(names, _pointed(cells, delimiter), strict=True)) for _, cells in lines]


def csv_cells(text: str, *, source: str, delimiter: str = ",") -> list[tuple[int, list[str]]]:
    """Line number and cells of every line that is not empty."""
    usual = csv.field_size_limit(MAX_FIELD)
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter)
    try:
        return [(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise _error(source, f"is no CSV: {error}", HEADER_FIX) from None
    finally:
        csv.field_size_limit(usual)  # the limit is everybody's: other readers keep theirs


def _delimiter(text: str) -> str:
    """What separates the names of the columns; spreadsheets of many countries write semicolons."""
    return max(DELIMITERS, key=next(iter(text.splitlines()), "").count)


def _pointed(cells: list[str], delimiter: str) -> list[str]:
    """Cells with decimal points."""
    if delimiter != ";":
        return cells
    return [cell.replace(",", ".") if DECIMAL.fullmatch(cell) else cell for cell in cells]


def _error(source: str, what: str, fix: str) -> PlannerError:
    return one(InputError, "table", source, what, fix)
