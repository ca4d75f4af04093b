"""Telemetry as pictures: GPUs over time coloured by band, and throughput against demand."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.telemetry.diagnosis import BandEdges, Diagnosis, HeatMap
from gpuplan.domain.telemetry.figures import TokenFlow
from gpuplan.report.charts.axis import Axis, tick_label, ticks
from gpuplan.report.charts.svg import drawing, label, line, polyline, shape

# Colours that people with any colour vision tell apart [Okabe2008]; marks do without colour.
BANDS = {
    "waste": ("#56b4e9", "·"),
    "under-used": ("#f0e442", "░"),
    "good": ("#009e73", "▒"),
    "hot": ("#e69f00", "▓"),
    "overload": ("#d55e00", "█"),
}
CELL, LEFT, TOP, WIDTH = 8.0, 150.0, 40.0, 768.0
FLOW_HEIGHT = 200.0
LINES = (
    ("throughput", "throughput_tokens_per_s", "#0072b2"),
    ("demand", "demand_tokens_per_s", "#d55e00"),
    ("capacity", "capacity_tokens_per_s", "#999999"),
)
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Telemetry</title>
<body style="font-family: system-ui, sans-serif">{body}</body></html>
"""


def telemetry_pictures(found: Diagnosis, form: str = "svg") -> str:
    """The pictures as an SVG drawing, a page of their own (html), or characters (txt)."""
    if form == "txt":
        return _text(found)
    drawn = _svg(found)
    return PAGE.format(body=drawn) if form == "html" else drawn


def _svg(found: Diagnosis) -> str:
    """One drawing: the heat-map, and below it the flow where engines report one."""
    parts: list[Element] = []
    height = TOP
    if found.heat is not None:
        parts += _heat(found.heat)
        height += CELL * 1.5 * len(_lines(found.heat)) + 60
    flow = found.quality.service.flow
    if flow is not None:
        parts += _flow(flow, height)
        height += FLOW_HEIGHT + 80
    return drawing(LEFT + WIDTH + 30, height, title="GPU utilization over time", parts=parts)


def _text(found: Diagnosis) -> str:
    """The heat-map in characters: one for each band, so that it can be mailed."""
    heat = found.heat
    if heat is None:
        return "no utilization by device and time\n"
    lines = _lines(heat)
    wide = max(len(name) for name, _ in lines)
    rows = [
        f"{name:>{wide}} " + "".join(_mark(float(value), heat.edges) for value in values)
        for name, values in lines
    ]
    legend = "  ".join(f"{mark} {name}" for name, (_, mark) in BANDS.items())
    return "\n".join([*rows, f"{'':>{wide}} {legend}", ""])


def _lines(heat: HeatMap) -> list[tuple[str, Floats]]:
    """Teams and nodes first, then each GPU."""
    groups = () if heat.group_use_frac is None else heat.group_use_frac
    return [*zip(heat.groups, groups, strict=True), *zip(heat.rows, heat.use_frac, strict=True)]


def _mark(value: float, edges: BandEdges) -> str:
    return " " if math.isnan(value) else BANDS[edges.band(value)][1]


def _heat(heat: HeatMap) -> Iterator[Element]:
    yield label((LEFT, 20), "GPU utilization by band; empty: no samples", size=14)
    n_columns = heat.use_frac.shape[1]
    wide, tall = WIDTH / n_columns, CELL * 1.5
    lines = _lines(heat)
    for k, (name, values) in enumerate(lines):
        y = TOP + k * tall
        yield label((LEFT - 6, y + tall - 3), name, anchor="end", size=10)
        for at, value in enumerate(values):
            if not math.isnan(float(value)):
                band = heat.edges.band(float(value))
                yield _cell(LEFT + at * wide, y, (wide, tall), band)
    bottom = TOP + len(lines) * tall + 14
    yield label((LEFT, bottom), _clock(float(heat.at_s[0])), size=10)
    yield label((LEFT + WIDTH, bottom), _clock(float(heat.at_s[-1])), anchor="end", size=10)
    for at, (name, (colour, _)) in enumerate(BANDS.items()):
        x = LEFT + at * 110
        yield shape("rect", x=x, y=bottom + 10, width=12.0, height=12.0, fill=colour)
        yield label((x + 16, bottom + 20), name, size=10)


def _cell(x: float, y: float, size: tuple[float, float], band: str) -> Element:
    made = shape("rect", x=x, y=y, width=size[0], height=size[1] - 1, fill=BANDS[band][0])
    made.set("data-band", band)
    made.tail = "\n"
    return made


def _flow(flow: TokenFlow, top: float) -> Iterator[Element]:
    highest = max(float(np.max(getattr(flow, field))) for _, field, _ in LINES) or 1.0
    across = Axis(float(flow.at_s[0]), float(flow.at_s[-1]), LEFT, LEFT + WIDTH)
    up = Axis(0.0, highest, top + FLOW_HEIGHT + 20, top + 20)
    yield label((LEFT, top), "Output tokens per second", size=14)
    for value in ticks(0.0, highest):
        yield line((LEFT, up.at(value)), (LEFT + WIDTH, up.at(value)), width=0.5)
        yield label((LEFT - 6, up.at(value) + 4), tick_label(value), anchor="end", size=10)
    for at, (name, field, colour) in enumerate(LINES):
        values = zip(flow.at_s, getattr(flow, field), strict=True)
        points = [(across.at(float(x)), up.at(float(y))) for x, y in values]
        made = polyline(points, fill="none", stroke=colour, stroke_width=1.5)
        made.set("data-name", name)
        yield made
        spot = (LEFT + at * 110, top + FLOW_HEIGHT + 44)
        yield shape("rect", x=spot[0], y=spot[1] - 6, width=12.0, height=3.0, fill=colour)
        yield label((spot[0] + 16, spot[1]), name, size=11)


def _clock(at_s: float) -> str:
    """Date and time where the source tells the date, else minutes since its start."""
    if at_s < 1e8:
        return f"{at_s / 60:.0f} min"
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
