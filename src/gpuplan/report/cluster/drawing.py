"""A simulated cluster in one drawing: GPU time by layer, the queue, hours of the week, a Gantt."""

from collections.abc import Iterator, Sequence
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
TEAMS = ("#2563eb", "#16a34a", "#f59e0b", "#dc2626", "#a855f7", "#0891b2", "#be185d", "#65a30d")
N_NODES = 64  # of the Gantt chart: the first ones
N_BARS = 4000


def cluster_svg(found: ClusterSimulation) -> str:
    """The whole drawing as an SVG file."""
    parts: list[Element] = []
    panels = (_layers, _queue, _week, _gantt)
    for place, panel in enumerate(panels):
        parts += panel(found, GAP / 2 + place * (HEIGHT + GAP))
    title = f"{found.cluster.name}: GPU time, queue and runs"
    return drawing(WIDTH, len(panels) * (HEIGHT + GAP) + GAP / 2, title=title, parts=parts)


def cluster_page(sheet: Sheet, run: ClusterSimulation | None) -> str:
    """A planned or simulated cluster as one page: the answer, its drawing, every table."""
    what = "GPU cluster" if run is None else f"GPU cluster “{run.cluster.name}”, simulated"
    return sheet_page(sheet, what, cluster_svg(run) if run else "")


def _frame(top: float, title: str, high: float, days: float) -> tuple[Axis, Axis, list[Element]]:
    """Axes in days and in the panel's unit, with their marks."""
    x = Axis(0.0, max(days, 1e-9), LEFT, WIDTH - RIGHT)
    y = Axis(0.0, max(high, 1e-9), top + HEIGHT, top)
    parts = [label((LEFT, top - 8), title, size=13.0)]
    for value in ticks(y.low, y.high):
        parts.append(line((LEFT, y.at(value)), (WIDTH - RIGHT, y.at(value)), width=0.3))
        parts.append(label((LEFT - 6, y.at(value) + 4), tick_label(value), anchor="end", size=10.0))
    for value in ticks(x.low, x.high):
        place = (x.at(value), top + HEIGHT + 14)
        parts.append(label(place, f"{tick_label(value)} d", anchor="middle", size=10.0))
    return x, y, parts


def _middles(found: ClusterSimulation) -> Floats:
    line_ = found.found.timeline
    places = np.arange(len(line_.batch) - 1, dtype=np.float64)
    return (places + 0.5) * (line_.bin_s / DAY)


def _layers(found: ClusterSimulation, top: float) -> Iterator[Element]:
    """What the GPUs did, one layer on the other."""
    at, total = _middles(found), float(found.cluster.n_accelerators)
    x, y, parts = _frame(top, "GPUs", total, float(at[-1]) if len(at) else 1.0)
    base = np.zeros(len(at))
    for name, (field, colour) in LAYERS.items():
        upper = base + getattr(found.found.timeline, field)[: len(at)]
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
    at = _middles(found)
    queued = found.found.timeline.queued_accelerators[: len(at)]
    high = float(queued.max()) if len(queued) else 1.0
    x, y, parts = _frame(top, "GPUs queued", max(high, 1.0), float(at[-1]) if len(at) else 1.0)
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


def _gantt(found: ClusterSimulation, top: float) -> Iterator[Element]:
    """Runs by their first node, coloured by team; the first nodes and runs where there are many."""
    runs = found.found.runs
    shown = np.flatnonzero(runs.node < N_NODES)[:N_BARS]
    end = float(runs.end_s[shown].max()) / DAY if len(shown) else 1.0
    n_nodes = float(runs.node[shown].max()) + 1 if len(shown) else 1.0
    hidden = "" if len(shown) == runs.n_total else f" ({len(shown):,} of {runs.n_total:,} runs)"
    x, y, parts = _frame(top, f"Runs by node{hidden}", n_nodes, end)
    height = HEIGHT / n_nodes
    for i in shown:
        job = int(runs.job[i])
        is_service = job >= len(found.jobs)
        fill = "#94a3b8" if is_service else TEAMS[int(found.jobs.team[job]) % len(TEAMS)]
        begin = x.at(runs.start_s[i] / DAY)
        width = max(0.3, x.at(runs.end_s[i] / DAY) - begin)
        upper = y.at(float(runs.node[i]) + 1)
        attributes = {"x": begin, "y": upper, "width": width, "height": max(0.5, height - 0.5)}
        parts.append(shape("rect", **attributes, fill=fill, fill_opacity="0.7"))
    yield from _legend(found.jobs.team_names, top)
    yield from parts


def _legend(names: Sequence[str], top: float) -> Iterator[Element]:
    for place, name in enumerate(names[: len(TEAMS)]):
        spot = LEFT + 250 + 75.0 * place
        yield shape("rect", x=spot, y=top - 17, width=9.0, height=9.0, fill=TEAMS[place])
        yield label((spot + 13, top - 8), name[:10], size=10.0)
