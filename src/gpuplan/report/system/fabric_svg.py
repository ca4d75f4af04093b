"""A network as a drawing: levels of switches, groups of nodes, cables with their counts."""

from xml.etree.ElementTree import Element

from gpuplan.domain.system.parts import CableRun, FabricPlan
from gpuplan.report.charts.svg import box, drawing, label, line
from gpuplan.units import GBIT, KW

WIDTH, LEFT, BOX_W, BOX_H, LEVEL_H, TOP = 960.0, 190.0, 84.0, 30.0, 120.0, 70.0
MOST_DRAWN = 8  # boxes of one level; the last stands for those that are not drawn
FILLS = {"core": "#fde68a", "spine": "#bfdbfe", "leaf": "#bbf7d0", "nodes": "#e2e8f0"}

Row = tuple[str, int]  # level, count


def fabric_svg(plan: FabricPlan) -> str:
    """The network from core to nodes."""
    counts = plan.counts
    rows: list[Row] = [("core", counts.n_core), ("spine", counts.n_spine), ("leaf", counts.n_leaf)]
    rows = [row for row in rows if row[1]] + [("nodes", counts.n_nodes)]
    cables = list(reversed(plan.runs))
    parts = [label((20, 30), _caption(plan), size=16)]
    for level in range(len(rows) - 1):
        parts += _cables(rows[level], rows[level + 1], level=level, run=cables[level])
    for level, row in enumerate(rows):
        parts += _row(row, level)
    height = TOP + len(rows) * LEVEL_H
    return drawing(WIDTH, height, title=_caption(plan), parts=[*parts, _foot(plan, height)])


def _caption(plan: FabricPlan) -> str:
    counts = plan.counts
    return (
        f"{plan.purpose} network: {counts.kind}, {counts.n_nodes} nodes with "
        f"{counts.n_ports_per_node} x {plan.port_bytes_per_s / GBIT:.0f} Gbit/s"
    )


def _foot(plan: FabricPlan, height: float) -> Element:
    power = "draw not published" if plan.max_w is None else f"up to {plan.max_w / KW:.1f} kW"
    text = (
        f"{plan.counts.n_switches} x {plan.switch.name}, {power}; oversubscription "
        f"{plan.counts.oversubscription_ratio:.1f} : 1"
    )
    return label((20, height - 16), text)


def _places(n: int) -> list[float]:
    """Left edges of the boxes of one level."""
    shown = min(n, MOST_DRAWN)
    step = (WIDTH - LEFT - 20 - BOX_W) / max(1, shown - 1)
    if shown == 1:
        return [LEFT + (WIDTH - LEFT - 20 - BOX_W) / 2]
    return [LEFT + i * step for i in range(shown)]


def _row(row: Row, level: int) -> list[Element]:
    name, n = row
    y = TOP + level * LEVEL_H
    parts = [label((20, y + 20), f"{n:,} {name}", size=14)]
    places = _places(n)
    for index, x in enumerate(places):
        is_rest = n > MOST_DRAWN and index == len(places) - 1
        text = f"+ {n - MOST_DRAWN + 1:,}" if is_rest else f"{name.rstrip('s')} {index + 1}"
        parts += box((x, y), (BOX_W, BOX_H), fill=FILLS[name], text=text)
    return parts


def _cables(upper: Row, lower: Row, *, level: int, run: CableRun) -> list[Element]:
    top, bottom = TOP + level * LEVEL_H + BOX_H, TOP + (level + 1) * LEVEL_H
    parts = [
        line((x + BOX_W / 2, top), (other + BOX_W / 2, bottom))
        for x in _places(upper[1])
        for other in _places(lower[1])
    ]
    middle = (top + bottom) / 2
    parts.append(label((20, middle), f"{run.n_cables:,} cables, {run.medium}"))
    parts.append(label((20, middle + 16), f"up to {run.longest_m:.0f} m"))
    return parts
