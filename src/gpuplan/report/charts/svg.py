"""Shapes of drawings: boxes, lines and words as SVG text."""

from collections.abc import Sequence
from html import escape

FONT = "font-family='system-ui, sans-serif'"


def box(place: tuple[float, float], size: tuple[float, float], *, fill: str, text: str = "") -> str:
    """A box with words in its middle."""
    (x, y), (width, height) = place, size
    made = (
        f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' rx='3' "
        f"fill='{fill}' stroke='#334155' stroke-width='1'/>"
    )
    if not text:
        return made
    return made + words((x + width / 2, y + height / 2 + 4), text, anchor="middle")


def line(start: tuple[float, float], end: tuple[float, float], *, width: float = 1.0) -> str:
    """A straight line."""
    return (
        f"<line x1='{start[0]:.1f}' y1='{start[1]:.1f}' x2='{end[0]:.1f}' y2='{end[1]:.1f}' "
        f"stroke='#94a3b8' stroke-width='{width:.1f}'/>"
    )


def polyline(points: Sequence[tuple[float, float]], *, ink: str, is_dashed: bool = False) -> str:
    """A line through points."""
    dashes = " stroke-dasharray='7 5'" if is_dashed else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"<polyline points='{path}' fill='none' stroke='{ink}' stroke-width='2.5'{dashes}/>"


def words(place: tuple[float, float], text: str, *, anchor: str = "start", size: int = 12) -> str:
    """A line of words."""
    return (
        f"<text x='{place[0]:.1f}' y='{place[1]:.1f}' {FONT} font-size='{size}' fill='#0f172a' "
        f"text-anchor='{anchor}'>{escape(text)}</text>"
    )


def drawing(width: float, height: float, *, title: str, parts: Sequence[str]) -> str:
    """A whole drawing on white, with a title that readers of screens hear."""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
        f"viewBox='0 0 {width:.0f} {height:.0f}' role='img'><title>{escape(title)}</title>"
        f"<rect width='100%' height='100%' fill='white'/>{''.join(parts)}</svg>\n"
    )
