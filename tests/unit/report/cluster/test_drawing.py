"""The drawing of a run: layers fill the panel, runs lie on their nodes, a week of hours."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from gpuplan.domain.cluster.answer import ClusterRequest
from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, NodeGroup, ReservingService
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.report.cluster.drawing import HEIGHT, LAYERS, LEFT, RIGHT, WIDTH, cluster_svg
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


def test_every_run_is_a_bar_and_services_are_grey(run, root):
    bars = [one for one in shapes(root, "rect") if one.get("fill-opacity") == "0.7"]
    assert len(bars) == run.found.runs.n_total
    n_services = int((run.found.runs.job >= len(run.jobs)).sum())
    assert sum(one.get("fill") == "#94a3b8" for one in bars) == n_services > 0


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
