"""What the user asks of a verb, as typed; None is what was left out."""

from pathlib import Path

from gpuplan.domain.inference.serving import LoraSlots, LoraUse
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRequest:
    """What the user asked, as typed; None is what was left out."""

    tp: int | None = None
    pp: int = 1
    dp: int = 1
    ep: int = 1
    context_tokens: int | None = None
    n_sequences: int = 1
    precision: str | None = None
    cache_precision: str | None = None
    memory_use_frac: float | None = None
    engine_version: tuple[int, int] | None = None  # None: the usual one
    lora: LoraSlots | None = None
    max_sequences: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest:
    """What to refresh, and from where."""

    clouds: tuple[str, ...] = ()  # empty: all that are known
    models: tuple[str, ...] = ()  # given: only these configs are fetched
    price_url: str | None = None
    model_url: str | None = None
    folder: Path | None = None  # the price tables on disk instead of an address
    plans: tuple[Path, ...] = ()  # saved plans that are priced anew
    is_through_gpuhunt: bool = False
    is_forced: bool = False
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """A training job as asked."""

    task: str
    framework: str | None = None
    micro_batch: int = 1
    sequence_tokens: int = 2048
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    sharding: str | None = None  # None: whole on one accelerator, fully sharded on several
    recompute: str | None = None
    optimizer: str | None = None
    lora_rank: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSchedule:
    """How micro-batches make a step, and the servers that the ranks stand in."""

    vp: int = 1  # virtual stages of a pipeline rank
    global_batch: int | None = None  # samples of a step; None: one micro-batch, or a full pipeline
    n_per_node: int = 8  # accelerators of a server: where hybrid sharding ends


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """What the configuration has to answer."""

    regime: str | None = None  # None: closed loop where a concurrency is given, else max load
    input_tokens: int | None = None
    output_tokens: int | None = None
    n_concurrent: int | None = None
    requests_per_s: float | None = None
    prefix_hit_frac: float = 0.0  # of the prompt tokens, found in the prefix cache
    adapters: LoraUse | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpan:
    """How a replica goes beyond one server."""

    cp: int = 1  # context-parallel size
    network_bytes_per_s: float | None = None  # of a server; None: inside one
    n_prefill: int = 0  # engines of a replica under prefill/decode disaggregation; 0: aggregated
    n_decode: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """A serving configuration as asked."""

    tp: int | None = None
    pp: int = 1
    dp: int = 1
    ep: int = 1
    span: ReplicaSpan = ReplicaSpan()
    n_replicas: int = 1
    precision: str | None = None
    cache_precision: str | None = None
    engine: str = "vllm"
    engine_version: str | None = None
    max_sequences: int | None = None
    load: LoadRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """A training configuration as asked: the columns of a training table, and what stops it."""

    columns: tuple[tuple[str, str], ...]  # name and value as in measured tables
    n_tokens: float | None = None  # of the whole run
    mtbf_s: float | None = None  # of the whole job; None: unknown
    restart_s: float = 900.0
    checkpoint_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRequest:
    """A batch of a network that is no language model, as asked."""

    batch: int = 1
    precision: str | None = None  # None: the best 16-bit of the accelerator
    is_training: bool = False
    image_px: int | None = None
    n_tokens: int = 256
    n_steps: int = 28
    height_px: int = 1024
    width_px: int = 1024
    n_frames: int = 1
    audio_s: float = 30.0
