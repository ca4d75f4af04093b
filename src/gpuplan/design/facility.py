"""The whole place, in: machines, a site; out: racks, power and cooling with every objection."""

from typing import NamedTuple

from gpuplan.design.cooling import cooling_findings, cooling_load
from gpuplan.design.power import (
    levels,
    psu_findings,
    site_findings,
    supply_findings,
    swing_findings,
    ups_size,
)
from gpuplan.design.racks import (
    Slowdown,
    cap_choices,
    fit_rack,
    layout,
    rack_findings,
    racks_needed,
)
from gpuplan.design.rules import UPS, assumed
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.build import USUAL, BuildRules, RoomRules
from gpuplan.domain.scenario.site import Rack, Site
from gpuplan.domain.system.facility import CapChoice, ChecklistItem, FacilityPlan, NodeDraw, RackFit
from gpuplan.domain.system.findings import Finding
from gpuplan.units import KW, KWH, MINUTE


class Duty(NamedTuple):
    """What the machines do: train in step or not, and what caps cost their work in speed."""

    is_training: bool = False
    slowdown: Slowdown | None = None


AT_REST = Duty()


def facility_plan(
    node: NodeDraw,
    n_nodes: int,
    *,
    site: Site,
    pue_ratio: float,
    duty: Duty = AT_REST,
    build: BuildRules = USUAL,
) -> FacilityPlan:
    """Machines into racks, power at every level, cooling, caps that would make denser racks.

    A machine that runs under a cap comes in as `design.power.capped(node, cap_w)`.
    """
    rack, room = site.rack or Rack(), build.room
    fit = fit_rack(node, rack, room=room)
    # Where nothing is known of a rack each machine is shown in one of its own.
    per_rack = max(1, min(fit.n_nodes, n_nodes))
    return FacilityPlan(
        node=node,
        n_nodes=n_nodes,
        fit=fit,
        n_racks=racks_needed(n_nodes, fit) or 0,
        levels=levels(
            node,
            n_nodes,
            n_per_rack=per_rack,
            n_racks_per_row=room.n_racks_per_row,
            pue_ratio=pue_ratio,
        ),
        cooling=cooling_load(node, n_nodes),
        pue_ratio=pue_ratio,
        caps=_denser(node, rack, fit, slowdown=duty.slowdown, room=room),
        slots=layout(node, n_nodes, n_per_rack=per_rack),
        findings=_findings(node, n_nodes, site=site, fit=fit, pue_ratio=pue_ratio)
        + swing_findings(node, n_nodes, is_training=duty.is_training),
        assumptions=_assumptions(node, build),
        ups=ups_size(n_nodes * node.max_w, room),
    )


def _denser(
    node: NodeDraw, rack: Rack, fit: RackFit, *, slowdown: Slowdown | None, room: RoomRules
) -> tuple[CapChoice, ...]:
    """Caps under which one node more would share the rack; none where power does not bind."""
    binding = fit.binding
    if binding is None or binding.name != "power":
        return ()
    return cap_choices(node, rack, n_wanted=fit.n_nodes + 1, slowdown=slowdown, room=room)


def _findings(
    node: NodeDraw, n_nodes: int, *, site: Site, fit: RackFit, pue_ratio: float
) -> tuple[Finding, ...]:
    circuit = site.rack.circuit if site.rack else None
    found = rack_findings(node, n_nodes, fit=fit, n_racks=site.n_racks)
    if fit.n_nodes == 0 and fit.usable_w is not None:
        found += supply_findings(
            node.max_w, fit.usable_w, where="rack feed", typical_w=node.typical_w
        )
    found += site_findings(n_nodes * node.max_w, pue_ratio, site)
    found += cooling_findings(node, max(1, min(fit.n_nodes, n_nodes)), site.cooling)
    return found + psu_findings(node, circuit.n_feeds if circuit else 1)


def _assumptions(node: NodeDraw, build: BuildRules) -> tuple[Assumption, ...]:
    names = ["room.reserved_u", "room.racks_per_row", *UPS]
    if node.board is not None and node.board.cap_w is not None:
        names.append("room.cap_reserve_frac")
    if node.cooling == "liquid":
        names.append("room.liquid_frac")
    return assumed(build, *names)


