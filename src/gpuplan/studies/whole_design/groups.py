"""Groups of equal servers that a plan pays for, each with hosts, storage, networks and spares."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_offers
from gpuplan.catalog.software.parse import FRAMEWORKS
from gpuplan.catalog.software.rules import check_stack
from gpuplan.cost.rates import effective_spot_usd_per_h
from gpuplan.design.hosts import allocatable_cores
from gpuplan.design.rules import STORAGE_PRICES, assumed
from gpuplan.design.spares import sufficient_rate
from gpuplan.design.storage import choose_units, tiers
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, PartId
from gpuplan.domain.hardware.software import SoftwareStack
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.plan.answer import PlannedPool, PurchaseLine
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.system.designed import OWN, GroupDesign, ServerGroup
from gpuplan.domain.system.findings import Finding, note
from gpuplan.domain.system.parts import DataDemand, FabricPlan, HostLine, SpareNeed, TierChoice
from gpuplan.studies.system_check.judge import JudgedWorkload, facility_on_site, judge_workload
from gpuplan.studies.system_check.network import fabrics_of, network_notes
from gpuplan.studies.system_check.placement import (
    Placement,
    Remark,
    assumptions_in,
    findings_in,
)
from gpuplan.studies.system_check.surroundings import (
    host_lines,
    host_remarks,
    software_findings,
    spares_of,
)
from gpuplan.units import GB

THREADS_PER_CORE = 2  # a cloud's virtual CPU is one of two threads of a core. Assumption.


class PlannedServers(NamedTuple):
    """A group of a plan with the nodes that it stands for."""

    group: ServerGroup
    placement: Placement
    pool: PlannedPool
    assumptions: tuple[Assumption, ...]


def planned_servers(
    pools: Sequence[PlannedPool], scenario: Scenario, catalog: Catalog
) -> Iterator[PlannedServers]:
    """Every group of equal servers that a plan pays for."""
    for pool in pools:
        accelerator = find_accelerator(pool.accelerator, catalog).accelerator
        for line in pool.purchases:
            if line.n_nodes < 1:
                continue
            owned, notes = _nodes(line, accelerator, scenario, catalog)
            group = ServerGroup(
                workload=pool.workload,
                server=line.offer,
                accelerator=pool.accelerator,
                purchase=line.purchase,
                n_nodes=line.n_nodes,
                n_accelerators_per_node=line.n_accelerators_per_node,
                paid_frac=line.paid_frac,
                price_usd_per_node_h=line.price_usd_per_node_h.value,
                mean_w_per_node=line.mean_w_per_node,
                region=line.region,
                cloud=line.cloud,
            )
            n, build = group.n_accelerators, scenario.policy.build
            yield PlannedServers(
                group, Placement(catalog, accelerator, owned, n, build), pool, notes
            )


def _nodes(
    line: PurchaseLine, accelerator: Accelerator, scenario: Scenario, catalog: Catalog
) -> tuple[OwnedNodes, tuple[Assumption, ...]]:
    """The nodes as described by the user, published by the cloud, or known to the catalog."""
    n = line.n_accelerators_per_node
    bare = OwnedNodes(
        accelerator=str(accelerator.id),
        n_nodes=line.n_nodes,
        n_accelerators_per_node=n,
        name=line.offer,
    )
    if line.purchase not in OWN:
        return _rented(bare, line)
    for given in scenario.owned if line.purchase == "existing" else ():
        known = find_accelerator(given.accelerator, catalog).accelerator.id
        if (known, given.n_accelerators_per_node) == (accelerator.id, n):
            return replace(given, n_nodes=line.n_nodes), ()
    return _bought(Placement(catalog, accelerator, bare, line.n_nodes * n))


def _rented(bare: OwnedNodes, line: PurchaseLine) -> tuple[OwnedNodes, tuple[Assumption, ...]]:
    """Nodes with the cores, memory and NICs that the cloud publishes."""
    name = (line.cloud, line.offer)
    shapes = (offer.shape for offer in read_offers() if (offer.cloud, offer.instance) == name)
    shape = next(shapes, None)
    if shape is None:
        return bare, ()
    rate, n_vcpu = shape.network_bytes_per_s, shape.n_vcpu
    nodes = replace(
        bare,
        n_host_cores=None if n_vcpu is None else allocatable_cores(n_vcpu / THREADS_PER_CORE),
        host_memory_bytes=shape.ram_bytes,
        n_nics=None if rate is None else 1,
        nic_bytes_per_s=rate,
    )
    value = f"one of {THREADS_PER_CORE} virtual CPUs"
    why, change = "clouds sell threads; some sell whole cores", "your cloud's description"
    notes = assume("CPU cores of rented servers", value, why, change)
    return nodes, () if n_vcpu is None else (notes,)


def _bought(placement: Placement) -> tuple[OwnedNodes, tuple[Assumption, ...]]:
    """Nodes like the catalog's server of that size, with its NICs."""
    bare, server = placement.owned, placement.server
    if server is None:
        return bare, ()
    notes = assume(
        f"server behind {bare.name}",
        server.name,
        "the plan names no make; of those that the catalog knows, the one that draws most",
        "owned, and gpuplan check",
    )
    nic = placement.catalog.network.nics.get(PartId(server.host.fabric_nic))
    if nic is not None and server.host.n_fabric_nics:
        n_nics, rate = server.host.n_fabric_nics, nic.port_bytes_per_s
        bare = replace(bare, n_nics=n_nics, nic_bytes_per_s=rate)
    return bare, (notes,)


