"""Tables as text that other programs read."""

import csv
import io

from gpuplan.domain.sheet import Sheet, Table

# A spreadsheet would run a cell that starts with one of these.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


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
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_csv(sheet: Sheet) -> str:
    """All tables of the sheet as comma-separated values, a blank line between them."""
    return "\n".join(_csv_table(table) for table in sheet.file_tables)


def _csv_table(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(tuple(_harmless(cell) for cell in row) for row in table.rows)
    return out.getvalue()


def _harmless(cell: str) -> str:
    is_number = cell.lstrip("+-").replace(",", "").split(" ")[0].replace(".", "").isdigit()
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) and not is_number else cell
