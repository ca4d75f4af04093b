"""What stands around a plan's machines, in: pools and scenario; out: a design of each group."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.offers import read_offers
from gpuplan.catalog.software.parse import FRAMEWORKS
from gpuplan.catalog.software.rules import check_stack
from gpuplan.design.hosts import allocatable_cores, host_findings
from gpuplan.design.rules import STORAGE_PRICES, assumed
from gpuplan.design.spares import sufficient_rate
from gpuplan.design.storage import choose_units, tiers
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, PartId
from gpuplan.domain.hardware.software import SoftwareStack
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.money.market import InstanceShape
from gpuplan.domain.plan.answer import PlannedPool, PurchaseLine
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes
from gpuplan.domain.scenario.workload import Generic, Training, Workload
from gpuplan.domain.system.designed import GroupDesign, MachineGroup
from gpuplan.domain.system.facility import FacilityPlan
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import DataDemand, HostLine, Stage, TierChoice
from gpuplan.studies.power.node_draw import facility_of, server_with
from gpuplan.studies.system_check.data_path import Fed, Ground, feed_of, moved_of
from gpuplan.studies.system_check.exchange import Talk, talk_of
from gpuplan.studies.system_check.network import fabrics_of, network_notes
from gpuplan.studies.system_check.surroundings import (
    Kept,
    checkpoints_of,
    host_lines,
    host_notes,
    software_findings,
    spares_of,
)
from gpuplan.units import GB

OWN = ("existing", "owned")
THREADS_PER_CORE = 2  # a cloud's virtual CPU is one of two threads of a core. Assumption.


class Machines(NamedTuple):
    """A group with the ground that the rooms judge."""

    group: MachineGroup
    ground: Ground
    shape: InstanceShape | None  # of a cloud; None: not published, or one's own
    pool: PlannedPool
    assumptions: tuple[Assumption, ...]


def machines_of(
    pools: Sequence[PlannedPool], scenario: Scenario, catalog: Catalog
) -> Iterator[Machines]:
    """Every group of equal machines that a plan pays for."""
    for pool in pools:
        accelerator = find_accelerator(pool.accelerator, catalog).accelerator
        for line in pool.purchases:
            if line.n_nodes < 1:
                continue
            is_own = line.purchase in OWN
            shape = None if is_own else _shape(line)
            owned, told = _owned(line, accelerator, scenario, catalog=catalog, shape=shape)
            group = MachineGroup(
                workload=pool.workload,
                machine=line.offer,
                accelerator=pool.accelerator,
                purchase=line.purchase,
                n_nodes=line.n_nodes,
                n_accelerators_per_node=line.n_accelerators_per_node,
                is_own=is_own,
                paid_frac=line.paid_frac,
                price_usd_per_node_h=line.price_usd_per_node_h.value,
                region=line.region,
                cloud=line.cloud,
            )
            ground = Ground(
                catalog, accelerator, owned, group.n_accelerators, scenario.policy.build
            )
            yield Machines(group, ground, shape, pool, told)


def _shape(line: PurchaseLine) -> InstanceShape | None:
    """The machine that the cloud publishes under this name."""
    return next(
        (
            offer.shape
            for offer in read_offers()
            if (offer.cloud, offer.instance) == (line.cloud, line.offer)
        ),
        None,
    )


def _owned(
    line: PurchaseLine,
    accelerator: Accelerator,
    scenario: Scenario,
    *,
    catalog: Catalog,
    shape: InstanceShape | None,
) -> tuple[OwnedNodes, tuple[Assumption, ...]]:
    """The machines as nodes: described by the user, published by the cloud, or of the catalog."""
    n = line.n_accelerators_per_node
    bare = OwnedNodes(
        accelerator=str(accelerator.id),
        n_nodes=line.n_nodes,
        n_accelerators_per_node=n,
        name=line.offer,
    )
    if line.purchase not in OWN:
        return (_rented(bare, shape) if shape else bare), _vcpu_notes(shape)
    for given in scenario.owned:
        known = find_accelerator(given.accelerator, catalog).accelerator.id
        if line.purchase == "existing" and (known, given.n_accelerators_per_node) == (
            accelerator.id,
            n,
        ):
            return replace(given, n_nodes=line.n_nodes), ()
    return _like_catalog(bare, accelerator, catalog)


def _rented(bare: OwnedNodes, shape: InstanceShape) -> OwnedNodes:
    cores = None if shape.n_vcpu is None else allocatable_cores(shape.n_vcpu / THREADS_PER_CORE)
    rate = shape.network_bytes_per_s
    return replace(
        bare,
        n_host_cores=cores,
        host_memory_bytes=shape.ram_bytes,
        n_nics=None if rate is None else 1,
        nic_bytes_per_s=rate,
    )


def _vcpu_notes(shape: InstanceShape | None) -> tuple[Assumption, ...]:
    if shape is None or shape.n_vcpu is None:
        return ()
    return (
        Assumption(
            what="cores of rented machines",
            value=f"one of {THREADS_PER_CORE} virtual CPUs",
            why="clouds sell threads; some sell whole cores",
            change="your cloud's description",
        ),
    )


def _like_catalog(
    bare: OwnedNodes, accelerator: Accelerator, catalog: Catalog
) -> tuple[OwnedNodes, tuple[Assumption, ...]]:
    """Bought machines as the catalog's of that size, its adapters with it."""
    server = server_with(catalog, accelerator, bare.n_accelerators_per_node)
    if server is None:
        return bare, ()
    note = Assumption(
        what=f"machine behind {bare.name}",
        value=server.name,
        why="the plan names no make; of those that the catalog knows, the one that draws most",
        change="owned, and gpuplan check",
    )
    nic = catalog.network.nics.get(PartId(server.host.fabric_nic))
    if nic is None or not server.host.n_fabric_nics:
        return bare, (note,)
    return replace(bare, n_nics=server.host.n_fabric_nics, nic_bytes_per_s=nic.port_bytes_per_s), (
        note,
    )


