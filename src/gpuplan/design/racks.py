"""Racks: how many servers fit, under which power cap, and in which slot."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from math import ceil, floor

from gpuplan.design.power import capped
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import USUAL, RoomRules
from gpuplan.domain.scenario.site import Rack
from gpuplan.domain.system.facility import (
    USUAL_RACK_DEPTH_M,
    CapChoice,
    NodeDraw,
    RackFit,
    RackLimit,
    RackSlot,
)
from gpuplan.domain.system.findings import Finding, error, warning
from gpuplan.units import KW, MM

CAP_STEP_W = 50.0
LEAST_CAP_FRAC = 0.45  # of the limit: below, the clock collapses [measured:power-caps]

Slowdown = Callable[[float], Range | None]


def fit_rack(node: NodeDraw, rack: Rack, *, room: RoomRules = USUAL.room) -> RackFit:
    """The servers that one rack can power, cool, hold and bear; two feeds never add up."""
    is_capped = node.board is not None and node.board.cap_w is not None
    # Caps are held on average, not in every millisecond: some of the feed stays free under them.
    reserve = room.cap_reserve_frac if is_capped else 0.0
    limits = tuple(_limits(node, rack, reserve, room.n_reserved_units))
    n = min((limit.n_nodes for limit in limits), default=0)
    depth_m = USUAL_RACK_DEPTH_M if rack.depth_m is None else rack.depth_m
    used_w = n * node.max_w
    return RackFit(n_nodes=n, limits=limits, used_w=used_w, usable_w=_feed_w(rack), depth_m=depth_m)


def _feed_w(rack: Rack) -> float | None:
    """The power that may be drawn: the lower of the circuit of one feed and a stated limit."""
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
        # A node that is a rack by itself brings its switches and power distribution along.
        retained = reserved_u if node.height_u <= rack.n_units / 2 else 0
        n = _whole(max(0.0, rack.n_units - retained), node.height_u)
        text = f"{rack.n_units} U less {retained} for switches, {node.height_u:g} U each"
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
    room: RoomRules = USUAL.room,
) -> CapChoice:
    """Whether so many servers may share a rack under this cap, and what it costs in speed."""
    retained = capped(node, cap_w)
    fit, wanted_w = fit_rack(retained, rack, room=room), n_wanted * retained.max_w
    is_cliff = retained.board is not None and cap_w < LEAST_CAP_FRAC * retained.board.limit_w
    reason = f"{wanted_w / KW:.1f} kW"
    if fit.usable_w is not None:
        reason += f" of {fit.usable_w / KW:.1f}, {1 - wanted_w / fit.usable_w:.1%} left"
    if is_cliff:
        reason = f"below {LEAST_CAP_FRAC:.0%} of the limit the speed is unknown"
    elif fit.n_nodes < n_wanted:
        reason += f"; {room.cap_reserve_frac:.0%} must stay free, as caps hold on average only"
    return CapChoice(
        cap_w=cap_w,
        node_w=retained.max_w,
        fit=fit,
        slowdown_ratio=None if is_cliff or slowdown is None else slowdown(cap_w),
        is_accepted=fit.n_nodes >= n_wanted and not is_cliff,
        reason=reason,
    )


def cap_choices(
    node: NodeDraw,
    rack: Rack,
    *,
    n_wanted: int,
    slowdown: Slowdown | None = None,
    room: RoomRules = USUAL.room,
) -> tuple[CapChoice, ...]:
    """Every cap of the grid below the limit, highest first, accepted or not."""
    if node.board is None:
        return ()
    limit = node.board.limit_w
    n_steps = floor((limit - LEAST_CAP_FRAC * limit) / CAP_STEP_W)
    caps = {limit - step * CAP_STEP_W for step in range(1, n_steps + 1)}
    caps |= {*_exact_cap(node, rack, n_wanted=n_wanted, room=room)}
    return tuple(
        judge_cap(node, rack, cap_w=cap, n_wanted=n_wanted, slowdown=slowdown, room=room)
        for cap in sorted(caps, reverse=True)
    )


def _exact_cap(node: NodeDraw, rack: Rack, *, n_wanted: int, room: RoomRules) -> Iterator[float]:
    """The highest cap in whole watts that admits so many servers; nothing where none does."""
    limit = node.board.limit_w if node.board else 0.0
    low, high = ceil(LEAST_CAP_FRAC * limit), floor(limit) - 1
    fits = [fit_rack(capped(node, cap), rack, room=room).n_nodes for cap in (low, high)]
    if fits[0] < n_wanted or fits[1] >= n_wanted:
        return

    def is_too_high(cap: int) -> bool:
        return fit_rack(capped(node, cap), rack, room=room).n_nodes < n_wanted

    yield float(low + bisect_left(range(low + 1, high), True, key=is_too_high))


def layout(node: NodeDraw, n_nodes: int, *, n_per_rack: int) -> tuple[RackSlot, ...]:
    """A slot for each server, from the floor up; empty where the height is unknown."""
    if node.height_u is None or n_per_rack <= 0:
        return ()
    height = ceil(node.height_u)
    return tuple(
        RackSlot(
            rack=index // n_per_rack,
            bottom_u=1 + (index % n_per_rack) * height,
            height_u=height,
            name=f"{node.name} {index + 1}",
        )
        for index in range(n_nodes)
    )


def depth_findings(node: NodeDraw, rack_m: float) -> tuple[Finding, ...]:
    """An error where a server is deeper than its rack; nothing where its depth is unknown."""
    if node.depth_m is None or node.depth_m <= rack_m:
        return ()
    what = f"{node.name} is {node.depth_m / MM:.0f} mm deep, the rack {rack_m / MM:.0f} mm"
    fix = f"racks of at least {ceil(node.depth_m * 10) / 10:g} m: set site.rack.depth_m"
    return (error("rack-depth", "racks", what, fix),)


def rack_findings(
    node: NodeDraw, n_nodes: int, *, fit: RackFit, n_racks: int | None
) -> tuple[Finding, ...]:
    """An error where the racks do not hold all servers, with the shortfall and what would help."""
    binding = fit.binding
    if binding is None:
        what = "the power, cooling, height and weight of a rack are unknown"
        return (warning("rack-unknown", "racks", what, "describe site.rack"),)
    rule = f"rack-{binding.name}"
    if fit.n_nodes == 0:
        what, kw = f"not one {node.name} fits: {binding.text}", f"{node.max_w / KW:.1f} kW"
        fixes = {
            "power": f"a rack must supply {kw}; add circuits or cap the accelerators",
            "cooling": f"take {kw} of heat from a rack, or cap the accelerators",
            "height": "a taller rack",
            "weight": "a rack and a floor that bear it",
        }
        return (error(rule, "racks", what, fixes[binding.name]),)
    needed = ceil(n_nodes / fit.n_nodes)
    if n_racks is not None and needed > n_racks:
        what = f"{n_nodes} servers need {needed} racks at {fit.n_nodes} each, there are {n_racks}"
        more = needed - n_racks
        fix = f"add {more} rack{'s' * (more > 1)}, or lift the {binding.name} limit: {binding.text}"
        return (error(rule, "racks", what, fix),)
    return ()
