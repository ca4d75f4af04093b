"""Charts and drawings as one picture."""

import io
import textwrap
from xml.etree import ElementTree

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from gpuplan.domain.chart import Chart, ChartSeries
from gpuplan.domain.columns import Floats

COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#6b7280")
N_NOTE = 95
DPI = 96  # pixels of a drawing to the inch
MOST_BARS = 120  # more would be thinner than the gaps between them


def charts_png(charts: tuple[Chart, ...], title: str) -> bytes:
    """The picture's bytes: two charts beside each other, as many rows as it takes."""
    n_columns = min(2, len(charts))
    n_rows = -(-len(charts) // n_columns)
    figure = Figure(figsize=(7.2 * n_columns, 3.6 * n_rows + 0.5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("\n".join(textwrap.wrap(title, 80 * n_columns)), fontsize=11)
    for place, chart in enumerate(charts):
        _draw(figure.add_subplot(n_rows, n_columns, place + 1), chart)
    picture = io.BytesIO()
    # No date inside: the same run is the same bytes.
    figure.savefig(picture, format="png", metadata={"Software": None})
    return picture.getvalue()


def _draw(axes: Axes, chart: Chart) -> None:
    for place, series in enumerate(chart.series):
        _series(axes, series, COLOURS[place % len(COLOURS)])
    axes.set_title(chart.title, fontsize=10, loc="left")
    axes.set_xlabel("\n".join([chart.x.title, *textwrap.wrap(chart.note, N_NOTE)]), fontsize=9)
    axes.set_ylabel(chart.y.title, fontsize=9)
    axes.grid(visible=True, alpha=0.25)
    axes.tick_params(labelsize=8)
    highest = max((float(s.y.max()) for s in chart.series if len(s.y)), default=1.0)
    is_named = len(chart.series) > 1
    # Names stand in a row of their own above the values, never on them.
    axes.set_ylim(0, (1.2 if is_named else 1.08) * max([highest, *chart.top]) or 1.0)
    if is_named:
        axes.legend(fontsize=8, frameon=False, loc="upper left", ncols=len(chart.series))


def _series(axes: Axes, series: ChartSeries, colour: str) -> None:
    if series.style == "bars" and len(series.x) > MOST_BARS:
        axes.fill_between(series.x, series.y, step="post", color=colour, linewidth=0)
    elif series.style == "bars":
        axes.bar(series.x, series.y, width=_width(series.x), align="edge", color=colour)
    elif series.style == "points":
        axes.plot(series.x, series.y, "o", color=colour, label=series.name, markersize=5)
    elif series.style == "step":
        axes.step(series.x, series.y, where="post", color=colour, label=series.name, linewidth=1.3)
    else:
        axes.plot(series.x, series.y, color=colour, label=series.name, linewidth=1.3)
    for x, y, label in zip(series.x, series.y, series.labels, strict=False):
        axes.annotate(label, (x, y), fontsize=8, xytext=(3, 4), textcoords="offset points")


def _width(x: Floats) -> float:
    return 0.9 * float(np.diff(x).min()) if len(x) > 1 else 0.9


def svg_png(drawn: str) -> bytes:
    """A drawing in SVG, made of the shapes of this package, as a picture of twice its size."""
    root = ElementTree.fromstring(drawn)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=2 * DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for one in root:
        _shape(axes, one.tag.rsplit("}", 1)[-1], one)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    return picture.getvalue()


def _colour(written: str) -> str:
    """A colour of SVG as matplotlib writes it: rgb(0,0,255) is #0000ff."""
    if not written.startswith("rgb("):
        return written
    return "#" + "".join(f"{int(part):02x}" for part in written[4:-1].split(","))


def _shape(axes: Axes, tag: str, one: ElementTree.Element) -> None:
    """One shape of the drawing; its title is for screen readers alone."""
    number = {k: float(v) for k, v in one.attrib.items() if v.replace(".", "", 1).isdigit()}
    stroke, fill = _colour(one.get("stroke", "none")), _colour(one.get("fill", "none"))
    width = number.get("stroke-width", 1.0) * 72 / DPI
    if tag == "rect" and "width" in number:
        place = (number.get("x", 0.0), number.get("y", 0.0))
        size = (number["width"], number["height"])
        axes.add_patch(Rectangle(place, *size, facecolor=fill, edgecolor=stroke, linewidth=0.0))
    elif tag == "text":
        side = {"middle": "center", "end": "right"}.get(one.get("text-anchor", ""), "left")
        points = number.get("font-size", 12.0) * 72 / DPI
        text = (one.text or "").replace("$", r"\$")
        axes.text(number["x"], number["y"], text, fontsize=points, ha=side, va="baseline")
    elif tag == "line":
        across, along = (number["x1"], number["x2"]), (number["y1"], number["y2"])
        axes.plot(across, along, color=stroke, linewidth=width)
    elif tag in ("polyline", "polygon"):
        path = [tuple(map(float, point.split(","))) for point in one.get("points", "").split()]
        is_area = tag == "polygon"
        edge = "none" if is_area else stroke
        axes.add_patch(Polygon(path, closed=is_area, facecolor=fill, edgecolor=edge, lw=width))
