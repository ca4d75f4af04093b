"""Charts of the page as inline SVG that needs no script and no network."""

from collections.abc import Iterator, Sequence
from math import isfinite
from xml.etree.ElementTree import Element, SubElement, tostring

from gpuplan.domain.plan.answer import Curve, TornadoBar
from gpuplan.report.charts.axis import Axis, tick_label, ticks
from gpuplan.report.charts.svg import canvas, polyline, shape
from gpuplan.report.formats import usd

WIDTH, HEIGHT = 560, 270
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 34, 46
BAR_HEIGHT, BAR_LABEL = 26, 190
N_COLOURS = 6  # classes c0 … c5 of the style sheet


def line_chart(curves: Sequence[Curve]) -> str:
    """Curves of one chart on common axes, with a legend; empty where there is nothing to draw."""
    points = [(x, y) for curve in curves for x, y in zip(curve.x, curve.y, strict=True)]
    if not points or not all(isfinite(value) for point in points for value in point):
        return ""
    x_axis = _axis([x for x, _ in points], LEFT, WIDTH - RIGHT, is_from_zero=False)
    y_axis = _axis([y for _, y in points], HEIGHT - BOTTOM, TOP, is_from_zero=True)
    parts = [
        *_grid(x_axis, y_axis),
        *(_path(curve, place, x_axis, y_axis) for place, curve in enumerate(curves)),
        *_legend(curves),
        _text(curves[0].x_name, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle"),
        _text(curves[0].y_name, LEFT, TOP - 20, "start"),
    ]
    return _svg(HEIGHT, curves[0].chart, parts)


def tornado_chart(bars: Sequence[TornadoBar], middle_usd: float) -> str:
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
    parts.append(_text(f"{usd(middle_usd)}/month", axis.at(middle_usd), TOP - 14, "middle"))
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
    return polyline(points, class_=f"curve c{place % N_COLOURS}")


def _legend(curves: Sequence[Curve]) -> list[Element]:
    parts, x = [], float(WIDTH - RIGHT)
    for place in reversed(range(len(curves))):
        name = curves[place].name
        x -= 7.0 * len(name) + 24
        size = {"width": 12.0, "height": 4.0}
        parts.append(shape("rect", class_=f"c{place % N_COLOURS} key", x=x, y=TOP - 29.0, **size))
        parts.append(_text(name, x + 16, TOP - 22, "start"))
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return shape("line", class_=kind, x1=x1, y1=y1, x2=x2, y2=y2)


def _text(words: str, x: float, y: float, anchor: str) -> Element:
    return shape("text", words, x=x, y=y, text_anchor=anchor)


def _svg(height: float, title: str, parts: Sequence[Element]) -> str:
    root = canvas(WIDTH, height, title=title, parts=parts)
    root.set("aria-label", title)
    return tostring(root, encoding="unicode")
