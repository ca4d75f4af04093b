"""Rows of a CSV file that somebody else wrote: every fault told, nothing trusted."""

import csv
import re
from pathlib import Path

from gpuplan.errors import InputError, Problem, one

MAX_BYTES = 200_000_000
MAX_SHOWN = 20
MAX_FIELD = 1_000_000
DECIMAL = re.compile(r"\d+,\d+")  # semicolons part columns where the comma is a decimal point
DELIMITERS = (",", ";", "\t")  # the first wins where none is found


def read_csv_rows(path: Path) -> list[dict[str, str]]:
    """One mapping per row by column name; InputError names the file's faults at once."""
    text = _text(path)
    usual = csv.field_size_limit(MAX_FIELD)
    try:
        return _rows(path, text)
    except csv.Error as error:
        raise _error(
            path, f"is no CSV: {error}", "write a header line and one row per line"
        ) from None
    finally:
        csv.field_size_limit(usual)  # the limit is everybody's: other readers keep theirs


def _text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise _error(path, f"has {size:,} bytes", f"give at most {MAX_BYTES:,}")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise _error(path, f"cannot be read: {why}", "give a file that exists") from None
    except UnicodeDecodeError as error:
        raise _error(path, f"is not UTF-8 at byte {error.start}", "save it as UTF-8") from None
    if "\x00" in text:
        raise _error(path, "holds binary data", "give a CSV file")
    return text


def _rows(path: Path, text: str) -> list[dict[str, str]]:
    lines = text.splitlines()
    delimiter = _delimiter(lines[0] if lines else "")
    reader = csv.reader(lines, delimiter=delimiter)
    header = next(reader, None)
    if not header:
        raise _error(path, "is empty", "write a header line and one row per line")
    names = [name.strip() for name in header]
    if len(set(names)) < len(names):
        raise _error(path, "names a column twice", "keep one of them")
    rows, problems = [], []
    for cells in reader:
        if len(cells) == len(names):
            rows.append(dict(zip(names, _pointed(cells, delimiter), strict=True)))
        elif cells:
            what = f"{len(cells)} cells under {len(names)} columns"
            problems.append(Problem(f"line {reader.line_num}", what, "quote commas inside cells"))
    if problems:
        raise InputError(str(path), problems[:MAX_SHOWN])
    return rows


def _delimiter(header: str) -> str:
    """What parts the names of the columns; spreadsheets of many countries write semicolons."""
    return max(DELIMITERS, key=header.count)


def _pointed(cells: list[str], delimiter: str) -> list[str]:
    """Cells with decimal points."""
    if delimiter != ";":
        return cells
    return [cell.replace(",", ".") if DECIMAL.fullmatch(cell) else cell for cell in cells]


def _error(path: Path, what: str, fix: str) -> Exception:
    return one(InputError, "table", str(path), what, fix)
