"""Charts of the page as inline SVG that needs no script and no network.

Targets are dashed lines, what lies beyond them is shaded, and every line is labelled where it ends.
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from textwrap import wrap
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from gpuplan.domain.plan.answer import Curve, TornadoBar
from gpuplan.report.charts.axis import Axis, tick_label, ticks
from gpuplan.report.charts.svg import canvas, polyline, shape
from gpuplan.report.formats import accelerator_name, percent, usd
from gpuplan.report.plan.headline import slo_name

WIDTH, HEIGHT = 560, 270
LEFT, RIGHT, TOP, BOTTOM = 64, 118, 30, 46
LABEL_GAP = 18.0  # between labels of lines that end close together, as large as on a phone
LETTER = 8.4  # width of one, about, as large as on a phone
BAR_HEIGHT, BAR_LABEL = 26, 190
ROW, TRACK = 42, 150  # of bars with their label above; where a gauge begins
N_COLOURS = 6  # classes c0 … c5 of the style sheet
TARGETS = ("limit", "highest within SLO")
COST = "Monthly cost of"  # begins the title of charts whose lines are accelerators


class Bar(NamedTuple):
    """One fleet of a comparison."""

    label: str
    usd: float
    note: str
    is_chosen: bool


class Gauge(NamedTuple):
    """Utilization of one pool: mean and peak against what is safe."""

    label: str
    mean_frac: float
    peak_frac: float
    safe_frac: float | None


def line_chart(curves: Sequence[Curve], *, planned: float | None = None) -> str:
    """Curves of one chart on common axes, the planned load marked; empty where there are none."""
    points = [(x, y) for curve in curves for x, y in zip(curve.x, curve.y, strict=True)]
    if not points or not all(isfinite(value) for point in points for value in point):
        return ""
    x_axis = _axis([x for x, _ in points], LEFT, WIDTH - RIGHT, is_from_zero=False)
    y_axis = _axis([y for _, y in points], HEIGHT - BOTTOM, TOP, is_from_zero=True)
    parts = [
        *_beyond(curves, y_axis),
        *_grid(x_axis, y_axis),
        *(_path(curve, place, x_axis, y_axis) for place, curve in enumerate(curves)),
        *_end_labels(curves, y_axis),
        *_mark(planned, x_axis),
        _text(curves[0].x_name, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle"),
        _text(curves[0].y_name, 4, TOP - 14, "start"),
    ]
    return _svg(HEIGHT, curves[0].chart, parts)


def _mark(planned: float | None, x_axis: Axis) -> Iterator[Element]:
    """Where the plan stands on the axis of load."""
    if planned is not None and x_axis.low <= planned <= x_axis.high:
        x = x_axis.at(planned)
        yield _line(x, TOP, x, HEIGHT - BOTTOM, "mid")
        yield _text("planned", x + 4, TOP + 8, "start")


def cost_title(workload: str) -> str:
    """Of the chart of what a workload costs at other loads."""
    return f"{COST} {workload} over load"


def is_flat(curves: Sequence[Curve]) -> bool:
    """Whether nothing changes along the axis: a number says more than a chart."""
    return all(len(set(curve.y)) <= 1 for curve in curves)


def bars_chart(bars: Sequence[Bar], title: str) -> str:
    """Monthly cost of fleets beside each other, the plan marked; empty for fewer than two."""
    most = max((bar.usd for bar in bars), default=0.0)
    if len(bars) < 2 or most <= 0:
        return ""
    parts = []
    for place, bar in enumerate(bars):
        top, wide = place * ROW + 4.0, max(bar.usd / most * WIDTH, 1.0)
        kind, weight = ("bar", "strong") if bar.is_chosen else ("bar other", "")
        parts += [
            _text(bar.label, 0, top + 11, "start", weight),
            _text(f"{usd(bar.usd)}{bar.note}", WIDTH, top + 11, "end", weight),
            shape("rect", class_=kind, x=0, y=top + 16, width=wide, height=15),
        ]
    return _svg(ROW * len(bars) + 4, title, parts)


def gauges_chart(gauges: Sequence[Gauge], title: str) -> str:
    """Mean and peak utilization of pools, with the highest that is safe as a line."""
    axis = Axis(0.0, 1.0, TRACK, WIDTH - 12)
    parts = []
    for place, gauge in enumerate(gauges):
        top = place * ROW + 8.0
        safe = gauge.safe_frac
        parts += [
            _text(gauge.label, TRACK - 8, top + 15, "end"),
            _span(axis, (0.0, 1.0), top, "track"),
            *([_span(axis, (min(safe, 1.0), 1.0), top, "beyond")] if safe else []),
            _span(axis, (0.0, min(gauge.peak_frac, 1.0)), top, "bar other"),
            _span(axis, (0.0, min(gauge.mean_frac, 1.0)), top, "bar"),
            _text(_gauge_words(gauge), TRACK, top + 36, "start"),
        ]
        if safe:
            x = axis.at(min(safe, 1.0))
            parts.append(_line(x, top - 3, x, top + 24, "target"))
    return _svg(ROW * len(gauges) + 12, title, parts) if gauges else ""


def _gauge_words(gauge: Gauge) -> str:
    words = f"mean {percent(gauge.mean_frac)}, peak {percent(gauge.peak_frac)}"
    safe = gauge.safe_frac
    return words if safe is None else f"{words}, safe up to {percent(safe)}"


def _span(axis: Axis, ends: tuple[float, float], top: float, kind: str) -> Element:
    low, high = axis.at(ends[0]), axis.at(ends[1])
    return shape("rect", class_=kind, x=low, y=top, width=max(high - low, 0.0), height=20)


def range_strip(low: float, value: float, high: float) -> str:
    """Value within its range as a strip; empty where there is no range."""
    if not low < high:
        return ""
    axis = Axis(low, high, 4, WIDTH - 4)
    x = axis.at(min(max(value, low), high))
    parts = [
        shape("rect", class_="range", x=4, y=6, width=WIDTH - 8, height=8, rx=4),
        shape("circle", class_="point", cx=x, cy=10, r=7),
        _text(usd(low), 4, 34, "start"),
        _text(usd(high), WIDTH - 4, 34, "end"),
    ]
    return _svg(40, f"{usd(value)}, between {usd(low)} and {usd(high)}", parts)


def tornado_chart(bars: Sequence[TornadoBar], middle_usd: float, *, per: str = "/month") -> str:
    """How far each input moves the cost, the widest first."""
    values = [middle_usd, *(v for b in bars for v in (b.low_usd_per_month, b.high_usd_per_month))]
    low, high = min(values), max(values)
    if low == high:
        return ""
    axis = Axis(low, high, BAR_LABEL + 70, WIDTH - 80)
    height = TOP + BAR_HEIGHT * len(bars) + 12
    parts = [_line(axis.at(middle_usd), TOP - 8, axis.at(middle_usd), height - 6, "mid")]
    for place, bar in enumerate(bars):
        parts += _bar(bar, TOP + place * BAR_HEIGHT, axis)
    parts.append(_text(f"{usd(middle_usd)}{per}", axis.at(middle_usd), TOP - 14, "middle"))
    return _svg(height, "what moves the cost", parts)


def _bar(bar: TornadoBar, top: float, axis: Axis) -> list[Element]:
    low, high = sorted((bar.low_usd_per_month, bar.high_usd_per_month))
    start, end = axis.at(low), axis.at(high)
    y = top + BAR_HEIGHT / 2 + 4
    size = {"width": max(end - start, 1.0), "height": BAR_HEIGHT - 8.0}
    body = shape("rect", class_="bar", x=start, y=top + 4, **size)
    SubElement(body, "title").text = bar.span
    return [
        _text(bar.what, BAR_LABEL, y, "end"),
        body,
        _text(usd(low), start - 4, y, "end"),
        _text(usd(high), end + 4, y, "start"),
    ]


def _axis(values: Sequence[float], start: float, end: float, *, is_from_zero: bool) -> Axis:
    low = min(0.0, *values) if is_from_zero else min(values)
    high = max(values)
    if high == low:
        high = low + 1.0
    return Axis(low, high + (0.05 * (high - low) if is_from_zero else 0.0), start, end)


def _beyond(curves: Sequence[Curve], y_axis: Axis) -> Iterator[Element]:
    """What lies beyond the target, shaded."""
    limits = [max(curve.y) for curve in curves if curve.name in TARGETS]
    if limits:
        top, bottom = y_axis.end_px, y_axis.at(min(limits))
        size = {"width": WIDTH - RIGHT - LEFT, "height": max(bottom - top, 0.0)}
        yield shape("rect", class_="beyond", x=LEFT, y=top, **size)


def _grid(x_axis: Axis, y_axis: Axis) -> Iterator[Element]:
    for value in ticks(y_axis.low, y_axis.high):
        y = y_axis.at(value)
        yield _line(LEFT, y, WIDTH - RIGHT, y, "grid")
        yield _text(tick_label(value), LEFT - 6, y + 4, "end")
    for value in ticks(x_axis.low, x_axis.high):
        yield _text(tick_label(value), x_axis.at(value), HEIGHT - BOTTOM + 18, "middle")
    yield _line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis")


def _path(curve: Curve, place: int, x_axis: Axis, y_axis: Axis) -> Element:
    points = [(x_axis.at(x), y_axis.at(y)) for x, y in zip(curve.x, curve.y, strict=True)]
    kind = "target" if curve.name in TARGETS else f"curve c{place % N_COLOURS}"
    return polyline(points, class_=kind)


def _end_labels(curves: Sequence[Curve], y_axis: Axis) -> Iterator[Element]:
    """Names at the right end of their lines, moved apart where lines end together."""
    ends = sorted((y_axis.at(curve.y[-1]), place) for place, curve in enumerate(curves))
    floor = 0.0
    for y, place in ends:
        at = max(y, floor + LABEL_GAP)
        kind = "targettext" if curves[place].name in TARGETS else f"t{place % N_COLOURS}"
        for line in wrap(_label(curves[place]), int((RIGHT - 8) / LETTER)):
            yield _text(line, WIDTH - RIGHT + 6, min(at, HEIGHT - BOTTOM) + 4, "start", kind)
            floor, at = at, at + LABEL_GAP


def _label(curve: Curve) -> str:
    is_board = curve.chart.startswith(COST)
    return accelerator_name(curve.name) if is_board else slo_name(curve.name)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return shape("line", class_=kind, x1=x1, y1=y1, x2=x2, y2=y2)


def _text(words: str, x: float, y: float, anchor: str, kind: str = "") -> Element:
    extra = {"class_": kind} if kind else {}
    return shape("text", words, x=x, y=y, text_anchor=anchor, **extra)


def _svg(height: float, title: str, parts: Sequence[Element]) -> str:
    root = canvas(WIDTH, height, title=title, parts=parts)
    root.set("aria-label", title)
    return tostring(root, encoding="unicode")
