"""Networks around nodes: as described, the cheapest sufficient, for storage, for management."""

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.design.fabric import fabric_counts
from gpuplan.design.fabric_parts import (
    cheapest_sufficient,
    fabric_for,
    fabric_options,
    fabric_plan,
)
from gpuplan.design.rules import CABLES, NETWORK_PRICES, assumed
from gpuplan.domain.hardware.devices import PartId
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.system.findings import Finding, warning
from gpuplan.domain.system.parts import FabricPlan
from gpuplan.studies.system_check.placement import Placement
from gpuplan.studies.system_check.traffic import EfficiencyOf, Traffic, network_of, node_rate
from gpuplan.units import GBIT


def network_notes(placement: Placement, *, is_rack_given: bool) -> tuple[Assumption, ...]:
    """The assumptions behind counts, cable lengths and prices of networks."""
    names = [*CABLES, *NETWORK_PRICES, "links.management_ports"]
    names += ["links.management_oversubscription"]
    names += [] if is_rack_given else ["room.nodes_per_rack"]
    return assumed(placement.build, *names)


def fabrics_of(
    scenario: Scenario, placement: Placement, traffic: Traffic, *, n_racks: int
) -> Iterator[FabricPlan | Finding]:
    """The network as described, the cheapest sufficient, those of storage and management."""
    network, n_nodes = network_of(scenario, placement), placement.owned.n_nodes
    parts, build = placement.catalog.network, placement.build
    if network is not None and n_nodes > 1:
        made = fabric_for(network, n_nodes, n_racks=n_racks, parts=parts, build=build)
        if made is None:
            what = f"no switch with ports of {network.nic_bytes_per_s / GBIT:.0f} Gbit/s is known"
            yield warning("not-judged", "network", what, "draw the network with your maker's parts")
        else:
            ask = traffic.efficiency
            yield replace(made, efficiency_frac=ask(n_nodes, node_rate(network)) if ask else None)
        if traffic.efficiency is not None:
            kind = network.kind
            best = sufficient_fabric(traffic.efficiency, placement, n_racks=n_racks, kind=kind)
            if best is not None:
                plan, reached = best
                yield replace(plan, purpose="compute, cheapest sufficient", efficiency_frac=reached)
    yield from _storage_network(placement, n_racks=n_racks)
    yield _management(placement, n_racks=n_racks)


def sufficient_fabric(
    efficiency: EfficiencyOf, placement: Placement, *, n_racks: int, kind: str
) -> tuple[FabricPlan, float] | None:
    """The cheapest network over which the work keeps enough of its speed, and that share."""
    n_nodes, build = placement.owned.n_nodes, placement.build
    options = fabric_options(
        n_nodes,
        n_accelerators_per_node=placement.n_per_node,
        n_racks=n_racks,
        kind=kind,
        parts=placement.catalog.network,
        build=build,
    )
    return cheapest_sufficient(
        options, lambda rate: efficiency(n_nodes, rate), enough_frac=build.links.enough_frac
    )


def _storage_network(placement: Placement, *, n_racks: int) -> Iterator[FabricPlan]:
    """The network to storage on the NICs that the maker gives the server for it."""
    server, parts, n_nodes = placement.server, placement.catalog.network, placement.owned.n_nodes
    nic = None if server is None else parts.nics.get(PartId(server.host.front_nic))
    if server is None or nic is None or not server.host.n_front_nics or n_nodes < 2:
        return
    wanted = NodeNetwork(
        kind="ethernet",
        n_nics_per_node=server.host.n_front_nics,
        nic_bytes_per_s=nic.port_bytes_per_s,
        oversubscription_ratio=1.0,
    )
    made = fabric_for(wanted, n_nodes, n_racks=n_racks, parts=parts, build=placement.build)
    if made is not None:
        yield replace(made, purpose="storage")


def _management(placement: Placement, *, n_racks: int) -> FabricPlan:
    """Controllers and operating systems of all nodes on slow ports of their own."""
    rules, parts = placement.build.links, placement.catalog.network
    switch = min(parts.switches.values(), key=lambda s: s.port_bytes_per_s)
    counts = fabric_counts(
        placement.owned.n_nodes,
        rules.n_management_ports,
        n_switch_ports=switch.n_ports,
        oversubscription_ratio=rules.management_oversubscription_ratio,
    )
    made = fabric_plan(
        counts,
        switch,
        port_bytes_per_s=switch.port_bytes_per_s,
        n_racks=n_racks,
        parts=parts,
        build=placement.build,
    )
    return replace(made, purpose="management")
