"""A simulation as asked, and as answered."""

from gpuplan.domain.columns import Floats
from gpuplan.domain.inference.performance import ServingSetup, SpeculativeDecoding
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.requests.requests import ReplicaSpan
from gpuplan.domain.result import Result
from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers
from gpuplan.domain.simulation.engine import Fleet, KvGroup, StepTimes
from gpuplan.domain.simulation.outcome import (
    ClassStatistics,
    FlowOverTime,
    Outcome,
    ServingStatistics,
    SloTargets,
    StreamedOutcome,
    Summary,
)
from gpuplan.domain.traffic.trace import LoadSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRequest:
    """How one replica is laid out, what it carries beside the model, and how fast it is known."""

    tp: int | None = None  # None: as the simulation says
    pp: int = 1
    dp: int = 1
    ep: int = 1
    span: ReplicaSpan = ReplicaSpan()
    share: str = ""  # of one accelerator: 1/4 or a MIG profile; empty: all of it
    adapters: LoraUse | None = None
    calibration: str | None = None  # file of constants refitted with runs of one's own
    cached_input_frac: float = 0.0  # of each prompt, left out of the requests: found in the cache
    max_tokens: int | None = None  # that every request asks for; None: what it gets
    steps: StepTimes | str | None = None  # own ones, a formula or a file; None: as predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """Rules of the scheduler as typed; None: as the engine's version has them."""

    is_ahead: bool | None = None  # an iteration is drawn up while one runs
    reserves_prompt: bool | None = None  # only where the whole prompt has room
    watermark_frac: float | None = None  # of the blocks, left free by admissions
    ignores_eos: bool | None = None  # responses end at the requested length, not by EOS
    chunks_prompts: bool = True  # else a prompt waits until it fits an iteration whole
    block_tokens: int | None = None  # of a block of the KV cache
    # Layers that share the blocks; none: all alike. None: as the model's own layers are.
    groups: tuple[KvGroup, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """Settings of the engine's scheduler as typed; None is what was left out."""

    max_sequences: int | None = None
    max_batch_tokens: int | None = None
    n_blocks: int | None = None  # of the cache; None: what the memory leaves
    long_prefill_tokens: int | None = None
    memory_use_frac: float | None = None
    caches_prefixes: bool | None = None  # None: as the engine's version does
    scheduling: str = "fcfs"
    admission: AdmissionRequest = AdmissionRequest()
    drafts: SpeculativeDecoding | None = None
    draws_acceptance: bool = False
    replica: ReplicaRequest | None = None
    batching: BatchPolicy | None = None  # None: requests join and leave between iterations


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """A fleet and how to judge it, as typed; None is what was left out."""

    tp: int | None = None
    n_replicas: int = 1
    precision: str | None = None
    cache_precision: str | None = None
    engine: str = "vllm"
    engine_version: str | None = None
    scheduler: EngineRequest | None = None
    router: str = "least_outstanding"
    seed: int = 0
    warmup_s: float | None = 0.0  # None: found from the run itself
    slo: SloTargets | None = None
    bin_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFleet:
    """A deployment with its engines, ready to replay any number of streams."""

    setup: ServingSetup
    fleet: Fleet
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOverTime:
    """Draw of all accelerators by bins, and what it comes to."""

    bin_s: float
    power_w: Floats
    mean_power_w: Estimate
    energy_j: Estimate  # from the first arrival to the last token
    energy_j_per_output_token: Estimate | None  # None: nothing was written


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTried:
    """One fleet size of a search or a curve, and how it did."""

    n_replicas: int
    precision_frac: float
    recall_frac: float
    busy_frac: float
    ttft_p99_s: float | None  # None: nothing was served
    is_overloaded: bool
    paid_accelerator_s: float
    useful_accelerator_s: float  # on work that kept its promises
    n_late: int  # refused, or served outside the objective


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestFleet:
    """The smallest fleet that carries the load; None where not even the largest tried does."""

    n_replicas: int | None
    criterion: str
    tried: tuple[FleetTried, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation(Result):
    """A run with what it rests on and what it says."""

    setup: ServingSetup
    fleet: Fleet
    outcome: Outcome
    statistics: ServingStatistics
    slo: SloTargets
    wall_s: float  # that the run took, without the set-up
    flow: FlowOverTime
    power: PowerOverTime | None = None  # None: the accelerator's power limit is not published
    holding: SmallestFleet | None = None  # of a fleet that is overloaded
    gaps: Summary | None = None  # where single gaps were asked for
    # Of services and priorities, or of pools behind one router, where there are several.
    classes: tuple[ClassStatistics, ...] = ()
    load: LoadSummary | None = None  # what came at the fleet, as it came


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedSimulation(Result):
    """A run that kept no request; fields as in `Simulation`."""

    setup: ServingSetup
    fleet: Fleet
    outcome: StreamedOutcome
    statistics: ServingStatistics
    slo: SloTargets
    wall_s: float
    flow: FlowOverTime
    power: PowerOverTime | None = None
    holding: SmallestFleet | None = None
    gaps: Summary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSimulation(Result):
    """A run of servers of a network that is no language model; fields as in `Simulation`."""

    forecast: NetworkForecast  # of the largest batch
    servers: BatchServers
    outcome: Outcome
    statistics: ServingStatistics
    slo: SloTargets
    wall_s: float
    flow: FlowOverTime
    power: PowerOverTime | None = None
    holding: SmallestFleet | None = None
    gaps: Summary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRequest:
    """Fleet sizes to compare, and what waste and delay cost."""

    sizes: tuple[int, ...]
    waste_usd_per_accelerator_s: float
    delay_usd_per_request: float
    n_workers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSizeCurve(Result):
    """Precision against recall over the fleet's size, and the size that balances them."""

    setup: ServingSetup
    slo: SloTargets
    points: tuple[FleetTried, ...]  # rising size
    waste_usd_per_accelerator_s: float
    delay_usd_per_request: float
    useful_accelerator_s_per_request: float  # in the size that took least
    precision_frac: tuple[float, ...]  # of each point: time that kept requests need / paid time
    beta_ratio: float  # how many times recall weighs as much as precision
    f_frac: tuple[float, ...]  # of each point
    cost_usd: tuple[float, ...]  # of waste and delay, each point
    best: int  # place of the greatest F
    assumptions: tuple[Assumption, ...] = ()
