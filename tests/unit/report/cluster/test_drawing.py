"""The drawing of a run: layers fill the panel, runs lie on their nodes, a week of hours."""

import sys
from dataclasses import replace
from html import escape
from xml.etree import ElementTree

import numpy as np
import pytest

from gpuplan.domain.cluster.answer import ClusterRequest
from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, NodeGroup, ReservingService
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.report.cluster.drawing import (
    HEIGHT,
    LAYERS,
    LEFT,
    NODE_HEIGHT,
    RIGHT,
    WIDTH,
    cluster_page,
    cluster_svg,
)
from gpuplan.report.cluster.sheet import cluster_sheet
from gpuplan.studies.cluster.simulate import answers

HOUR = 3600.0


@pytest.fixture(scope="module")
def run():
    """Two nodes for two days; a service by day, and a job on every node by night."""
    rng = np.random.default_rng(1)
    jobs = Jobs(
        arrive_s=np.sort(rng.uniform(0, 48 * HOUR, 60)),
        duration_s=rng.exponential(2 * HOUR, 60),
        n_accelerators=rng.choice([1, 4, 8], 60),
        team=rng.integers(0, 2, 60),
        team_names=("a", "b<&>"),
        week_s=24 * HOUR,
    )
    service = ReservingService(
        name="chat",
        team="a",
        accelerator="H100",
        n_accelerators_per_replica=4,
        replicas_by_hour=tuple(2 if 8 <= hour < 20 else 0 for hour in range(24)),
    )
    group = NodeGroup(accelerator="H100", n_nodes=2, n_accelerators_per_node=8)
    teams = (ClusterTeam(name="a"), ClusterTeam(name="b<&>"))
    described = Cluster(name="drawn", groups=(group,), teams=teams, services=(service,))
    return answers(described, jobs, ClusterRequest())


@pytest.fixture(scope="module")
def root(run):
    return ElementTree.fromstring(cluster_svg(run))


def shapes(root, tag):
    return [element for element in root.iter() if element.tag.endswith(tag)]