def design_group(servers: PlannedServers, scenario: Scenario) -> GroupDesign:
    """Hosts, storage, networks, facility and spares of one group; clouds keep their own."""
    group, placement = servers.group, servers.placement
    work = scenario.workload(group.workload)
    if work is None:
        what = "is no workload of the scenario: what surrounds it is not judged"
        missing = note("not-judged", group.workload, what, "give each workload a pool")
        return GroupDesign(group=group, findings=(missing,), assumptions=servers.assumptions)
    here = scenario if group.is_own else replace(scenario, site=None)
    judged = judge_workload(here, work, placement)
    hosts = _hosts(servers, judged)
    spot_usd, spot_notes = _spot_price(servers, judged, scenario)
    remarks: list[Remark] = [
        *servers.assumptions,
        *judged.remarks,
        *host_remarks(placement, hosts, group.server),
        *_software(servers, here),
        *spot_notes,
    ]
    made = GroupDesign(
        group=replace(group, spot_usd_per_useful_node_h=spot_usd),
        hosts=hosts,
        checkpoints=judged.checkpoints,
        moved=judged.moved,
        findings=findings_in(remarks),
        assumptions=assumptions_in(remarks),
    )
    return _on_site(made, judged, scenario) if group.is_own else made


def _on_site(made: GroupDesign, judged: JudgedWorkload, scenario: Scenario) -> GroupDesign:
    """The group with storage, racks, networks and spares of its own."""
    placement, work = judged.placement, judged.work
    owned, catalog = placement.owned, placement.catalog
    storage = [*_storage(judged, made.hosts)]
    facilities = facility_on_site(scenario, owned, catalog, is_training=work.is_training)
    placed = sum(plan.n_racks for plan in facilities)
    n_racks = placed or ceil(made.group.n_nodes / placement.build.room.n_nodes_per_rack)
    networks = [*fabrics_of(scenario, placement, judged.traffic, n_racks=n_racks)]
    spares = [*spares_of(scenario, placement)]
    remarks = [*made.findings, *made.assumptions, *storage, *networks, *spares]
    for plan in facilities:
        remarks += [*plan.findings, *plan.assumptions]
    if not facilities:
        what = "no site is described: racks, supply and cooling are not designed"
        remarks.append(note("no-place", made.group.server, what, "give site.rack or site.power_kw"))
    remarks += network_notes(placement, is_rack_given=placed > 0)
    return replace(
        made,
        storage=tuple(choice for choice in storage if isinstance(choice, TierChoice)),
        facility=facilities[0] if facilities else None,
        networks=tuple(plan for plan in networks if isinstance(plan, FabricPlan)),
        spares=next(need for need in spares if isinstance(need, SpareNeed)),
        findings=findings_in(remarks),
        assumptions=assumptions_in(remarks),
    )


def _hosts(servers: PlannedServers, judged: JudgedWorkload) -> tuple[HostLine, ...]:
    """Parts of one server; what a cloud does not publish stays unknown."""
    lines, owned = (
        host_lines(judged.work, servers.placement, judged.stages),
        servers.placement.owned,
    )
    if servers.group.is_own:
        return lines
    unknown = {
        "CPU": owned.n_host_cores is None,
        "memory": owned.host_memory_bytes is None,
        "local NVMe": True,
    }
    return tuple(replace(x, n_given=None) if unknown.get(x.part) else x for x in lines)


