"""Networks around machines, in: adapters, how work talks; out: fabrics with parts and prices."""

from dataclasses import replace

from gpuplan.design.fabric import fabric_counts
from gpuplan.design.fabric_parts import (
    Means,
    cheapest_sufficient,
    fabric_options,
    fabric_plan,
    switch_for,
)
from gpuplan.design.rules import CABLES, NETWORK_PRICES, assumed
from gpuplan.domain.hardware.devices import PartId
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import FabricPlan
from gpuplan.studies.power.node_draw import server_with
from gpuplan.studies.system_check.data_path import Ground
from gpuplan.studies.system_check.exchange import Talk, network_of, node_rate
from gpuplan.units import GBIT


def means_of(ground: Ground) -> Means:
    """Cables that the catalog knows, with the prices and the room of the rules."""
    build = ground.build
    return Means(tuple(ground.catalog.network.links.values()), build.prices, build.room)


def network_notes(ground: Ground, *, is_rack_given: bool) -> tuple[Assumption, ...]:
    """What counts, lengths and prices of networks rest on."""
    names = [
        *CABLES,
        *NETWORK_PRICES,
        "links.management_ports",
        "links.management_oversubscription",
    ]
    names += [] if is_rack_given else ["room.nodes_per_rack"]
    return assumed(ground.build, *names)


def fabrics_of(
    scenario: Scenario, ground: Ground, talk: Talk, *, n_racks: int
) -> tuple[tuple[FabricPlan, ...], tuple[Finding, ...]]:
    """The network as described, the cheapest that would do, and the one for management."""
    parts = ground.catalog.network
    means = means_of(ground)
    network = network_of(scenario, ground)
    n_nodes = ground.owned.n_nodes
    found: list[FabricPlan] = []
    told: list[Finding] = []
    if network is not None and n_nodes > 1:
        switch = switch_for(parts.switches, network, n_nodes * network.n_nics_per_node)
        if switch is None:
            what = f"no switch with ports of {network.nic_bytes_per_s / GBIT:.0f} Gbit/s is known"
            told.append(_finding(what, "draw the network with your maker's parts"))
        else:
            counts = fabric_counts(
                n_nodes,
                network.n_nics_per_node,
                n_switch_ports=switch.n_ports,
                oversubscription_ratio=network.oversubscription_ratio,
            )
            made = fabric_plan(
                counts,
                switch,
                port_bytes_per_s=network.nic_bytes_per_s,
                n_racks=n_racks,
                means=means,
            )
            reached = talk.efficiency(n_nodes, node_rate(network)) if talk.efficiency else None
            found.append(replace(made, efficiency_frac=reached))
        found += _sufficient(ground, talk, network, n_racks=n_racks)
    found += _storage_network(ground, n_racks=n_racks)
    found.append(_management(ground, n_racks=n_racks))
    return tuple(found), tuple(told)


def _sufficient(
    ground: Ground, talk: Talk, network: NodeNetwork, *, n_racks: int
) -> list[FabricPlan]:
    """The cheapest network over which the work keeps its speed, where work says how it talks."""
    n_nodes, ask = ground.owned.n_nodes, talk.efficiency
    if ask is None:
        return []
    options = fabric_options(
        n_nodes,
        n_accelerators_per_node=ground.owned.n_accelerators_per_node,
        n_racks=n_racks,
        switches=ground.catalog.network.switches,
        means=means_of(ground),
        kind=network.kind,
    )
    best = cheapest_sufficient(
        options, lambda rate: ask(n_nodes, rate), enough_frac=ground.build.links.enough_frac
    )
    if best is None:
        return []
    plan, reached = best
    return [replace(plan, purpose="compute, cheapest that will do", efficiency_frac=reached)]


def _storage_network(ground: Ground, *, n_racks: int) -> list[FabricPlan]:
    """The network to storage on the ports that the maker gives the machine for it."""
    owned = ground.owned
    server = server_with(ground.catalog, ground.accelerator, owned.n_accelerators_per_node)
    nic = None if server is None else ground.catalog.network.nics.get(PartId(server.host.front_nic))
    if server is None or nic is None or not server.host.n_front_nics or owned.n_nodes < 2:
        return []
    wanted = NodeNetwork(
        kind="ethernet",
        n_nics_per_node=server.host.n_front_nics,
        nic_bytes_per_s=nic.port_bytes_per_s,
        oversubscription_ratio=1.0,
    )
    n_ends = owned.n_nodes * wanted.n_nics_per_node
    switch = switch_for(ground.catalog.network.switches, wanted, n_ends)
    if switch is None:
        return []
    counts = fabric_counts(
        owned.n_nodes, wanted.n_nics_per_node, n_switch_ports=switch.n_ports, kind=None
    )
    return [
        fabric_plan(
            counts,
            switch,
            port_bytes_per_s=wanted.nic_bytes_per_s,
            n_racks=n_racks,
            means=means_of(ground),
            purpose="storage",
        )
    ]


def _management(ground: Ground, *, n_racks: int) -> FabricPlan:
    """Controllers and systems of all nodes on slow ports of their own."""
    rules = ground.build.links
    switch = min(ground.catalog.network.switches.values(), key=lambda s: s.port_bytes_per_s)
    counts = fabric_counts(
        ground.owned.n_nodes,
        rules.n_management_ports,
        n_switch_ports=switch.n_ports,
        oversubscription_ratio=rules.management_oversubscription_ratio,
    )
    return fabric_plan(
        counts,
        switch,
        port_bytes_per_s=switch.port_bytes_per_s,
        n_racks=n_racks,
        means=means_of(ground),
        purpose="management",
    )


def _finding(what: str, fix: str) -> Finding:
    return Finding(severity="warning", rule="not-judged", where="network", what=what, fix=fix)