def design_group(machines: Machines, scenario: Scenario) -> GroupDesign:
    """Hosts, storage, network, place and spares of one group; clouds keep their own place."""
    group, ground = machines.group, machines.ground
    here = scenario if group.is_own else replace(scenario, site=None)
    work = scenario.workload(group.workload)
    if work is None:
        what = "is no workload of the scenario: what stands around it is not judged"
        note = _finding("not-judged", group.workload, what, "give each workload a pool")
        return GroupDesign(group=group, findings=(note,), assumptions=machines.assumptions)
    fed, talk = feed_of(work, ground), talk_of(here, work, ground)
    kept = checkpoints_of(work, ground)
    hosts, short = _hosts(machines, work, (*fed.stages, *talk.stages))
    staging = work.data_path.staging if work.data_path else None
    moved, moved_told = moved_of(staging, scenario) if staging else (None, ())
    storage, held_told = _storage(work, ground, fed, hosts=hosts, kept=kept)
    made = GroupDesign(
        group=group,
        hosts=hosts,
        storage=storage if group.is_own else (),
        checkpoints=kept.rates,
        moved=moved,
        findings=(
            *fed.findings,
            *talk.findings,
            *kept.findings,
            *short,
            *_software(machines, here),
        ),
        assumptions=(
            *machines.assumptions,
            *fed.assumptions,
            *moved_told,
            *talk.assumptions,
            *kept.assumptions,
            *host_notes(ground, hosts),
            *(held_told if group.is_own else ()),
        ),
    )
    return _on_site(made, work, ground, scenario=scenario, talk=talk) if group.is_own else made


def _on_site(
    made: GroupDesign, work: Workload, ground: Ground, *, scenario: Scenario, talk: Talk
) -> GroupDesign:
    """The group with racks, networks and spares of its own."""
    group = made.group
    facility = _facility(work, ground, scenario)
    placed = facility.n_racks if facility else 0
    n_racks = placed or ceil(group.n_nodes / ground.build.room.n_nodes_per_rack)
    networks, network_told = fabrics_of(scenario, ground, talk, n_racks=n_racks)
    spares, spare_told, spare_notes = spares_of(scenario, ground)
    return replace(
        made,
        facility=facility,
        networks=networks,
        spares=spares,
        findings=(
            *made.findings,
            *network_told,
            *spare_told,
            *(facility.findings if facility else _no_place(group)),
        ),
        assumptions=(
            *made.assumptions,
            *spare_notes,
            *(facility.assumptions if facility else ()),
            *network_notes(ground, is_rack_given=placed > 0),
        ),
    )


