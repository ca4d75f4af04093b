"""Racks, in: machines and a rack's limits; out: how many fit, under which cap, in which slot."""

from collections.abc import Callable
from math import ceil, floor

from gpuplan.design.power import capped
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import RoomRules
from gpuplan.domain.scenario.site import Rack
from gpuplan.domain.system.facility import CapChoice, NodeDraw, RackFit, RackLimit, RackSlot
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.units import KW

CAP_STEP_W = 50.0
LEAST_CAP_FRAC = 0.45  # of the limit: below, the clock collapses [measured:power-caps]

Slowdown = Callable[[float], Range | None]


def fit_rack(node: NodeDraw, rack: Rack, *, room: RoomRules | None = None) -> RackFit:
    """Nodes that one rack can feed, cool, hold and bear. Two feeds back each other, never add."""
    known = room or RoomRules()
    is_capped = node.board is not None and node.board.cap_w is not None
    # Caps are held on average, not in every millisecond: some of the feed stays free under them.
    reserve = known.cap_reserve_frac if is_capped else 0.0
    limits = tuple(_limits(node, rack, reserve, known.n_reserved_units))
    n = min((limit.n_nodes for limit in limits), default=0)
    return RackFit(n_nodes=n, limits=limits, used_w=n * node.max_w, usable_w=_feed_w(rack))


def _feed_w(rack: Rack) -> float | None:
    """What may be drawn: the lower of the circuit of one feed and a stated limit."""
    circuit = rack.circuit.usable_w if rack.circuit else None
    return min((w for w in (circuit, rack.power_w) if w is not None), default=None)


def _limits(node: NodeDraw, rack: Rack, reserve: float, reserved_u: int) -> list[RackLimit]:
    found = []
    feed = _feed_w(rack)
    if feed is not None:
        n = _whole(feed * (1 - reserve), node.max_w)
        text = f"{feed / KW:.1f} kW usable, {node.max_w / KW:.1f} kW each"
        found.append(RackLimit(name="power", n_nodes=n, text=text))
    if rack.cooling_w is not None:
        n = _whole(rack.cooling_w, node.max_w)
        text = f"{rack.cooling_w / KW:.1f} kW of cooling"
        found.append(RackLimit(name="cooling", n_nodes=n, text=text))
    if rack.n_units is not None and node.height_u is not None:
        # A machine that is a rack by itself brings its switches and distribution along.
        kept = reserved_u if node.height_u <= rack.n_units / 2 else 0
        n = _whole(max(0.0, rack.n_units - kept), node.height_u)
        text = f"{rack.n_units} U less {kept} for switches, {node.height_u:g} U each"
        found.append(RackLimit(name="height", n_nodes=n, text=text))
    if rack.weight_kg is not None and node.weight_kg is not None:
        n = _whole(rack.weight_kg, node.weight_kg)
        text = f"{rack.weight_kg:.0f} kg, {node.weight_kg:.0f} kg each"
        found.append(RackLimit(name="weight", n_nodes=n, text=text))
    return found


def _whole(available: float, each: float) -> int:
    return floor(available / each * (1 + 1e-9))


def judge_cap(
    node: NodeDraw,
    rack: Rack,
    *,
    cap_w: float,
    n_wanted: int,
    slowdown: Slowdown | None = None,
    room: RoomRules | None = None,
) -> CapChoice:
    """Whether so many nodes may share a rack under this cap, and what it costs in speed."""
    held = capped(node, cap_w)
    fit, one_w = fit_rack(held, rack, room=room), held.max_w
    cost = slowdown(cap_w) if slowdown else None
    limit = held.board.limit_w if held.board else 0.0
    fits = fit.n_nodes >= n_wanted
    is_cliff = cap_w < LEAST_CAP_FRAC * limit
    usable = fit.usable_w
    free = f"{n_wanted * one_w / KW:.1f} kW"
    if usable is not None:
        free += f" of {usable / KW:.1f}, {1 - n_wanted * one_w / usable:.1%} left"
    if is_cliff:
        reason = f"below {LEAST_CAP_FRAC:.0%} of the limit no speed can be promised"
    elif fits:
        reason = free
    else:
        share = (room or RoomRules()).cap_reserve_frac
        reason = f"{free}; {share:.0%} must stay free, for caps hold on average only"
    return CapChoice(
        cap_w=cap_w,
        node_w=one_w,
        fit=fit,
        slowdown_ratio=None if is_cliff else cost,
        is_accepted=fits and not is_cliff,
        reason=reason,
    )


def cap_choices(
    node: NodeDraw,
    rack: Rack,
    *,
    n_wanted: int,
    slowdown: Slowdown | None = None,
    step_w: float = CAP_STEP_W,
    room: RoomRules | None = None,
) -> tuple[CapChoice, ...]:
    """Every cap of the grid below the limit, highest first, accepted or not."""
    if node.board is None:
        return ()
    limit = node.board.limit_w
    n_steps = floor((limit - LEAST_CAP_FRAC * limit) / step_w)
    caps = [limit - step * step_w for step in range(1, n_steps + 1)]
    return tuple(
        judge_cap(node, rack, cap_w=cap, n_wanted=n_wanted, slowdown=slowdown, room=room)
        for cap in caps
    )


def racks_needed(n_nodes: int, fit: RackFit) -> int | None:
    """Racks for so many; None where not even one node fits."""
    return ceil(n_nodes / fit.n_nodes) if fit.n_nodes else None


def layout(
    node: NodeDraw, n_nodes: int, *, n_per_rack: int, first_u: int = 1
) -> tuple[RackSlot, ...]:
    """A place for each machine, heavy ones from the floor up; empty where no height is known."""
    if node.height_u is None or n_per_rack <= 0:
        return ()
    height = ceil(node.height_u)
    return tuple(
        RackSlot(
            rack=index // n_per_rack,
            bottom_u=first_u + (index % n_per_rack) * height,
            height_u=height,
            name=f"{node.name} {index + 1}",
        )
        for index in range(n_nodes)
    )


def rack_findings(
    node: NodeDraw, n_nodes: int, *, fit: RackFit, n_racks: int | None
) -> tuple[Finding, ...]:
    """Whether they all find room, with the shortfall and what would help."""
    binding = fit.binding
    if binding is None:
        what = "nothing is known of a rack's power, cooling, height or weight"
        return (_finding("warning", "rack-unknown", what, "describe site.rack"),)
    if fit.n_nodes == 0:
        what = f"not one {node.name} fits: {binding.text}"
        fix = {
            "power": f"a rack must give {node.max_w / KW:.1f} kW; add circuits or cap the boards",
            "cooling": f"take {node.max_w / KW:.1f} kW of heat from a rack, or cap the boards",
            "height": "a taller rack",
            "weight": "a rack and a floor that bear it",
        }[binding.name]
        return (_finding("error", f"rack-{binding.name}", what, fix),)
    needed = racks_needed(n_nodes, fit)
    if n_racks is not None and needed is not None and needed > n_racks:
        what = f"{n_nodes} machines need {needed} racks at {fit.n_nodes} each, there are {n_racks}"
        fix = f"add {needed - n_racks} racks, or lift the {binding.name} limit: {binding.text}"
        return (_finding("error", f"rack-{binding.name}", what, fix),)
    return ()


def _finding(severity: Severity, rule: str, what: str, fix: str) -> Finding:
    return Finding(severity=severity, rule=rule, where="racks", what=what, fix=fix)