def _storage(
    judged: JudgedWorkload, hosts: tuple[HostLine, ...]
) -> Iterator[TierChoice | Assumption]:
    """Each storage tier in the size that reading, loading and checkpoints ask for."""
    build, demand, path = judged.placement.build, judged.demand, judged.work.data_path
    load = next((line.n_needed * GB for line in hosts if line.part == "model load"), 0.0)
    read = max(load, demand.bytes_per_s if demand else 0.0)
    staging = path.staging if path else None
    stored = load * build.hosts.load_s + (staging.dataset_bytes if staging else 0.0)
    write = 0.0
    if demand is not None and staging is None:
        stored += build.links.held_bytes
        yield from assumed(build, "links.held_tb")
    if judged.checkpoints:
        known = {rate.write_bytes_per_s: rate for rate in judged.checkpoints}
        enough, _ = sufficient_rate(known.__getitem__, worth_frac=build.spares.worth_frac)
        write = enough.write_bytes_per_s
        stored += build.links.n_kept_checkpoints * write * enough.write_s
        yield from assumed(build, "links.kept_checkpoints")
    if not read and not write:
        return
    nothing = {"samples_per_s": 0.0, "operations_per_s": 0.0, "open_operations_per_s": 0.0}
    requested = demand or DataDemand(bytes_per_s=0.0, **nothing)
    wanted = replace(requested, bytes_per_s=read)
    for tier in tiers(judged.placement.catalog.storage, build.prices):
        yield choose_units(tier, wanted, held_bytes=stored, write_bytes_per_s=write)
    yield from assumed(build, *STORAGE_PRICES)


def _software(servers: PlannedServers, here: Scenario) -> tuple[Finding, ...]:
    """The installed software against the plan; without it, what the plan's engine requires."""
    accelerator, pool = servers.placement.accelerator, servers.pool
    if accelerator.is_cpu:
        return ()
    if here.site is not None and here.site.software is not None:
        return software_findings(here, servers.placement)
    name, _, number = pool.engine.partition(" ")
    # The matrix knows CUDA and ROCm; TPUs, Gaudi and Neuron come with stacks of their own.
    is_known = accelerator.vendor.lower() in ("nvidia", "amd")
    if name not in FRAMEWORKS or not number or not is_known:
        return ()
    stack = SoftwareStack(
        arch=accelerator.instruction_set,
        framework=name,
        framework_version=number,
        precision=pool.precision if format_named(pool.precision) else None,
    )
    return check_stack(stack)


def _spot_price(
    servers: PlannedServers, judged: JudgedWorkload, scenario: Scenario
) -> tuple[Range | None, tuple[Remark, ...]]:
    """The price of a useful node-hour on spot, with what interruptions lose; None off spot."""
    group, run = servers.group, judged.work.work
    if group.purchase != "spot":
        return None, ()
    offers = [o for o in scenario.prices.offers if o.name == group.server and o.purchase == "spot"]
    often = offers[0].interruptions_per_s if offers else None
    if often is None:
        what = "its interruption rate is unknown: the spot price leaves out lost work and restarts"
        fix = "give prices.offers[].availability.interruptions_per_week"
        return None, (note("spot-interruptions-unknown", group.server, what, fix),)
    start = offers[0].cold_start_s
    lost_s = start.mid if start else 0.0
    if isinstance(run, Training) and run.checkpoint is not None:
        lost_s += run.checkpoint.restart_s or 0.0
    if judged.checkpoints:  # on average half an interval of work is done again
        lost_s += min(rate.interval_s for rate in judged.checkpoints) / 2
    n_together = servers.pool.layout.n_servers_per_replica
    if isinstance(run, Training):
        n_together = group.n_nodes
    found = effective_spot_usd_per_h(
        exactly(group.price_usd_per_node_h),
        interruptions_per_s=often,
        lost_s_per_interruption=lost_s,
        n_nodes_together=n_together,
    )
    lost = f"{lost_s:,.0f} s of {n_together} node(s)"
    why = "cold start, restart, and half a checkpoint interval where they are given"
    notes = assume(f"work lost per interruption of {group.server}", lost, why, "prices.offers")
    return found, (notes,)
