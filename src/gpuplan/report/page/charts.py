"""Charts as inline SVG, in: curves and bars; out: markup that needs no script and no network."""

from collections.abc import Sequence
from html import escape
from math import floor, isfinite, log10
from typing import NamedTuple

from gpuplan.domain.plan import Curve, TornadoBar
from gpuplan.report.formats import usd

WIDTH, HEIGHT = 560, 270
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 34, 46
N_TICKS = 5
BAR_HEIGHT, BAR_LABEL = 26, 190


class Axis(NamedTuple):
    """A scale from values to pixels."""

    low: float
    high: float
    start_px: float
    end_px: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start_px + share * (self.end_px - self.start_px)


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
    return _svg(WIDTH, HEIGHT, curves[0].chart, parts)


def tornado_chart(bars: Sequence[TornadoBar], middle_usd: float) -> str:
    """How far each input moves the cost, the widest first."""
    if not bars:
        return ""
    values = [middle_usd, *(v for b in bars for v in (b.low_usd_per_month, b.high_usd_per_month))]
    low, high = min(values), max(values)
    if low == high:
        return ""
    axis = Axis(low, high, BAR_LABEL + 70, WIDTH - 80)
    height = TOP + BAR_HEIGHT * len(bars) + 12
    parts = [_line(axis.at(middle_usd), TOP - 8, axis.at(middle_usd), height - 6, "mid")]
    for place, bar in enumerate(bars):
        parts += _bar(bar, TOP + place * BAR_HEIGHT, axis)
    parts.append(_text(f"{usd(middle_usd)} a month", axis.at(middle_usd), TOP - 14, "middle"))
    return _svg(WIDTH, height, "what moves the cost", parts)


def _bar(bar: TornadoBar, top: float, axis: Axis) -> list[str]:
    ends = sorted((axis.at(bar.low_usd_per_month), axis.at(bar.high_usd_per_month)))
    low, high = sorted((bar.low_usd_per_month, bar.high_usd_per_month))
    y = top + BAR_HEIGHT / 2 + 4
    width = max(ends[1] - ends[0], 1.0)
    return [
        _text(bar.what, BAR_LABEL, y, "end"),
        f'<rect class="bar" x="{ends[0]:.1f}" y="{top + 4:.1f}" width="{width:.1f}" '
        f'height="{BAR_HEIGHT - 8}"><title>{escape(bar.span)}</title></rect>',
        _text(usd(low), ends[0] - 4, y, "end"),
        _text(usd(high), ends[1] + 4, y, "start"),
    ]


def _axis(values: Sequence[float], start: float, end: float, *, is_from_zero: bool) -> Axis:
    low = min(0.0, *values) if is_from_zero else min(values)
    high = max(values)
    if high == low:
        high = low + 1.0
    return Axis(low, high + (0.05 * (high - low) if is_from_zero else 0.0), start, end)


def _grid(x_axis: Axis, y_axis: Axis) -> list[str]:
    parts = []
    for value in ticks(y_axis.low, y_axis.high):
        y = y_axis.at(value)
        parts += [
            _line(LEFT, y, WIDTH - RIGHT, y, "grid"),
            _text(label(value), LEFT - 6, y + 4, "end"),
        ]
    for value in ticks(x_axis.low, x_axis.high):
        x = x_axis.at(value)
        parts.append(_text(label(value), x, HEIGHT - BOTTOM + 18, "middle"))
    return [*parts, _line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis")]


def ticks(low: float, high: float) -> list[float]:
    """A handful of round values between two."""
    rough = (high - low) / N_TICKS
    scale = 10 ** floor(log10(rough))
    step = next(scale * nice for nice in (1, 2, 2.5, 5, 10) if scale * nice >= rough)
    first = floor(low / step)
    values = [(first + n) * step for n in range(2 * N_TICKS + 3)]
    return [value for value in values if low - step * 1e-9 <= value <= high + step * 1e-9]


def label(value: float) -> str:
    """A round number in few characters."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e4 else f"{value:.6g}"


def _path(curve: Curve, place: int, x_axis: Axis, y_axis: Axis) -> str:
    points = " ".join(
        f"{x_axis.at(x):.1f},{y_axis.at(y):.1f}" for x, y in zip(curve.x, curve.y, strict=True)
    )
    return f'<polyline class="curve c{place % 6}" points="{points}"/>'


def _legend(curves: Sequence[Curve]) -> list[str]:
    parts, x = [], float(WIDTH - RIGHT)
    for place in reversed(range(len(curves))):
        name = curves[place].name
        x -= 7.0 * len(name) + 24
        parts.append(
            f'<rect class="c{place % 6} key" x="{x:.0f}" y="{TOP - 29}" width="12" height="4"/>'
        )
        parts.append(_text(name, x + 16, TOP - 22, "start"))
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(words: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    body = "".join(parts)
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )
