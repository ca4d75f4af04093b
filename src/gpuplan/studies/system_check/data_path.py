"""The way of a workload's data, in: scenario and catalog; out: stages, demand, moves."""

from collections.abc import Iterator
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.cost.items import egress_usd
from gpuplan.design import data_path as design
from gpuplan.design.hosts import allocatable_cores
from gpuplan.design.rules import assumed
from gpuplan.design.storage import storage_rates
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.build import USUAL, BuildRules
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes
from gpuplan.domain.scenario.workload import (
    DataPath,
    DeviceCopy,
    Generic,
    Loader,
    Serving,
    Staging,
    Workload,
)
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import DataDemand, DataTransfer, Stage
from gpuplan.performance.transfer import host_copy_time_s, network_transfer_time_s
from gpuplan.studies.power.node_draw import server_with
from gpuplan.units import GBIT

FASTER_GBIT = (10.0, 25.0, 100.0, 400.0)


class Ground(NamedTuple):
    """What a workload runs on."""

    catalog: Catalog
    accelerator: Accelerator
    owned: OwnedNodes
    n_accelerators: int
    build: BuildRules = USUAL

    @property
    def n_nodes(self) -> int:
        """Whole machines that it needs."""
        return ceil(self.n_accelerators / self.owned.n_accelerators_per_node)


class Fed(NamedTuple):
    """How a workload is fed, and what is not known of it."""

    demand: DataDemand | None
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...] = ()
    assumptions: tuple[Assumption, ...] = ()


def ground_of(scenario: Scenario, work: Workload, catalog: Catalog) -> Ground:
    """The largest group of machines, and as many accelerators of it as the work takes."""
    owned = max(scenario.owned, key=lambda group: group.n_accelerators)
    accelerator = find_accelerator(owned.accelerator, catalog).accelerator
    wanted = work.work.n_accelerators if isinstance(work.work, Generic) else None
    n = owned.n_accelerators if wanted is None else min(ceil(wanted), owned.n_accelerators)
    return Ground(catalog, accelerator, owned, n, scenario.policy.build)


def feed_of(work: Workload, ground: Ground) -> Fed:
    """Stages from storage to device that can be judged; each that cannot is a finding."""
    path = work.data_path
    if path is None:
        return Fed(None, ())
    rate = sample_rate(work, ground)
    if rate is None and isinstance(work.work, Serving):
        return Fed(None, ())
    if rate is None:
        what = "how many samples an accelerator could take is not said: its data is not judged"
        fix = "give data_path.samples_per_s_per_accelerator"
        return Fed(None, (), (_unknown(work, what, fix),))
    demand = design.demand_of(
        path, ground.n_accelerators, samples_per_s=rate, rules=ground.build.links
    )
    stored = _storage_stages(work, path, ground, demand)
    decoded = _decode_stages(work, path, ground, demand)
    copied = tuple(_copy_stages(path, ground, demand, rate))
    return Fed(
        demand,
        (*stored.stages, *decoded.stages, *copied),
        (*stored.findings, *decoded.findings),
        (*stored.assumptions, *decoded.assumptions, *_memory_notes(ground, copied)),
    )


def sample_rate(work: Workload, ground: Ground) -> float | None:
    """Samples a second that one accelerator could take: given, or a given capacity."""
    path = work.data_path
    if path is not None and path.samples_per_s_per_accelerator is not None:
        return path.samples_per_s_per_accelerator
    for capacity in work.capacities:
        if capacity.metric != "samples" or capacity.rate_per_s is None:
            continue
        if find_accelerator(capacity.accelerator, ground.catalog).accelerator.id != (
            ground.accelerator.id
        ):
            continue
        n = ground.owned.n_accelerators_per_node if capacity.is_per_node else 1
        return capacity.rate_per_s.mid / n
    return None


def _storage_stages(work: Workload, path: DataPath, ground: Ground, demand: DataDemand) -> Fed:
    if path.storage is None or path.sample_bytes is None:
        what = "storage or the size of a sample is not described: reading is not judged"
        fix = "give data_path.storage and data_path.sample_kb"
        return Fed(demand, (), (_unknown(work, what, fix),))
    rates, told = storage_rates(path.storage, ground.catalog.storage, build=ground.build)
    told += assumed(ground.build, "links.read_mib")
    stages = [design.storage_stage(demand, rates, ground.n_nodes)]
    if not rates.is_remote:
        return Fed(demand, tuple(stages), (), told)
    link = path.storage.network_bytes_per_s
    if link is None:
        what = "the link to the storage is not described: it is not judged"
        fix = "give data_path.storage.network_gbit_per_s"
        return Fed(demand, tuple(stages), (_unknown(work, what, fix),), told)
    stages.insert(
        0, design.link_stage(demand, rates, link, n_nodes=ground.n_nodes, rules=ground.build.links)
    )
    told += assumed(ground.build, "links.file_link_frac")
    return Fed(demand, tuple(stages), (), told)


