"""A simulated cluster in one drawing: GPU time by layer, the queue, hours of the week, a Gantt."""

from collections.abc import Iterator, Sequence
from math import inf
from xml.etree.ElementTree import Element

import numpy as np

from gpuplan.domain.cluster.answer import ClusterSimulation
from gpuplan.domain.columns import Floats
from gpuplan.domain.sheet import Sheet
from gpuplan.report.charts.axis import Axis, tick_label, ticks
from gpuplan.report.charts.svg import drawing, label, line, polyline, shape
from gpuplan.report.page import sheet_page
from gpuplan.units import DAY, HOUR

WIDTH, LEFT, RIGHT = 900.0, 70.0, 20.0
HEIGHT, GAP = 170.0, 60.0
LAYERS = {
    "jobs": ("batch", "#2563eb"),
    "services": ("service", "#16a34a"),
    "down": ("down", "#475569"),
    "fragmented": ("fragmented", "#dc2626"),
    "too few": ("too_few", "#f59e0b"),
    "over quota": ("quota_blocked", "#a855f7"),
    "idle": ("idle", "#e2e8f0"),
}
SERVICE = "#94a3b8"
TEAMS = ("#2563eb", "#16a34a", "#f59e0b", "#dc2626", "#a855f7", "#0891b2", "#be185d", "#65a30d")
N_NODES, NODE_HEIGHT = 32, 20.0  # of the Gantt chart: the first ones
N_RUNS = 4000  # at most, unless the first node alone has more


def cluster_svg(found: ClusterSimulation) -> str:
    """The whole drawing as an SVG file."""
    parts: list[Element] = []
    top = GAP / 2
    for panel in (_layers, _queue, _week):
        parts += panel(found, top)
        top += HEIGHT + GAP
    n_nodes = _n_nodes(found)
    parts += _gantt(found, top, n_nodes)
    title = f"{found.cluster.name}: GPU time, queue and runs"
    return drawing(WIDTH, top + n_nodes * NODE_HEIGHT + GAP, title=title, parts=parts)


def cluster_page(sheet: Sheet, run: ClusterSimulation | None) -> str:
    """A planned or simulated cluster as one page: the answer, its drawing, every table."""
    what = "GPU cluster" if run is None else f"GPU cluster “{run.cluster.name}”, simulated"
    return sheet_page(sheet, what, cluster_svg(run) if run else "")


def _frame(
    found: ClusterSimulation, top: float, title: str, high: float, height: float = HEIGHT
) -> tuple[Axis, Axis, list[Element]]:
    """Axes in days of the whole simulation and in the panel's unit, with their marks."""
    x = Axis(0.0, max(found.found.end_s / DAY, 1e-9), LEFT, WIDTH - RIGHT)
    y = Axis(0.0, max(high, 1e-9), top + height, top)
    parts = [label((LEFT, top - 8), title, size=13.0)]
    for value in ticks(y.low, y.high):
        if value % 1:  # GPUs and nodes are whole
            continue
        parts.append(line((LEFT, y.at(value)), (WIDTH - RIGHT, y.at(value)), width=0.3))
        parts.append(label((LEFT - 6, y.at(value) + 4), tick_label(value), anchor="end", size=10.0))
    for value in ticks(x.low, x.high):
        place = (x.at(value), top + height + 14)
        parts.append(label(place, f"{tick_label(value)} d", anchor="middle", size=10.0))
    return x, y, parts


def _points(found: ClusterSimulation, values: Floats) -> tuple[Floats, Floats]:
    """Days and values of a line through the bins' middles; the last bin lasts until the end."""
    bin_s, n = found.found.timeline.bin_s, len(values) - 1
    middles = (np.arange(n, dtype=np.float64) + 0.5) * bin_s
    at = np.concatenate([[0.0], middles, [n * bin_s, max(found.found.end_s, n * bin_s)]])
    return at / DAY, np.concatenate([values[:1], values, values[-1:]])


def _layers(found: ClusterSimulation, top: float) -> Iterator[Element]:
    """What the GPUs did, one layer on the other."""
    x, y, parts = _frame(found, top, "GPUs", float(found.cluster.n_accelerators))
    base = np.zeros(len(found.found.timeline.batch) + 2)
    for name, (field, colour) in LAYERS.items():
        at, own = _points(found, getattr(found.found.timeline, field))
        upper = base + own
        there = [(x.at(a), y.at(b)) for a, b in zip(at, upper, strict=True)]
        back = [(x.at(a), y.at(b)) for a, b in zip(at[::-1], base[::-1], strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*there, *back])
        parts.append(shape("polygon", points=path, fill=colour))
        base = upper
        spot = LEFT + 90.0 * list(LAYERS).index(name) + 120
        parts.append(shape("rect", x=spot, y=top - 17, width=9.0, height=9.0, fill=colour))
        parts.append(label((spot + 13, top - 8), name, size=10.0))
    yield from parts


def _queue(found: ClusterSimulation, top: float) -> Iterator[Element]:
    """GPUs that waiting jobs ask for."""
    at, queued = _points(found, found.found.timeline.queued_accelerators)
    x, y, parts = _frame(found, top, "GPUs queued", max(float(queued.max()), 1.0))
    points = [(x.at(a), y.at(b)) for a, b in zip(at, queued, strict=True)]
    yield from parts
    yield polyline(points, fill="none", stroke="#dc2626", stroke_width=1.2)


