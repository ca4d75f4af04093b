"""Tables: one way to make them, and as text that other programs read."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from gpuplan.domain.sheet import Sheet, Table

T = TypeVar("T")
# Figures, perhaps with their unit: -2.5 %, -6 +11.
FIGURES = re.compile(r"[-+]\d[\d,.]*(?:e[-+]?\d+)?(?: [-+]?\d[\d,.]*)*(?: ?[%A-Za-z/]+)?")
# A spreadsheet would run a cell that starts with one of these.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def table(title: str, items: Iterable[T], columns: Mapping[str, Callable[[T], str]]) -> Table:
    """One row for each item; a heading that starts with ">" is set to the right, as figures are."""
    return Table(
        title=title,
        columns=tuple(head.removeprefix(">") for head in columns),
        rows=tuple(tuple(cell(item) for cell in columns.values()) for item in items),
        right=tuple(head.removeprefix(">") for head in columns if head.startswith(">")),
    )


def pairs(title: str, rows: Iterable[tuple[str, ...]], *columns: str) -> Table:
    """Named figures: a label and what stands beside it, set to the right."""
    heads = columns or ("quantity", "value")
    return Table(title=title, columns=heads, rows=tuple(rows), right=heads[1:])


def to_markdown(sheet: Sheet) -> str:
    """All tables of the sheet in Markdown, pipes escaped."""
    parts = [sheet.head + "\n"] if sheet.head else []
    return "\n".join([*parts, *(_markdown_table(table) for table in sheet.file_tables)])


def _markdown_table(table: Table) -> str:
    marks = ["---:" if column in table.right else "---" for column in table.columns]
    lines = [_markdown_row(row) for row in [table.columns, tuple(marks), *table.rows]]
    heading = f"**{table.title}**\n\n" if table.title else ""
    return heading + "\n".join(lines) + "\n"


def _markdown_row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_one_line(cell).replace("|", "\\|") for cell in cells) + " |"


def _one_line(cell: str) -> str:
    """A cell never ends its row."""
    return " ".join(cell.splitlines())


def to_csv(sheet: Sheet) -> str:
    """All tables of the sheet as comma-separated values, a blank line between them."""
    return "\n".join(_csv_table(table) for table in sheet.file_tables)


def _csv_table(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(tuple(_harmless(_one_line(cell)) for cell in row) for row in table.rows)
    return out.getvalue()


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) and not FIGURES.fullmatch(cell) else cell


# A further form of text is a function here and a member of the command line's `Form`.
TEXT_FORMS: dict[str, Callable[[Sheet], str]] = {"csv": to_csv, "md": to_markdown}


def sheet_text(sheet: Sheet, form: str) -> str:
    """The sheet's tables in a form of text that other programs read."""
    return TEXT_FORMS[form](sheet)
