"""The file format of workloads: demand, requests, SLOs, training, capacity, layout."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from gpuplan.inputs.schema.data_path import DataPathSpec
from gpuplan.inputs.schema.keys import (
    SMALLEST,
    AtLeastOneToken,
    Count,
    FracSpread,
    Names,
    NonNegative,
    Positive,
    PositiveFrac,
    PositiveSpread,
    Priority,
    Ratio,
    RequestRate,
    RequestsPerDay,
    Strict,
    Text,
    Tokens,
    Users,
    entries,
    is_number,
    key,
    optional,
    or_scalar,
)


class ModelSpec(Strict):
    """A model by name or path, or by its size where it has no name."""

    name: Text | None = optional(
        "Catalog name, hub name, or path of a folder or config.json (relative to this file)",
        example="meta-llama/Llama-3.3-70B-Instruct",
    )
    params_b: Positive | None = optional("Parameters, where there is no name", example=100)
    active_params_b: Positive | None = optional(
        "Active parameters per token, of a mixture of experts"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A name, or the mapping."""
        return or_scalar(handler(core_schema), handler, like="name")


class LengthSpec(Strict):
    """A number of tokens (the mean), or what is known of the distribution."""

    is_quantity: ClassVar[bool] = True

    mean: Tokens | None = optional("Mean length", "tokens", to="", example=1500)
    p50: AtLeastOneToken | None = optional("Median length", "tokens", to="p50_tokens")
    p95: AtLeastOneToken | None = optional("95th percentile", "tokens", to="p95_tokens")
    p99: AtLeastOneToken | None = optional("99th percentile", "tokens", to="p99_tokens")
    max: AtLeastOneToken | None = optional("Maximum length", "tokens", to="max_tokens")
    distribution: Literal["fixed", "lognormal", "exponential", "uniform"] | None = optional(
        "Distribution; lognormal goes through the percentiles or mean and cv, uniform ends at max",
        to="",
    )
    cv: Annotated[float, Field(ge=0, le=100)] | None = optional(
        "Coefficient of variation, for lognormal", "ratio", to="spread_ratio"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: object) -> object:
        return {"mean": value} if is_number(value) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A number, or the mapping."""
        return or_scalar(handler(core_schema), handler, like="mean")


class RequestSpec(Strict):
    """The shape of one request, document or turn."""

    input_tokens: LengthSpec = key("Prompt length, cached prefix included", to="", example=2200)
    output_tokens: LengthSpec = key(
        "Output length, reasoning included; 0 for embeddings", to="", example=350
    )
    prefix_hit_frac: FracSpread = key(
        "Prefix cache hit rate: share of input tokens that need no prefill but still hold KV cache",
        default=FracSpread(low=0, mid=0, high=0),
        why="without a measured hit rate nothing is saved",
    )
    turns: Annotated[float, Field(ge=1, le=1e6)] = key(
        "Requests (turns) of one conversation",
        "requests",
        default=1.0,
        why="each request is taken as a conversation of its own",
    )
    max_tokens: Count | None = optional(
        "Requested length (max_tokens), which SGLang reserves; the output length by default",
        "tokens",
        example=1024,
    )
    lora_adapters: Annotated[int, Field(ge=1, le=100_000)] | None = optional(
        "LoRA adapters of the served model, each requested as often",
        "adapters",
        to="n_adapters",
        example=50,
    )
    lora_rank: Count | None = optional("Rank of the LoRA adapters", "rank", example=16)
    think_time_s: NonNegative | None = optional(
        "Think time of the user between turns", to="think_s"
    )
    audio_s: Positive | None = optional(
        "Audio of one request, for speech models", to="media.audio_s", example=30
    )
    image_width_px: Count | None = optional(
        "Width of an image or clip, for diffusion models", to="media.image_width_px", example=1024
    )
    image_height_px: Count | None = optional(
        "Height of an image or clip", to="media.image_height_px", example=1024
    )
    steps: Count | None = optional(
        "Denoising steps of an image or clip", "steps", to="media.n_steps", example=28
    )
    frames: Count | None = optional(
        "Frames of a clip, for video models", "frames", to="media.n_frames", example=81
    )
    texts: Count | None = optional(
        "Texts of one request to an encoder, such as passages to rerank", "texts", example=50
    )


class LoadStepSpec(Strict):
    """At least this load, for this many hours of each week."""

    hours_per_week: Annotated[float, Field(ge=SMALLEST, le=168)] = key(
        "Hours of a week in which the load is at least this high", to="held_s", example=50
    )
    requests_per_s: RequestRate | None = optional("Load as a request rate")
    accelerators: Positive | None = optional("Load as busy accelerators")


Profile = Annotated[list[NonNegative], Field(min_length=24, max_length=168)]
Steps = Annotated[list[LoadStepSpec], Field(min_length=1, max_length=168)]
PROFILE = "Relative load by the hour: 24 numbers for a day or 168 for a week"
STEPS = "Load-duration curve: at least this load for so many hours of a week"


class DemandSpec(Strict):
    """The request load over time. Give one of: users, requests_per_s, requests_per_day, \
