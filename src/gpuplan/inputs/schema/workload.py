"""The file format of workloads: demand, requests, limits, training, the way of the data."""

from typing import Annotated, Any, Literal

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
    Strict,
    Text,
    Tokens,
    key,
    optional,
    or_scalar,
)


class ModelSpec(Strict):
    """A model by name or path, or by its size where it has none."""

    name: Text | None = optional(
        "Catalog name, hub name, or path of a folder or config.json (relative to this file)",
        example="meta-llama/Llama-3.3-70B-Instruct",
    )
    params_b: Positive | None = optional(
        "Parameters, where there is no name", "billions", example=100
    )
    active_params_b: Positive | None = optional(
        "Parameters that work for each token, where experts rest", "billions"
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

    mean: Tokens | None = optional("Mean", "tokens", example=1500)
    p50: AtLeastOneToken | None = optional("Median", "tokens")
    p95: AtLeastOneToken | None = optional("95th percentile", "tokens")
    p99: AtLeastOneToken | None = optional("99th percentile", "tokens")
    max: AtLeastOneToken | None = optional("Longest", "tokens")
    distribution: Literal["fixed", "lognormal", "exponential", "uniform"] | None = optional(
        "Shape; lognormal goes through the percentiles or mean and cv, uniform ends at max"
    )
    cv: Annotated[float, Field(ge=0, le=100)] | None = optional(
        "Standard deviation over mean, for lognormal", "ratio"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: object) -> object:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {"mean": value}
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A number, or the mapping."""
        return or_scalar(handler(core_schema), handler, like="mean")


class RequestSpec(Strict):
    """What one request, document or turn looks like."""

    input_tokens: LengthSpec = key("Prompt length, cached part included", "tokens", example=2200)
    output_tokens: LengthSpec = key(
        "Answer length, reasoning included; 0 for embeddings", "tokens", example=350
    )
    prefix_hit_frac: FracSpread = key(
        "Share of input tokens found in the prefix cache: saves prefill, not memory",
        "fraction",
        default=FracSpread(low=0, mid=0, high=0),
        why="without a measured hit rate nothing is saved",
    )
    turns: Annotated[float, Field(ge=1, le=1e6)] = key(
        "Requests of one conversation",
        "requests",
        default=1.0,
        why="each request is taken as a conversation of its own",
    )
    think_time_s: NonNegative | None = optional("Pause of the user between turns", "seconds")


class LoadStepSpec(Strict):
    """At least this load, for this many hours of each week."""

    hours_per_week: Annotated[float, Field(ge=SMALLEST, le=168)] = key(
        "Hours of a week in which the load is at least this high", "hours per week", example=50
    )
    requests_per_s: Positive | None = optional("Load as requests", "requests per second")
    accelerators: Positive | None = optional("Load as busy accelerators", "accelerators")


Profile = Annotated[list[NonNegative], Field(min_length=24, max_length=168)]
Steps = Annotated[list[LoadStepSpec], Field(min_length=1, max_length=168)]


class DemandSpec(Strict):
    """How many requests come and when. Give one of: users, requests_per_s, requests_per_day, \
output_tokens_per_s, concurrent_requests, load_duration, trace."""

    users: Positive | None = optional("People who use the service", "users", example=6000)
    active_frac: PositiveFrac | None = optional("Share of users active at the peak", "fraction")
    requests_per_user_per_h: Positive | None = optional(
        "Requests of one active user", "requests per hour", example=10
    )
    requests_per_s: Positive | None = optional("Rate at the peak", "requests per second")
    requests_per_day: Positive | None = optional("Sum of a whole day", "requests per day")
    output_tokens_per_s: Positive | None = optional("Offered at the peak", "tokens per second")
    concurrent_requests: Positive | None = optional("Requests kept in flight", "requests")
    trace: Text | None = optional(
        "File with one line per request (relative to this file)", example="trace.csv"
    )
    peak_to_mean: Ratio | None = optional("Peak rate over mean rate", "ratio", example=3)
    burstiness_cv: Annotated[float, Field(ge=0, le=100)] = key(
        "Deviation over mean of the gaps between arrivals; 1 is Poisson, more comes in bursts",
        "ratio",
        default=1.0,
        why="independent users arrive at random (Poisson)",
    )
    hourly_profile: Profile | None = optional(
        "Relative load by the hour: 24 numbers for a day or 168 for a week", "relative"
    )
    load_duration: Steps | None = optional("Steps: at least this load for so many hours a week")


Ms = Positive


class SloSpec(Strict):
    """Latencies that are promised. TPOT leaves the first token out; ITL is any single gap."""

    ttft_p50_ms: Ms | None = optional("Time to first token, median", "milliseconds")
    ttft_p95_ms: Ms | None = optional("Time to first token, 95 %", "milliseconds", example=2000)
    ttft_p99_ms: Ms | None = optional("Time to first token, 99 %", "milliseconds")
    tpot_mean_ms: Ms | None = optional("Time per output token, mean", "milliseconds")
    tpot_p95_ms: Ms | None = optional("Time per output token, 95 %", "milliseconds", example=40)
    tpot_p99_ms: Ms | None = optional("Time per output token, 99 %", "milliseconds")
    itl_p95_ms: Ms | None = optional("Gap between two tokens, 95 %", "milliseconds")
    itl_p99_ms: Ms | None = optional("Gap between two tokens, 99 %", "milliseconds")
    e2e_p50_s: Positive | None = optional("Whole answer, median", "seconds")
    e2e_p95_s: Positive | None = optional("Whole answer, 95 %", "seconds", example=10)
    e2e_p99_s: Positive | None = optional("Whole answer, 99 %", "seconds")
    availability_frac: PositiveFrac | None = optional(
        "Share of time in service", "fraction", example=0.999
    )


class CapacitySpec(Strict):
    """What you know about this workload on certain hardware; it overrides our estimate."""

    accelerator: Text = key("Catalog name, or the name of one of your offers", example="H100")
    output_tokens_per_s: PositiveSpread | None = optional(
        "Within the SLO", "tokens per second", example=9000
    )
    input_tokens_per_s: PositiveSpread | None = optional("Within the SLO", "tokens per second")
    requests_per_s: PositiveSpread | None = optional("Within the SLO", "requests per second")
    samples_per_s: PositiveSpread | None = optional("Samples taken", "samples per second")
    mfu_frac: FracSpread | None = optional(
        "Model flop utilization of training, against the dense peak", "fraction", example=0.4
    )
    per: Literal["accelerator", "node"] = key(
        "What the figure counts",
        default="accelerator",
        why="capacities are usually quoted per accelerator",
    )


class LayoutSpec(Strict):
    """How the model is spread, where you insist; what is left out is ours to choose."""

    tp: Count | None = optional("Tensor parallelism", "accelerators")
    pp: Count | None = optional("Pipeline parallelism", "stages")
    ep: Count | None = optional("Expert parallelism", "accelerators")
    cp: Count | None = optional("Context parallelism", "accelerators")
    dp: Count | None = optional("Data parallelism", "replicas")
    sharding: Literal["none", "zero1", "zero2", "zero3", "fsdp", "hsdp"] | None = optional(
        "How training state is shared out among replicas"
    )
    recompute: Literal["none", "selective", "full"] | None = optional(
        "Activations made again in the backward pass"
    )
    accumulation_steps: Count | None = optional("Micro-batches between two updates", "steps")


class CheckpointSpec(Strict):
    """How training state is kept; what is left out is ours to choose."""

    size_tb: Positive | None = optional("Size of one", "TB (1e12 bytes)", example=1.4)
    interval_min: Positive | None = optional("Time between two", "minutes", example=30)
    write_gb_per_s: PositiveSpread | None = optional(
        "Storage takes it at", "GB (1e9 bytes) per second", example=20
    )
    restart_min: NonNegative | None = optional("From failure to first step", "minutes")


class TrainingSpec(Strict):
    """A run over tokens or samples."""

    tokens: Positive | None = optional("Tokens of one epoch", "tokens", example=2.0e12)
    samples: Positive | None = optional("Samples of one epoch", "samples")
    epochs: Positive = key(
        "Passes over the data", "epochs", default=1.0, why="one pass unless more are asked for"
    )
    deadline_days: Positive | None = optional("Time allowed", "days", example=45)
    sequence_tokens: Count = key(
        "Length of one training sequence",
        "tokens",
        default=4096,
        why="a common training length; attention time and activation memory grow with it",
    )
    global_batch_tokens: Positive | None = optional("Tokens of one update", "tokens")
    tokens_per_accelerator_per_step: Positive | None = optional(
        "Tokens of one accelerator in one step", "tokens", example=8192
    )
    mfu_frac: FracSpread | None = optional(
        "Model flop utilization, against the dense peak, on any hardware", "fraction", example=0.4
    )
    accelerator_mtbf_h: Positive | None = optional(
        "Mean time between failures of one accelerator, host and links included", "hours",
        example=50000,
    )  # fmt: skip
    checkpoint: CheckpointSpec | None = optional("How state is kept")


class FinetuningSpec(TrainingSpec):
    """A fine-tuning run."""

    method: Literal["full", "lora", "qlora"] = key("What is trained", example="lora")
    lora_rank: Count | None = optional("Rank of the adapters", "rank", example=16)


class BatchSpec(Strict):
    """Documents to be done in time. Give docs_per_day or docs."""

    docs_per_day: Positive | None = optional("A steady stream", "documents per day", example=200000)
    docs: Positive | None = optional("One heap", "documents")
    deadline_h: Positive = key("Time allowed, from arrival or for the heap", "hours", example=24)


class GenericSpec(Strict):
    """Any other work. Give accelerators, samples_per_s, samples or load_duration."""

    accelerators: Positive | None = optional("Busy at the peak", "accelerators", example=8)
    samples_per_s: Positive | None = optional("Offered at the peak", "samples per second")
    samples: Positive | None = optional("One heap", "samples")
    deadline_h: Positive | None = optional("Time allowed for the heap", "hours")
    gflop_per_sample: Positive | None = optional("Arithmetic of one sample", "Gflop")
    activation_mb_per_sample: Positive | None = optional(
        "Read and written on the device for one sample", "MB (1e6 bytes)"
    )
    training: bool = key(
        "The work trains, rather than predicts",
        default=False,
        why="prediction unless training is named",
    )
    hourly_profile: Profile | None = optional(
        "Relative load by the hour: 24 numbers for a day or 168 for a week", "relative"
    )
    load_duration: Steps | None = optional("Steps: at least this load for so many hours a week")


class WorkloadSpec(Strict):
    """What every workload has."""

    name: Text = key("A name of your own, once in the file", example="chat")
    precision: Names | None = optional(
        "Weight precisions that you allow, e.g. fp8 or [bf16, fp8]; quality is your call",
        example="bf16",
    )
    kv_precision: Text | None = optional("Precision of the key-value cache", example="bf16")
    priority: Priority = key(
        "Higher goes first", "rank", default=0, why="all workloads count alike"
    )
    team: Text | None = optional("Who it belongs to, one of teams")
    capacity: Annotated[list[CapacitySpec], Field(max_length=200)] = Field(
        default_factory=list, description="What you know about it on certain hardware"
    )
    layout: LayoutSpec | None = optional("How the model is spread, where you insist")
    data_path: DataPathSpec | None = optional("How samples reach the accelerator")


class OnlineSpec(WorkloadSpec):
    """Requests that someone waits for."""

    kind: Literal["online_inference"] = key("Kind of work")
    model: ModelSpec = key("Model", example="meta-llama/Llama-3.3-70B-Instruct")
    demand: DemandSpec = key("How many requests come and when")
    request: RequestSpec = key("What one request looks like")
    slo: SloSpec = key("Latencies that are promised")
    max_context_tokens: Count | None = optional("Longest prompt and answer together", "tokens")


class BatchInferenceSpec(WorkloadSpec):
    """Documents that only have to be done in time."""

    kind: Literal["batch_inference"] = key("Kind of work")
    model: ModelSpec = key("Model", example="Qwen/Qwen3-8B")
    batch: BatchSpec = key("How much, and by when")
    request: RequestSpec = key("What one document looks like")
    max_context_tokens: Count | None = optional("Longest prompt and answer together", "tokens")


class PretrainingWorkloadSpec(WorkloadSpec):
    """Training from scratch."""

    kind: Literal["pretraining"] = key("Kind of work")
    model: ModelSpec = key("Model, or its size", example={"params_b": 100})
    training: TrainingSpec = key("The run")


class FinetuningWorkloadSpec(WorkloadSpec):
    """Training onwards from a published model."""

    kind: Literal["finetuning"] = key("Kind of work")
    model: ModelSpec = key("Model", example="meta-llama/Llama-3.1-8B")
    training: FinetuningSpec = key("The run")


class GenericWorkloadSpec(WorkloadSpec):
    """Anything counted in accelerators or samples."""

    kind: Literal["generic"] = key("Kind of work")
    model: ModelSpec | None = optional("Model, where there is one")
    work: GenericSpec = key("How much")


AnyWorkload = Annotated[
    OnlineSpec
    | BatchInferenceSpec
    | PretrainingWorkloadSpec
    | FinetuningWorkloadSpec
    | GenericWorkloadSpec,
    Field(discriminator="kind"),
]
