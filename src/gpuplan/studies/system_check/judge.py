"""A described system, judged workload by workload and as a whole, as findings with fixes."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

from gpuplan.design.data_path import chain
from gpuplan.design.facility import checklist
from gpuplan.design.rules import STORAGE_PRICES, assumed
from gpuplan.design.storage import choose_units, tiers
from gpuplan.design.totals import cache_findings, count_findings, shared_site_findings
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.scenario.build import BusyRules
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes, Site
from gpuplan.domain.scenario.workload import Generic, Workload
from gpuplan.domain.system.check import (
    LoaderAdvice,
    Need,
    SystemCheck,
    SystemSurroundings,
    WorkCheck,
)
from gpuplan.domain.system.facility import FacilityPlan
from gpuplan.domain.system.findings import Finding, error, note, warning
from gpuplan.domain.system.parts import (
    Bottleneck,
    CapacityPoint,
    CheckpointRate,
    DataDemand,
    DataTransfer,
    FabricPlan,
    SpareNeed,
    Stage,
    TierChoice,
)
from gpuplan.errors import InputError, Problem, ViolationError, one
from gpuplan.studies.power.node_draw import facility_of
from gpuplan.studies.system_check.alternatives import Balance, RejectedSystem, balance_of
from gpuplan.studies.system_check.data_path import data_demand, data_stages, staged
from gpuplan.studies.system_check.network import fabrics_of, needs_of, network_notes, retained
from gpuplan.studies.system_check.placement import (
    Placement,
    Remark,
    assumptions_in,
    findings_in,
)
from gpuplan.studies.system_check.surroundings import (
    checkpoints_of,
    host_lines,
    host_remarks,
    software_findings,
    spares_of,
    usable_memory_bytes,
)
from gpuplan.studies.system_check.traffic import Traffic, traffic_between_nodes
from gpuplan.units import GB

USED_KEYS = ("workloads", "site", "owned", "policy.survive")  # keys that a check reads


class JudgedWorkload(NamedTuple):
    """One workload on its nodes: what it demands, waits for, moves and loses."""

    work: Workload
    placement: Placement
    demand: DataDemand | None
    stages: tuple[Stage, ...]
    traffic: Traffic
    checkpoints: tuple[CheckpointRate, ...]
    moved: DataTransfer | None
    remarks: tuple[Remark, ...]
    capacity: tuple[CapacityPoint, ...] = ()

    @property
    def bottlenecks(self) -> tuple[Bottleneck, ...]:
        """What keeps the accelerators waiting, in binding order."""
        return chain(self.stages)


class WholeSystem(NamedTuple):
    """What stands around all workloads, judged for the one that waits most."""

    worst: JudgedWorkload
    around: SystemSurroundings
    remarks: tuple[Remark, ...]


def require_servers(scenario: Scenario) -> None:
    """Raise InputError where the scenario describes no servers to check."""
    if not scenario.owned:
        fix = "describe the servers under owned:, present or intended"
        raise one(InputError, scenario.name, "owned", "no servers are described", fix)


def judge_workload(scenario: Scenario, work: Workload, placement: Placement) -> JudgedWorkload:
    """Data path, traffic between nodes, checkpoints and staging of one workload."""
    found = [*data_stages(work, placement)]
    traffic = traffic_between_nodes(scenario, work, placement)
    writes = [*checkpoints_of(work, placement)]
    staging = work.data_path.staging if work.data_path else None
    moved, moved_notes = staged(staging, scenario) if staging else (None, ())
    capacity, capacity_notes = retained(scenario, work, placement)
    remarks = [*found, *traffic.remarks, *writes, *moved_notes, *capacity_notes]
    return JudgedWorkload(
        work=work,
        placement=placement,
        demand=data_demand(work, placement),
        stages=(*(stage for stage in found if isinstance(stage, Stage)), *traffic.stages),
        traffic=traffic,
        checkpoints=tuple(rate for rate in writes if isinstance(rate, CheckpointRate)),
        moved=moved,
        remarks=(*findings_in(remarks), *assumptions_in(remarks)),
        capacity=capacity,
    )


def judge_whole(
    scenario: Scenario, judged: Sequence[JudgedWorkload], catalog: Catalog
) -> WholeSystem:
    """Facilities, networks, hosts and spares, judged for the workload that waits most."""
    worst = min(judged, key=lambda one: _utilization(one.bottlenecks))
    placement, is_training = worst.placement, any(w.is_training for w in scenario.workloads)
    facilities = tuple(
        plan
        for owned in scenario.owned
        for plan in facility_on_site(scenario, owned, catalog, is_training=is_training)
    )
    placed = max((plan.n_racks for plan in facilities), default=0)
    per_rack = placement.build.room.n_nodes_per_rack
    n_racks = placed or ceil(placement.owned.n_nodes / per_rack)
    networks = [*fabrics_of(scenario, placement, worst.traffic, n_racks=n_racks)]
    hosts = host_lines(worst.work, placement, worst.stages)
    spares = [*spares_of(scenario, placement)]
    fabrics = tuple(plan for plan in networks if isinstance(plan, FabricPlan))
    remarks = (
        *(remark for plan in facilities for remark in (*plan.findings, *plan.assumptions)),
        *_total_findings(scenario, judged, facilities, fabrics),
        *networks,
        *host_remarks(placement, hosts),
        *spares,
        *network_notes(placement, is_rack_given=placed > 0),
    )
    site, owned = scenario.site, placement.owned
    name = owned.name or f"{placement.n_per_node} x {placement.accelerator.name}"
    around = SystemSurroundings(
        facilities=facilities,
        fabrics=fabrics,
        hosts=((facilities[0].node.name if facilities else name, hosts),),
        spares=tuple(need for need in spares if isinstance(need, SpareNeed)),
        electricity_usd_per_j=site.electricity_usd_per_j if site else None,
        checklist=checklist(facilities[0], site or Site()) if facilities else (),
    )
    return WholeSystem(worst, around, (*findings_in(remarks), *assumptions_in(remarks)))


def facility_on_site(
    scenario: Scenario, owned: OwnedNodes, catalog: Catalog, *, is_training: bool
) -> tuple[FacilityPlan, ...]:
    """Racks, power and cooling of a group of servers; nothing where no site is described."""
    site = scenario.site
    if site is None or (site.rack is None and site.power_w is None):
        return ()
    build = scenario.policy.build
    return (facility_of(catalog, owned, site, is_training=is_training, build=build),)


def alternatives_to(
    scenario: Scenario, judged: Sequence[JudgedWorkload], whole: WholeSystem
) -> Balance:
    """Balanced systems for the same money, where an error rejects the described one."""
    remarks = [*whole.remarks, *(r for one in judged for r in workload_remarks(scenario, one))]
    if all(found.severity != "error" for found in findings_in(remarks)):
        return Balance()
    worst, around = whole.worst, whole.around
    facility = around.facilities[0] if around.facilities else None
    return balance_of(
        RejectedSystem(scenario, worst.work, worst.placement, around.fabrics, facility)
    )


def system_check(
    scenario: Scenario,
    judged: Sequence[JudgedWorkload],
    whole: WholeSystem,
    *,
    balance: Balance,
    month: str | None,
) -> SystemCheck:
    """The judgement: workloads, surroundings, alternatives, and every finding and assumption."""
    remarks = (
        *(remark for one in judged for remark in workload_remarks(scenario, one)),
        *whole.remarks,
        # Other servers do not fix software: it calls for no alternatives.
        *software_findings(scenario, whole.worst.placement, month=month),
        *balance.remarks,
        *(a for a in scenario.assumptions if a.change.startswith(USED_KEYS)),
    )
    return SystemCheck(
        name=scenario.name,
        works=tuple(_work_check(one) for one in judged),
        around=whole.around,
        balanced=balance.systems,
        budget_usd=balance.budget_usd,
        findings=findings_in(remarks),
        assumptions=assumptions_in(remarks),
        needs=_needs(scenario, judged, whole),
    )


def _needs(
    scenario: Scenario, judged: Sequence[JudgedWorkload], whole: WholeSystem
) -> tuple[Need, ...]:
    """The six needs of all workloads together."""
    stages = [stage for one in judged for stage in one.stages]
    return needs_of(scenario, stages, [one.demand for one in judged], whole.around)


def refuse_system(checked: SystemCheck) -> None:
    """Raise ViolationError where the system is rejected, with every error and its fix."""
    errors = [f for f in checked.findings if f.severity == "error"]
    if errors:
        raise ViolationError(checked.name, [Problem(f.where, f.what, f.fix) for f in errors])


def _utilization(bottlenecks: Sequence[Bottleneck]) -> float:
    return bottlenecks[0].busy_frac if bottlenecks else 1.0


def _work_check(judged: JudgedWorkload) -> WorkCheck:
    return WorkCheck(
        name=judged.work.name,
        accelerator=judged.placement.accelerator.name,
        n_accelerators=judged.placement.n_accelerators,
        demand=judged.demand,
        bottlenecks=judged.bottlenecks,
        moved=judged.moved,
        checkpoints=judged.checkpoints,
        storage=_tiers(judged),
        loader=_loader(judged),
        capacity=judged.capacity,
    )


def _loader(judged: JudgedWorkload) -> LoaderAdvice | None:
    """Workers that decode as fast as accelerators take, and batches that wait in pinned memory."""
    path, placement = judged.work.data_path, judged.placement
    per_core = path.loader.samples_per_s_per_core if path and path.loader else None
    if path is None or not per_core or path.samples_per_s_per_accelerator is None:
        return None
    prefetch = ceil(placement.build.hosts.n_prefetch_batches)
    each = None if path.copy is None else path.copy.n_batch_samples * path.copy.sample_bytes
    return LoaderAdvice(
        n_workers_per_accelerator=ceil(path.samples_per_s_per_accelerator / per_core - 1e-9),
        n_prefetch_batches=prefetch,
        pinned_bytes=None if each is None else prefetch * each * placement.n_per_node,
    )


def workload_remarks(scenario: Scenario, judged: JudgedWorkload) -> Iterator[Remark]:
    """The bottlenecks of a workload as findings, and all other remarks on it."""
    work, placement = judged.work, judged.placement
    build, path = placement.build, work.data_path
    yield from (_bottleneck(work, found, build.busy) for found in judged.bottlenecks)
    yield from judged.remarks
    if len(scenario.owned) > 1 and not _is_within(work, placement):
        n, name = placement.n_accelerators, placement.owned.accelerator
        what = f"its data is judged on {n} accelerators of {name}"
        fix = "describe each group of servers in a file of its own"
        yield note("largest-group", work.name, what, fix)
    if _tiers(judged):
        stored = () if path is not None and path.staging is not None else ("links.held_tb",)
        yield from assumed(build, *STORAGE_PRICES, *stored)
    if judged.stages:
        yield from assumed(build, "busy.reject_frac", "busy.warn_frac")


def _is_within(work: Workload, placement: Placement) -> bool:
    """Whether the largest group of servers holds all accelerators that the workload takes."""
    wanted = work.work.n_accelerators if isinstance(work.work, Generic) else None
    return wanted is not None and wanted <= placement.n_accelerators


def _total_findings(
    scenario: Scenario,
    judged: Sequence[JudgedWorkload],
    facilities: tuple[FacilityPlan, ...],
    fabrics: tuple[FabricPlan, ...],
) -> Iterator[Finding]:
    """What only shows when all work, servers and switches are added up."""
    runs = [work.work for work in scenario.workloads]
    wanted = sum(run.n_accelerators or 0.0 for run in runs if isinstance(run, Generic))
    yield from count_findings(wanted, sum(group.n_accelerators for group in scenario.owned))
    if facilities and scenario.site is not None:
        drawn = [plan for plan in fabrics if "cheapest" not in plan.purpose]
        yield from shared_site_findings(facilities, drawn, scenario.site)
    for known in judged:
        path, ram = known.work.data_path, usable_memory_bytes(known.placement)
        if path is not None and path.staging is not None and ram is not None:
            total, size = known.placement.n_nodes * ram, path.staging.dataset_bytes
            yield from cache_findings(path.cache_hit_frac, size, total, where=known.work.name)


def _bottleneck(work: Workload, found: Bottleneck, rules: BusyRules) -> Finding:
    kind = note
    if found.busy_frac < rules.warn_frac:
        kind = error if found.busy_frac < rules.reject_frac else warning
    stage = found.stage
    what = (
        f"GPU utilization is {found.busy_frac:.0%}: {stage.name} supplies "
        f"{_amount(stage.n_given, stage.unit)} of {_amount(stage.n_wanted, stage.unit)}"
    )
    fix = f"{stage.fix}; then {found.busy_after_frac:.0%}"
    return kind("bottleneck", f"{work.name}: {stage.name}", what, fix)


def _amount(n: float, unit: str) -> str:
    return f"{n / GB:.2f} GB/s" if unit == "bytes/s" else f"{n:,.0f} {unit}"


def _tiers(judged: JudgedWorkload) -> tuple[TierChoice, ...]:
    """Each storage tier in the size that this demand asks for."""
    path, demand, placement = judged.work.data_path, judged.demand, judged.placement
    if path is None or demand is None or path.sample_bytes is None:
        return ()
    stored = path.staging.dataset_bytes if path.staging else placement.build.links.held_bytes
    known = tiers(placement.catalog.storage, placement.build.prices)
    return tuple(choose_units(tier, demand, held_bytes=stored) for tier in known)
