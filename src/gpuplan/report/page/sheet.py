"""A sheet as a fragment of a page, for notebooks: its answer and its tables, everything escaped."""

from gpuplan.domain.sheet import Sheet
from gpuplan.report.page.template import render


def sheet_html(sheet: Sheet) -> str:
    """The answer in bold, each table under its title, and the remarks folded away."""
    return render("sheet.html.j2", sheet=sheet)