def _decode_stages(work: Workload, path: DataPath, ground: Ground, demand: DataDemand) -> Fed:
    loader = path.loader
    if loader is None or loader.is_on_accelerator:
        return Fed(demand, ())
    if loader.samples_per_s_per_core is None:
        what = "how fast a core decodes is not said: decoding is not judged"
        fix = "measure data_path.loader.samples_per_s_per_core"
        return Fed(demand, (), (_unknown(work, what, fix),))
    n_cores, told = usable_cores(loader, ground)
    if n_cores is None:
        what = "the cores of a machine are not described: decoding is not judged"
        return Fed(demand, (), (_unknown(work, what, "give data_path.loader.cores"),))
    stage = design.decode_stage(demand, loader, n_cores=n_cores, n_nodes=ground.n_nodes)
    return Fed(demand, (stage,), (), told)


def usable_cores(
    loader: Loader | None, ground: Ground
) -> tuple[float | None, tuple[Assumption, ...]]:
    """Cores of a machine: the loader's, the machine's, or its maker's less what stays taken."""
    if loader is not None and loader.n_cores is not None:
        return loader.n_cores, ()
    if ground.owned.n_host_cores is not None:
        return ground.owned.n_host_cores, ()
    server = server_with(ground.catalog, ground.accelerator, ground.owned.n_accelerators_per_node)
    if server is None or server.host.n_cores is None:
        return None, ()
    usable = allocatable_cores(server.host.n_cores)
    note = Assumption(
        what="usable cores of a machine",
        value=f"{usable:.1f} of {server.host.n_cores}",
        why=f"a {server.name}, less what Kubernetes and agents keep",
        change="owned[].host_cores",
    )
    return usable, (note,)


def _copy_stages(
    path: DataPath, ground: Ground, demand: DataDemand, rate: float
) -> Iterator[Stage]:
    copy, link = path.copy, ground.accelerator.host_link
    if copy is None:
        return
    on_device = path.loader is not None and path.loader.is_on_accelerator
    # What is decoded on the accelerator crosses as it is stored.
    sample_bytes = path.sample_bytes if on_device and path.sample_bytes else copy.sample_bytes
    yield design.memory_stage(
        demand, sample_bytes, n_nodes=ground.n_nodes, rules=ground.build.hosts
    )
    if link is None:
        return
    compute_s = copy.n_batch_samples / rate
    copy_s = host_copy_time_s(
        copy.n_batch_samples * sample_bytes, link.bytes_per_s, is_pinned=copy.is_pinned
    )
    # Only page-locked memory can be copied beside the computation.
    yield design.copy_stage(
        rate * sample_bytes,
        copy_s,
        compute_s,
        is_overlapped=copy.is_overlapped and copy.is_pinned,
        fix=_copy_fix(copy),
    )


def _copy_fix(copy: DeviceCopy) -> str:
    steps = [] if copy.is_pinned else ["pin the memory"]
    steps += [] if copy.is_overlapped and copy.is_pinned else ["copy while the last batch computes"]
    return ", ".join([*steps, "send uint8 and normalise on the accelerator"])


def moved_of(staging: Staging, scenario: Scenario) -> tuple[DataTransfer, tuple[Assumption, ...]]:
    """How long the dataset travels, what comes back and what that costs."""
    share = staging.efficiency_frac

    def seconds(n_bytes: float, line: float) -> float:
        return network_transfer_time_s(n_bytes, line, efficiency_frac=share)

    usd, told = egress_usd(staging.back_bytes, scenario.prices)
    faster = tuple(
        (f"{line:.0f} Gbit/s", seconds(staging.dataset_bytes, line * GBIT))
        for line in FASTER_GBIT
        if line * GBIT > staging.link_bytes_per_s
    )
    return DataTransfer(
        dataset_bytes=staging.dataset_bytes,
        there_s=seconds(staging.dataset_bytes, staging.link_bytes_per_s),
        back_s=seconds(staging.back_bytes, staging.link_bytes_per_s),
        egress_usd=usd,
        faster=faster,
    ), told if staging.back_bytes else ()


def _memory_notes(ground: Ground, stages: tuple[Stage, ...]) -> tuple[Assumption, ...]:
    if not any(stage.name == "host memory" for stage in stages):
        return ()
    return assumed(ground.build, "hosts.memory_gb_per_s", "hosts.memory_crossings")


def _unknown(work: Workload, what: str, fix: str) -> Finding:
    return Finding(severity="warning", rule="not-judged", where=work.name, what=what, fix=fix)
