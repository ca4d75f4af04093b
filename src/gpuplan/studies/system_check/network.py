"""Networks around nodes: as described, the cheapest sufficient, for storage, for management.

Data that a workload retains: dataset, checkpoints, artifacts and logs, over the horizon.

The six needs of a described system, in: judged workloads and surroundings; out: a vector.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuplan.design.fabric import (
    cheapest_sufficient,
    fabric_counts,
    fabric_for,
    fabric_options,
    fabric_plan,
)
from gpuplan.design.rules import CABLES, NETWORK_PRICES, assumed
from gpuplan.design.storage import capacity_growth
from gpuplan.domain.hardware.devices import PartId
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.scenario.workload import DataPath, Generic, Retention, Training, Workload
from gpuplan.domain.system.check import Need, SystemSurroundings
from gpuplan.domain.system.findings import Finding, warning
from gpuplan.domain.system.parts import (
    CapacityPoint,
    DataDemand,
    FabricPlan,
    HostLine,
    Stage,
    StoredData,
)
from gpuplan.studies.system_check.placement import Placement
from gpuplan.studies.system_check.surroundings import state_bytes
from gpuplan.studies.system_check.traffic import EfficiencyOf, Traffic, network_of, node_rate
from gpuplan.units import DAY, GB, GBIT, TB

DISKS = "storage"


LOG_BYTES_PER_S = 0.1 * GB / DAY  # of one accelerator: Assumption: metrics at 15 s and text logs
KEYS = "workloads[].data_path.retention"


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


def retained(
    scenario: Scenario, work: Workload, placement: Placement
) -> tuple[tuple[CapacityPoint, ...], tuple[Assumption, ...]]:
    """What storage must hold from now to the end of the horizon; nothing without a data path."""
    path = work.data_path
    if path is None or path.staging is None:
        return (), ()
    remaining = path.retention or Retention()
    checkpoint_bytes, notes = _checkpoint_bytes(work, placement)
    log = LOG_BYTES_PER_S if remaining.log_bytes_per_s is None else remaining.log_bytes_per_s
    stored = StoredData(
        dataset_bytes=path.staging.dataset_bytes,
        dataset_growth_frac=remaining.dataset_growth_frac or 0.0,
        checkpoint_bytes=checkpoint_bytes,
        artifacts_bytes_per_s=remaining.artifacts_bytes_per_s or 0.0,
        log_bytes_per_s=log * placement.n_accelerators,
    )
    points = capacity_growth(stored, scenario.budget.horizon_s)
    return points, (*notes, *_assumed(path))


def _checkpoint_bytes(work: Workload, placement: Placement) -> tuple[float, tuple[Assumption, ...]]:
    """Retained checkpoints: the state as given, of the model, or at most all device memory."""
    if not work.is_training:
        return 0.0, ()
    run, build = work.work, placement.build
    given = run.checkpoint.state_bytes if isinstance(run, Training) and run.checkpoint else None
    size = given or state_bytes(work)
    notes = assumed(build, "links.kept_checkpoints")
    if size is None:
        size = placement.n_accelerators * placement.accelerator.memory.visible_bytes
        why = "neither a model nor its state is given: at most what device memory holds"
        key = "workloads[].training.checkpoint.state_tb"
        notes += (assume("size of a checkpoint", f"{size / TB:.2f} TB", why, key),)
    return build.links.n_kept_checkpoints * size, notes


def _assumed(path: DataPath) -> Iterator[Assumption]:
    retained = path.retention or Retention()
    if retained.dataset_growth_frac is None:
        yield assume("growth of the dataset", "0 %/month", "none is given", KEYS)
    if retained.log_bytes_per_s is None:
        each = f"{LOG_BYTES_PER_S * DAY / GB:g} GB/day and accelerator"
        yield assume("retained logs", each, "metrics and text logs, none deleted", KEYS)
    if retained.artifacts_bytes_per_s is None:
        yield assume("retained artifacts", "none", "none are given", KEYS)


def needs_of(
    scenario: Scenario,
    stages: Iterable[Stage],
    demands: Iterable[DataDemand | None],
    around: SystemSurroundings,
) -> tuple[Need, ...]:
    """Compute, memory, speed, storage, network and power; the tightest of each kind."""
    found = tuple(stages)
    return (
        _compute(scenario),
        _host(around, "memory", part="memory"),
        _host(around, "speed", part="CPU"),
        _storage(found, tuple(one for one in demands if one is not None)),
        _network(found),
        _power(around),
    )


def _compute(scenario: Scenario) -> Need:
    wanted = [
        work.work.n_accelerators if isinstance(work.work, Generic) else None
        for work in scenario.workloads
    ]
    return Need(
        name="compute",
        what="accelerators",
        unit="accelerators",
        n_demand=None if None in wanted else float(sum(n or 0.0 for n in wanted)),
        n_supply=float(sum(one.n_nodes * one.n_accelerators_per_node for one in scenario.owned)),
    )


def _host(around: SystemSurroundings, name: str, *, part: str) -> Need:
    """What the work takes of a part; a rule of thumb beyond it is advice, not a need."""
    lines = [line for _, parts in around.hosts for line in parts if line.part == part]
    tightest = max(lines, key=lambda x: _taken(x) / x.n_given if x.n_given else 0.0, default=None)
    return Need(
        name=name,
        what=f"{part} of a server",
        unit=tightest.unit if tightest else "",
        n_demand=(_taken(tightest) or None) if tightest else None,
        n_supply=tightest.n_given if tightest else None,
    )


def _taken(line: HostLine) -> float:
    return line.n_needed if line.n_firm is None else line.n_firm


def _storage(stages: Sequence[Stage], demands: Sequence[DataDemand]) -> Need:
    """Bytes a second that data is read at, against what its disks let through."""
    slow = [one for one in stages if one.name == DISKS]
    wanted = sum(one.bytes_per_s for one in demands) or None
    worst = max((one.load_ratio for one in slow), default=None)
    given = wanted / worst if wanted and worst else None
    return Need(name="storage", what="reads", unit="bytes/s", n_demand=wanted, n_supply=given)


def _network(stages: Sequence[Stage]) -> Need:
    links = [one for one in stages if one.unit == "bytes/s" and "network" in one.name]
    worst = max(links, key=lambda one: one.load_ratio, default=None)
    return Need(
        name="network",
        what=worst.name if worst else "between servers",
        unit="bytes/s",
        n_demand=worst.n_wanted if worst else None,
        n_supply=worst.n_given if worst else None,
    )


def _power(around: SystemSurroundings) -> Need:
    plans = [one for one in around.facilities if one.fit.usable_w]
    worst = max(plans, key=lambda one: one.fit.used_w / (one.fit.usable_w or 1.0), default=None)
    return Need(
        name="power",
        what="a rack at full draw",
        unit="W",
        n_demand=(worst.fit.used_w or worst.node.max_w) if worst else None,
        n_supply=worst.fit.usable_w if worst else None,
    )
