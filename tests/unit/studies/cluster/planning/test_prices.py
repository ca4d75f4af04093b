"""Kinds of nodes: the file's price, else that of other plans; memory, speed by the catalog."""

from datetime import date
from pathlib import Path

import pytest

from gpuplan import PlanRequest
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, PlanTerms
from gpuplan.domain.cluster.plan import ClusterPlanRequest
from gpuplan.errors import InputError
from gpuplan.studies.cluster.planning.prices import priced_nodes
from gpuplan.studies.planning.inputs import plan_inputs
from gpuplan.units import GIB

DAY = date(2026, 11, 1)
REQUEST = ClusterPlanRequest(cluster_file=Path("c"), jobs_file=Path("j"), today=DAY)


def group(name, n=8, usd=None, **more):
    return NodeGroup(
        accelerator=name,
        n_nodes=1,
        n_accelerators_per_node=n,
        usd_per_accelerator_h=usd,
        **more,
    )


def priced(*groups, request=REQUEST, **terms):
    cluster = Cluster(name="c", groups=groups, plan=PlanTerms(**terms))
    return priced_nodes(cluster, request)


def test_a_price_of_the_file_stands():
    (node,) = priced(group("A100-SXM-80GB", usd=1.8)).nodes
    assert node.usd_per_h.mid == pytest.approx(14.4)
    assert node.source == "cluster file"
    assert node.max_w > 8 * 400


def test_without_one_it_is_the_price_that_other_plans_are_made_with():
    (node,) = priced(group("H100-SXM")).nodes
    tree = {
        "version": 1,
        "name": "x",
        "workloads": [{"name": "x", "kind": "generic", "work": {"accelerators": 8}}],
        "policy": {"accelerators": {"allowed": ["h100-sxm"]}},
    }
    market = plan_inputs(PlanRequest(target="x", today=DAY, tree=tree)).market
    same = [r for r in market.rates if r.node.n_accelerators == 8 and r.purchase != "spot"]
    assert node.usd_per_h.mid == min(r.price_usd_per_h.mid for r in same)
    assert any("price of H100-SXM" in note.what for note in node.notes)


def test_less_memory_than_the_jobs_ran_with_is_rejected():
    found = priced(group("A100-SXM-80GB", usd=1.8), group("L40S", usd=1.0))
    assert [node.group.accelerator for node in found.nodes] == ["A100-SXM-80GB"]
    assert "48 GiB" in found.rejected[0].reason
    said = priced(group("A100-SXM-80GB", usd=1.8), group("L40S", usd=1.0), memory_bytes=40 * GIB)
    assert len(said.nodes) == 2


def test_speed_comes_from_compute_and_bandwidth_where_nobody_says():
    both = priced(group("A100-SXM-80GB", usd=1.8), group("H100-SXM", usd=3.0)).nodes
    # 989.4 / 312 TFLOP/s and 3.35 / 2.04 TB/s: the geometric mean is 2.28.
    assert both[1].group.speed_ratio == pytest.approx(2.28, abs=0.02)
    given = priced(group("A100-SXM-80GB", usd=1.8), group("H100-SXM", usd=3.0, speed_ratio=1.7))
    assert given.nodes[1].group.speed_ratio == 1.7


def test_own_words_need_a_price_and_unknown_filters_are_refused():
    found = priced(group("A100-SXM-80GB", usd=1.8), group("our board"))
    assert found.rejected[0].candidate == "our board"
    with pytest.raises(InputError, match="prices"):
        priced(group("our board"))
    only = ClusterPlanRequest(
        cluster_file=Path("c"), jobs_file=Path("j"), today=DAY, accelerators=("B200",)
    )
    with pytest.raises(InputError, match="no B200"):
        priced(group("A100-SXM-80GB", usd=1.8), request=only)
