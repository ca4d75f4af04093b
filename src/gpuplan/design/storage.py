"""Storage: read rates of the user's storage, and how many units of each tier a demand needs."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from gpuplan.design.rules import assumed
from gpuplan.domain.hardware.devices import PartId, StorageClass
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import USUAL, BuildRules, PartPrices
from gpuplan.domain.scenario.workload import Storage
from gpuplan.domain.system.parts import (
    CapacityPoint,
    DataDemand,
    StorageRates,
    StoredData,
    Tier,
    TierChoice,
)
from gpuplan.units import GB, MONTH, TB


class Kind(NamedTuple):
    """What a kind of the file format stands for where nobody measured it."""

    class_id: str
    n_units: int
    is_shared: bool
    is_remote: bool
    is_one_server: bool


# Numbers of devices are assumptions, reported wherever they are used.
KINDS = {
    "local_nvme": Kind("local-nvme-gen4", 4, False, False, False),
    "local_ssd": Kind("sata-ssd", 4, False, False, False),
    "hdd_nfs": Kind("hard-disk", 24, True, True, True),
    "ssd_nfs": Kind("sata-ssd", 8, True, True, True),
    "hdd_array": Kind("hard-disk", 24, True, True, False),
    "parallel_fs": Kind("parallel-fs-good", 1, False, True, False),
    "object": Kind("cloud-object", 1, False, True, False),
    "object_cached": Kind("local-nvme-gen4", 2, False, False, False),
}
SHELVES = "100 TB shelves of a parallel file system on flash"
# What can be bought, in the sizes of its units; prices come with the rules.
TIERS: tuple[tuple[str, str, float, Callable[[PartPrices], Range]], ...] = (
    ("7.68 TB local NVMe drives", "local-nvme-gen4", 7.68 * TB, lambda p: p.nvme_usd_per_tb),
    (SHELVES, "parallel-fs-better", 100 * TB, lambda p: p.flash_shelf_usd_per_tb),
    ("20 TB hard disks behind NFS", "hard-disk", 20 * TB, lambda p: p.disk_usd_per_tb),
)


def storage_rates(
    storage: Storage, classes: Mapping[PartId, StorageClass], *, build: BuildRules = USUAL
) -> tuple[StorageRates, tuple[Assumption, ...]]:
    """The rates of the storage: as measured by the user, else of its kind's usual devices.

    Where only a read rate was measured, it holds for the reads that were measured: no limit of
    operations is put beside it.
    """
    kind = KINDS[storage.kind]
    known = classes[PartId(kind.class_id)]
    rate, reads = storage.bytes_per_s, storage.operations_per_s
    notes: tuple[Assumption, ...] = ()
    if rate is None and reads is None:
        reads = _reads(known, kind.n_units, build.links.n_objects_in_flight)
    if rate is None:
        rate = kind.n_units * known.read_bytes_per_s
        notes = (_kind_note(storage.kind, known, kind.n_units),)
        if known.operations_per_s is None and known.latency_s is not None:
            notes += assumed(build, "links.objects_in_flight")
    return StorageRates(
        bytes_per_s=rate,
        operations_per_s=reads,
        is_shared=kind.is_shared,
        is_remote=kind.is_remote,
        is_one_server=kind.is_one_server,
    ), notes


def _reads(known: StorageClass, n_units: int, n_in_flight: float) -> float | None:
    """Reads a second of the devices, or of the requests in flight where a latency is known."""
    if known.operations_per_s is not None:
        return n_units * known.operations_per_s
    return None if known.latency_s is None else n_in_flight / known.latency_s


def tiers(
    classes: Mapping[PartId, StorageClass], prices: PartPrices = USUAL.prices
) -> tuple[Tier, ...]:
    """The storage tiers that can be bought."""
    found = []
    for name, class_id, unit_bytes, price_of in TIERS:
        known = classes[PartId(class_id)]
        found.append(
            Tier(
                name=name,
                unit_read_bytes_per_s=known.read_bytes_per_s,
                unit_write_bytes_per_s=known.write_bytes_per_s,
                unit_operations_per_s=known.operations_per_s,
                unit_bytes=unit_bytes * (known.usable_frac or 1.0),
                unit_usd=price_of(prices).times(unit_bytes / TB),
                is_shared=known.scope == "device" and class_id == "hard-disk",
            )
        )
    return tuple(found)


def choose_units(
    tier: Tier, demand: DataDemand, *, held_bytes: float, write_bytes_per_s: float = 0.0
) -> TierChoice:
    """The fewest units that read, write and hold enough, and which of these decided it."""
    read, write = demand.bytes_per_s, write_bytes_per_s
    needs = {
        f"reading {read / GB:.2f} GB/s": read / tier.unit_read_bytes_per_s,
        f"holding {held_bytes / TB:,.0f} TB": held_bytes / tier.unit_bytes,
        f"writing {write / GB:.2f} GB/s": write / tier.unit_write_bytes_per_s,
    }
    if tier.unit_operations_per_s is not None:
        what = f"{demand.operations_per_s:,.0f} reads a second"
        needs[what] = demand.operations_per_s / tier.unit_operations_per_s
    reason = max(needs, key=lambda name: needs[name])
    n = max(1, ceil(needs[reason] * (1 - 1e-9)))
    return TierChoice(tier=tier, n_units=n, reason=reason, usd=tier.unit_usd.times(n))


def cheapest(choices: Sequence[TierChoice]) -> TierChoice:
    """The choice with the lowest middle price."""
    return min(choices, key=lambda choice: choice.usd.mid)


def capacity_growth(stored: StoredData, horizon_s: float) -> tuple[CapacityPoint, ...]:
    """What storage holds now, at each of a few months and at the end of the horizon."""
    times = [0.0, *(m * MONTH for m in (3, 6, 12, 24) if m * MONTH < horizon_s), horizon_s]
    return tuple(
        CapacityPoint(
            after_s=after_s,
            parts=(
                (
                    "dataset",
                    stored.dataset_bytes * (1.0 + stored.dataset_growth_frac) ** (after_s / MONTH),
                ),
                ("checkpoints", stored.checkpoint_bytes),
                ("artifacts", stored.artifacts_bytes_per_s * after_s),
                ("logs", stored.log_bytes_per_s * after_s),
            ),
        )
        for after_s in times
    )


def _kind_note(kind: str, known: StorageClass, n_units: int) -> Assumption:
    each = f"{known.read_bytes_per_s / GB:g} GB/s"
    if known.operations_per_s is not None:
        each += f" and {known.operations_per_s:,.0f} reads/s"
    return assume(
        f"storage of kind {kind}",
        f"{n_units} x {known.name}, {each} each",
        "no measurement is given",
        "workloads[].data_path.storage.gb_per_s and iops",
    )
