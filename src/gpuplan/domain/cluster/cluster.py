"""A shared cluster: groups of nodes, teams with quotas, policy, services, failures, cloud."""

from dataclasses import field
from typing import Literal

from gpuplan.domain.noun import dataclass

Order = Literal["fifo", "priority", "shortest", "edf", "fair", "drf", "kueue"]
Blocking = Literal["strict", "skip", "easy", "conservative"]
Placement = Literal["pack", "spread", "scatter"]
Reclaim = Literal["never", "lower_priority", "any"]
Within = Literal["never", "lower_priority", "lower_or_newer_equal"]
ORDERS: tuple[Order, ...] = ("fifo", "priority", "shortest", "edf", "fair", "drf", "kueue")
BLOCKINGS: tuple[Blocking, ...] = ("strict", "skip", "easy", "conservative")
PLACEMENTS: tuple[Placement, ...] = ("pack", "spread", "scatter")
RECLAIMS: tuple[Reclaim, ...] = ("never", "lower_priority", "any")
WITHINS: tuple[Within, ...] = ("never", "lower_priority", "lower_or_newer_equal")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePlaces:
    """Where a MIG profile may lie on a GPU: first places, and how many it takes from there."""

    profile: str
    starts: tuple[int, ...]
    n_places: int
    share_frac: float  # of the GPU's compute


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBounds:
    """How many nodes of a kind a plan may have."""

    n_min: int = 0
    n_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes of one kind; a node is one NVLink domain."""

    accelerator: str
    n_nodes: int
    n_accelerators_per_node: int
    n_cpus: float | None = None  # of one node; None: never short
    ram_bytes: float | None = None
    n_nodes_per_rack: int | None = None  # None: one rack
    n_racks_per_zone: int | None = None  # None: one zone
    usd_per_accelerator_h: float | None = None
    slices: tuple[SlicePlaces, ...] = ()  # MIG profiles of the GPU
    speed_ratio: float | None = None  # of jobs there over the trace's; None: the same
    bounds: NodeBounds = NodeBounds()

    @property
    def n_accelerators(self) -> int:
        """GPUs of the group."""
        return self.n_nodes * self.n_accelerators_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a team may use of one GPU type; fractions of GPUs count as such."""

    accelerator: str
    n_accelerators: float
    n_borrow: float | None = None  # beyond the quota, from the cohort; None: no limit
    n_lend: float | None = None  # to the cohort; None: all that is unused


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTeam:
    """Who shares the cluster; without quotas a team may use all of it."""

    name: str
    quotas: tuple[Quota, ...] = ()
    cohort: str | None = None  # teams of one cohort borrow from each other
    share_ratio: float = 1.0  # weight of fair share and DRF
    wait_p90_s: float | None = None  # target


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    """Who goes first, what a blocked job does to those behind it, and who may be preempted."""

    order: Order = "fifo"
    blocking: Blocking = "easy"
    placement: Placement = "pack"
    preempts: bool = False
    saves_on_preemption: bool = True  # a grace period lets jobs write a checkpoint
    depth: int = 100  # jobs of a queue that one pass looks at
    reclaim: Reclaim = "any"  # in the cohort, of what is borrowed
    within: Within = "lower_priority"  # in the team's own queue
    half_life_s: float = 7 * 86400.0  # of the usage that fair share remembers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservingService:
    """An inference service that reserves replicas by the hour, before all jobs."""

    name: str
    team: str
    accelerator: str
    n_accelerators_per_replica: int
    replicas_by_hour: tuple[int, ...]  # 24 of a day, or 168 of a week from Monday


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailures:
    """Failures of nodes, drawn once for all policies that are compared."""

    mtbf_s: float  # of one node
    mttr_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A window in which nodes are drained."""

    start_s: float
    duration_s: float
    first_node: int
    n_nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudBurst:
    """Jobs that find more than a threshold queued run in the cloud."""

    above_queued_accelerators: int
    n_accelerators: int  # at most, at once
    start_s: float = 0.0  # cold start and staging of data
    speed_ratio: float = 1.0
    usd_per_accelerator_h: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefaults:
    """What jobs have whose trace does not say."""

    checkpoint_s: float = 0.0  # interval; 0: none, a stopped job begins anew
    restart_s: float = 0.0
    limit_ratio: float | None = None  # time limit over duration; None: known exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerms:
    """What a plan of the cluster is held to, and what it may change."""

    budget_usd_per_month: float | None = None
    policies: tuple[str, ...] = ()  # names that may be chosen beside the described one
    deadlines_frac: float = 1.0  # least share of deadlines that are met
    keeps_quotas: bool = False  # in proportion to the hardware
    memory_bytes: float | None = None  # that jobs need of a GPU; None: that of the first kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All that jobs run on, and by which rules."""

    name: str
    groups: tuple[NodeGroup, ...]
    teams: tuple[ClusterTeam, ...] = ()
    policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    services: tuple[ReservingService, ...] = ()
    failures: NodeFailures | None = None
    maintenance: tuple[Maintenance, ...] = ()
    burst: CloudBurst | None = None
    defaults: JobDefaults = field(default_factory=JobDefaults)
    plan: PlanTerms = field(default_factory=PlanTerms)
    seed: int = 0

    @property
    def n_accelerators(self) -> int:
        """GPUs of all groups."""
        return sum(group.n_accelerators for group in self.groups)

    @property
    def accelerators(self) -> tuple[str, ...]:
        """GPU types, each once, in order."""
        return tuple(dict.fromkeys(group.accelerator for group in self.groups))
