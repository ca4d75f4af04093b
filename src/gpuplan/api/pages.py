"""Plans and charts as pages, pictures and files: what needs an extra says which one to install."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.errors import InputError, one

if TYPE_CHECKING:
    from gpuplan.domain.chart import Chart
    from gpuplan.domain.plan.answer import Answer


def plan_page(answer: "Answer") -> str:
    """A plan as one self-contained page."""
    need("jinja2", "pages")
    from gpuplan.report.page.plan import plan_page as verb

    return verb(answer)


def report(path: Path, to: str = "html") -> str | bytes:
    """A plan file as one self-contained page, or as md, json, csv or xlsx."""
    need("jinja2", "pages")
    if to == "xlsx":
        need("xlsxwriter", "workbooks")
    from gpuplan.inputs.plan_file import read_plan
    from gpuplan.report.page.files import plan_file

    return plan_file(read_plan(path), to)


def report_charts(path: Path) -> Iterator[tuple[str, bytes]]:
    """Each chart of a plan file: its name, and its content as SVG or PNG."""
    need("jinja2", "pages")
    need("matplotlib", "PNG charts")
    from gpuplan.inputs.plan_file import read_plan
    from gpuplan.report.page.files import chart_files

    return chart_files(read_plan(path))


def charts_html(charts: "tuple[Chart, ...]", title: str) -> str:
    """Charts as one page that needs no network."""
    need("plotly", "HTML charts")
    need("jinja2", "HTML charts")
    from gpuplan.report.charts.html import charts_html as verb

    return verb(charts, title)


def charts_png(charts: "tuple[Chart, ...]", title: str) -> bytes:
    """Charts as one picture."""
    need("matplotlib", "PNG charts")
    from gpuplan.report.charts.png import charts_png as verb

    return verb(charts, title)


def svg_png(drawn: str) -> bytes:
    """A drawing in SVG as a picture."""
    need("matplotlib", "PNG charts")
    from gpuplan.report.charts.png import svg_png as verb

    return verb(drawn)


def need(package: str, what: str) -> None:
    """Raise InputError where a package of the extra `report` is missing."""
    if find_spec(package) is None:
        fix = "install it with: pip install 'gpuplan[report]'"
        raise one(InputError, "report", what, f"need {package}, which is not installed", fix)
