"""Racks, caps, cooling: four machines on small circuits, and variants."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.machines import BOARD, CIRCUIT, NODE, RACK, SITE
from gpuplan.calibration.power import CAP_CURVES
from gpuplan.design.facility import checklist, cooling_findings, cooling_load, facility_plan
from gpuplan.design.power import capped
from gpuplan.design.racks import (
    cap_choices,
    depth_findings,
    fit_rack,
    judge_cap,
    layout,
    rack_findings,
)
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.site import Rack
from gpuplan.performance.power import cap_slowdown
from gpuplan.units import KW


def slowdown(cap_w: float) -> Range:
    both = sorted(
        cap_slowdown(BOARD.typical_w, cap_w, limit=BOARD.limit_w, curve=curve)
        for curve in CAP_CURVES.values()
    )
    return Range(low=both[0], mid=sum(both) / 2, high=both[1])


def test_one_machine_per_rack_without_caps():
    fit = fit_rack(NODE, RACK)
    assert fit.n_nodes == 1
    assert fit.binding.name == "power"


def test_two_per_rack_only_at_450_watts():
    """A4: 16.4 kW leave 5.2 %; 17.2 kW leave 0.5 % and are refused."""
    choices = {choice.cap_w: choice for choice in cap_choices(NODE, RACK, n_wanted=2)}
    assert choices[450.0].is_accepted
    assert choices[450.0].fit.used_w == pytest.approx(16.4 * KW)
    assert choices[450.0].fit.headroom_frac == pytest.approx(0.052, abs=0.0005)
    assert not choices[500.0].is_accepted
    assert "0.5% left" in choices[500.0].reason
    highest = max(cap for cap, choice in choices.items() if choice.is_accepted)
    assert highest == 451.0  # to the watt: one more and two do not fit
    assert fit_rack(capped(NODE, highest), RACK).n_nodes == 2
    assert fit_rack(capped(NODE, highest + 1), RACK).n_nodes == 1


def test_no_exact_cap_where_none_admits_more():
    choices = cap_choices(NODE, RACK, n_wanted=3)
    assert not any(choice.is_accepted for choice in choices)
    assert all(choice.cap_w % 50 == 0 for choice in choices)


def test_air_and_units_follow_the_heat():
    load = cooling_load(NODE, 4)
    assert load.cfm == pytest.approx(load.air_m3_per_s * 2118.88)
    assert (load.n_units - 1) * load.unit_w >= load.heat_w > (load.n_units - 2) * load.unit_w


def test_caps_show_their_cost_as_a_range():
    choice = judge_cap(NODE, RACK, cap_w=450.0, n_wanted=2, slowdown=slowdown)
    assert 1.0 < choice.slowdown_ratio.low < choice.slowdown_ratio.high < 1.6


def test_below_the_cliff_no_speed_is_promised():
    choice = judge_cap(NODE, RACK, cap_w=300.0, n_wanted=2, slowdown=slowdown)
    assert not choice.is_accepted
    assert choice.slowdown_ratio is None


@pytest.mark.parametrize(
    ("volts", "amps", "n_per_rack"), [(208, 30, 0), (415, 60, 3), (400, 32, 1), (480, 100, 6)]
)
def test_other_circuits(volts, amps, n_per_rack):
    rack = Rack(circuit=replace(CIRCUIT, line_v=float(volts), breaker_a=float(amps)))
    assert fit_rack(NODE, rack).n_nodes == n_per_rack


def test_the_narrowest_limit_binds():
    """Trap 43: height, weight and cooling bind too."""
    wide = Rack(n_units=42, power_w=100 * KW, cooling_w=45 * KW, weight_kg=1_000.0)
    fit = fit_rack(NODE, wide)
    assert {limit.name: limit.n_nodes for limit in fit.limits} == {
        "power": 9,
        "cooling": 4,
        "height": 4,
        "weight": 7,
    }
    assert fit.n_nodes == 4
    heavy = fit_rack(NODE, replace(wide, weight_kg=300.0))
    assert (heavy.n_nodes, heavy.binding.name) == (2, "weight")


def test_too_few_racks_say_how_many_are_missing():
    fit = fit_rack(NODE, RACK)
    found = rack_findings(NODE, 6, fit=fit, n_racks=4)
    assert found[0].severity == "error"
    assert "need 6 racks" in found[0].what
    assert "add 2 racks" in found[0].fix
    assert rack_findings(NODE, 4, fit=fit, n_racks=4) == ()


def test_not_one_fits():
    small = Rack(circuit=replace(CIRCUIT, breaker_a=30.0))
    found = rack_findings(NODE, 1, fit=fit_rack(NODE, small), n_racks=None)
    assert found[0].rule == "rack-power"
    assert "10.2 kW" in found[0].fix


def test_an_unknown_rack_is_said():
    assert (
        rack_findings(NODE, 1, fit=fit_rack(NODE, Rack()), n_racks=None)[0].rule == "rack-unknown"
    )


def test_heat_in_three_units():
    """A4: 139 kBTU/h, 11.6 tons; trap 43: heat is what is drawn."""
    heat = cooling_load(NODE, 4)
    assert heat.heat_w == pytest.approx(40.8 * KW)
    assert heat.btu_per_h == pytest.approx(139_200, abs=100)
    assert heat.tons == pytest.approx(11.6, abs=0.05)
    # 19 000 CFM for 120 kW at 20 °F (11.1 K), as makers print it.
    hall = cooling_load(replace(NODE, max_w=120 * KW), 1, air_rise_k=20 / 1.8)
    assert hall.air_m3_per_s / 0.000471947 == pytest.approx(19_000, rel=0.02)


@pytest.mark.parametrize(
    ("cooling", "n", "severity"),
    [
        ("air", 2, None),
        ("air", 3, "warning"),
        ("air", 4, "error"),
        ("rear_door", 4, "warning"),
        ("direct_liquid", 4, None),
    ],
)
def test_air_ends_where_liquid_begins(cooling, n, severity):
    found = cooling_findings(NODE, n, cooling)
    assert [f.severity for f in found] == ([severity] if severity else [])


def test_liquid_machines_need_liquid():
    wet = replace(NODE, cooling="liquid", liquid_frac=0.8)
    assert cooling_findings(wet, 1, "air")[0].rule == "liquid-needed"
    heat = cooling_load(wet, 1)
    assert heat.liquid_w == pytest.approx(0.8 * 10.2 * KW)
    assert heat.heat_w == pytest.approx(10.2 * KW)
    assert heat.tons == pytest.approx(cooling_load(NODE, 1).tons)
    assert heat.air_m3_per_s == pytest.approx(0.2 * cooling_load(NODE, 1).air_m3_per_s)
    assert cooling_findings(NODE, 4, None)[0].rule == "cooling-unknown"


def test_slots_do_not_overlap():
    slots = layout(NODE, 5, n_per_rack=4)
    assert [slot.rack for slot in slots] == [0, 0, 0, 0, 1]
    assert [slot.bottom_u for slot in slots] == [1, 9, 17, 25, 1]
    assert layout(replace(NODE, height_u=None), 5, n_per_rack=4) == ()


def test_the_whole_place():
    plan = facility_plan(NODE, 4, site=SITE, pue_ratio=1.4, slowdown=slowdown)
    assert (plan.fit.n_nodes, plan.n_racks) == (1, 4)
    assert plan.level("facility").max_w == pytest.approx(57.12 * KW)
    assert next(choice.cap_w for choice in plan.caps if choice.is_accepted) == 451.0
    rules = {finding.rule for finding in plan.findings}
    assert rules == {"psu-feed-loss"}
    assert not [finding for finding in plan.findings if finding.severity == "error"]


def test_a_capped_place_is_denser():
    plan = facility_plan(capped(NODE, 450.0), 4, site=SITE, pue_ratio=1.4)
    assert (plan.fit.n_nodes, plan.n_racks) == (2, 2)
    assert [a.what for a in plan.assumptions][-1] == "share of a feed reserved under power caps"
    tight = facility_plan(capped(NODE, 500.0), 4, site=SITE, pue_ratio=1.4)
    assert tight.fit.n_nodes == 1


def test_an_undersized_supply_is_an_error():
    small = replace(SITE, rack=Rack(circuit=replace(CIRCUIT, breaker_a=30.0)))
    plan = facility_plan(NODE, 1, site=small, pue_ratio=1.4)
    errors = [finding for finding in plan.findings if finding.severity == "error"]
    assert {finding.rule for finding in errors} == {"rack-power", "supply"}
    assert "1.6 short" in errors[1].what


def test_the_checklist_has_this_plans_figures():
    plan = facility_plan(NODE, 4, site=SITE, pue_ratio=1.4)
    items = {item.item: item.value for item in checklist(plan, SITE)}
    assert items["whole facility at full draw"] == "57.1 kW"
    assert items["heat"] == "40.8 kW, 139 kBTU/h, 11.6 tons"
    assert "17.3 kW usable on one" in items["circuits of a rack"]
    assert items["racks"] == "4 needed, 4 there"
    assert items["floor load of a rack"] == "130 kg"


@given(amps=st.floats(20, 200), cap=st.floats(320, 700))
def test_more_supply_and_lower_caps_never_fit_less(amps, cap):
    rack = Rack(circuit=replace(CIRCUIT, breaker_a=amps))
    wider = Rack(circuit=replace(CIRCUIT, breaker_a=amps * 1.1))
    held = capped(NODE, cap)
    assert fit_rack(held, wider).n_nodes >= fit_rack(held, rack).n_nodes
    assert fit_rack(capped(NODE, cap - 10), rack).n_nodes >= fit_rack(held, rack).n_nodes
    fit = fit_rack(NODE, rack)
    assert fit.used_w <= fit.usable_w * (1 + 1e-9)


def test_a_server_deeper_than_its_rack_is_an_error():
    deep = replace(NODE, depth_m=0.8971)
    assert depth_findings(deep, 1.0) == ()
    (found,) = depth_findings(deep, 0.8)
    assert (found.severity, found.rule) == ("error", "rack-depth")
    assert "897 mm" in found.what
    assert "0.9 m" in found.fix
    assert depth_findings(NODE, 0.1) == ()  # nobody says how deep it is
    plan = facility_plan(
        deep, 4, site=replace(SITE, rack=replace(RACK, depth_m=0.8)), pue_ratio=1.4
    )
    assert "rack-depth" in {one.rule for one in plan.findings}
