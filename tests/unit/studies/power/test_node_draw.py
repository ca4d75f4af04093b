"""Machines from the catalog, and the place of the small circuits from its file."""

from dataclasses import replace

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.cost.carbon import energy_use
from gpuplan.design.facility import checklist
from gpuplan.domain.scenario.site import Rack
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.power.node_draw import (
    facility_of,
    moved_w,
    node_draw,
    node_watts,
    slowdown_of,
    wall_draw,
)
from gpuplan.units import HOUR, KW, KWH
from shared_data import ROOT


@pytest.fixture(scope="module")
def catalog():
    return read_catalog()


@pytest.fixture(scope="module")
def small_circuits():
    return read_scenario(ROOT / "examples" / "power-shortfall.yaml")


def test_a_known_machine_has_its_makers_figures(catalog):
    node, told = node_draw(catalog, catalog.accelerators["h100-sxm"], 8, load_frac=0.7)
    assert node.max_w == pytest.approx(10.2 * KW)
    assert node.idle_w == pytest.approx(2_228.0)
    assert node.height_u == 8
    assert node.psu.n_supplies == 6
    assert told == ()


def test_an_unknown_machine_is_made_of_its_parts_and_says_so(catalog):
    node, told = node_draw(catalog, catalog.accelerators["l4"], 2)
    assert 2 * 72 < node.max_w < 1_000
    assert node.idle_w < node.typical_w < node.max_w
    assert [a.change for a in told] == [
        "owned[].node_max_kw",
        "owned[].mean_utilization_frac",
    ]


def test_liquid_machines_are_known(catalog):
    node, _ = node_draw(catalog, catalog.accelerators["gb200"], 72)
    assert node.cooling == "liquid"
    assert node.max_w == pytest.approx(132 * KW)


def test_caps_cost_a_range_and_nothing_is_promised_below_the_cliff(catalog):
    slowdown = slowdown_of(catalog.accelerators["h100-sxm"], 600.0, is_saturated=True)
    found = slowdown(450.0)
    assert 1.0 <= found.low < found.mid < found.high < 1.7
    assert slowdown(300.0) is None


def test_four_nodes_on_small_circuits(catalog, small_circuits):
    """A4 from its file, with other numbers below."""
    plan = facility_of(catalog, small_circuits.owned[0], small_circuits.site, is_training=True)
    assert (plan.fit.n_nodes, plan.n_racks) == (1, 4)
    assert plan.fit.usable_w == pytest.approx(17.3 * KW, abs=10)
    assert plan.level("machines").max_w == pytest.approx(40.8 * KW)
    assert plan.level("facility").max_w == pytest.approx(57.1 * KW, abs=50)
    assert plan.cooling.btu_per_h == pytest.approx(139_200, abs=100)
    assert plan.cooling.tons == pytest.approx(11.6, abs=0.05)
    cap = next(choice for choice in plan.caps if choice.is_accepted)
    assert 450.0 <= cap.cap_w < 452.0  # the exact watt; at 450 W 5.2 % are left
    assert cap.fit.headroom_frac == pytest.approx(0.051, abs=0.001)
    assert cap.slowdown_ratio.low < cap.slowdown_ratio.high
    energy = energy_use(plan.level("machines").typical_w, 8760 * HOUR, plan.pue_ratio)
    assert energy.facility_j / KWH / 1e3 == pytest.approx(350, abs=1)
    assert energy.facility_j / KWH * 0.12 == pytest.approx(42_000, abs=100)
    assert not [f for f in plan.findings if f.severity == "error"]
    assert len(checklist(plan, small_circuits.site)) > 10


def test_two_per_rack_under_the_cap(catalog, small_circuits):
    capped = replace(small_circuits.owned[0], accelerator_cap_w=450.0)
    plan = facility_of(catalog, capped, small_circuits.site)
    assert (plan.fit.n_nodes, plan.n_racks) == (2, 2)
    assert plan.level("rack").max_w == pytest.approx(16.4 * KW)


def test_a_wider_feed_and_other_machines(catalog, small_circuits):
    site, owned = small_circuits.site, small_circuits.owned[0]
    wide = replace(site, rack=Rack(circuit=replace(site.rack.circuit, line_v=415.0)))
    plan = facility_of(catalog, owned, wide)
    assert (plan.fit.n_nodes, plan.n_racks) == (3, 2)
    assert {f.rule for f in plan.findings if f.severity == "warning"} >= {"cooling-usual"}
    b200 = replace(owned, accelerator="B200", node_max_w=None)
    heavy = facility_of(catalog, b200, site)
    assert heavy.node.max_w == pytest.approx(14.3 * KW)
    assert heavy.fit.n_nodes == 1


def test_too_small_a_feed_is_refused(catalog, small_circuits):
    site = small_circuits.site
    small = replace(site, rack=Rack(circuit=replace(site.rack.circuit, breaker_a=30.0)))
    plan = facility_of(catalog, small_circuits.owned[0], small)
    errors = [f for f in plan.findings if f.severity == "error"]
    assert errors
    assert plan.fit.n_nodes == 0
    assert any("short" in f.what for f in errors)


def test_an_assumed_pue_is_told(catalog, small_circuits):
    site = replace(small_circuits.site, pue_ratio=None)
    plan = facility_of(catalog, small_circuits.owned[0], site)
    assert plan.pue_ratio == pytest.approx(1.58)
    assert "site.pue" in [a.change for a in plan.assumptions]


def test_the_wall_follows_the_boards_in_a_line(catalog):
    """Eight boards of an island: hosts 20 + 8 x 140 W, fans 18 %, supplies lose 6 %."""
    wall = wall_draw(catalog, "h100-sxm", 8)
    assert wall.host_w == pytest.approx(1.06 * (20 + 8 * 140))
    assert wall.ratio == pytest.approx(1.06 * 1.18)
    assert wall.idle_w < wall.busy_w < 700


def test_a_board_without_a_limit_has_no_draw(catalog):
    assert wall_draw(catalog, "inferentia2", 1) is None
    assert node_watts(catalog, "inferentia2", 1).max_w == 0
    assert moved_w(catalog, "inferentia2", 100.0, n=1, n_new=8) is None


def test_moving_to_another_size_keeps_boards_as_busy(catalog):
    large = wall_draw(catalog, "h100-sxm", 8)
    node_w = large.host_w + large.ratio * 8 * 400.0
    one = wall_draw(catalog, "h100-sxm", 1)
    moved = moved_w(catalog, "h100-sxm", node_w, n=8, n_new=1)
    assert moved == pytest.approx(one.host_w + one.ratio * 400.0)
    assert moved_w(catalog, "h100-sxm", moved, n=1, n_new=8) == pytest.approx(node_w)
