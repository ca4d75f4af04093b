"""Power of machines, circuits, supplies, UPS: reference arithmetic and other numbers."""

from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.machines import BOARD, CIRCUIT, NODE, SITE
from gpuplan.cost.carbon import energy_use
from gpuplan.design.power import (
    capped,
    levels,
    psu_findings,
    psu_set,
    site_findings,
    supply_findings,
    swing_findings,
    ups_size,
)
from gpuplan.domain.scenario.build import RoomRules
from gpuplan.domain.system.facility import PsuSet
from gpuplan.errors import InputError
from gpuplan.units import HOUR, KW, KWH

YEAR_S = 8760 * HOUR


def by_level(n_nodes=4, n_per_rack=1, pue=1.4):
    found = levels(NODE, n_nodes, n_per_rack=n_per_rack, n_racks_per_row=8, pue_ratio=pue)
    return {level.level: level for level in found}


def test_a_feed_gives_eighty_percent_of_three_phases():
    """Trap 42: √3 and the derate; two feeds are not added."""
    assert CIRCUIT.usable_w == pytest.approx(17.3 * KW, abs=10)
    assert replace(CIRCUIT, n_feeds=1).usable_w == CIRCUIT.usable_w
    assert replace(CIRCUIT, n_phases=1).usable_w == pytest.approx(208 * 60 * 0.8)
    european = replace(CIRCUIT, line_v=400.0, breaker_a=32.0)
    assert european.usable_w == pytest.approx(400 * 32 * sqrt(3) * 0.8)


def test_four_machines_at_every_level():
    found = by_level()
    assert found["machines"].max_w == pytest.approx(40.8 * KW)
    assert found["facility"].max_w == pytest.approx(57.1 * KW, abs=0.1 * KW)
    assert found["accelerator"].max_w == 700.0
    assert found["node"].max_w == pytest.approx(10.2 * KW)
    assert found["facility"].idle_w == pytest.approx(4 * 2.2 * KW * 1.4)


def test_the_machine_is_not_the_sum_of_its_boards():
    """Trap 7: 8 x 700 W is 5.6 kW, the machine draws 10.2."""
    assert NODE.n_accelerators * BOARD.limit_w == 5_600.0
    assert by_level()["node"].max_w > 1.8 * 5_600.0


def test_energy_is_of_average_and_breakers_of_highest():
    """Trap 41: 350 MWh a year at 70 % load, $42 k at 0.12, PUE on both."""
    found = by_level()
    energy = energy_use(found["machines"].typical_w, YEAR_S, 1.4)
    assert energy.facility_j / KWH / 1e3 == pytest.approx(350, abs=1)
    assert energy.facility_j / KWH * 0.12 == pytest.approx(42_000, abs=100)
    ratio = found["facility"].max_w / found["machines"].max_w
    assert ratio == pytest.approx(energy.facility_j / energy.machines_j)


@pytest.mark.parametrize(("cap", "node_kw"), [(450.0, 8.2), (500.0, 8.6), (700.0, 10.2)])
def test_a_cap_takes_only_the_boards_part(cap, node_kw):
    assert capped(NODE, cap).max_w == pytest.approx(node_kw * KW)


def test_capping_twice_is_the_lower_cap():
    assert capped(capped(NODE, 500.0), 450.0).max_w == pytest.approx(capped(NODE, 450.0).max_w)


def test_caps_need_a_known_board():
    with pytest.raises(InputError, match="limit"):
        capped(replace(NODE, board=None), 450.0)
    with pytest.raises(InputError, match="above 0"):
        capped(NODE, 0.0)


@given(cap=st.floats(100, 900))
def test_a_cap_never_raises_the_draw(cap):
    held = capped(NODE, cap)
    assert held.max_w <= NODE.max_w
    assert held.typical_w <= min(NODE.typical_w, held.max_w) + 1e-9


def test_supplies_are_read_as_printed():
    assert psu_set("6x 3300 W, five needed") == PsuSet(n_supplies=6, each_w=3300.0, n_needed=5)
    assert psu_set("4x 2200 W") == PsuSet(n_supplies=4, each_w=2200.0)
    assert psu_set("5x 3300 W at 54 V, 2x 2400 W at 12 V") is None
    assert psu_set("") is None


def test_losing_one_feed_leaves_half_the_supplies():
    rules = [finding.rule for finding in psu_findings(NODE, 2)]
    assert rules == ["psu-feed-loss"]  # 3 of 3.3 kW carry 9.9, not 10.2
    assert psu_findings(NODE, 1) == ()
    assert psu_findings(capped(NODE, 650.0), 2) == ()


def test_supplies_too_small_are_an_error():
    weak = replace(NODE, psu=PsuSet(n_supplies=3, each_w=3_000.0))
    assert [(f.severity, f.rule) for f in psu_findings(weak, 1)] == [("error", "psu-size")]
    tight = replace(NODE, psu=PsuSet(n_supplies=4, each_w=3_000.0))
    assert [f.rule for f in psu_findings(tight, 1)] == ["psu-spare"]


def test_eight_boards_on_a_small_supply_are_refused_with_the_shortfall():
    found = supply_findings(NODE.max_w, 8.0 * KW, where="server room", typical_w=NODE.typical_w)
    assert found[0].severity == "error"
    assert "2.2 short" in found[0].what
    assert "caps" in found[0].fix
    assert supply_findings(8.0, 8.0, where="x") == ()


def test_a_limit_counts_machines_or_the_whole_place():
    """Trap 41: 50 kW for machines hold four; 50 kW at the meter do not."""
    machines = replace(SITE, power_w=50 * KW)
    assert site_findings(40.8 * KW, 1.4, machines) == ()
    facility = replace(machines, is_facility_power=True)
    assert "57.1 kW" in site_findings(40.8 * KW, 1.4, facility)[0].what
    assert site_findings(40.8 * KW, 1.4, replace(SITE, power_w=None)) == ()


def test_training_swings_together():
    """Trap 42."""
    rules = [f.rule for f in swing_findings(NODE, 16, is_training=True)]
    assert rules == ["synchronous-swing", "transients"]
    assert [f.rule for f in swing_findings(NODE, 16, is_training=False)] == ["transients"]


def test_ups_bridges_with_one_spare_module():
    size = ups_size(57.1 * KW, RoomRules(ups_bridge_s=300.0, ups_module_w=20 * KW))
    assert size.n_modules == 4
    assert size.energy_j / KWH == pytest.approx(57.1 / 12 / 0.95, rel=1e-3)
    assert size.load_va > size.load_w
    with pytest.raises(InputError):
        ups_size(0.0, RoomRules())


@given(watt=st.floats(0.1, 10.0))
def test_resizing_the_watt_resizes_every_level(watt):
    big = replace(
        NODE, idle_w=NODE.idle_w * watt, typical_w=NODE.typical_w * watt, max_w=NODE.max_w * watt
    )
    base = levels(NODE, 4, n_per_rack=2, n_racks_per_row=8, pue_ratio=1.3)[1:]
    sized = levels(big, 4, n_per_rack=2, n_racks_per_row=8, pue_ratio=1.3)[1:]
    for one, other in zip(base, sized, strict=True):
        assert other.max_w == pytest.approx(watt * one.max_w)
        assert other.idle_w == pytest.approx(watt * one.idle_w)