def _week(found: ClusterSimulation, top: float) -> Iterator[Element]:
    """Utilization by day of the week and hour: the darker, the fuller."""
    line_ = found.found.timeline
    n = len(line_.batch) - 1
    when = (np.arange(n) + 0.5) * line_.bin_s + found.jobs.week_s
    cell = (when // HOUR).astype(np.int64) % 168
    busy = (line_.batch + line_.service)[:n] / max(1, found.cluster.n_accelerators)
    total = np.bincount(cell, busy, minlength=168)
    n_in = np.bincount(cell, minlength=168)
    yield label((LEFT, top - 8), "Utilization by hour of the week", size=13.0)
    width, height = (WIDTH - LEFT - RIGHT) / 24, HEIGHT / 7
    for place in np.flatnonzero(n_in):
        day, hour = divmod(int(place), 24)
        shade = round(255 * (1 - min(1.0, float(total[place] / n_in[place]))))
        corner = {"x": LEFT + hour * width, "y": top + day * height}
        fill = f"rgb({shade},{shade},255)"
        yield shape("rect", **corner, width=width - 1, height=height - 1, fill=fill)
    for day, name in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")):
        yield label((LEFT - 6, top + (day + 0.7) * height), name, anchor="end", size=10.0)
    for hour in range(0, 24, 3):
        under = (LEFT + (hour + 0.5) * width, top + HEIGHT + 14)
        yield label(under, f"{hour}:00", anchor="middle", size=10.0)


def _n_nodes(found: ClusterSimulation) -> int:
    """Nodes of the Gantt chart: the first ones, so many that their runs can be told apart."""
    node = found.found.runs.node
    by_node = np.bincount(node[node >= 0], minlength=1)
    n_whole = int(np.searchsorted(np.cumsum(by_node), N_RUNS, side="right"))
    return min(max(1, n_whole), len(by_node), N_NODES)


def _gantt(found: ClusterSimulation, top: float, n_nodes: int) -> Iterator[Element]:
    """Runs on each of their nodes, one above the other where they share it, coloured by team."""
    runs, height = found.found.runs, n_nodes * NODE_HEIGHT
    bars = list(_bars(found, n_nodes))
    room = _room(found)[:n_nodes]
    np.maximum.at(room, runs.node[[i for i, _, _ in bars]], [high for _, _, high in bars])
    n_shown = len({i for i, _, _ in bars})
    hidden = "" if n_shown == runs.n_total else f" ({n_shown:,} of {runs.n_total:,})"
    x, y, parts = _frame(found, top, f"Runs by node{hidden}", float(n_nodes), height)
    for i, low, high in bars:
        job, node = int(runs.job[i]), int(runs.node[i])
        is_service = job >= len(found.jobs)
        fill = SERVICE if is_service else TEAMS[int(found.jobs.team[job]) % len(TEAMS)]
        begin, upper = x.at(runs.start_s[i] / DAY), y.at(node + 0.96 * high / room[node])
        size = {"width": max(0.3, x.at(runs.end_s[i] / DAY) - begin)}
        size["height"] = y.at(node + 0.96 * low / room[node]) - upper
        parts.append(shape("rect", x=begin, y=upper, **size, fill=fill, class_="run"))
    names = [*found.jobs.team_names[: len(TEAMS) - bool(found.cluster.services)]]
    colours = [*TEAMS[: len(names)], *([SERVICE] * bool(found.cluster.services))]
    yield from _legend([*names, "services"], colours, top)
    yield from parts


def _room(found: ClusterSimulation) -> Floats:
    """GPUs of each node."""
    groups = found.cluster.groups
    each = [float(group.n_accelerators_per_node) for group in groups]
    return np.repeat(each, [group.n_nodes for group in groups])


def _bars(found: ClusterSimulation, n_nodes: int) -> Iterator[tuple[int, float, float]]:
    """A run and the GPUs of its node, from low to high, that no other run holds meanwhile."""
    runs, room = found.found.runs, _room(found)
    allocated: list[list[tuple[float, float, float]]] = [[] for _ in range(n_nodes)]
    for i in np.argsort(runs.start_s, kind="stable"):
        node, start, end = int(runs.node[i]), float(runs.start_s[i]), float(runs.end_s[i])
        if not 0 <= node < n_nodes:
            continue
        others = sorted(one for one in allocated[node] if one[2] > start)
        left, low, own = min(float(runs.n_accelerators[i]), float(room[node])), 0.0, []
        for begin, over, _ in [*others, (inf, inf, inf)]:
            size = min(left, begin - low)
            if size > 1e-6:
                own.append((low, low + size, end))
                left -= size
            low = max(low, over)
        allocated[node] = others + own
        yield from ((int(i), low, high) for low, high, _ in own)


def _legend(names: Sequence[str], colours: Sequence[str], top: float) -> Iterator[Element]:
    for place, (name, colour) in enumerate(zip(names, colours, strict=False)):
        spot = LEFT + 250 + 75.0 * place
        yield shape("rect", x=spot, y=top - 17, width=9.0, height=9.0, fill=colour)
        yield label((spot + 13, top - 8), name[:10], size=10.0)
