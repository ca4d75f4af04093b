"""An autoscaled fleet: pools behind a router, patient clients, replicas that come and go."""

from dataclasses import field

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.simulation.engine import EngineLimits, KvTransfer, StepTable
from gpuplan.domain.simulation.outcome import Outcome, UseOverTime

# How a request ended; every request ends in exactly one way.
ENDS = ("finished", "unservable", "refused", "timed out", "lost", "unserved")
FINISHED, UNSERVABLE, REFUSED, TIMED_OUT, LOST, UNSERVED = range(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """Phases of a start, one after the other; a restart on the same node has the last three."""

    boot_s: float = 0.0  # of the node
    image_s: float = 0.0  # pulled and unpacked
    load_s: float = 0.0  # weights
    compile_s: float = 0.0
    warmup_s: float = 0.0

    @property
    def total_s(self) -> float:
        """From the order to the first request."""
        return self.boot_s + self.image_s + self.warm_s

    @property
    def warm_s(self) -> float:
        """On a node that is up and has the image."""
        return self.load_s + self.compile_s + self.warmup_s


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursFloor:
    """From one hour to another a pool keeps so many replicas; 0 is midnight."""

    from_hour: int  # 0 … 23
    to_hour: int  # 1 … 24, not included; below from_hour: over midnight
    n_least: int
    days: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)  # 0 is Monday; of the hour it begins at


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """Looks from time to time, grows at once, shrinks after a while."""

    metric: str = "concurrency"  # or "queue": only what does not run yet
    target_requests: float  # per replica
    interval_s: float = 15.0
    tolerance_frac: float = 0.1  # of the target: nothing changes within it
    up_cooldown_s: float = 0.0
    down_cooldown_s: float = 0.0
    down_window_s: float = 300.0  # shrinks to the most that was wanted within it
    floors: tuple[HoursFloor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """One replica is gone from an instant on."""

    at_s: float
    replica: int  # of its pool, from 0
    lasts_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Replicas fail at random, at given instants, or both."""

    mtbf_s: float | None = None  # mean time to failure of one replica, exponential
    mttr_s: float | None = None  # mean time to repair; None: never
    is_fixed_repair: bool = False  # repairs take exactly the mean
    outages: tuple[Outage, ...] = ()
    is_paid: bool = True  # while failed: own and reserved machines are, rented ones are not


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """The owner takes machines back at random, with notice; what cannot drain by then is lost."""

    mean_s: float  # between reclaims of one replica, exponential
    notice_s: float = 30.0
    away_s: float = 600.0  # until another machine is to be had


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """Every replica restarts in turn, after it has drained."""

    first_s: float
    every_s: float | None = None  # None: once
    max_unavailable: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionControl:
    """How much a pool takes; None is no limit."""

    max_outstanding: int | None = None  # of one replica; further requests wait before the pool
    max_held: int | None = None  # that wait before the pool; further requests are refused


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSize:
    """Replicas of a pool."""

    n_first: int = 1  # ready when the first request comes
    n_least: int | None = None  # None: as many as at first
    n_most: int | None = None

    @property
    def n_slots(self) -> int:
        """The most that there can be at a time."""
        return max(self.n_first, self.n_first if self.n_most is None else self.n_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Equal replicas, and what becomes of them."""

    name: str
    limits: EngineLimits
    table: StepTable
    size: PoolSize = field(default_factory=PoolSize)
    start: ColdStart = field(default_factory=ColdStart)
    admission: AdmissionControl = field(default_factory=AdmissionControl)
    scaler: Autoscaler | None = None
    failures: Failures | None = None
    spot: Spot | None = None
    restarts: Restarts | None = None
    drain_s: float | None = None  # that a leaving replica has to finish; None: as long as it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolShare:
    """A pool that serves a service."""

    pool: str
    weight_ratio: float = 1.0  # of its share, or of the strength of its replicas
    spill_requests: float = 8.0  # outstanding per replica at which the next pool is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What requests ask for: a model or an adapter, and the pools that serve it."""

    name: str
    pools: tuple[PoolShare, ...]
    decode_pools: tuple[PoolShare, ...] = ()  # where the answer is written, if elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """Which pool, and which replica of it."""

    rule: str = "least_outstanding"
    pool_rule: str = "load"  # or "share": by weight; "order": the first with room
    guard_requests: float = 32.0  # affinity gives way to a replica with so many fewer
    guard_ratio: float = 1.0  # and relatively: more than (1 + ratio) times as many
    max_resends: int = 3  # of a request whose replica died


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """What clients do when they wait too long or are refused."""

    timeout_s: float | None = None
    is_first_token: bool = False  # patience is for the first token, not for the whole answer
    max_retries: int = 0
    backoff_s: float = 1.0  # before the first retry; doubles each time
    max_backoff_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticFleet:
    """Pools behind a router."""

    pools: tuple[Pool, ...]
    services: tuple[Service, ...] = ()  # none: one service, which all pools serve
    router: Router = field(default_factory=Router)
    clients: Clients = field(default_factory=Clients)
    kv_transfer: KvTransfer | None = None
    seed: int = 0
    first_hour: int = 0  # of the week, at the first arrival: 0 is Monday, midnight


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTimeline:
    """Replicas of a pool by status, from an instant on; one row per change."""

    at_s: Floats
    pool: Ints
    n_ready: Ints
    n_starting: Ints
    n_draining: Ints
    n_failed: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCounts:
    """How often something happened."""

    n_refusals: int  # of attempts
    n_timeouts: int  # of attempts
    n_retries: int  # by clients
    n_resends: int  # by the router, after a replica had died
    n_broken: int  # attempts that died with their replica
    n_failures: int
    n_reclaims: int
    n_handovers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTotals:
    """Sums over the replicas of a pool."""

    name: str
    n_served: int
    n_starts: int  # after the first
    paid_s: float  # from start to end, starting and draining included
    ready_s: float
    starting_s: float
    failed_s: float
    busy_s: float
    start: ColdStart
    use: UseOverTime  # shares of its replicas that are on
    on_s: Floats  # replica-seconds of each bin that they are on; the last bin is whole
    n_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOutcome:
    """A run of an autoscaled fleet: nothing that was asked is missing."""

    outcome: Outcome
    end: Ints  # per request: index into ENDS
    n_tries: Ints  # per request: how often its client asked
    timeline: FleetTimeline
    counts: FleetCounts
    pools: tuple[PoolTotals, ...]

    @property
    def paid_s(self) -> float:
        """Replica-seconds that somebody pays for."""
        return sum(pool.paid_s for pool in self.pools)

    def n_ended(self, way: int) -> int:
        """Requests that ended in this way."""
        return int((self.end == way).sum())
