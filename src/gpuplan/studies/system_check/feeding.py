"""A fleet with everything that feeds and joins it, and the utilization that this proves.

A fleet counts only with the utilization that the chain of bottlenecks gives it once it is described
anew with its own drives, cores, copies and network: the rule that rejected the first judges all.
"""

from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

from gpuplan.design.data_path import LINES_GBIT, busy_frac
from gpuplan.design.fabric import node_bytes_per_s
from gpuplan.design.storage import choose_units, tiers
from gpuplan.design.totals import shared_site_findings
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.ranges import Range, exactly, total
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes, Site
from gpuplan.domain.scenario.workload import DataPath, Storage, Workload
from gpuplan.domain.system.facility import FacilityPlan
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import DataDemand, FabricPlan, Stage, TierChoice
from gpuplan.errors import PlannerError
from gpuplan.studies.power.node_draw import facility_of
from gpuplan.studies.system_check.data_path import (
    data_demand,
    data_stages,
    sample_rate,
    usable_cores,
)
from gpuplan.studies.system_check.network import sufficient_fabric
from gpuplan.studies.system_check.placement import Placement
from gpuplan.studies.system_check.traffic import traffic_between_nodes
from gpuplan.units import GBIT

UNSEEN_U = 8  # of a server whose height nobody publishes: that of the tallest of eight
MOST_DRIVES = 32  # of a server, in drives of 7.68 TB: eight of 30.72 TB hold and cost as much

Priced = tuple[tuple[str, Range], ...]  # parts with their prices


class Fleet(NamedTuple):
    """So many servers of one accelerator, and how fast it is beside the described one."""

    accelerator: Accelerator
    n_nodes: int
    n_per_node: int
    speed_ratio: float = 1.0

    @property
    def name(self) -> str:
        """The fleet in words: 2 x 8 H100 SXM."""
        return f"{self.n_nodes} x {self.n_per_node} {self.accelerator.name}"


def fleet_with_data(
    scenario: Scenario,
    work: Workload,
    placement: Placement,
    fleet: Fleet,
    *,
    kind: str = "ethernet",
) -> tuple[Priced, float] | None:
    """The parts that feed and join the fleet, and its utilization; None if it cannot be built."""
    here = _placed(placement, fleet)
    if not fits_site(scenario, here):
        return None
    fitted, feeding = _delivered(_faster(work, placement, fleet), here)
    # An exchange that nobody can judge is as it was: it is not spread over more nodes.
    is_spread = (
        fleet.accelerator.id != placement.accelerator.id or fleet.n_nodes > placement.n_nodes
    )
    joined = _joined(scenario, fitted, here, kind=kind, must_know=is_spread)
    if joined is None:
        return None
    network, waits = joined
    stages = [stage for stage in data_stages(fitted, here) if isinstance(stage, Stage)]
    # The exchange is a wait after the computation: busy = 1 / (1 + wait) alone.
    share = 1.0 / (1.0 / busy_frac(stages) + waits)
    if network is not None:
        gbit, ports = network.port_bytes_per_s / GBIT, network.counts.n_ports_per_node
        feeding += ((f"network, {ports} x {gbit:.0f} Gbit/s per node", network.usd),)
    return feeding, share


def fits_site(scenario: Scenario, placement: Placement) -> bool:
    """Whether the site powers, cools and holds these servers beside the other groups."""
    site = scenario.site
    if site is None:
        return True
    largest = max(scenario.owned, key=lambda group: group.n_accelerators)
    groups = [placement.owned, *(group for group in scenario.owned if group is not largest)]
    build = placement.build
    plans = [facility_of(placement.catalog, group, site, build=build) for group in groups]
    found: list[Finding] = [*plans[0].findings, *shared_site_findings(plans, (), site)]
    has_room = _n_racks(plans[0], site, placement) <= (site.n_racks or inf)
    return has_room and all(finding.severity != "error" for finding in found)


def _n_racks(plan: FacilityPlan, site: Site, placement: Placement) -> float:
    """Racks; a server of unknown height is taken to be as tall as any of its kind."""
    rack = site.rack
    if plan.node.height_u is not None or rack is None or rack.n_units is None:
        return plan.n_racks
    by_height = (rack.n_units - placement.build.room.n_reserved_units) // UNSEEN_U
    each = min(by_height, plan.fit.n_nodes) if plan.fit.limits else by_height
    return ceil(plan.n_nodes / each) if each > 0 else inf


def _placed(placement: Placement, fleet: Fleet) -> Placement:
    """The workload on this fleet; smaller servers of the same make have a share of the cores."""
    owned, is_same = placement.owned, fleet.accelerator.id == placement.accelerator.id
    made = replace(owned, n_nodes=fleet.n_nodes)
    if not is_same or fleet.n_per_node != owned.n_accelerators_per_node:
        share = min(1.0, fleet.n_per_node / owned.n_accelerators_per_node)
        made = OwnedNodes(
            accelerator=str(fleet.accelerator.id),
            n_nodes=fleet.n_nodes,
            n_accelerators_per_node=fleet.n_per_node,
            accelerator_cap_w=owned.accelerator_cap_w if is_same else None,
            n_host_cores=_times(owned.n_host_cores, share),
        )
    n = fleet.n_nodes * fleet.n_per_node
    return placement._replace(accelerator=fleet.accelerator, owned=made, n_accelerators=n)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _faster(work: Workload, placement: Placement, fleet: Fleet) -> Workload:
    """The work with the rate of samples that this accelerator processes."""
    rate, path = sample_rate(work, placement), work.data_path
    if path is None or rate is None:
        return work
    share, loader = min(1.0, fleet.n_per_node / placement.n_per_node), path.loader
    if loader is not None:
        loader = replace(loader, n_cores=_times(loader.n_cores, share))
    changed = replace(path, samples_per_s_per_accelerator=rate * fleet.speed_ratio, loader=loader)
    return replace(work, data_path=changed)


