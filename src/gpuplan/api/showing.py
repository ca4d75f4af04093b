"""Any finished sheet in another form."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.domain.chart import Chart
    from gpuplan.domain.sheet import Sheet


def to_csv(sheet: "Sheet") -> str:
    """The tables of a sheet as comma-separated values."""
    from gpuplan.report.table import to_csv as verb

    return verb(sheet)


def to_markdown(sheet: "Sheet") -> str:
    """The tables of a sheet in Markdown."""
    from gpuplan.report.table import to_markdown as verb

    return verb(sheet)


def charts_text(charts: "tuple[Chart, ...]", *, width: int = 100) -> str:
    """Charts for a terminal."""
    from gpuplan.report.charts.text import charts_text as verb

    return verb(charts, width=width)


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


def need(package: str, what: str) -> None:
    """Raise where a package of the extra `report` is missing."""
    from importlib.util import find_spec

    from gpuplan.errors import InputError, one

    if find_spec(package) is None:
        fix = "install it with: pip install 'gpuplan[report]'"
        raise one(InputError, "report", what, f"need {package}, which is not installed", fix)
