"""Power of servers and sites: draw at every level, power caps, supplies, UPS, and objections."""

import re
from dataclasses import replace
from math import ceil

from gpuplan.domain.scenario.build import RoomRules
from gpuplan.domain.scenario.site import Site
from gpuplan.domain.system.facility import Level, NodeDraw, PowerLevel, PsuSet, UpsSize
from gpuplan.domain.system.findings import Finding, error, note, warning
from gpuplan.errors import InputError, one
from gpuplan.units import KW

# Synchronous training moves all servers at once, a few times a second [Choukse2025].
SWING_NODES = 4


def capped(node: NodeDraw, cap_w: float) -> NodeDraw:
    """The server with its accelerators capped: only their part of its maximum draw shrinks."""
    board = node.board
    if board is None:
        what = "the power limit of its accelerators is unknown"
        raise one(InputError, "power cap", node.name, what, "give the accelerator's limit in watts")
    if cap_w <= 0:
        raise one(InputError, "power cap", node.name, f"got {cap_w} W", "use a cap above 0 W")
    retained = replace(board, cap_w=cap_w, typical_w=min(board.typical_w, cap_w))
    n = node.n_accelerators
    most = node.max_w - n * (board.max_w - retained.max_w)
    typical = node.typical_w - n * (board.typical_w - retained.typical_w)
    return replace(node, board=retained, max_w=most, typical_w=min(typical, most))


def levels(
    node: NodeDraw, n_nodes: int, *, n_per_rack: int, n_racks_per_row: int, pue_ratio: float
) -> tuple[PowerLevel, ...]:
    """Idle, typical and maximum draw of each level; only the facility holds cooling and losses."""

    def level(name: Level, n: int, ratio: float = 1.0) -> PowerLevel:
        draw = (n * w * ratio for w in (node.idle_w, node.typical_w, node.max_w))
        idle_w, typical_w, max_w = draw
        return PowerLevel(level=name, n_nodes=n, idle_w=idle_w, typical_w=typical_w, max_w=max_w)

    found = []
    if (board := node.board) is not None:
        draw = {"idle_w": board.idle_w, "typical_w": board.typical_w, "max_w": board.max_w}
        found.append(PowerLevel(level="accelerator", n_nodes=0, **draw))
    return (
        *found,
        level("node", 1),
        level("rack", min(n_nodes, n_per_rack)),
        level("row", min(n_nodes, n_per_rack * n_racks_per_row)),
        level("machines", n_nodes),
        level("facility", n_nodes, pue_ratio),
    )


def psu_set(text: str) -> PsuSet | None:
    """Power supplies as a data sheet prints them: "6x 3300 W, five needed"; None if unclear."""
    words = {"three": 3, "four": 4, "five": 5, "six": 6}
    found = re.fullmatch(r"(\d+)\s*x\s*(\d+)\s*W(?:,\s*(\w+) needed)?", text.strip())
    if found is None:
        return None
    needed = found[3]
    n_needed = words.get(needed, int(needed) if needed.isdigit() else None) if needed else None
    return PsuSet(n_supplies=int(found[1]), each_w=float(found[2]), n_needed=n_needed)


def psu_findings(node: NodeDraw, n_feeds: int) -> tuple[Finding, ...]:
    """Objections where the server stops when one power supply, or one of two feeds, is lost."""
    psu = node.psu
    if psu is None:
        return ()
    needed = psu.n_needed or ceil(node.max_w / psu.each_w * (1 - 1e-9))
    where = f"{node.name}, power supplies"
    if psu.n_supplies < needed:
        what = f"{psu.n_supplies} of {psu.each_w:.0f} W cannot carry {node.max_w / KW:.1f} kW"
        fix = f"install {needed}, or cap the accelerators"
        return (error("psu-size", where, what, fix),)
    found = []
    if psu.n_supplies == needed:
        what = f"all {needed} are needed at full draw: one that fails stops the server"
        found.append(warning("psu-spare", where, what, "cap the accelerators or add one"))
    left = psu.n_supplies // 2
    if n_feeds == 2 and left < needed:
        what = f"with one feed lost {left} remain of {needed} needed at full draw"
        fix = f"cap the node to {left * psu.each_w / KW:.1f} kW, or spread over three feeds"
        found.append(warning("psu-feed-loss", where, what, fix))
    return tuple(found)


def supply_findings(
    nodes_w: float, supply_w: float, *, where: str, typical_w: float | None = None
) -> tuple[Finding, ...]:
    """An error where the maximum draw exceeds the supply; the fix says where caps would do."""
    if nodes_w <= supply_w:
        return ()
    short = f"{(nodes_w - supply_w) / KW:.1f} short"
    gap = f"needs {nodes_w / KW:.1f} kW, has {supply_w / KW:.1f}: {short}"
    fix = f"supply {nodes_w / KW:.1f} kW or remove servers"
    if typical_w is not None and typical_w <= supply_w:
        fix += "; or enforce power caps: the typical draw fits, but nothing else limits it to that"
    return (error("supply", where, gap, fix),)


def site_findings(servers_w: float, pue_ratio: float, site: Site) -> tuple[Finding, ...]:
    """An error where the site cannot supply them; its limit counts servers or the facility."""
    if site.power_w is None:
        return ()
    drawn = servers_w * pue_ratio if site.is_facility_power else servers_w
    scope = "facility" if site.is_facility_power else "servers"
    return supply_findings(drawn, site.power_w, where=f"site power ({scope})")


def swing_findings(node: NodeDraw, n_nodes: int, *, is_training: bool) -> tuple[Finding, ...]:
    """Power swings between milliseconds and seconds, which averages hide."""
    found = []
    if is_training and n_nodes >= SWING_NODES:
        swing = n_nodes * (node.max_w - node.idle_w) / KW
        what = f"servers swing together by up to {swing:.0f} kW several times a second"
        fix = "size UPS and generator for steps, smooth the load, stagger starts"
        found.append(warning("synchronous-swing", "power", what, fix))
    what = (
        "accelerators exceed limit and cap for milliseconds; breakers bear it, tight margins do not"
    )
    fix = "keep the 80 % derate and the reserve under caps"
    found.append(note("transients", node.name, what, fix))
    return tuple(found)


def ups_size(load_w: float, room: RoomRules, *, n_spare_modules: int = 1) -> UpsSize:
    """The UPS modules and stored energy that carry the servers until the generator does."""
    bridge_s, module_w = room.ups_bridge_s, room.ups_module_w
    if module_w <= 0 or load_w <= 0 or bridge_s <= 0:
        fix = "load, time and module must be above 0"
        raise one(InputError, "ups", "size", f"{load_w} W, {bridge_s} s, {module_w} W", fix)
    return UpsSize(
        load_w=load_w,
        power_factor_frac=room.ups_power_factor_frac,
        bridge_s=bridge_s,
        energy_j=load_w * bridge_s / room.ups_efficiency_frac,
        n_modules=ceil(load_w / module_w * (1 - 1e-9)) + n_spare_modules,
        module_w=module_w,
    )
