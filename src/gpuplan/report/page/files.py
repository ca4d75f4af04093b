"""A plan in the other forms that people pass on, in: an answer; out: a file's content, or pictures.

Every form is written from the same sheets as the page, so that a number is the same everywhere.
"""

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from io import BytesIO

import numpy as np

from gpuplan.domain.chart import Axis, Chart, ChartSeries
from gpuplan.domain.columns import Floats
from gpuplan.domain.plan.answer import Answer, Curve
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.page import svg_style
from gpuplan.report.page.plan import charts_of, plan_page
from gpuplan.report.plan.answer import plan_sheet
from gpuplan.report.plan.summary import next_steps, risks
from gpuplan.report.table import sheet_text

SHEET_NAME = 31  # letters that a workbook's tab can have
NUMBER = re.compile(r"^[−-]?\$?[\d,]+(?:\.\d+)?$")
XMLNS = 'xmlns="http://www.w3.org/2000/svg"'


def plan_file(answer: Answer, form: str) -> str | bytes:
    """The plan in one form: html, md, json, csv or xlsx."""
    return FORMS[form](answer)


def plan_markdown(answer: Answer) -> str:
    """The answer, its risks, what to do next, then every table."""
    sheet = plan_sheet(answer)
    parts = [f"# {sheet.head}"]
    named = [f"**{risk.what}.** {risk.why}" for risk in risks(answer)]
    for heading, lines in (("What could go wrong", named), ("What to do next", next_steps(answer))):
        if lines:
            parts.append(f"## {heading}\n\n" + "\n".join(f"1. {line}" for line in lines))
    tables = Sheet(document={}, tables=sheet.file_tables)
    return "\n\n".join([*parts, sheet_text(tables, "md")]).rstrip() + "\n"


def plan_workbook(answer: Answer) -> bytes:
    """A workbook with one tab for each table, numbers as numbers."""
    xlsxwriter = import_module("xlsxwriter")  # loaded for a workbook alone
    buffer = BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(buffer, options) as book:
        bold = book.add_format({"bold": True})
        names: set[str] = set()
        for table in plan_sheet(answer).file_tables:
            page = book.add_worksheet(_tab(table, names))
            page.write_row(0, 0, table.columns, bold)
            for place, row in enumerate(table.rows, start=1):
                page.write_row(place, 0, [_cell(text) for text in row])
            page.freeze_panes(1, 0)
            page.autofit()
    return buffer.getvalue()


def _tab(table: Table, names: set[str]) -> str:
    """A tab's name: short, without signs that workbooks refuse, once."""
    plain = re.sub(r"[\[\]:*?/\\']", "", table.title)[:SHEET_NAME].strip() or "table"
    name, n = plain, 2
    while name.lower() in names:
        name, n = f"{plain[: SHEET_NAME - 3]} {n}", n + 1
    names.add(name.lower())
    return name


def _cell(text: str) -> str | float:
    """A figure without its thousands' commas, or the text."""
    if not NUMBER.match(text):
        return text
    return float(text.replace(",", "").replace("$", "").replace("−", "-"))


FORMS: dict[str, Callable[[Answer], str | bytes]] = {
    "html": plan_page,
    "md": plan_markdown,
    "json": lambda answer: json.dumps(plan_sheet(answer).document, indent=2) + "\n",
    "csv": lambda answer: sheet_text(plan_sheet(answer), "csv"),
    "xlsx": plan_workbook,
}


def chart_files(answer: Answer) -> Iterator[tuple[str, bytes]]:
    """Each chart of the page as a drawing, and each with axes as a picture too: name, content."""
    for title, svg in charts_of(answer):
        style = f"<style>{svg_style()}</style>"
        alone = svg.replace("<svg ", f"<svg {XMLNS} ", 1).replace("</title>", f"</title>{style}", 1)
        yield f"{_slug(title)}.svg", alone.encode()
    charts_png = import_module("gpuplan.report.charts.png").charts_png  # brings matplotlib
    for chart in _drawn(answer):
        yield f"{_slug(chart.title)}.png", charts_png((chart,), answer.name)


def _drawn(answer: Answer) -> Iterator[Chart]:
    groups: dict[str, list[Curve]] = {}
    for curve in answer.charts:
        groups.setdefault(curve.chart, []).append(curve)
    for title, curves in groups.items():
        series = tuple(
            ChartSeries(name=c.name, x=_column(c.x), y=_column(c.y), style="line") for c in curves
        )
        x, y = Axis(label=curves[0].x_name), Axis(label=curves[0].y_name)
        yield Chart(title=title, x=x, y=y, series=series)


def _column(values: tuple[float, ...]) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "chart"