def _delivered(work: Workload, placement: Placement) -> tuple[Workload, Priced]:
    """The work described with local drives, cores and copies that keep up, and their prices."""
    path, demand = work.data_path, data_demand(work, placement)
    if path is None or demand is None or path.sample_bytes is None:
        return work, ()
    fitted, stored = _stored(path, placement, demand)
    fitted, cores = _decoded(fitted, placement, demand.samples_per_s)
    parts = (*stored, *cores)
    copy = fitted.copy
    if copy is not None and not (copy.is_pinned and copy.is_overlapped):
        # A setting, not a purchase.
        fitted = replace(fitted, copy=replace(copy, is_pinned=True, is_overlapped=True))
        parts += (("batches pinned and copied beside the computation", exactly(0.0)),)
    return replace(work, data_path=fitted), parts


def _stored(path: DataPath, placement: Placement, demand: DataDemand) -> tuple[DataPath, Priced]:
    """The cheaper of drives in the servers and shelves of flash behind sufficient links.

    Disks behind one file server would need its link too, and seek: they are not tried.
    """
    build, n = placement.build, placement.n_nodes
    stored = path.staging.dataset_bytes if path.staging else build.links.held_bytes
    drives, shelves, _ = tiers(placement.catalog.storage, build.prices)
    each = ceil(choose_units(drives, demand, held_bytes=stored).n_units / n)
    options = [_shelved(path, placement, choose_units(shelves, demand, held_bytes=stored), demand)]
    if each <= MOST_DRIVES:
        local = Storage(
            kind="local_nvme",
            bytes_per_s=each * drives.unit_read_bytes_per_s,
            operations_per_s=_times(drives.unit_operations_per_s, each),
        )
        part = (f"{n * each} {drives.name}", drives.unit_usd.times(n * each))
        options.append((replace(path, storage=local), (part,)))
    return min(options, key=lambda option: sum(usd.mid for _, usd in option[1]))


def _shelved(
    path: DataPath, placement: Placement, bought: TierChoice, demand: DataDemand
) -> tuple[DataPath, Priced]:
    """Shelves with a link for each node, of the slowest rate that is sold and sufficient."""
    n, tier, build = placement.n_nodes, bought.tier, placement.build
    wanted = demand.bytes_per_s / n / build.links.file_link_frac
    line = next((rate for rate in LINES_GBIT if rate * GBIT >= wanted), ceil(wanted / GBIT))
    p = build.prices
    per_gbit = total([p.adapter_usd_per_gbit, p.optic_usd_per_gbit, p.switch_usd_per_gbit])
    storage = Storage(
        kind="parallel_fs",
        bytes_per_s=bought.n_units * tier.unit_read_bytes_per_s / n,
        operations_per_s=_times(tier.unit_operations_per_s, bought.n_units / n),
        network_bytes_per_s=line * GBIT,
    )
    return replace(path, storage=storage), (
        (f"{bought.n_units} {tier.name}", bought.usd),
        (f"{n} links of {line:g} Gbit/s to them", per_gbit.times(n * line)),
    )


def _decoded(path: DataPath, placement: Placement, samples_per_s: float) -> tuple[DataPath, Priced]:
    """The cores that decode what the nodes cannot."""
    loader = path.loader
    if loader is None or loader.is_on_accelerator or not loader.samples_per_s_per_core:
        return path, ()
    own = usable_cores(loader, placement)[0] or 0.0
    needed = samples_per_s / loader.samples_per_s_per_core
    n_workers = None if loader.n_workers is None else max(loader.n_workers, ceil(needed))
    n_cores = max(own, needed / placement.n_nodes)
    fitted = replace(path, loader=replace(loader, n_cores=n_cores, n_workers=n_workers))
    short = ceil(needed - placement.n_nodes * own)
    if short <= 0:
        return fitted, ()
    usd = placement.build.prices.core_usd.times(short)
    return fitted, ((f"{short} cores of decoding servers", usd),)


def _joined(
    scenario: Scenario, work: Workload, placement: Placement, *, kind: str, must_know: bool
) -> tuple[FabricPlan | None, float] | None:
    """The cheapest sufficient network, and the wait that is left; None where none is."""
    n = placement.n_nodes
    if n < 2:
        return None, 0.0
    try:
        traffic = traffic_between_nodes(scenario, work, placement)
    except PlannerError:
        return None  # the model cannot be spread over nodes of this size
    if traffic.efficiency is None:
        is_unknown = any(isinstance(remark, Finding) for remark in traffic.remarks)
        return None if is_unknown and must_know else (None, 0.0)
    best = sufficient_fabric(traffic.efficiency, placement, n_racks=n, kind=kind)
    if best is None:
        return None
    plan, _ = best
    return plan, 1.0 / traffic.efficiency(n, node_bytes_per_s(plan)) - 1.0
