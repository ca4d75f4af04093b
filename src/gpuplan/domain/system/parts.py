"""What surrounds accelerators: the way of the data, hosts, fabric, storage, spares."""

from typing import Literal

from gpuplan.domain.hardware.devices import Link, Switch
from gpuplan.domain.noun import dataclass
from gpuplan.domain.ranges import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOption:
    """Another part at one stage, and how busy it would keep the accelerators by itself."""

    what: str
    busy_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stretch of the way of a batch; `load_ratio` is its time over that of the computation."""

    name: str
    load_ratio: float
    is_overlapped: bool  # beside the computation, which else waits for it
    n_wanted: float  # in `unit`
    n_given: float
    unit: str
    fix: str
    options: tuple[StageOption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """What holds the accelerators back once everything before it in the chain is put right."""

    stage: Stage
    busy_frac: float  # while this one stays
    busy_after_frac: float  # once it is put right, and the next one binds

    @property
    def gain_ratio(self) -> float:
        """Speed after over speed before."""
        return self.busy_after_frac / self.busy_frac

    @property
    def idle_frac(self) -> float:
        """Share of the time that the accelerators lose to this stage alone."""
        return self.busy_after_frac - self.busy_frac


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDemand:
    """What samples ask of the storage when no accelerator waits."""

    samples_per_s: float  # of all accelerators
    bytes_per_s: float  # read from storage, caches taken off
    operations_per_s: float  # reads; one for each sample that is a file of its own
    open_operations_per_s: float  # files opened: what the metadata service sees


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRates:
    """What storage gives; None is no limit that we know of."""

    bytes_per_s: float
    operations_per_s: float | None
    is_shared: bool  # by all nodes; else each node has as much
    is_remote: bool  # behind a link
    is_one_server: bool = False  # whose own link all nodes share


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A way to store data: what one unit gives, holds and costs."""

    name: str
    unit_read_bytes_per_s: float
    unit_write_bytes_per_s: float
    unit_operations_per_s: float | None
    unit_bytes: float
    unit_usd: Range
    is_shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TierChoice:
    """So many units of a tier for a need, and what decided their number."""

    tier: Tier
    n_units: int
    reason: str
    usd: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLine:
    """One part of a host: what is needed, what is there, why."""

    part: str
    unit: str
    n_needed: float
    n_given: float | None  # None: not described
    reason: str
    n_firm: float | None = None  # what the work takes; the rest is a rule of thumb: advice

    @property
    def is_short(self) -> bool:
        """Known to be too little."""
        return self.n_given is not None and self.n_given < self.n_needed * (1 - 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class CableRun:
    """Equal cables between two levels of a fabric."""

    between: str
    n_cables: int
    longest_m: float
    medium: str  # copper, optic
    link: Link | None  # of the catalog; None where none of that rate and reach is known


FabricKind = Literal["one switch", "rail-optimised", "fat tree", "rail planes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricCounts:
    """Switches and cables of a network that joins nodes."""

    kind: FabricKind
    n_nodes: int
    n_ports_per_node: int
    n_leaf: int
    n_node_cables: int
    n_spine: int = 0
    n_core: int = 0
    n_leaf_cables: int = 0  # leaf to spine
    n_spine_cables: int = 0  # spine to core
    oversubscription_ratio: float = 1.0  # as built: down over up at the leaf; 1 does not block

    @property
    def n_switches(self) -> int:
        """All levels."""
        return self.n_leaf + self.n_spine + self.n_core

    @property
    def n_cables(self) -> int:
        """All levels."""
        return self.n_node_cables + self.n_leaf_cables + self.n_spine_cables


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricPlan:
    """A network with its parts, its draw and its price."""

    purpose: str  # compute, storage, management
    counts: FabricCounts
    switch: Switch
    port_bytes_per_s: float
    runs: tuple[CableRun, ...]
    typical_w: float | None  # None: not published
    max_w: float | None
    usd: Range
    efficiency_frac: float | None = None  # of the work over it; None: not judged


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareNeed:
    """How many spare machines keep a promise while others are repaired."""

    n_nodes: int
    n_spares: int
    node_mtbf_s: float
    repair_s: float
    kept_frac: float  # of the time at least n_nodes work
    availability_frac: float  # of one node


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRate:
    """A write rate and the share of a run that it costs."""

    write_bytes_per_s: float
    write_s: float
    interval_s: float
    lost_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTransfer:
    """A dataset on its way: how long, and what the way back costs."""

    dataset_bytes: float
    there_s: float
    back_s: float
    egress_usd: Range
    faster: tuple[tuple[str, float], ...]  # line, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredData:
    """What a workload keeps in storage today, and what it adds."""

    dataset_bytes: float
    dataset_growth_frac: float
    checkpoint_bytes: float
    artifacts_bytes_per_s: float
    log_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPoint:
    """What storage holds after so much of the horizon, by what it is."""

    after_s: float
    parts: tuple[tuple[str, float], ...]  # what, bytes

    @property
    def held_bytes(self) -> float:
        """All of it."""
        return sum(n_bytes for _, n_bytes in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedSystem:
    """Parts that fit each other, what they deliver and cost."""

    what: str
    n_accelerators: int
    busy_frac: float
    usd: Range | None  # None: no price is known
    parts: tuple[tuple[str, Range], ...] = ()
    speed_ratio: float = 1.0  # of one accelerator beside one of the described system

    @property
    def n_at_work(self) -> float:
        """Work in described accelerators' worth: those that stand there, busy, at their speed."""
        return self.n_accelerators * self.busy_frac * self.speed_ratio
