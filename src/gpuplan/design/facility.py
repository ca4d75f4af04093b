"""The facility of a group of servers: racks, power and cooling, objections, and a checklist.

Cooling: the heat of servers, and whether a site takes the heat of such racks away.
"""

from gpuplan.design.power import (
    levels,
    psu_findings,
    site_findings,
    supply_findings,
    ups_size,
)
from gpuplan.design.racks import (
    Slowdown,
    cap_choices,
    depth_findings,
    fit_rack,
    layout,
    rack_findings,
)
from gpuplan.design.rules import UPS, assumed
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.build import USUAL, BuildRules
from gpuplan.domain.scenario.site import Cooling, Rack, Site
from gpuplan.domain.system.facility import (
    USUAL_RACK_DEPTH_M,
    ChecklistItem,
    CoolingLoad,
    FacilityPlan,
    NodeDraw,
    RackFit,
)
from gpuplan.domain.system.findings import Finding, error, warning
from gpuplan.units import KW, KWH, MINUTE, MM

AIR_RISE_K = 15.0  # through dense servers, inlet 18–27 °C [ashrae-inlet]
# Heat of one rack: up to here as a rule, and up to here with containment and care. Vendors'
# figures, weak evidence [rack-cooling]; None: no figure.
RACK_LIMITS_W: dict[Cooling, tuple[float, float]] = {
    "air": (30 * KW, 40 * KW),
    "rear_door": (40 * KW, 60 * KW),
    "direct_liquid": (120 * KW, 150 * KW),
    "immersion": (100 * KW, 200 * KW),
}
NEXT_STEP: dict[Cooling, str] = {
    "air": "rear-door heat exchangers, direct liquid cooling, or fewer servers per rack",
    "rear_door": "direct liquid cooling, or fewer servers per rack",
    "direct_liquid": "fewer servers per rack",
    "immersion": "fewer servers per tank",
}


