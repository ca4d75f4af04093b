"""The fabric that joins nodes: switches and cables of each level.

Rail-optimised: NIC i of every node goes to leaf i of its group, so that accelerators of equal rank
are one hop apart. Leaves and spines form a folded Clos; every leaf has as many links to each spine,
which rounds the number of spines up. Counts agree with published designs
[dgx-superpod-h100-ra, dgx-superpod-b300-ra].

Parts of a fabric: cables by length, draw, price, and the cheapest fabric that is sufficient.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor
from typing import NamedTuple

from gpuplan.domain.hardware.catalog import Network
from gpuplan.domain.hardware.devices import Link, PartId, Switch
from gpuplan.domain.ranges import Range, total
from gpuplan.domain.scenario.build import USUAL, BuildRules, PartPrices, RoomRules
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.system.parts import CableRun, FabricCounts, FabricKind, FabricPlan
from gpuplan.errors import InputError, Problem
from gpuplan.units import GBIT

COPPER_M = 3.0  # passive copper ends here at these rates [nvidia-mcp7y00]
IN_RACK_M = 2.0  # from a server to a switch of its own rack; copper reaches it either way
RATE_ROUNDING = 0.999  # 400 Gbit/s of a data sheet are 50 GB/s less a little

Efficiency = Callable[[float], float]  # of the work, by bytes/s that leave a node


def fabric_counts(
    n_nodes: int,
    n_ports_per_node: int,
    *,
    n_switch_ports: int,
    oversubscription_ratio: float = 1.0,
    kind: FabricKind | None = None,
    n_manager_cables: int = 0,
) -> FabricCounts:
    """Switches and cables for so many nodes; without a kind, the one with fewest switches.

    Rail planes keep a spine layer for each rail: traffic between rails crosses inside a node.
    """
    _check(n_nodes, n_ports_per_node, n_switch_ports, oversubscription_ratio)
    ends = FabricCounts(
        kind="one switch",
        n_nodes=n_nodes,
        n_ports_per_node=n_ports_per_node,
        n_leaf=1,
        n_node_cables=n_nodes * n_ports_per_node + n_manager_cables,
    )

    def best(which: FabricKind) -> Iterator[FabricCounts]:
        wanted = replace(ends, kind=which)
        found = _layouts(wanted, n_switch_ports, oversubscription_ratio)
        least = min(found, key=lambda layout: layout.rank, default=None)
        yield from () if least is None else (_counts(wanted, least),)

    kinds: tuple[FabricKind, ...] = ("one switch", "rail-optimised", "fat tree")
    found = [counts for which in ((kind,) if kind else kinds) for counts in best(which)]
    if not found and kind is None:
        found = list(best("rail planes"))  # the largest fabrics keep a spine layer for each rail
    if not found:
        what = f"{n_nodes} nodes with {n_ports_per_node} ports do not fit three levels"
        fix = f"switches with more than {n_switch_ports} ports, or rail planes"
        raise InputError("fabric", [Problem("network", what, fix)])
    return min(found, key=lambda counts: (counts.n_switches, counts.n_cables))


def _check(n_nodes: int, n_ports: int, n_switch_ports: int, ratio: float) -> None:
    rules = (
        ("nodes", n_nodes, n_nodes >= 1, "use at least 1"),
        ("ports", n_ports, n_ports >= 1, "use at least 1"),
        ("switch ports", n_switch_ports, n_switch_ports >= 4, "use at least 4"),
        ("oversubscription", ratio, ratio >= 1, "1 is non-blocking; use 1 or more"),
    )
    problems = [Problem(name, f"got {value}", fix) for name, value, good, fix in rules if not good]
    if problems:
        raise InputError("fabric", problems)


class _Layout(NamedTuple):
    """Switches by level, and the ports of a leaf that go down and up."""

    n_leaf: int
    n_spine: int
    n_core: int
    n_down: int
    n_up: int

    @property
    def rank(self) -> tuple[int, float]:
        """Fewest switches first, then least oversubscribed."""
        return self.n_leaf + self.n_spine + self.n_core, self.n_down / self.n_up


def _layouts(ends: FabricCounts, n_switch_ports: int, ratio: float) -> Iterator[_Layout]:
    """Fabrics of this kind within the ratio, of at most three levels."""
    n_ends, n_rails = ends.n_node_cables, ends.n_ports_per_node
    if ends.kind == "one switch":
        yield from (_Layout(1, 0, 0, 1, 1),) if n_ends <= n_switch_ports else ()
        return
    is_tree = ends.kind == "fat tree"
    n_planes = n_rails if ends.kind == "rail planes" else 1
    most = floor(n_switch_ports * ratio / (1.0 + ratio) * (1 + 1e-9))
    for n_down in range(most, n_switch_ports // 2 - 1, -1):
        n_leaf = ceil(n_ends / n_down) if is_tree else ceil(ends.n_nodes / n_down) * n_rails
        for n_up in range(ceil(n_down / ratio * (1 - 1e-9)), n_switch_ports - n_down + 1):
            levels = _levels(n_leaf // n_planes, n_up, n_switch_ports=n_switch_ports)
            if levels is not None:
                yield _Layout(n_leaf, levels[0] * n_planes, levels[1] * n_planes, n_down, n_up)


def _counts(ends: FabricCounts, layout: _Layout) -> FabricCounts:
    """The fabric with its cables."""
    n_links = layout.n_leaf * layout.n_up
    return replace(
        ends,
        n_leaf=layout.n_leaf,
        n_spine=layout.n_spine,
        n_core=layout.n_core,
        n_leaf_cables=n_links if layout.n_spine else 0,
        n_spine_cables=n_links if layout.n_core else 0,
        oversubscription_ratio=layout.n_down / layout.n_up,
    )


def _levels(n_leaf: int, n_up: int, *, n_switch_ports: int) -> tuple[int, int] | None:
    """Spines and cores above so many leaves; None where three levels are not enough."""
    if n_leaf == 1:
        return 0, 0
    if n_leaf <= n_switch_ports:
        least = ceil(n_leaf * n_up / n_switch_ports)
        # Spines share a leaf's uplinks evenly: the first divisor that is large enough.
        return next(n for n in range(least, n_up + 1) if n_up % n == 0), 0
    # Pods: as many spines as half of their ports reach, the other half goes up to the core.
    half = n_switch_ports // 2
    n_spine = ceil(n_leaf * n_up / half)
    n_core = ceil(n_spine * half / n_switch_ports)
    return (n_spine, n_core) if ceil(n_leaf / half) <= n_switch_ports else None


def switch_for(
    switches: Mapping[PartId, Switch], network: NodeNetwork, n_ends: int
) -> Switch | None:
    """The slowest switch of the catalog with ports fast enough; None where there is none."""
    fabric = "infiniband" if network.kind == "infiniband" else "ethernet"
    least = network.nic_bytes_per_s * RATE_ROUNDING
    fits = [s for s in switches.values() if s.fabric == fabric and s.port_bytes_per_s >= least]
    enough = [switch for switch in fits if switch.n_ports >= n_ends]
    return min(
        enough or fits, key=lambda s: (s.port_bytes_per_s, s.n_ports, str(s.id)), default=None
    )


def fabric_for(
    network: NodeNetwork, n_nodes: int, *, n_racks: int, parts: Network, build: BuildRules = USUAL
) -> FabricPlan | None:
    """The fabric that joins the nodes as described; None where no switch has such ports."""
    switch = switch_for(parts.switches, network, n_nodes * network.n_nics_per_node)
    if switch is None:
        return None
    counts = fabric_counts(
        n_nodes,
        network.n_nics_per_node,
        n_switch_ports=switch.n_ports,
        oversubscription_ratio=network.oversubscription_ratio,
    )
    rate = network.nic_bytes_per_s
    return fabric_plan(
        counts, switch, port_bytes_per_s=rate, n_racks=n_racks, parts=parts, build=build
    )


def fabric_plan(
    counts: FabricCounts,
    switch: Switch,
    *,
    port_bytes_per_s: float,
    n_racks: int,
    parts: Network,
    build: BuildRules = USUAL,
) -> FabricPlan:
    """The fabric with cables by length class, the draw of its switches, and its price."""
    links = parts.links.values()
    runs = cable_runs(counts, n_racks, bytes_per_s=port_bytes_per_s, links=links, room=build.room)
    n = counts.n_switches
    return FabricPlan(
        purpose="compute",
        counts=counts,
        switch=switch,
        port_bytes_per_s=port_bytes_per_s,
        runs=runs,
        typical_w=None if switch.typical_w is None else n * switch.typical_w,
        max_w=None if switch.limit_w is None else n * switch.limit_w,
        usd=_price(counts, switch, runs, port_bytes_per_s / GBIT, build.prices),
    )


def cable_runs(
    counts: FabricCounts,
    n_racks: int,
    *,
    bytes_per_s: float,
    links: Iterable[Link],
    room: RoomRules = USUAL.room,
) -> tuple[CableRun, ...]:
    """The cables between levels, as long as a room of so many racks requires."""
    in_row = min(n_racks, room.n_racks_per_row) * room.rack_width_m
    rows = ceil(n_racks / room.n_racks_per_row)
    short = IN_RACK_M if n_racks == 1 else in_row + room.cable_ends_m
    far = in_row + (rows - 1) * room.row_m + room.cable_ends_m
    runs = (
        ("node to leaf", counts.n_node_cables, short),
        ("leaf to spine", counts.n_leaf_cables, far),
        ("spine to core", counts.n_spine_cables, far),
    )
    known = list(links)
    return tuple(
        CableRun(
            between=between,
            n_cables=n,
            longest_m=length,
            medium=_medium(length),
            link=_link(known, length, bytes_per_s),
        )
        for between, n, length in runs
        if n
    )


def _medium(length_m: float) -> str:
    return "copper" if length_m <= COPPER_M else "optic"


def _link(links: Sequence[Link], length_m: float, bytes_per_s: float) -> Link | None:
    fits = [
        link
        for link in links
        if link.medium == _medium(length_m)
        and (link.reach_m or 0.0) >= length_m
        and link.bytes_per_s >= bytes_per_s * RATE_ROUNDING
    ]
    return min(fits, key=lambda link: (link.bytes_per_s, str(link.id)), default=None)


def _price(
    counts: FabricCounts,
    switch: Switch,
    runs: Sequence[CableRun],
    port_gbit: float,
    prices: PartPrices,
) -> Range:
    switch_gbit = counts.n_switches * switch.n_ports * (switch.port_bytes_per_s / GBIT)
    cable = {"copper": prices.copper_usd_per_gbit, "optic": prices.optic_usd_per_gbit}
    return total(
        [
            prices.switch_usd_per_gbit.times(switch_gbit),
            prices.adapter_usd_per_gbit.times(counts.n_node_cables * port_gbit),
            *(cable[run.medium].times(run.n_cables * port_gbit) for run in runs),
        ]
    )


def fabric_options(
    n_nodes: int,
    *,
    n_accelerators_per_node: int,
    n_racks: int,
    kind: str,
    parts: Network,
    build: BuildRules = USUAL,
) -> tuple[FabricPlan, ...]:
    """The fabrics to choose from: NICs per node, rates that switches have, oversubscription."""
    fabric = "infiniband" if kind == "infiniband" else "ethernet"
    rates = sorted({s.port_bytes_per_s for s in parts.switches.values() if s.fabric == fabric})
    tried = (
        NodeNetwork(
            kind=kind, n_nics_per_node=n, nic_bytes_per_s=rate, oversubscription_ratio=ratio
        )
        for rate in rates
        if rate >= 10 * GBIT
        for n in sorted({1, 2, 4, n_accelerators_per_node})
        for ratio in (1.0, 2.0, 4.0)
    )
    plans = (fabric_for(net, n_nodes, n_racks=n_racks, parts=parts, build=build) for net in tried)
    return tuple(plan for plan in plans if plan is not None)


def node_bytes_per_s(plan: FabricPlan) -> float:
    """The bandwidth of a node when all nodes communicate across the fabric."""
    counts = plan.counts
    whole = counts.n_ports_per_node * plan.port_bytes_per_s
    return whole / counts.oversubscription_ratio if counts.n_spine else whole


def cheapest_sufficient(
    options: Sequence[FabricPlan],
    efficiency: Efficiency,
    *,
    enough_frac: float = USUAL.links.enough_frac,
) -> tuple[FabricPlan, float] | None:
    """The cheapest fabric over which the work keeps enough of its speed, and that share."""
    judged: dict[float, float] = {}
    for plan in sorted(options, key=lambda plan: plan.usd.mid):
        rate = node_bytes_per_s(plan)
        if rate not in judged:
            judged[rate] = efficiency(rate)
        if judged[rate] >= enough_frac:
            return plan, judged[rate]
    return None
