"""Answers about a shared cluster: waits, utilization, money, changes, start times."""

from dataclasses import field

from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.outcome import ClusterOutcome
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRow:
    """How long jobs of one kind wait, from submission to their first start."""

    name: str
    n_jobs: int
    n_never: int  # that never start
    wait_mean_s: float
    wait_p50_s: float
    wait_p90_s: float
    wait_p99_s: float
    slowdown_p50_ratio: float  # time in the system over time of running, 10 s at least
    slowdown_p90_ratio: float
    held_accelerator_s: float
    target_p90_s: float | None = None

    @property
    def is_violated(self) -> bool:
        """Whether the wait target is missed, also by a tenth of the jobs that never start."""
        is_late = self.n_never * 10 > self.n_jobs
        return self.target_p90_s is not None and (is_late or self.wait_p90_s > self.target_p90_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUse:
    """Where GPU time went until the last submission, as shares of all of it; and what it did."""

    batch_frac: float
    service_frac: float
    down_frac: float
    idle_frac: float
    quota_blocked_frac: float
    too_few_frac: float
    fragmented_frac: float
    goodput_frac: float  # of allocated GPU time: work that was kept
    lost_accelerator_s: float
    precision_frac: float  # useful share of paid GPU time
    recall_frac: float  # share of the submitted work that starts within its wait target


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBill:
    """What a team costs: GPU time that it held, and its part of what nobody did."""

    team: str
    held_accelerator_s: float
    lost_accelerator_s: float
    used_usd: float
    idle_usd: float  # split by quota, by use where there are no quotas
    service_usd: float
    cloud_usd: float

    @property
    def total_usd(self) -> float:
        """The chargeback."""
        return self.used_usd + self.idle_usd + self.service_usd + self.cloud_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitShare:
    """How much of a team's waiting passes while another team holds the GPUs."""

    team: str
    holder: str
    wait_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """A policy or a change beside the described cluster; same jobs, same failures."""

    name: str
    wait_mean_s: float
    wait_p90_s: float
    saved_mean_s: float  # mean wait that it saves, with its 90 % interval
    saved_low_s: float
    saved_high_s: float
    utilization_frac: float
    goodput_frac: float
    n_preempted: int
    n_violated: int  # teams out of their wait target


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaAdvice:
    """The smallest quota with which a team meets its wait target."""

    team: str
    accelerator: str
    n_now: float
    n_advised: float | None  # None: no quota does it, the cluster is too small
    wait_now_s: float
    wait_then_s: float
    target_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionOption:
    """GPUs that fractional jobs need, one way of sharing them, and what it isolates."""

    way: str
    n_accelerators: int
    usd_per_month: float | None
    isolation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionAdvice:
    """How to share GPUs of one type among jobs that need part of one."""

    accelerator: str
    slices: tuple[tuple[str, int], ...]  # profile, and how many are wanted at once
    partitions: tuple[tuple[str, int], ...]  # geometry, and on how many GPUs
    options: tuple[FractionOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """What a simulation of a cluster should answer beside the run itself."""

    policies: tuple[str, ...] = ()  # to compare: fifo, easy, fair …
    n_changes: int = 0  # nodes more and fewer of each group to try
    advises_quotas: bool = False
    advises_fractions: bool = False
    is_streamed: bool = False  # in bounded memory: the run alone, jobs not kept one by one
    seed: int = 0

    @property
    def is_more_than_a_replay(self) -> bool:
        """Whether the trace would be replayed several times."""
        is_advised = self.advises_quotas or self.advises_fractions
        return bool(self.policies or self.n_changes or is_advised)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAdvice:
    """Comparisons with other policies, hardware and quotas."""

    policies: tuple[PolicyRow, ...] = ()
    changes: tuple[PolicyRow, ...] = ()
    last_useful: tuple[tuple[str, int], ...] = ()  # GPU type, and the last GPU that saved waiting
    quotas: tuple[QuotaAdvice, ...] = ()
    fractions: tuple[FractionAdvice, ...] = ()
    notes: tuple[str, ...] = ()  # why an advice that was asked for has nothing to say


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSimulation(Result):
    """A replayed job stream, and what it says about the cluster."""

    cluster: Cluster
    jobs: Jobs
    found: ClusterOutcome
    by_team: tuple[WaitRow, ...]
    by_size: tuple[WaitRow, ...]
    all_jobs: WaitRow
    use: ClusterUse
    bills: tuple[TeamBill, ...]
    shares: tuple[WaitShare, ...]
    advice: ClusterAdvice = field(default_factory=ClusterAdvice)
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EtaRequest:
    """A job that is not submitted yet."""

    n_accelerators: int
    duration_s: float
    team: str | None = None
    accelerator: str | None = None
    priority: int = 0
    at_s: float | None = None  # on the trace's clock; None: at its last submission
    n_draws: int = 5  # futures that the estimate is the median of
    n_record: int = 100  # recent jobs that the range is taken from
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEstimate(Result):
    """When the job would start, counted from its submission, and its 80 % range."""

    request: EtaRequest
    wait_p50_s: float
    wait_low_s: float
    wait_high_s: float
    n_running: int
    n_queued: int
    queued_accelerators: int
    n_record: int
    assumptions: tuple[Assumption, ...] = ()