def checklist(plan: FacilityPlan, site: Site) -> tuple[ChecklistItem, ...]:
    """What to see to before the machines arrive, with this plan's own figures."""
    return (*_power_items(plan, site), *_heat_items(plan), *_floor_items(plan, site))


def _power_items(plan: FacilityPlan, site: Site) -> list[ChecklistItem]:
    facility, rack = plan.level("facility"), plan.level("rack")
    circuit = site.rack.circuit if site.rack else None
    feeds = "not described"
    if circuit is not None:
        kind = f"{circuit.line_v:.0f} V, {circuit.breaker_a:.0f} A, {circuit.n_phases}-phase"
        feeds = f"{kind}, {circuit.n_feeds} feed(s), {circuit.usable_w / KW:.1f} kW usable on one"
    return [
        _item(
            "power",
            "whole place at full draw",
            f"{facility.max_w / KW:.1f} kW",
            f"machines {plan.level('machines').max_w / KW:.1f} kW times PUE {plan.pue_ratio:g}",
        ),
        _item("power", "circuits of a rack", feeds, "each feed must carry the rack alone"),
        _item(
            "power",
            "draw of a rack",
            f"{rack.max_w / KW:.1f} kW",
            f"{rack.n_nodes} machines at {plan.node.max_w / KW:.1f} kW",
        ),
        _item("power", "supplies of a machine", _psu_text(plan.node), "test with one feed off"),
        _item("power", "UPS", _ups_text(plan), "carries the machines until a generator does"),
        _item(
            "power", "meter and cap", "read draw per outlet before load", "averages hide transients"
        ),
    ]


def _heat_items(plan: FacilityPlan) -> list[ChecklistItem]:
    heat = plan.cooling
    return [
        _item(
            "cooling",
            "heat",
            f"{heat.heat_w / KW:.1f} kW, {heat.btu_per_h / 1e3:,.0f} kBTU/h, {heat.tons:.1f} tons",
            "all that is drawn becomes heat",
        ),
        _item(
            "cooling",
            "air through the machines",
            f"{heat.air_m3_per_s:.1f} m³/s",
            f"at {heat.air_rise_k:g} K rise",
        ),
        _item(
            "cooling",
            "liquid",
            f"{heat.liquid_w / KW:.1f} kW" if heat.liquid_w else "none",
            "supply temperature and flow as the maker says",
        ),
    ]


def _floor_items(plan: FacilityPlan, site: Site) -> list[ChecklistItem]:
    node, n = plan.node, max(plan.fit.n_nodes, 1)
    weight = "weight not published" if node.weight_kg is None else f"{n * node.weight_kg:.0f} kg"
    height = "height not published" if node.height_u is None else f"{n * node.height_u:g} U"
    room = "not limited" if site.n_racks is None else f"{site.n_racks} there"
    return [
        _item("space", "racks", f"{plan.n_racks} needed, {room}", f"{plan.fit.n_nodes} in each"),
        _item("space", "height in a rack", height, "machines alone, without switches"),
        _item("space", "floor load of a rack", weight, "machines alone, without rack and cables"),
        _item("space", "way in", "door, lift and ramp for the crates", "crates exceed a rack"),
        _item("network", "cable lengths", "measure rack to rack", "copper ends after few metres"),
    ]


def _ups_text(plan: FacilityPlan) -> str:
    ups = plan.ups
    if ups is None:
        return "not sized"
    return (
        f"{ups.load_va / KW:.1f} kVA, {ups.n_modules} modules of {ups.module_w / KW:g} kW, "
        f"{ups.energy_j / KWH:.1f} kWh for {ups.bridge_s / MINUTE:g} min"
    )


def _psu_text(node: NodeDraw) -> str:
    psu = node.psu
    return "not described" if psu is None else f"{psu.n_supplies} of {psu.each_w / KW:.1f} kW"


def _item(topic: str, item: str, value: str, why: str) -> ChecklistItem:
    return ChecklistItem(topic=topic, item=item, value=value, why=why)