def test_layers_are_stacked_to_the_top_of_the_panel(root):
    polygons = shapes(root, "polygon")
    assert [one.get("fill") for one in polygons] == [colour for _, colour in LAYERS.values()]
    points = [tuple(map(float, p.split(","))) for p in polygons[-1].get("points").split()]
    upper = points[: len(points) // 2]
    # The last layer ends where all GPUs are counted: at the panel's upper edge.
    assert {y for _, y in upper} == {min(y for _, y in upper)}


def test_nothing_is_drawn_outside(root):
    width = float(root.get("width"))
    assert width == WIDTH
    for one in shapes(root, "rect")[1:]:
        x, w = float(one.get("x")), float(one.get("width"))
        assert x >= LEFT - 1
        assert x + w <= WIDTH - RIGHT + 1


def bars(root):
    """Edges of the bars in the Gantt chart: left, right, upper, lower; and their colours."""
    found = [one for one in shapes(root, "rect") if one.get("class") == "run"]
    at = np.array([[float(one.get(k)) for k in ("x", "width", "y", "height")] for one in found])
    edges = np.column_stack([at[:, 0], at[:, 0] + at[:, 1], at[:, 2], at[:, 2] + at[:, 3]])
    return edges, [one.get("fill") for one in found]


def test_every_run_is_shown_and_services_are_grey(run, root):
    edges, fills = bars(root)
    runs = run.found.runs
    is_service = runs.job >= len(run.jobs)
    assert sum(fill == "#94a3b8" for fill in fills) >= int(is_service.sum()) > 0
    texts = [one.text for one in shapes(root, "text")]
    assert texts.count("services") == 2  # layers, runs
    assert not any("." in str(text) for text in texts if not str(text).endswith(" d"))
    assert "Runs by node" in texts  # and not: so many of so many
    # GPU time of the runs and area of the bars: 8 GPUs are 96 % of a node's row.
    wide = (WIDTH - LEFT - RIGHT) / run.found.end_s
    held = runs.n_accelerators * (runs.end_s - runs.start_s)
    area = ((edges[:, 1] - edges[:, 0]) * (edges[:, 3] - edges[:, 2])).sum()
    assert area == pytest.approx(held.sum() * wide * 0.96 * NODE_HEIGHT / 8, rel=0.02)


def n_covered(edges):
    """Pairs of bars of which one lies on the other by more than they are rounded."""
    left, right, upper, lower = edges.T
    beside = np.minimum(right[:, None], right) - np.maximum(left[:, None], left) > 0.31
    above = np.minimum(lower[:, None], lower) - np.maximum(upper[:, None], upper) > 0.21
    return int(np.triu(beside & above, k=1).sum())


def test_runs_that_share_a_node_lie_one_above_the_other(root):
    edges, _ = bars(root)
    assert n_covered(edges) == 0
    flat = edges.copy()
    flat[:, 2:] = edges[:, 2:].max() - np.array([NODE_HEIGHT, 0.0])
    assert n_covered(flat) > 0  # what the count would say of bars as high as the node


def test_charts_over_time_have_one_axis(run, root):
    ends = [one for one in shapes(root, "text") if str(one.text).endswith(" d")]
    places = {}
    for one in ends:
        places.setdefault(one.text, []).append(one.get("x"))
    assert {len(found) for found in places.values()} == {3}  # layers, queue, runs
    assert {len(set(found)) for found in places.values()} == {1}
    edges, _ = bars(root)
    assert edges[:, 1].max() == pytest.approx(WIDTH - RIGHT, abs=0.5)
    [queue] = shapes(root, "polyline")
    assert float(queue.get("points").split()[-1].split(",")[0]) == WIDTH - RIGHT


def test_more_runs_than_can_be_told_apart_leave_nodes_out(run, monkeypatch):
    first = int((run.found.runs.node == 0).sum())
    monkeypatch.setattr(sys.modules[cluster_svg.__module__], "N_RUNS", first)
    text = cluster_svg(run)
    assert f"Runs by node ({first} of {run.found.runs.n_total})" in text


def test_runs_in_the_cloud_are_on_no_node(run):
    runs = run.found.runs
    away = replace(runs, node=np.where(np.arange(len(runs.node)) % 2 == 0, -1, runs.node))
    moved = replace(run, found=replace(run.found, runs=away))
    n_left = int((away.node >= 0).sum())
    assert f"Runs by node ({n_left} of {runs.n_total})" in cluster_svg(moved)


def test_hours_of_the_week_begin_where_the_trace_does(run, root):
    cells = [one for one in shapes(root, "rect") if str(one.get("fill")).startswith("rgb")]
    rows = {round(float(one.get("y")), 1) for one in cells}
    assert len(rows) == 2  # Tuesday and Wednesday
    later = cluster_svg(replace(run, jobs=replace(run.jobs, week_s=0.0)))
    first = min(
        float(one.get("y"))
        for one in shapes(ElementTree.fromstring(later), "rect")
        if str(one.get("fill")).startswith("rgb")
    )
    assert first == pytest.approx(min(rows) - HEIGHT / 7, abs=0.2)


def test_names_are_escaped(run):
    assert "b&lt;&amp;&gt;" in cluster_svg(run)


def test_the_page_has_the_answer_the_drawing_and_every_table(run):
    sheet = cluster_sheet(run)
    page = cluster_page(sheet, run)
    assert f"<h1>{escape(sheet.head)}</h1>" in page
    assert page.count("<svg") == 1
    assert page.count('class="run"') == len(bars(ElementTree.fromstring(cluster_svg(run)))[1])
    for table in sheet.tables:
        assert (f">{escape(table.title)}<" in page) == bool(table.rows)
    assert "b<&>" not in page
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "<script" not in page


def test_a_plan_without_a_cluster_is_a_page_without_a_drawing(run):
    page = cluster_page(cluster_sheet(run), None)
    assert "<svg" not in page
    assert 'aria-label="Charts"' not in page
    assert "<table" in page