def facility_plan(
    node: NodeDraw,
    n_nodes: int,
    *,
    site: Site,
    pue_ratio: float,
    slowdown: Slowdown | None = None,
    build: BuildRules = USUAL,
) -> FacilityPlan:
    """Servers in racks with power at every level, cooling, and caps that allow denser racks.

    A server that runs under a cap comes in as `design.power.capped(node, cap_w)`.
    """
    rack, room = site.rack or Rack(), build.room
    fit = fit_rack(node, rack, room=room)
    # Where nothing is known of a rack each server is shown in one of its own.
    per_rack = max(1, min(fit.n_nodes, n_nodes))
    is_power_bound = fit.binding is not None and fit.binding.name == "power"
    n_wanted = fit.n_nodes + 1
    return FacilityPlan(
        node=node,
        n_nodes=n_nodes,
        fit=fit,
        n_racks=-(-n_nodes // fit.n_nodes) if fit.n_nodes else 0,
        levels=levels(
            node,
            n_nodes,
            n_per_rack=per_rack,
            n_racks_per_row=room.n_racks_per_row,
            pue_ratio=pue_ratio,
        ),
        cooling=cooling_load(node, n_nodes),
        pue_ratio=pue_ratio,
        caps=cap_choices(node, rack, n_wanted=n_wanted, slowdown=slowdown, room=room)
        if is_power_bound
        else (),
        slots=layout(node, n_nodes, n_per_rack=per_rack),
        findings=_findings(node, n_nodes, site=site, fit=fit, pue_ratio=pue_ratio),
        assumptions=_assumptions(node, rack, build),
        ups=ups_size(n_nodes * node.max_w, room),
    )


def _findings(
    node: NodeDraw, n_nodes: int, *, site: Site, fit: RackFit, pue_ratio: float
) -> tuple[Finding, ...]:
    circuit = site.rack.circuit if site.rack else None
    found = rack_findings(node, n_nodes, fit=fit, n_racks=site.n_racks)
    if fit.n_nodes == 0 and fit.usable_w is not None:
        found += supply_findings(
            node.max_w, fit.usable_w, where="rack feed", typical_w=node.typical_w
        )
    found += depth_findings(node, fit.depth_m)
    found += site_findings(n_nodes * node.max_w, pue_ratio, site)
    found += cooling_findings(node, max(1, min(fit.n_nodes, n_nodes)), site.cooling)
    return found + psu_findings(node, circuit.n_feeds if circuit else 1)


def _assumptions(node: NodeDraw, rack: Rack, build: BuildRules) -> tuple[Assumption, ...]:
    names = ["room.reserved_u", "room.racks_per_row", *UPS]
    if node.board is not None and node.board.cap_w is not None:
        names.append("room.cap_reserve_frac")
    if node.cooling == "liquid":
        names.append("room.liquid_frac")
    found = assumed(build, *names)
    if rack.depth_m is None and node.depth_m is not None:
        why = "server cabinets of 600 x 1200 mm are usual"
        found += (assume("depth of a rack", f"{USUAL_RACK_DEPTH_M:g} m", why, "site.rack.depth_m"),)
    return found


def checklist(plan: FacilityPlan, site: Site) -> tuple[ChecklistItem, ...]:
    """What to see to before the servers arrive, with this plan's own figures."""
    topics = {
        "power": _power_items(plan, site),
        "cooling": _heat_items(plan),
        "space": _floor_items(plan, site),
        "network": [
            ("cable lengths", "measure rack to rack", "copper ends after a few metres"),
        ],
    }
    return tuple(
        ChecklistItem(topic=topic, item=item, value=value, why=why)
        for topic, items in topics.items()
        for item, value, why in items
    )


Item = tuple[str, str, str]  # what, its figure, why it matters


def _power_items(plan: FacilityPlan, site: Site) -> list[Item]:
    facility, rack, psu = plan.level("facility"), plan.level("rack"), plan.node.psu
    circuit = site.rack.circuit if site.rack else None
    feeds = "not described"
    if circuit is not None:
        kind = f"{circuit.line_v:.0f} V, {circuit.breaker_a:.0f} A, {circuit.n_phases}-phase"
        feeds = f"{kind}, {circuit.n_feeds} feed(s), {circuit.usable_w / KW:.1f} kW usable on one"
    supplies = f"{psu.n_supplies} of {psu.each_w / KW:.1f} kW" if psu else "not described"
    servers = f"servers {plan.level('machines').max_w / KW:.1f} kW times PUE {plan.pue_ratio:g}"
    each = f"{rack.n_nodes} servers at {plan.node.max_w / KW:.1f} kW"
    return [
        ("whole facility at full draw", f"{facility.max_w / KW:.1f} kW", servers),
        ("circuits of a rack", feeds, "each feed must carry the rack alone"),
        ("draw of a rack", f"{rack.max_w / KW:.1f} kW", each),
        ("power supplies of a server", supplies, "test with one feed off"),
        ("UPS", _ups_text(plan), "carries the servers until a generator does"),
        ("meter and cap", "read draw per outlet before load", "averages hide transients"),
    ]


def _heat_items(plan: FacilityPlan) -> list[Item]:
    heat = plan.cooling
    kbtu = f"{heat.btu_per_h / 1e3:,.0f} kBTU/h"
    liquid = f"{heat.liquid_w / KW:.1f} kW" if heat.liquid_w else "none"
    amount = f"{heat.heat_w / KW:.1f} kW, {kbtu}, {heat.tons:.1f} tons"
    return [
        ("heat", amount, "all that is drawn becomes heat"),
        (
            "air through the servers",
            f"{heat.air_m3_per_s:.1f} m³/s, {heat.cfm:,.0f} CFM",
            f"at {heat.air_rise_k:g} K rise",
        ),
        (
            "cooling units",
            f"{heat.n_units} of {heat.unit_w / KW:g} kW",
            "one may fail or be serviced (N+1)",
        ),
        ("liquid", liquid, "supply temperature and flow as the maker specifies"),
    ]


def _floor_items(plan: FacilityPlan, site: Site) -> list[Item]:
    node, n = plan.node, max(plan.fit.n_nodes, 1)
    weight = "weight not published" if node.weight_kg is None else f"{n * node.weight_kg:.0f} kg"
    height = "height not published" if node.height_u is None else f"{n * node.height_u:g} U"
    depth = "depth not published"
    if node.depth_m is not None:
        depth = f"{node.depth_m / MM:.0f} mm of {plan.fit.depth_m / MM:.0f} mm"
    room = "not limited" if site.n_racks is None else f"{site.n_racks} there"
    return [
        ("racks", f"{plan.n_racks} needed, {room}", f"{plan.fit.n_nodes} in each"),
        ("height in a rack", height, "servers alone, without switches"),
        ("floor load of a rack", weight, "servers alone, without rack and cables"),
        ("depth", depth, "cables and power strips need room behind the servers"),
        ("way in", "door, lift and ramp for the crates", "crates exceed a rack"),
    ]


def _ups_text(plan: FacilityPlan) -> str:
    ups = plan.ups
    if ups is None:
        return "not sized"
    return (
        f"{ups.load_va / KW:.1f} kVA, {ups.n_modules} modules of {ups.module_w / KW:g} kW, "
        f"{ups.energy_j / KWH:.1f} kWh for {ups.bridge_s / MINUTE:g} min"
    )


def cooling_load(node: NodeDraw, n_nodes: int, *, air_rise_k: float = AIR_RISE_K) -> CoolingLoad:
    """The heat of all servers at full draw: every watt drawn must be taken away again."""
    heat = node.max_w * n_nodes
    share = node.liquid_frac if node.cooling == "liquid" else 0.0
    return CoolingLoad(air_w=heat * (1 - share), liquid_w=heat * share, air_rise_k=air_rise_k)


def cooling_findings(
    node: NodeDraw, n_per_rack: int, cooling: Cooling | None
) -> tuple[Finding, ...]:
    """Objections where the site's cooling does not take the heat of such a rack, and what would."""
    heat = node.max_w * n_per_rack
    rack = f"{heat / KW:.1f} kW in a rack"
    if cooling is None:
        if heat <= RACK_LIMITS_W["air"][0] and node.cooling == "air":
            return ()
        what = f"{heat / KW:.1f} kW of heat in a rack, and its cooling is not described"
        return (warning("cooling-unknown", "cooling", what, "give site.cooling"),)
    kind = cooling.replace("_", " ")
    if node.cooling == "liquid" and cooling in ("air", "rear_door"):
        what = f"{node.name} needs liquid; the site has {kind}"
        fix = "bring liquid to the rack, or choose air-cooled servers"
        return (error("liquid-needed", "cooling", what, fix),)
    usual, most = RACK_LIMITS_W[cooling]
    if heat > most:
        what = f"{rack}; {kind} ends near {most / KW:.0f}"
        return (error("cooling-limit", "cooling", what, NEXT_STEP[cooling]),)
    if heat > usual:
        what = f"{rack} is above the usual {usual / KW:.0f} of {kind}"
        return (warning("cooling-usual", "cooling", what, NEXT_STEP[cooling]),)
    return ()
