"""The data path of a workload: stages from storage to device, its demand, and staged datasets."""

from collections.abc import Iterator

from gpuplan.catalog.names import find_accelerator
from gpuplan.cost.items import egress_usd
from gpuplan.design import data_path as design
from gpuplan.design.hosts import allocatable_cores
from gpuplan.design.rules import assumed
from gpuplan.design.storage import storage_rates
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import (
    DataPath,
    DeviceCopy,
    Loader,
    Serving,
    Staging,
    Workload,
)
from gpuplan.domain.system.parts import DataDemand, DataTransfer, Stage
from gpuplan.performance.transfer import host_copy_time_s, network_transfer_time_s
from gpuplan.studies.system_check.placement import Placement, Remark, not_judged
from gpuplan.units import GBIT

FASTER_GBIT = (10.0, 25.0, 100.0, 400.0)


def data_demand(work: Workload, placement: Placement) -> DataDemand | None:
    """The demand of the workload on its storage; None where too little is described."""
    path, rate = work.data_path, sample_rate(work, placement)
    if path is None or rate is None:
        return None
    n, rules = placement.n_accelerators, placement.build.links
    return design.demand_of(path, n, samples_per_s=rate, rules=rules)


def data_stages(work: Workload, placement: Placement) -> Iterator[Stage | Remark]:
    """The stages from storage to device that can be judged; each that cannot is a finding."""
    path, demand = work.data_path, data_demand(work, placement)
    rate = sample_rate(work, placement)
    if path is None or (rate is None and isinstance(work.work, Serving)):
        return
    if rate is None or demand is None:
        what = "the samples per second of an accelerator are not given: its data is not judged"
        yield not_judged(work, what, "give data_path.samples_per_s_per_accelerator")
        return
    yield from _storage_stages(work, path, placement, demand)
    yield from _decode_stages(work, path, placement, demand)
    yield from _copy_stages(path, placement, demand, rate)


def sample_rate(work: Workload, placement: Placement) -> float | None:
    """Samples a second that one accelerator could process: as given, or by a given capacity."""
    path = work.data_path
    if path is not None and path.samples_per_s_per_accelerator is not None:
        return path.samples_per_s_per_accelerator
    for capacity in work.capacities:
        if capacity.metric != "samples" or capacity.rate_per_s is None:
            continue
        known = find_accelerator(capacity.accelerator, placement.catalog).accelerator
        if known.id == placement.accelerator.id:
            return capacity.rate_per_s.mid / (placement.n_per_node if capacity.is_per_node else 1)
    return None


def _storage_stages(
    work: Workload, path: DataPath, placement: Placement, demand: DataDemand
) -> Iterator[Stage | Remark]:
    if path.storage is None or path.sample_bytes is None:
        what = "storage or the size of a sample is not described: reading is not judged"
        yield not_judged(work, what, "give data_path.storage and data_path.sample_kb")
        return
    build, n_nodes = placement.build, placement.n_nodes
    rates, notes = storage_rates(path.storage, placement.catalog.storage, build=build)
    yield from notes
    yield from assumed(build, "links.read_mib")
    link = path.storage.network_bytes_per_s
    if rates.is_remote and link is None:
        what = "the link to the storage is not described: it is not judged"
        yield not_judged(work, what, "give data_path.storage.network_gbit_per_s")
    elif rates.is_remote and link is not None:
        yield design.link_stage(demand, rates, link, n_nodes=n_nodes, rules=build.links)
        yield from assumed(build, "links.file_link_frac")
    yield design.storage_stage(demand, rates, n_nodes)


def _decode_stages(
    work: Workload, path: DataPath, placement: Placement, demand: DataDemand
) -> Iterator[Stage | Remark]:
    loader = path.loader
    if loader is None or loader.is_on_accelerator:
        return
    if loader.samples_per_s_per_core is None:
        what = "the decoding speed of a core is not given: decoding is not judged"
        yield not_judged(work, what, "measure data_path.loader.samples_per_s_per_core")
        return
    n_cores, notes = usable_cores(loader, placement)
    if n_cores is None:
        what = "the CPU cores of a node are not described: decoding is not judged"
        yield not_judged(work, what, "give data_path.loader.cores")
        return
    yield design.decode_stage(demand, loader, n_cores=n_cores, n_nodes=placement.n_nodes)
    yield from notes


def usable_cores(
    loader: Loader | None, placement: Placement
) -> tuple[float | None, tuple[Assumption, ...]]:
    """CPU cores of a node: the loader's, the node's, or what is allocatable of its server's."""
    given = loader.n_cores if loader is not None else None
    given = placement.owned.n_host_cores if given is None else given
    if given is not None:
        return given, ()
    server = placement.server
    if server is None or server.host.n_cores is None:
        return None, ()
    usable = allocatable_cores(server.host.n_cores)
    note = assume(
        "usable CPU cores of a node",
        f"{usable:.1f} of {server.host.n_cores}",
        f"a {server.name}, less what Kubernetes and agents reserve",
        "owned[].host_cores",
    )
    return usable, (note,)


def _copy_stages(
    path: DataPath, placement: Placement, demand: DataDemand, rate: float
) -> Iterator[Stage | Remark]:
    copy, link, build = path.copy, placement.accelerator.host_link, placement.build
    if copy is None:
        return
    on_device = path.loader is not None and path.loader.is_on_accelerator
    # What is decoded on the accelerator crosses as it is stored.
    sample_bytes = path.sample_bytes if on_device and path.sample_bytes else copy.sample_bytes
    n_nodes = placement.n_nodes
    yield design.memory_stage(demand, sample_bytes, n_nodes=n_nodes, rules=build.hosts)
    yield from assumed(build, "hosts.memory_gb_per_s", "hosts.memory_crossings")
    if link is None:
        return
    batch_bytes = copy.n_batch_samples * sample_bytes
    yield design.copy_stage(
        rate * sample_bytes,
        host_copy_time_s(batch_bytes, link.bytes_per_s, is_pinned=copy.is_pinned),
        copy.n_batch_samples / rate,
        # Only page-locked memory can be copied beside the computation.
        is_overlapped=copy.is_overlapped and copy.is_pinned,
        fix=_copy_fix(copy),
    )


def _copy_fix(copy: DeviceCopy) -> str:
    steps = [] if copy.is_pinned else ["pin the memory"]
    steps += [] if copy.is_overlapped and copy.is_pinned else ["copy while the last batch computes"]
    return ", ".join([*steps, "send uint8 and normalise on the accelerator"])


def staged(staging: Staging, scenario: Scenario) -> tuple[DataTransfer, tuple[Assumption, ...]]:
    """How long the dataset is transferred, what comes back and what its egress costs."""

    def seconds(n_bytes: float, line: float) -> float:
        return network_transfer_time_s(n_bytes, line, efficiency_frac=staging.efficiency_frac)

    usd, notes = egress_usd(staging.back_bytes, scenario.prices)
    transfer = DataTransfer(
        dataset_bytes=staging.dataset_bytes,
        there_s=seconds(staging.dataset_bytes, staging.link_bytes_per_s),
        back_s=seconds(staging.back_bytes, staging.link_bytes_per_s),
        egress_usd=usd,
        faster=tuple(
            (f"{line:.0f} Gbit/s", seconds(staging.dataset_bytes, line * GBIT))
            for line in FASTER_GBIT
            if line * GBIT > staging.link_bytes_per_s
        ),
    )
    return transfer, notes if staging.back_bytes else ()
