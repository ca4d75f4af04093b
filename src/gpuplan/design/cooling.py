"""Cooling: the heat of servers, and whether a site takes the heat of such racks away."""

from gpuplan.domain.scenario.site import Cooling
from gpuplan.domain.system.facility import CoolingLoad, NodeDraw
from gpuplan.domain.system.findings import Finding, error, warning
from gpuplan.units import KW

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
