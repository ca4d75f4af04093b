"""The way of data to the accelerators, in: samples and parts; out: the chain of bottlenecks.

Storage, link, decoding and pinned copies run beside the computation: the longest counts. A copy
or an exchange that the computation waits for adds to it. Times are shares of the computation's.
"""

from collections.abc import Sequence
from math import ceil

from gpuplan.domain.scenario.build import HostRules, LinkRules
from gpuplan.domain.scenario.workload import DataPath, Loader
from gpuplan.domain.system.parts import (
    Bottleneck,
    DataDemand,
    Stage,
    StageOption,
    StorageRates,
)
from gpuplan.units import GB, GBIT

LINES_GBIT = (10.0, 25.0, 100.0, 200.0, 400.0)
TELL_FRAC = 0.995  # busier than this, a stage is no bottleneck worth a line


def demand_of(
    path: DataPath, n_accelerators: float, *, samples_per_s: float, rules: LinkRules | None = None
) -> DataDemand:
    """What so many accelerators ask of the storage at `samples_per_s` each."""
    samples = n_accelerators * samples_per_s
    missed = samples * (1.0 - path.cache_hit_frac)
    sample_bytes = path.sample_bytes or 0.0
    rate, part = missed * sample_bytes, (rules or LinkRules()).read_bytes
    is_random = path.n_samples_per_file <= 1
    reads = missed * max(1, ceil(sample_bytes / part)) if is_random else rate / part
    return DataDemand(
        samples_per_s=samples,
        bytes_per_s=rate,
        operations_per_s=reads,
        open_operations_per_s=missed / path.n_samples_per_file,
        is_random=is_random,
    )


def storage_stage(demand: DataDemand, rates: StorageRates, n_nodes: int) -> Stage:
    """Disks or services: bytes or reads, whichever binds."""
    n = 1 if rates.is_shared else n_nodes
    by_bytes = demand.bytes_per_s / (n * rates.bytes_per_s)
    operations = rates.operations_per_s
    by_reads = demand.operations_per_s / (n * operations) if operations else 0.0
    if by_reads > by_bytes and operations:
        fix = (
            "keep samples in shards read in sequence, on local NVMe: "
            f"{demand.operations_per_s:,.0f} small reads a second are too many"
        )
        return Stage(
            name="storage",
            load_ratio=by_reads,
            is_overlapped=True,
            n_wanted=demand.operations_per_s,
            n_given=n * operations,
            unit="reads/s",
            fix=fix,
        )
    return Stage(
        name="storage",
        load_ratio=by_bytes,
        is_overlapped=True,
        n_wanted=demand.bytes_per_s,
        n_given=n * rates.bytes_per_s,
        unit="bytes/s",
        fix=f"storage that reads {demand.bytes_per_s / GB:.2f} GB/s: local NVMe, or a parallel "
        "file system",
    )


def link_stage(
    demand: DataDemand,
    rates: StorageRates,
    link_bytes_per_s: float,
    *,
    n_nodes: int,
    rules: LinkRules | None = None,
) -> Stage:
    """The link to the storage: of each host, or of the one server that all ask."""
    wanted = demand.bytes_per_s / (1 if rates.is_one_server else n_nodes)
    needed = max(wanted, 1.0)  # where caches answer everything any link will do
    share = (rules or LinkRules()).file_link_frac
    given = share * link_bytes_per_s
    options = tuple(
        StageOption(what=f"{line:.0f} Gbit/s", busy_frac=min(1.0, share * line * GBIT / needed))
        for line in LINES_GBIT
        if line * GBIT > link_bytes_per_s
    )
    enough = next((option.what for option in options if option.busy_frac >= 1.0), None)
    whose = "server's link" if rates.is_one_server else "link of each host"
    need = f"a {whose} of {enough}" if enough else f"several links, {wanted / GB:.1f} GB/s in all"
    return Stage(
        name="storage network",
        load_ratio=wanted / given,
        is_overlapped=True,
        n_wanted=wanted,
        n_given=given,
        unit="bytes/s",
        fix=f"{need}, or local NVMe",
        options=options,
    )


def decode_stage(demand: DataDemand, loader: Loader, *, n_cores: float, n_nodes: int) -> Stage:
    """Decoding and augmenting on the host. Without workers the training loop itself decodes."""
    per_core = loader.samples_per_s_per_core or 0.0
    wanted = demand.samples_per_s / n_nodes / per_core
    given = n_cores
    if loader.n_workers is not None:
        given = min(n_cores, max(1, loader.n_workers))
    fix = f"decode on the accelerators, or {ceil(wanted - given)} cores more in each node"
    if given < n_cores:
        fix = (
            f"{min(ceil(wanted), int(n_cores))} workers in place of {loader.n_workers}; then {fix}"
        )
    return Stage(
        name="CPU decode",
        load_ratio=wanted / given,
        is_overlapped=loader.n_workers != 0,
        n_wanted=wanted,
        n_given=given,
        unit="cores",
        fix=fix,
    )


def memory_stage(
    demand: DataDemand, tensor_bytes: float, *, n_nodes: int, rules: HostRules | None = None
) -> Stage:
    """The host's memory, which each sample crosses several times."""
    known = rules or HostRules()
    wanted = known.n_memory_crossings * demand.samples_per_s * tensor_bytes / n_nodes
    return Stage(
        name="host memory",
        load_ratio=wanted / known.memory_bytes_per_s,
        is_overlapped=True,
        n_wanted=wanted,
        n_given=known.memory_bytes_per_s,
        unit="bytes/s",
        fix="smaller tensors (uint8, normalised on the accelerator), or more memory channels",
    )


def copy_stage(
    tensor_bytes_per_s: float, copy_s: float, compute_s: float, *, is_overlapped: bool, fix: str
) -> Stage:
    """The copy to the accelerator; `tensor_bytes_per_s` is what one takes without waiting.

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
    """Share of the time that accelerators compute: beside the longest stage, after what waits."""
    waits = 1.0 + sum(stage.load_ratio for stage in stages if not stage.is_overlapped)
    longest = max((stage.load_ratio for stage in stages if stage.is_overlapped), default=0.0)
    return 1.0 / max(waits, longest)


def binding(stages: Sequence[Stage]) -> Stage:
    """What to put right first: the longest stage beside the work, or the longest wait."""
    waits = 1.0 + sum(stage.load_ratio for stage in stages if not stage.is_overlapped)
    beside = [stage for stage in stages if stage.is_overlapped and stage.load_ratio > waits]
    return max(beside or [s for s in stages if not s.is_overlapped], key=lambda s: s.load_ratio)


def chain(stages: Sequence[Stage]) -> tuple[Bottleneck, ...]:
    """Bottlenecks in the order in which they bind; each gain holds once those before are gone."""
    left, found = list(stages), []
    while (now := busy_frac(left)) < TELL_FRAC:
        stage = binding(left)
        left.remove(stage)
        after = busy_frac(left)
        found.append(Bottleneck(stage=stage, busy_frac=now, busy_after_frac=after))
    return tuple(found)
