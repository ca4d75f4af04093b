"""Parts of a fabric, in: counts, switches, links; out: cables by length, draw, price, a choice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from gpuplan.design.fabric import fabric_counts
from gpuplan.domain.hardware.devices import Link, PartId, Switch
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import LinkRules, PartPrices, RoomRules
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.system.parts import CableRun, FabricCounts, FabricPlan
from gpuplan.units import GBIT

COPPER_M = 3.0  # passive copper ends here at these rates [nvidia-mcp7y00]

IN_RACK_M = 2.0  # from a machine to a switch of its own rack; copper reaches it either way

Efficiency = Callable[[float], float]  # of the work, by bytes/s that leave a node


class Means(NamedTuple):
    """What networks are made of: cables that are known, prices, the room."""

    links: tuple[Link, ...]
    prices: PartPrices = PartPrices()
    room: RoomRules = RoomRules()


def switch_for(
    switches: Mapping[PartId, Switch], network: NodeNetwork, n_ends: int
) -> Switch | None:
    """A switch of the catalog with ports fast enough, the least fast; None where there is none."""
    fabric = "infiniband" if network.kind == "infiniband" else "ethernet"
    fits = [
        switch
        for switch in switches.values()
        if switch.fabric == fabric and switch.port_bytes_per_s >= network.nic_bytes_per_s * 0.999
    ]
    enough = [switch for switch in fits if switch.n_ports >= n_ends]
    return min(
        enough or fits, key=lambda s: (s.port_bytes_per_s, s.n_ports, str(s.id)), default=None
    )


def fabric_plan(
    counts: FabricCounts,
    switch: Switch,
    *,
    port_bytes_per_s: float,
    n_racks: int,
    means: Means,
    purpose: str = "compute",
) -> FabricPlan:
    """The network with cables by length class, draw of its switches, and its price."""
    runs = cable_runs(counts, n_racks, rate_bytes_per_s=port_bytes_per_s, means=means)
    n = counts.n_switches
    return FabricPlan(
        purpose=purpose,
        counts=counts,
        switch=switch,
        port_bytes_per_s=port_bytes_per_s,
        runs=runs,
        typical_w=None if switch.typical_w is None else n * switch.typical_w,
        max_w=None if switch.limit_w is None else n * switch.limit_w,
        usd=_price(counts, switch, runs, port_bytes_per_s=port_bytes_per_s, prices=means.prices),
    )


def cable_runs(
    counts: FabricCounts, n_racks: int, *, rate_bytes_per_s: float, means: Means
) -> tuple[CableRun, ...]:
    """Cables between levels, by the longest way that a room of so many racks asks for."""
    room = means.room
    in_row = min(n_racks, room.n_racks_per_row) * room.rack_width_m
    rows = ceil(n_racks / room.n_racks_per_row)
    short = IN_RACK_M if n_racks == 1 else in_row + room.cable_ends_m
    far = in_row + (rows - 1) * room.row_m + room.cable_ends_m
    found = [("node to leaf", counts.n_node_cables, short)]
    found += [("leaf to spine", counts.n_leaf_cables, far)] if counts.n_leaf_cables else []
    found += [("spine to core", counts.n_spine_cables, far)] if counts.n_spine_cables else []
    return tuple(
        CableRun(
            between=between,
            n_cables=n,
            longest_m=length,
            medium="copper" if length <= COPPER_M else "optic",
            link=_link(means.links, length, rate_bytes_per_s),
        )
        for between, n, length in found
    )


def _link(links: Sequence[Link], length_m: float, rate_bytes_per_s: float) -> Link | None:
    medium = "copper" if length_m <= COPPER_M else "optic"
    fits = [
        link
        for link in links
        if link.medium == medium
        and link.reach_m is not None
        and link.reach_m >= length_m
        and link.bytes_per_s >= rate_bytes_per_s * 0.999
    ]
    return min(fits, key=lambda link: (link.bytes_per_s, str(link.id)), default=None)


def _price(
    counts: FabricCounts,
    switch: Switch,
    runs: Sequence[CableRun],
    *,
    port_bytes_per_s: float,
    prices: PartPrices,
) -> Range:
    port_gbit = switch.port_bytes_per_s / GBIT
    used_gbit = port_bytes_per_s / GBIT
    parts = [prices.switch_usd_per_gbit.times(counts.n_switches * switch.n_ports * port_gbit)]
    parts.append(prices.adapter_usd_per_gbit.times(counts.n_node_cables * used_gbit))
    for run in runs:
        is_copper = run.medium == "copper"
        per_gbit = prices.copper_usd_per_gbit if is_copper else prices.optic_usd_per_gbit
        parts.append(per_gbit.times(run.n_cables * used_gbit))
    return total(parts)


def total(parts: Iterable[Range]) -> Range:
    """Sum of ranges: all low, all middle, all high."""
    held = list(parts)
    return Range(
        low=sum(p.low for p in held), mid=sum(p.mid for p in held), high=sum(p.high for p in held)
    )


def fabric_options(
    n_nodes: int,
    *,
    n_accelerators_per_node: int,
    n_racks: int,
    switches: Mapping[PartId, Switch],
    means: Means,
    kind: str,
) -> tuple[FabricPlan, ...]:
    """Networks to choose from: ports per node, rates that switches have, oversubscription."""
    fabric = "infiniband" if kind == "infiniband" else "ethernet"
    rates = sorted({s.port_bytes_per_s for s in switches.values() if s.fabric == fabric})
    ports = sorted({1, 2, 4, n_accelerators_per_node})
    found = []
    for rate in (rate for rate in rates if rate >= 10 * GBIT):
        for n_ports in ports:
            network = NodeNetwork(
                kind=kind,
                n_nics_per_node=n_ports,
                nic_bytes_per_s=rate,
                oversubscription_ratio=1.0,
            )
            switch = switch_for(switches, network, n_nodes * n_ports)
            if switch is None:
                continue
            found += [
                fabric_plan(
                    fabric_counts(
                        n_nodes,
                        n_ports,
                        n_switch_ports=switch.n_ports,
                        oversubscription_ratio=ratio,
                    ),
                    switch,
                    port_bytes_per_s=rate,
                    n_racks=n_racks,
                    means=means,
                )
                for ratio in (1.0, 2.0, 4.0)
            ]
    return tuple(found)


def node_bytes_per_s(plan: FabricPlan) -> float:
    """What a node gets when all talk across the fabric."""
    counts = plan.counts
    whole = counts.n_ports_per_node * plan.port_bytes_per_s
    return whole / counts.oversubscription_ratio if counts.n_spine else whole


def cheapest_sufficient(
    options: Sequence[FabricPlan],
    efficiency: Efficiency,
    *,
    enough_frac: float = LinkRules().enough_frac,
) -> tuple[FabricPlan, float] | None:
    """The cheapest network over which the work keeps enough of its speed, and that share."""
    judged: dict[float, float] = {}
    for plan in sorted(options, key=lambda plan: plan.usd.mid):
        rate = node_bytes_per_s(plan)
        if rate not in judged:
            judged[rate] = efficiency(rate)
        if judged[rate] >= enough_frac:
            return plan, judged[rate]
    return None
