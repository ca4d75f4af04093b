"""What telemetry means: use in bands and layers, causes with evidence, waste, and what to do."""

from typing import Literal

from gpuplan.domain.columns import Floats
from gpuplan.domain.hardware.devices import MigProfile
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result
from gpuplan.domain.telemetry.figures import BandsOverTime, Packing, ServiceFigures
from gpuplan.domain.telemetry.observation import Quirk
from gpuplan.units import HOUR, HOURS_PER_MONTH

Severity = Literal["fine", "note", "waste", "slow", "fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BandEdges:
    """Where the bands of utilization meet; the outer edges of "good" belong to it."""

    waste_frac: float = 0.30  # below: money is wasted
    good_frac: float = 0.70  # from here on: good
    hot_frac: float = 0.90  # above: hot
    overload_frac: float = 0.95  # above: overloaded

    def band(self, use_frac: float) -> str:
        """<30 waste, 30 to <70 under-used, 70 to 90 good, >90 to 95 hot, >95 overload."""
        use_frac = round(use_frac, 9)  # 95 % is 0.95, not 0.9500000000000001
        if use_frac < self.waste_frac:
            return "waste"
        if use_frac < self.good_frac:
            return "under-used"
        if use_frac <= self.hot_frac:
            return "good"
        return "hot" if use_frac <= self.overload_frac else "overload"


@dataclass(frozen=True, slots=True, kw_only=True)
class BandShare:
    """Share of the time spent in one band."""

    name: str  # waste, under-used, good, hot, overload
    low_frac: float
    high_frac: float
    time_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One meaning of "utilization", over all devices that report it."""

    name: str  # allocated, busy, processors, tensor, memory …
    metric: str
    mean_frac: float
    p99_minute_frac: float
    peak_minute_frac: float
    n_series: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A measured figure that speaks for a cause, and what it is held against."""

    what: str
    found: str
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something to do, what it should bring, and what it costs."""

    what: str
    effect: str
    cost: str
    gain_low_frac: float = 0.0  # of throughput, or of the waste saved
    gain_high_frac: float = 0.0
    n_replicas: int | None = None  # computed for this fleet; None: says nothing about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A named cause, how sure it is, why, and what would help, best first."""

    cause: str
    title: str
    severity: Severity
    confidence_frac: float
    evidence: tuple[Evidence, ...]
    actions: tuple[Action, ...]
    subjects: tuple[str, ...] = ()  # devices, nodes or engines it is about; empty: all
    more_devices_help: bool | None = None  # None: says nothing about it
    share_frac: float = 1.0  # of the devices or of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """Paid accelerator time that did nothing useful."""

    cause: str
    accelerator_s: float
    usd: float | None  # None: no price is known
    energy_j: float | None
    span_s: float = 0.0  # over which it was lost

    @property
    def usd_per_month(self) -> float | None:
        """What it costs if it goes on like this."""
        if self.usd is None or not self.span_s:
            return None
        return self.usd / self.span_s * HOURS_PER_MONTH * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamUse:
    """What one team holds and uses."""

    team: str
    accelerator_s: float
    busy_frac: float
    idle_s: float
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """A device that is held and not used: whose it is, for how long, what it costs."""

    subject: str
    team: str
    job: str
    begin_s: float
    end_s: float
    usd_per_month: float | None
    memory_held_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """What a node was doing for a stretch of time."""

    node: str
    begin_s: float
    end_s: float
    state: str  # idle, loading, busy: seen
    phase: str  # init, loading, warmup, steady, cooldown: inferred from the order of states


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Use by subject and time, for a picture."""

    rows: tuple[str, ...]
    at_s: Floats
    use_frac: Floats  # [row, time], NaN where nothing was measured
    edges: BandEdges = BandEdges()
    groups: tuple[str, ...] = ()  # teams and nodes, where there are several
    group_use_frac: Floats | None = None  # [group, time]: the mean of their devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The documents' pair: precision is paid time that was useful, recall is demand met in time."""

    precision_frac: float | None  # None: nothing says how useful the time was
    recall_frac: float | None  # None: nothing says what was demanded
    f_beta_ratio: float | None
    beta_ratio: float
    meaning: str  # what the two figures rest on here
    service: ServiceFigures = ServiceFigures()


@dataclass(frozen=True, slots=True, kw_only=True)
class UseFigures:
    """Utilization in figures."""

    metric: str  # the layer that bands are counted in
    mean_frac: float
    peak_frac: float
    bands: tuple[BandShare, ...]
    layers: tuple[Layer, ...]
    n_devices: int
    span_s: float
    safe_frac: float  # utilization that a pool of this size can bear
    warnings: tuple[str, ...]
    over_time: BandsOverTime | None = None  # None: too large a fleet for minutes
    packing: Packing | None = None  # of small work onto MIG slices


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis(Result):
    """Everything that can be said of one piece of telemetry."""

    source: str
    use: UseFigures | None  # None: no utilization in it
    verdicts: tuple[Verdict, ...]
    quality: Quality
    waste: tuple[Waste, ...]
    teams: tuple[TeamUse, ...]
    reclaims: tuple[Reclaim, ...]
    phases: tuple[PhaseSpan, ...]
    heat: HeatMap | None
    latencies: tuple[tuple[str, float, float, float], ...]  # metric, p50, p95, p99 in seconds
    quirks: tuple[Quirk, ...]
    assumptions: tuple[Assumption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """What the catalog knows of a device by the name that telemetry gives it."""

    tdp_w: float | None = None
    memory_bytes: float | None = None
    link_bytes_per_s: float | None = None  # scale-up, one direction
    pcie_bytes_per_s: float | None = None
    usd_per_h: float | None = None
    sm_clock_max_hz: float | None = None
    name: str = ""  # in the catalog
    flop_per_s: float | None = None  # dense, 16 bits
    memory_bytes_per_s: float | None = None
    slices: tuple[MigProfile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The model that engines serve, for what its tokens must have taken."""

    n_active_params: int
    weights_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseRequest:
    """How to look at telemetry, as asked; None is what was left out."""

    edges: BandEdges | None = None
    ttft_limit_s: float | None = None
    beta_ratio: float = 1.0
    accelerator: str | None = None  # where the source does not name it
    usd_per_h: float | None = None  # of one accelerator
    expected_devices: int | None = None  # in the pool, where the source does not tell
    model: str | None = None  # that engines serve, for MFU and MBU


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLimits:
    """What a fleet must keep to, for a gate; None is no limit."""

    precision_frac: float | None = None
    recall_frac: float | None = None
    peak_frac: float | None = None
    mean_least_frac: float | None = None
    waste_usd_per_month: float | None = None
    worst: Severity | None = None  # a verdict this grave or graver breaks it
