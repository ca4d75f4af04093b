"""Pictures of the page as inline SVG: colours come from the style sheet by class."""

from collections.abc import Sequence
from itertools import groupby
from math import floor, log10
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from gpuplan.domain.plan.answer import Curve
from gpuplan.report.charts.axis import Axis, ticks
from gpuplan.report.charts.svg import canvas, shape
from gpuplan.report.page.charts import cost_title, is_flat, line_chart
from gpuplan.server.web.shown import Row

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 24, 44
GAP, LETTER, LINE = 11.0, 7.4, 13.0  # of labels: from their point, of a letter, between lines
DOT = 5.0  # radius of a point
Point = tuple[float, float]
Box = tuple[float, float, float]  # left, right, middle
N_CELLS = 96  # columns of a heat-map at most
BANDS = (0.02, 0.30, 0.70, 0.90, 0.95)  # where the colours of a heat-map change


def cost_against_odds(rows: Sequence[Row], target_frac: float | None) -> str:
    """Each fleet by its cost and its probability of meeting all SLOs; the plan is marked."""
    hidden = ("rejected", "not in the plan")  # no fleet; the same fleet at another price
    points = [row for row in rows if row.usd and _odds(row) >= 0 and row.status not in hidden]
    if len(points) < 2:
        return ""
    logs = [log10(row.usd or 1.0) for row in points]
    across = Axis(min(logs) - 0.05, max(logs) + 0.12, LEFT, WIDTH - RIGHT)
    least = min([*map(_odds, points), target_frac or 1.0])
    up = Axis(max(0.0, floor(10 * least - 0.5) / 10), 1.0, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(across, up)]
    if target_frac:
        y = up.at(target_frac)
        parts.append(shape("line", class_="target", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y))
        parts.append(_text(f"asked for: {target_frac:.0%}", LEFT + 4, y + 15, "start", "target"))
    places = [(across.at(x), up.at(_odds(row))) for x, row in zip(logs, points, strict=True)]
    taken: list[Box] = [(x - DOT, x + DOT, y) for x, y in places]
    named: set[str] = set()
    is_single = len({row.accelerator for row in points}) == 1
    first = sorted(zip(points, places, strict=True), key=lambda pair: pair[0].status != "chosen")
    for row, place in first:
        name = row.precision if is_single else row.accelerator
        label = "" if name in named else _free_label(name, place, taken)
        named |= {name} if label else set()
        parts += _point(row, place, label, name)
    return _svg("Cost per month against the probability of meeting all SLOs", HEIGHT, parts)


def _odds(row: Row) -> float:
    """The probability of a row; below zero where it has none."""
    found = row.cells[-2].sort
    return -1.0 if found is None else found


def _free_label(name: str, place: Point, taken: list[Box]) -> str:
    """The side of a point where its name hides no other; empty: neither."""
    width, y = LETTER * len(name), place[1]
    for side, left in (("start", place[0] + GAP), ("end", place[0] - GAP - width)):
        box = (left, left + width, y)
        is_free = all(b[1] < left or b[0] > box[1] or abs(b[2] - y) > LINE for b in taken)
        if is_free and left > LEFT and box[1] < WIDTH:
            taken.append(box)
            return side
    return ""


def _point(row: Row, place: Point, label: str, name: str) -> list[Element]:
    x, y = place
    kind = row.status.replace(" ", "-")
    dot = shape("circle", class_=f"dot {kind}", cx=x, cy=y, r=8.0 if kind == "chosen" else DOT)
    about = f"{row.cells[0].text} × {row.accelerator} {row.precision}, {row.cells[1].text}/month"
    SubElement(dot, "title").text = f"{about}: {row.cells[-2].text}"
    gap = -GAP if label == "end" else GAP
    return [dot, _text(name, x + gap, y + 4, label)] if label else [dot]


def _frame(across: Axis, up: Axis) -> list[Element]:
    parts: list[Element] = []
    for share in ticks(up.low, up.high):
        y = up.at(share)
        parts.append(shape("line", class_="grid", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y))
        parts.append(_text(f"{share:.0%}", LEFT - 6, y + 4, "end"))
    for power in range(2, 9):
        for nice in (1, 2, 5):
            value = nice * 10.0**power
            if across.low <= log10(value) <= across.high:
                label = f"${value / 1000:g}k" if value >= 1000 else f"${value:g}"
                parts.append(_text(label, across.at(log10(value)), HEIGHT - BOTTOM + 18, "middle"))
    parts.append(_text("$/month", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "middle"))
    parts.append(_text("probability of meeting all SLOs", LEFT, TOP - 10, "start"))
    return parts


def curves(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The plan's own charts: title and picture."""
    loads = document.get("load") or ()
    planned = {cost_title(each["workload"]): each["peak_requests_per_s"] for each in loads}
    found = []
    charts = sorted(document.get("charts") or (), key=lambda curve: curve["chart"])
    for title, group in groupby(charts, key=lambda curve: curve["chart"]):
        lines = [_curve(each) for each in group]
        picture = "" if is_flat(lines) else line_chart(lines, planned=planned.get(title))
        if picture:
            found.append((title, picture))
    return found


def _curve(each: dict[str, Any]) -> Curve:
    return Curve(**{**each, "x": tuple(each["x"]), "y": tuple(each["y"])})


def heat_map(
    rows: Sequence[str],
    use_frac: Sequence[Sequence[float | None]],
    title: str,
    ends: tuple[str, str] = ("", ""),
) -> str:
    """Utilization by subject and time: one row each, colours by band; ends: of the time."""
    if not rows or not use_frac[0]:
        return ""
    high, wide = 18.0, (WIDTH - 130) / len(use_frac[0])
    parts: list[Element] = []
    for place, (name, values) in enumerate(zip(rows, use_frac, strict=True)):
        y = 4 + place * high
        parts.append(_text(name[:18], 122, y + 13, "end"))
        for i, value in enumerate(values):
            band = "none" if value is None else f"b{sum(value > edge for edge in BANDS)}"
            size = {"width": wide + 0.3, "height": high - 2}
            cell = shape("rect", class_=f"heat {band}", x=128 + i * wide, y=y, **size)
            if value is not None:
                SubElement(cell, "title").text = f"{name}: {value:.0%}"
            parts.append(cell)
    below = 20 + high * len(rows)
    parts += [_text(ends[0], 128, below, "start"), _text(ends[1], WIDTH - 2, below, "end")]
    return _svg(title, 8 + high * len(rows) + (20 if any(ends) else 0), parts)


def thinned(use_frac: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    """Means of neighbours: so many columns at most; None where nothing was measured."""
    found = []
    for values in use_frac:
        n = -(-len(values) // N_CELLS)
        parts = [values[i : i + n] for i in range(0, len(values), n)]
        found.append([_mean([v for v in part if v is not None]) for part in parts])
    return found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _text(words: str, x: float, y: float, anchor: str, kind: str = "") -> Element:
    return shape("text", words, x=x, y=y, text_anchor=anchor, class_=kind)


def _svg(title: str, height: float, parts: Sequence[Element]) -> str:
    root = canvas(WIDTH, height, title=title, parts=parts)
    root.set("aria-label", title)
    root.set("class", "picture")
    return tostring(root, encoding="unicode")