def _hosts(
    machines: Machines, work: Workload, stages: tuple[Stage, ...]
) -> tuple[tuple[HostLine, ...], tuple[Finding, ...]]:
    """Parts of one machine; what a cloud does not publish stays unknown."""
    lines, _ = host_lines(work, machines.ground, stages)
    if not machines.group.is_own:
        owned = machines.ground.owned
        unknown = {
            "CPU": owned.n_host_cores is None,
            "memory": owned.host_memory_bytes is None,
            "local NVMe": True,
        }
        lines = tuple(
            replace(line, n_given=None) if unknown.get(line.part) else line for line in lines
        )
    is_shipped = machines.group.is_own and machines.ground.owned.host_memory_bytes is None
    shipped = ("memory",) if is_shipped else ()
    return lines, host_findings(lines, machines.group.machine, shipped=shipped)


def _storage(
    work: Workload, ground: Ground, fed: Fed, *, hosts: tuple[HostLine, ...], kept: Kept
) -> tuple[tuple[TierChoice, ...], tuple[Assumption, ...]]:
    """Each kind of storage in the size that reading, loading and keeping ask for."""
    load = next((line.n_needed * GB for line in hosts if line.part == "model load"), 0.0)
    read = max(load, fed.demand.bytes_per_s if fed.demand else 0.0)
    staging = work.data_path.staging if work.data_path else None
    rules = ground.build.links
    held = load * ground.build.hosts.load_s + (staging.dataset_bytes if staging else 0.0)
    told: list[Assumption] = []
    if fed.demand is not None and staging is None:
        held += rules.held_bytes
        told += assumed(ground.build, "links.held_tb")
    write = 0.0
    if kept.rates:
        known = {rate.write_bytes_per_s: rate for rate in kept.rates}
        enough, _ = sufficient_rate(known.__getitem__, worth_frac=ground.build.spares.worth_frac)
        write = enough.write_bytes_per_s
        held += rules.n_kept_checkpoints * write * enough.write_s
        told += assumed(ground.build, "links.kept_checkpoints")
    if not read and not write:
        return (), ()
    asked = fed.demand or DataDemand(
        samples_per_s=0.0,
        bytes_per_s=0.0,
        operations_per_s=0.0,
        open_operations_per_s=0.0,
        is_random=False,
    )
    wanted = replace(asked, bytes_per_s=read)
    choices = tuple(
        choose_units(tier, wanted, held_bytes=held, write_bytes_per_s=write)
        for tier in tiers(ground.catalog.storage, ground.build.prices)
    )
    return choices, (*told, *assumed(ground.build, *STORAGE_PRICES))


def _facility(work: Workload, ground: Ground, scenario: Scenario) -> FacilityPlan | None:
    site, run = scenario.site, work.work
    if site is None or (site.rack is None and site.power_w is None):
        return None
    is_training = isinstance(run, Training) or (isinstance(run, Generic) and run.is_training)
    return facility_of(
        ground.catalog, ground.owned, site, is_training=is_training, build=ground.build
    )


def _no_place(group: MachineGroup) -> tuple[Finding, ...]:
    what = "no place is described: racks, supply and cooling are not designed"
    return (_finding("no-place", group.machine, what, "describe site.rack or site.power_kw"),)


def _software(machines: Machines, here: Scenario) -> tuple[Finding, ...]:
    """What is installed, held against the plan; without it, what the plan's engine asks for."""
    accelerator = machines.ground.accelerator
    if accelerator.is_cpu:
        return ()
    if here.site is not None and here.site.software is not None:
        return software_findings(here, machines.ground)
    name, _, number = machines.pool.engine.partition(" ")
    if name not in FRAMEWORKS or not number:
        return ()
    precision = machines.pool.precision
    stack = SoftwareStack(
        arch=accelerator.instruction_set,
        framework=name,
        framework_version=number,
        precision=precision if format_named(precision) else None,
    )
    return check_stack(stack)


def _finding(rule: str, where: str, what: str, fix: str) -> Finding:
    return Finding(severity="note", rule=rule, where=where, what=what, fix=fix)
