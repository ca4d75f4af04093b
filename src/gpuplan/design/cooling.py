"""Cooling, in: heat by rack and how the place takes it away; out: loads, and what is too much."""

from gpuplan.domain.scenario.site import Cooling
from gpuplan.domain.system.facility import CoolingLoad, NodeDraw
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.units import KW

AIR_RISE_K = 15.0  # through dense machines, inlet 18–27 °C [ashrae-inlet]
# Heat of one rack: up to here as a rule, and up to here with containment and care. Vendors'
# figures, weak evidence [rack-cooling]; None: no figure.
RACK_LIMITS_W: dict[Cooling, tuple[float, float]] = {
    "air": (30 * KW, 40 * KW),
    "rear_door": (40 * KW, 60 * KW),
    "direct_liquid": (120 * KW, 150 * KW),
    "immersion": (100 * KW, 200 * KW),
}
NEXT_STEP: dict[Cooling, str] = {
    "air": "rear-door coolers, liquid to the chips, or fewer machines per rack",
    "rear_door": "liquid to the chips, or fewer machines per rack",
    "direct_liquid": "fewer machines per rack",
    "immersion": "fewer machines per tank",
}


def cooling_load(node: NodeDraw, n_nodes: int, *, air_rise_k: float = AIR_RISE_K) -> CoolingLoad:
    """Heat of all machines at full draw: every watt drawn must be taken away again."""
    heat = node.max_w * n_nodes
    share = node.liquid_frac if node.cooling == "liquid" else 0.0
    return CoolingLoad(air_w=heat * (1 - share), liquid_w=heat * share, air_rise_k=air_rise_k)


def cooling_findings(
    node: NodeDraw, n_per_rack: int, cooling: Cooling | None
) -> tuple[Finding, ...]:
    """Whether this place takes the heat of such a rack away, and what would."""
    heat = node.max_w * n_per_rack
    if cooling is None:
        usual = RACK_LIMITS_W["air"][0]
        if heat <= usual and node.cooling == "air":
            return ()
        what = f"{heat / KW:.1f} kW of heat in a rack, and how it is cooled is not said"
        return (_finding("warning", "cooling-unknown", what, "say site.cooling"),)
    if node.cooling == "liquid" and cooling in ("air", "rear_door"):
        what = f"{node.name} needs liquid; the place has {cooling.replace('_', ' ')}"
        return (
            _finding(
                "error",
                "liquid-needed",
                what,
                "bring liquid to the rack, or take machines that air cools",
            ),
        )
    usual, most = RACK_LIMITS_W[cooling]
    if heat > most:
        what = (
            f"{heat / KW:.1f} kW in a rack; {cooling.replace('_', ' ')} ends near {most / KW:.0f}"
        )
        return (_finding("error", "cooling-limit", what, NEXT_STEP[cooling]),)
    if heat > usual:
        what = f"{heat / KW:.1f} kW in a rack is above the usual {usual / KW:.0f} of {cooling}"
        return (_finding("warning", "cooling-usual", what, NEXT_STEP[cooling]),)
    return ()


def _finding(severity: Severity, rule: str, what: str, fix: str) -> Finding:
    return Finding(severity=severity, rule=rule, where="cooling", what=what, fix=fix)
