"""Shapes of drawings as SVG elements; texts and attributes are escaped by the XML writer."""

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

Point = tuple[float, float]
INK, LINE, EDGE = "#0f172a", "#94a3b8", "#334155"


def shape(tag: str, text: str = "", /, **attributes: float | str) -> Element:
    """One element; lengths are written to a tenth of a pixel, `stroke_width` as `stroke-width`."""
    made = Element(tag)
    for name, value in attributes.items():
        written = value if isinstance(value, str) else f"{value:.1f}"
        made.set(name.rstrip("_").replace("_", "-"), written)
    made.text = text or None
    return made


def box(place: Point, size: Point, *, fill: str, text: str = "") -> list[Element]:
    """A box with a label in its middle."""
    (x, y), (width, height) = place, size
    edge: dict[str, float | str] = {"rx": 3.0, "fill": fill, "stroke": EDGE, "stroke_width": 1.0}
    made = [shape("rect", x=x, y=y, width=width, height=height, **edge)]
    if text:
        made.append(label((x + width / 2, y + height / 2 + 4), text, anchor="middle"))
    return made


def line(start: Point, end: Point, *, width: float = 1.0) -> Element:
    """A straight line."""
    (x1, y1), (x2, y2) = start, end
    return shape("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=LINE, stroke_width=width)


def polyline(points: Iterable[Point], **attributes: float | str) -> Element:
    """A line through points."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return shape("polyline", points=path, **attributes)


def label(place: Point, text: str, *, anchor: str = "start", size: float = 12.0) -> Element:
    """A line of text."""
    return shape(
        "text",
        text,
        x=place[0],
        y=place[1],
        font_family="system-ui, sans-serif",
        font_size=size,
        fill=INK,
        text_anchor=anchor,
    )


def drawing(width: float, height: float, *, title: str, parts: Sequence[Element]) -> str:
    """A whole SVG file on white, with a title that screen readers speak."""
    white = shape("rect", width="100%", height="100%", fill="white")
    root = canvas(width, height, title=title, parts=[white, *parts])
    root.set("xmlns", "http://www.w3.org/2000/svg")
    root.set("width", f"{width:.0f}")
    root.set("height", f"{height:.0f}")
    return tostring(root, encoding="unicode") + "\n"


def canvas(width: float, height: float, *, title: str, parts: Sequence[Element]) -> Element:
    """The parts on a canvas of that size."""
    root = shape("svg", viewBox=f"0 0 {width:.0f} {height:.0f}", role="img")
    SubElement(root, "title").text = title
    root.extend(parts)
    return root
