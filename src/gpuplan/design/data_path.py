"""The data path to the accelerators: demand, stages, and the chain of bottlenecks.

Storage, link, decoding and pinned copies run beside the computation: the longest counts. A copy
or an exchange that the computation waits for adds to it. Times are shares of the computation's.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from gpuplan.domain.scenario.build import USUAL, HostRules, LinkRules
from gpuplan.domain.scenario.workload import DataPath, Loader
from gpuplan.domain.system.parts import Bottleneck, DataDemand, Stage, StageOption, StorageRates
from gpuplan.units import GB, GBIT

LINES_GBIT = (10.0, 25.0, 100.0, 200.0, 400.0)
REPORTED_FRAC = 0.995  # busier than this, a stage is no bottleneck worth a line


def demand_of(
    path: DataPath,
    n_accelerators: float,
    *,
    samples_per_s: float,
    rules: LinkRules = USUAL.links,
) -> DataDemand:
    """The demand of so many accelerators on the storage, at `samples_per_s` each."""
    samples = n_accelerators * samples_per_s
    missed = samples * (1.0 - path.cache_hit_frac)
    sample_bytes = path.sample_bytes or 0.0
    rate, chunk = missed * sample_bytes, rules.read_bytes
    is_random = path.n_samples_per_file <= 1
    reads = missed * max(1, ceil(sample_bytes / chunk)) if is_random else rate / chunk
    return DataDemand(
        samples_per_s=samples,
        bytes_per_s=rate,
        operations_per_s=reads,
        open_operations_per_s=missed / path.n_samples_per_file,
    )


def _overlapped(name: str, wanted: float, given: float, *, unit: str, fix: str) -> Stage:
    """A stage beside the computation, as long as its demand over its supply."""
    return Stage(
        name=name,
        load_ratio=wanted / given,
        is_overlapped=True,
        n_wanted=wanted,
        n_given=given,
        unit=unit,
        fix=fix,
    )


def storage_stage(demand: DataDemand, rates: StorageRates, n_nodes: int) -> Stage:
    """Reading from storage: its bytes or its operations, whichever binds."""
    n = 1 if rates.is_shared else n_nodes
    wanted, reads = demand.bytes_per_s, demand.operations_per_s
    fix = f"storage that reads {wanted / GB:.2f} GB/s: local NVMe, or a parallel file system"
    by_bytes = _overlapped("storage", wanted, n * rates.bytes_per_s, unit="bytes/s", fix=fix)
    if not rates.operations_per_s:
        return by_bytes
    fix = (
        "keep samples in shards read sequentially, on local NVMe: "
        f"{reads:,.0f} small reads a second are too many"
    )
    by_reads = _overlapped("storage", reads, n * rates.operations_per_s, unit="reads/s", fix=fix)
    return by_reads if by_reads.load_ratio > by_bytes.load_ratio else by_bytes


def link_stage(
    demand: DataDemand,
    rates: StorageRates,
    link_bytes_per_s: float,
    *,
    n_nodes: int,
    rules: LinkRules = USUAL.links,
) -> Stage:
    """The link to the storage: of each host, or of the one file server that all hosts share."""
    wanted = demand.bytes_per_s / (1 if rates.is_one_server else n_nodes)
    needed = max(wanted, 1.0)  # where caches answer everything any link will do
    share = rules.file_link_frac
    options = tuple(
        StageOption(what=f"{line:.0f} Gbit/s", busy_frac=min(1.0, share * line * GBIT / needed))
        for line in LINES_GBIT
        if line * GBIT > link_bytes_per_s
    )
    enough = next((option.what for option in options if option.busy_frac >= 1.0), None)
    whose = "link of the file server" if rates.is_one_server else "link of each host"
    need = f"a {whose} of {enough}" if enough else f"several links, {wanted / GB:.1f} GB/s in total"
    given, fix = share * link_bytes_per_s, f"{need}, or local NVMe"
    stage = _overlapped("storage network", wanted, given, unit="bytes/s", fix=fix)
    return replace(stage, options=options)


def decode_stage(demand: DataDemand, loader: Loader, *, n_cores: float, n_nodes: int) -> Stage:
    """Decoding and augmenting on the host; without workers the training loop itself decodes."""
    wanted = demand.samples_per_s / n_nodes / (loader.samples_per_s_per_core or 0.0)
    given = n_cores
    if loader.n_workers is not None:
        given = min(n_cores, max(1, loader.n_workers))
    fix = f"decode on the accelerators, or {ceil(wanted - given)} cores more in each node"
    if given < n_cores:
        n_workers = min(ceil(wanted), int(n_cores))
        fix = f"{n_workers} workers in place of {loader.n_workers}; then {fix}"
    stage = _overlapped("CPU decode", wanted, given, unit="cores", fix=fix)
    return replace(stage, is_overlapped=loader.n_workers != 0)


def memory_stage(
    demand: DataDemand, tensor_bytes: float, *, n_nodes: int, rules: HostRules = USUAL.hosts
) -> Stage:
    """Host memory bandwidth, which each sample takes several times."""
    wanted = rules.n_memory_crossings * demand.samples_per_s * tensor_bytes / n_nodes
    fix = "smaller tensors (uint8, normalised on the accelerator), or more memory channels"
    return _overlapped("host memory", wanted, rules.memory_bytes_per_s, unit="bytes/s", fix=fix)


def copy_stage(
    tensor_bytes_per_s: float, copy_s: float, compute_s: float, *, is_overlapped: bool, fix: str
) -> Stage:
    """The copy to the accelerator; `tensor_bytes_per_s` is what it takes without waiting.

    What it gives is what arrives: beside the computation as fast as it copies, else in the time
    that copy and computation take together.
    """
    beside_s = copy_s if is_overlapped else copy_s + compute_s
    return Stage(
        name="copy to device",
        load_ratio=copy_s / compute_s,
        is_overlapped=is_overlapped,
        n_wanted=tensor_bytes_per_s,
        n_given=tensor_bytes_per_s * compute_s / beside_s,
        unit="bytes/s",
        fix=fix,
    )


def busy_frac(stages: Sequence[Stage]) -> float:
    """The utilization of the accelerators: beside the longest stage, after what waits."""
    longest = max((stage.load_ratio for stage in stages if stage.is_overlapped), default=0.0)
    return 1.0 / max(_with_waits(stages), longest)


def _with_waits(stages: Sequence[Stage]) -> float:
    """The computation and all that it waits for, over the computation."""
    return 1.0 + sum(stage.load_ratio for stage in stages if not stage.is_overlapped)


def binding(stages: Sequence[Stage]) -> Stage:
    """The stage to fix first: the longest beside the work, or the longest wait."""
    waits = _with_waits(stages)
    beside = [stage for stage in stages if stage.is_overlapped and stage.load_ratio > waits]
    return max(beside or [s for s in stages if not s.is_overlapped], key=lambda s: s.load_ratio)


def chain(stages: Sequence[Stage]) -> tuple[Bottleneck, ...]:
    """The bottlenecks in binding order; each gain holds once those before it are gone."""
    left, found = list(stages), []
    while (now := busy_frac(left)) < REPORTED_FRAC:
        stage = binding(left)
        left.remove(stage)
        after = busy_frac(left)
        found.append(Bottleneck(stage=stage, busy_frac=now, busy_after_frac=after))
    return tuple(found)
