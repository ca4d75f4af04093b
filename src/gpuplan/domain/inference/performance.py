"""What is asked of a running model, and what is predicted for it."""

from typing import Literal, NamedTuple

from gpuplan.domain.calibration.constants import Novelty
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import EngineSettings, LoraUse, ServingLayout, StorageFormats
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Estimate

Regime = Literal[
    "static_batch",
    "max_load",
    "fixed_max_batch",
    "fixed_concurrency",
    "poisson",
    "offline",
    "prefill",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """The program that serves, by family and version as its makers write it."""

    name: str  # vllm, sglang, trtllm, llamacpp …
    version: str = ""  # empty: not said


# Taken by every verb where none is named: current versions. Their schedules are held to the
# engines themselves, step times to the newest runs measured (vLLM 0.19), memory to their defaults.
USUAL_VERSIONS = {"vllm": "0.32", "sglang": "0.5", "trtllm": "1.0"}
USUAL_ENGINE = EngineChoice(name="vllm", version=USUAL_VERSIONS["vllm"])


class LatencyLimits(NamedTuple):
    """99th percentiles that a benchmark's rules allow at most."""

    ttft_p99_s: float
    tpot_p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLoad:
    """What one deployment of all its replicas has to answer."""

    regime: Regime
    input_tokens: float
    output_tokens: float
    n_sequences: float | None = None  # batch, limit or concurrency; None where the engine decides
    requests_per_s: float | None = None  # None where requests wait or users ask again
    n_requests: int | None = None  # of a run at a rate that ends; None: it goes on
    is_held: bool = False  # the rate is known to be served: the benchmark's rules ask for it
    limits: LatencyLimits | None = None  # the rate was raised until one of them binds
    cached_input_frac: float = 0.0  # of the prompt, found in the prefix cache
    adapters: LoraUse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculativeDecoding:
    """Speculative decoding: so many tokens are drafted, each accepted with this chance."""

    n_tokens: int
    acceptance_frac: float

    @property
    def checked_tokens(self) -> float:
        """Tokens that one sequence brings to an iteration."""
        return 1.0 + self.n_tokens

    @property
    def gained_tokens(self) -> float:
        """Kept per iteration: a draft counts while all before it are accepted [Leviathan2023]."""
        return sum(self.acceptance_frac**i for i in range(self.n_tokens + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSetup:
    """A deployment and its load: all that a prediction needs."""

    model: Model
    accelerator: Accelerator
    storage: StorageFormats
    layout: ServingLayout
    engine: EngineChoice
    settings: EngineSettings
    load: ServingLoad
    n_replicas: float = 1.0
    is_speculative: bool = False  # a published run that may have used multi-token prediction
    drafts: SpeculativeDecoding | None = None

    @property
    def n_stages(self) -> int:
        """Pipeline stages that one scheduler fills, as vLLM's does; 1: a scheduler for each.

        SGLang has a running batch a stage, and ranks that step together are simulated apart.
        """
        is_apart = self.engine.name == "sglang" or self.layout.dp > 1 or self.drafts is not None
        return 1 if is_apart else self.layout.pp

    @property
    def n_engines(self) -> int:
        """Schedulers of one replica: one an attention replica, and one a stage where apart."""
        return self.layout.n_engines // self.n_stages


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBreakdown:
    """Where the time of a decode iteration goes."""

    matrices_s: float
    experts_s: float
    attention_s: float
    activations_s: float
    operators_s: float
    exchange_s: float
    host_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePrediction:
    """Throughput and latency of a deployment under its load, each with its range."""

    output_tokens_per_s: Estimate  # all replicas
    ttft_mean_s: Estimate
    tpot_mean_s: Estimate
    tpot_p50_s: Estimate
    e2e_mean_s: Estimate
    ttft_p99_s: Estimate
    tpot_p99_s: Estimate
    n_running: float  # sequences that decode at once, per replica
    fits: bool  # the weights and one sequence have room
    decode: StepBreakdown
    novelty: Novelty = Novelty()  # how new the setup is to the calibration
    assumptions: tuple[Assumption, ...] = ()

    @property
    def unknown_labels(self) -> tuple[str, ...]:
        """What the calibration has never seen."""
        return self.novelty.missing