output_tokens_per_s, concurrent_requests, load_duration, trace."""

    users: Users | None = optional("Users of the service", "users", example=6000)
    active_frac: PositiveFrac | None = optional("Share of users active at the peak", to="")
    requests_per_user_per_h: Positive | None = optional(
        "Request rate of one active user", "requests per hour", to="", example=10
    )
    requests_per_s: RequestRate | None = optional("Request rate at the peak", to="")
    requests_per_day: RequestsPerDay | None = optional(
        "Requests of a whole day", "requests per day", to=""
    )
    output_tokens_per_s: Positive | None = optional("Output tokens demanded at the peak", to="")
    concurrent_requests: Positive | None = optional(
        "Concurrent clients (closed loop); each asks again after its response and think time",
        to="n_concurrent",
    )
    trace: Text | None = optional(
        "Trace file with one line per request (relative to this file)", example="trace.csv"
    )
    peak_to_mean: Ratio | None = optional("Peak rate over mean rate", "ratio", to="", example=3)
    burstiness_cv: Annotated[float, Field(ge=0, le=100)] = key(
        "Burstiness (CV of inter-arrival times); 1 is Poisson, more is bursty",
        "ratio",
        to="burstiness_ratio",
        default=1.0,
        why="independent users arrive at random (Poisson)",
    )
    hourly_profile: Profile | None = optional(PROFILE)
    load_duration: Steps | None = optional(STEPS, to="")


Ms = Positive


class SloSpec(Strict):
    """Latency SLOs and availability. TPOT excludes the first token; ITL is any single gap."""

    ttft_p50_ms: Ms | None = optional("Time to first token (TTFT), median")
    ttft_p95_ms: Ms | None = optional("TTFT, 95th percentile", example=2000)
    ttft_p99_ms: Ms | None = optional("TTFT, 99th percentile")
    tpot_mean_ms: Ms | None = optional("Time per output token (TPOT), mean")
    tpot_p95_ms: Ms | None = optional("TPOT, 95th percentile", example=40)
    tpot_p99_ms: Ms | None = optional("TPOT, 99th percentile")
    itl_p95_ms: Ms | None = optional("Inter-token latency (ITL), 95th percentile")
    itl_p99_ms: Ms | None = optional("ITL, 99th percentile")
    e2e_p50_s: Positive | None = optional("End-to-end latency (E2E), median")
    e2e_p95_s: Positive | None = optional("E2E, 95th percentile", example=10)
    e2e_p99_s: Positive | None = optional("E2E, 99th percentile")
    availability_frac: PositiveFrac | None = optional(
        "Availability: share of time in service", example=0.999
    )


class CapacitySpec(Strict):
    """Measured capacity of this workload on certain hardware; it overrides the prediction."""

    accelerator: Text = key(
        "Accelerator by its catalog name, or the name of one of your offers", example="H100"
    )
    output_tokens_per_s: PositiveSpread | None = optional(
        "Output throughput within the SLO", to="", example=9000
    )
    input_tokens_per_s: PositiveSpread | None = optional("Input throughput within the SLO", to="")
    requests_per_s: PositiveSpread | None = optional("Request throughput within the SLO", to="")
    samples_per_s: PositiveSpread | None = optional("Sample throughput", to="")
    mfu_frac: FracSpread | None = optional(
        "Model FLOPs utilization (MFU) of training, against the dense peak", example=0.4
    )
    per: Literal["accelerator", "node"] = key(
        "Whether the figure is per accelerator or per node",
        to="is_per_node",
        means={"accelerator": False, "node": True},
        default="accelerator",
        why="capacities are usually quoted per accelerator",
    )


class LayoutSpec(Strict):
    """How the model is parallelized, where you insist; what is left out is chosen for you."""

    tp: Count | None = optional("Tensor-parallel size (TP)", "accelerators", to="n_tensor")
    pp: Count | None = optional("Pipeline-parallel size (PP)", "stages", to="n_pipeline")
    ep: Count | None = optional("Expert-parallel size (EP)", "accelerators", to="n_expert")
    cp: Count | None = optional("Context-parallel size (CP)", "accelerators", to="n_context")
    dp: Count | None = optional("Data-parallel size (DP)", "replicas", to="n_data")
    sharding: Literal["none", "zero1", "zero2", "zero3", "fsdp", "hsdp"] | None = optional(
        "Sharding of training state across data-parallel replicas"
    )
    recompute: Literal["none", "selective", "full"] | None = optional(
        "Activation recomputation in the backward pass"
    )
    accumulation_steps: Count | None = optional(
        "Gradient accumulation steps between two updates", "steps"
    )


class CheckpointSpec(Strict):
    """How training state is checkpointed; what is left out is chosen for you."""

    size_tb: Positive | None = optional("Size of one checkpoint", to="state_bytes", example=1.4)
    interval_min: Positive | None = optional("Interval between two checkpoints", example=30)
    write_gb_per_s: PositiveSpread | None = optional("Write bandwidth of the storage", example=20)
    restart_min: NonNegative | None = optional("Restart time, from a failure to the first step")


class TrainingSpec(Strict):
    """A training run over tokens or samples."""

    tokens: Positive | None = optional("Tokens of one epoch", example=2.0e12)
    samples: Positive | None = optional("Samples of one epoch")
    epochs: Positive = key(
        "Epochs: passes over the data",
        "epochs",
        default=1.0,
        why="one pass unless more are asked for",
    )
    deadline_days: Positive | None = optional("Deadline of the run", example=45)
    sequence_tokens: Count = key(
        "Sequence length of training",
        default=4096,
        why="a common training length; attention time and activation memory grow with it",
    )
    global_batch_tokens: Positive | None = optional("Global batch size of one update")
    tokens_per_accelerator_per_step: Positive | None = optional(
        "Tokens of one accelerator in one step",
        "tokens",
        to="accelerator_batch_tokens",
        example=8192,
    )
    mfu_frac: FracSpread | None = optional(
        "Model FLOPs utilization (MFU), against the dense peak, on any hardware", example=0.4
    )
    accelerator_mtbf_h: Positive | None = optional(
        "Mean time between failures (MTBF) of one accelerator, host and links included",
        example=50000,
    )
    checkpoint: CheckpointSpec | None = optional("How training state is checkpointed")


class FinetuningSpec(TrainingSpec):
    """A fine-tuning run of a published model."""

    method: Literal["full", "lora", "qlora"] = key("Method of fine-tuning", example="lora")
    lora_rank: Count | None = optional("Rank of the LoRA adapter", "rank", example=16)


class BatchSpec(Strict):
    """Documents to process before a deadline. Give docs_per_day or docs."""

    docs_per_day: Positive | None = optional("Documents of a steady stream", example=200000)
    docs: Positive | None = optional("Documents of a one-off batch job", "documents")
    deadline_h: Positive = key(
        "Deadline, from the arrival of a document or for the whole batch job", example=24
    )


class GenericSpec(Strict):
    """Any other work. Give accelerators, samples_per_s, samples or load_duration."""

    accelerators: Positive | None = optional("Busy accelerators at the peak", example=8)
    samples_per_s: Positive | None = optional("Sample rate at the peak")
    samples: Positive | None = optional("Samples of a one-off batch job")
    deadline_h: Positive | None = optional("Deadline of the batch job")
    gflop_per_sample: Positive | None = optional("Compute of one sample")
    activation_mb_per_sample: Positive | None = optional(
        "Memory traffic of one sample on the device", "MB (1e6 bytes)", to="sample_activation_bytes"
    )
    training: bool = key(
        "Whether the work is training rather than inference",
        default=False,
        why="inference unless training is named",
    )
    hourly_profile: Profile | None = optional(PROFILE)
    load_duration: Steps | None = optional(STEPS, to="")


class WorkloadSpec(Strict):
    """The keys that every kind of workload has."""

    name: Text = key("Name of the workload, unique in the file", example="chat")
    precision: Names | None = optional(
        "Weight precisions that you allow, e.g. fp8 or [bf16, fp8]; quality is your call",
        to="",
        example="bf16",
    )
    kv_precision: Text | None = optional("Precision of the KV cache", to="", example="bf16")
    priority: Priority = key(
        "Priority of the workload; higher is served first",
        "rank",
        default=0,
        why="all workloads have the same priority",
    )
    team: Text | None = optional("Team that owns the workload, one of teams")
    schedule: Text | None = optional(
        "How often a run or batch job starts anew: hourly, daily, weekly, monthly, or runs in a "
        "day, week or month such as 2/week; left out, it runs once",
        to="",
        example="daily",
    )
    capacity: Annotated[list[CapacitySpec], Field(max_length=200)] = entries(
        "Measured capacity on certain hardware", to="capacities"
    )
    layout: LayoutSpec | None = optional("How the model is parallelized, where you insist")
    data_path: DataPathSpec | None = optional("How samples reach the accelerator")


class OnlineSpec(WorkloadSpec):
    """Online inference: requests that a user waits for."""

    kind: Literal["online_inference"] = key("Kind of workload")
    model: ModelSpec = key("Model to serve", example="meta-llama/Llama-3.3-70B-Instruct")
    demand: DemandSpec = key("Request load over time", to="")
    request: RequestSpec = key("Shape of one request", to="")
    slo: SloSpec = key("Latency SLOs and availability", to="")
    max_context_tokens: Count | None = optional(
        "Maximum context length, prompt and output together", to=""
    )


class BatchInferenceSpec(WorkloadSpec):
    """Batch inference: documents that only have a deadline."""

    kind: Literal["batch_inference"] = key("Kind of workload")
    model: ModelSpec = key("Model to serve", example="Qwen/Qwen3-8B")
    batch: BatchSpec = key("Number of documents and their deadline", to="")
    request: RequestSpec = key("Shape of one document", to="")
    max_context_tokens: Count | None = optional(
        "Maximum context length, prompt and output together", to=""
    )


class PretrainingWorkloadSpec(WorkloadSpec):
    """Pretraining: training a model from scratch."""

    kind: Literal["pretraining"] = key("Kind of workload")
    model: ModelSpec = key("Model to train, or its size", example={"params_b": 100})
    training: TrainingSpec = key("Training run", to="")


class FinetuningWorkloadSpec(WorkloadSpec):
    """Fine-tuning of a published model."""

    kind: Literal["finetuning"] = key("Kind of workload")
    model: ModelSpec = key("Model to fine-tune", example="meta-llama/Llama-3.1-8B")
    training: FinetuningSpec = key("Fine-tuning run", to="")


class GenericWorkloadSpec(WorkloadSpec):
    """Any other workload, counted in accelerators or samples."""

    kind: Literal["generic"] = key("Kind of workload")
    model: ModelSpec | None = optional("Model, where there is one")
    work: GenericSpec = key("Amount of work", to="")


PlainWorkload = (
    OnlineSpec
    | BatchInferenceSpec
    | PretrainingWorkloadSpec
    | FinetuningWorkloadSpec
    | GenericWorkloadSpec
)
