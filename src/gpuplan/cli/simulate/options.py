"""Options of `gpuplan simulate`, in the order of its help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

from gpuplan.cli.command import OUTPUT
from gpuplan.cli.options import (
    ANALYSIS,
    COMMON,
    ENGINE,
    FLEET,
    LOAD,
    PRICES,
    SLO,
    Calibration,
    Dp,
    Engine,
    EngineVersion,
    Ep,
    KvPrecision,
    LoraRank,
    MaxSeqs,
    NodeGbit,
    Overlay,
    Pp,
    Precision,
    Seed,
    ThinkTime,
    accelerators_in,
    arg,
    model_in,
    option,
)

TRACE = "Trace"
CLUSTER = "Shared cluster"
SPECULATIVE = "Speculative decoding"
BATCHING = "Request-level batching"
Text = str | None
Number = float | None


class ArrivalProcess(StrEnum):
    """How arrivals are drawn."""

    POISSON = "poisson"
    GAMMA = "gamma"
    WEIBULL = "weibull"
    MMPP = "mmpp"
    CLOSED = "closed"


class LengthDistribution(StrEnum):
    """How lengths are drawn."""

    FIXED = "fixed"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"


class Batching(StrEnum):
    """When requests join a batch."""

    CONTINUOUS = "continuous"
    STATIC = "static"
    DYNAMIC = "dynamic"


class SimulateOptions(NamedTuple):
    """Every option of the command, as typed."""

    plan: Annotated[
        Path | None,
        arg("Plan file whose fleet is simulated (plan --out), or with --jobs a cluster file."),
    ] = None
    on: Annotated[
        str, accelerators_in(COMMON, "Accelerators of one replica, e.g. H100 or 2xH100.")
    ] = ""
    model: Annotated[Text, model_in(COMMON)] = None
    trace: Path | None = option(
        COMMON, "Request trace (CSV, JSON or Parquet, known formats), or a client folder."
    )
    rate: Number = option(COMMON, "Request rate of a generated load, requests per second.")
    input_tokens: Number = option(COMMON, "Mean prompt length in tokens.")
    output_tokens: Number = option(COMMON, "Mean output length in tokens.")
    replicas: int = option(COMMON, "Number of replicas behind the router.", default=1, min=1)
    tp: int | None = option(COMMON, "Tensor-parallel size of one replica.", min=1)
    slo_ttft_ms: Number = option(
        COMMON, "SLO target of time to first token (TTFT), ms.", "--slo-ttft-ms", min=0
    )
    slo_tpot_ms: Number = option(
        COMMON, "SLO target of time per output token (TPOT), ms.", "--slo-tpot-ms", min=0
    )
    precision: Precision = None
    kv_precision: KvPrecision = None
    pp: Pp = 1
    dp: Dp = 1
    ep: Ep = 1
    node_gbit: NodeGbit = None
    scale: float = option(
        TRACE, "Load factor of the trace; its burstiness is preserved.", default=1.0
    )
    columns: Text = option(
        TRACE,
        "Column names of a plain trace: arrive=ts,input=prompt,output=completion,session=,unit=ms.",
    )
    where: list[str] | None = option(
        TRACE, "Filter of the trace, COLUMN=VALUE, e.g. run=tp1_bs64; repeatable."
    )
    lengths_from: Path | None = option(TRACE, "Trace whose request lengths a generated load takes.")
    scenario: Path | None = option(LOAD, "Scenario file whose workload is simulated.", "--scenario")
    workload: Text = option(LOAD, "Workload name within the scenario.")
    duration: Text = option(LOAD, "Duration of the load: 600, 10m, 2h, 7d; an hour by default.")
    n_requests: int | None = option(
        LOAD, "Number of requests, instead of a duration.", "--requests"
    )
    arrivals: ArrivalProcess | None = option(LOAD, "Arrival process of a generated load.")
    burstiness: Number = option(
        LOAD, "Burstiness (CV of inter-arrival times); 1 is Poisson, 3 is bursty."
    )
    phases: Text = option(LOAD, "Phases of an MMPP: rate x mean seconds, e.g. 2x300,20x30.")
    users: int | None = option(
        LOAD, "Concurrent users of a closed loop; each waits for its response."
    )
    think_time_s: ThinkTime = None
    turns: Number = option(LOAD, "Mean turns of a conversation; prompts contain earlier turns.")
    input_p95: Number = option(
        LOAD, "Prompt length p95 in tokens; makes lengths lognormal.", "--input-p95"
    )
    output_p95: Number = option(
        LOAD, "Output length p95 in tokens; makes lengths lognormal.", "--output-p95"
    )
    length_distribution: LengthDistribution | None = option(
        LOAD, "Distribution of prompt and output lengths."
    )
    shared_prefix: int | None = option(
        LOAD, "Shared prefix of all prompts in tokens, e.g. a system prompt."
    )
    priorities: Text = option(
        LOAD, "Priority mix of the requests: priority x share, e.g. 0x0.2,1x0.8."
    )
    lora_rank: LoraRank = 0
    loras: int | None = option(LOAD, "Distinct LoRA adapters in the traffic; 1 by default.", min=1)
    max_loras: int | None = option(
        ENGINE, "LoRA adapters per iteration (vLLM's max_loras); all by default.", min=1
    )
    profile: Text = option(
        LOAD, "Hourly load profile: 24 or 168 relative loads, with commas, or a file."
    )
    growth: float = option(LOAD, "Growth of the rate per month, 0.05 is 5 %.", default=0.0)
    months: Number = option(
        LOAD, "Months of growth before the run; by default it grows during it.", min=0
    )
    engine: Engine = "vllm"
    engine_version: EngineVersion = None
    max_num_seqs: MaxSeqs = None
    max_num_batched_tokens: int | None = option(
        ENGINE, "Maximum tokens per iteration (vLLM's max_num_batched_tokens).", min=1
    )
    kv_blocks: int | None = option(ENGINE, "Number of KV cache blocks; computed by default.", min=1)
    block_size: int | None = option(
        ENGINE, "Tokens of a KV cache block; 16 for vLLM, 1 for SGLang by default.", min=1
    )
    kv_groups: Text = option(
        ENGINE,
        "Layer groups that share the KV blocks (vLLM's hybrid KV cache): window:128,full for "
        "gpt-oss, window:1024x5,full for Gemma 3; also chunk:8192, state, and none for layers that "
        "are all alike. By default those of the model's own layers.",
    )
    step_time: Text = option(
        ENGINE, "Step times of your own: step_s=0.008,token_s=2e-5,context_s=4e-8,pair_s=1e-9."
    )
    step_table: Path | None = option(
        ENGINE,
        "Measured step times (CSV): tokens, step_s, and perhaps context_tokens, prefill_pairs.",
    )
    long_prefill_token_threshold: int | None = option(
        ENGINE,
        "Maximum tokens of one prompt per iteration (vLLM's long_prefill_token_threshold).",
        min=1,
    )
    max_tokens: int | None = option(
        ENGINE,
        "Requested length (max_tokens), which SGLang reserves; the output by default.",
        min=1,
    )
    prefix_caching: bool | None = option(
        ENGINE,
        "Prefix cache; the engine version's default otherwise.",
        "--prefix-caching/--no-prefix-caching",
    )
    scheduling_policy: str = option(
        ENGINE,
        "Scheduling policy: fcfs, priority (lower values first), or SGLang's lpm.",
        default="fcfs",
    )
    async_scheduling: bool | None = option(
        ENGINE,
        "Schedule an iteration while the previous one runs; the version's default otherwise.",
        "--async-scheduling/--no-async-scheduling",
    )
    reserve_full_isl: bool | None = option(
        ENGINE,
        "Admit a request only where its whole prompt has blocks (vLLM's "
        "scheduler_reserve_full_isl); the version's default otherwise.",
        "--reserve-full-isl/--no-reserve-full-isl",
    )
    enable_chunked_prefill: bool = option(
        ENGINE,
        "Cut prompts where an iteration has no room for all of them; else they wait.",
        "--enable-chunked-prefill/--no-enable-chunked-prefill",
        default=True,
    )
    watermark: Number = option(
        ENGINE, "Share of KV blocks that admissions leave free (vLLM's watermark).", min=0
    )
    ignore_eos: bool | None = option(
        ENGINE,
        "Responses end at max_tokens, as in benchmarks, or by EOS, known a step later.",
        "--ignore-eos/--no-ignore-eos",
    )
    num_speculative_tokens: int | None = option(
        SPECULATIVE, "Draft tokens per iteration (vLLM's num_speculative_tokens).", min=1, max=128
    )
    acceptance_rate: Number = option(
        SPECULATIVE, "Acceptance rate of a draft token, 0 to 1.", min=0, max=1
    )
    draw_acceptance: bool = option(
        SPECULATIVE,
        "Random acceptance per step instead of its mean.",
        "--draw-acceptance/--mean-acceptance",
        default=False,
    )
    batching: Batching = option(
        BATCHING,
        "Batching: continuous; static waits for a full batch, dynamic for a delay.",
        default=Batching.CONTINUOUS,
    )
    max_batch_size: int | None = option(
        BATCHING, "Maximum size of a static or dynamic batch.", min=1
    )
    max_queue_delay_ms: Number = option(
        BATCHING, "Maximum queue delay of a dynamic batch, ms.", min=0
    )
    preferred_batch_size: Text = option(
        BATCHING, "Preferred sizes of a dynamic batch, run without delay, e.g. 4,8."
    )
    router: str = option(
        FLEET,
        "Routing policy: least_outstanding, round_robin, power_of_two, prefix_affinity or session.",
        default="least_outstanding",
    )
    fleet: Path | None = option(
        FLEET, "Fleet file (YAML): pools, autoscaling, failures, disaggregation.", "--fleet"
    )
    sweep_replicas: Text = option(FLEET, "Fleet sizes to compare, e.g. 1..12 or 1,2,4,8.")
    slo_e2e_s: Number = option(
        SLO, "SLO target of end-to-end latency (E2E), s.", "--slo-e2e-s", min=0
    )
    slo_percentile: Number = option(
        SLO, "Percentile of requests that must meet the SLO; 99 by default.", min=0, max=100
    )
    cost_waste: Number = option(PRICES, "Cost of an unused GPU-hour, USD, with --sweep-replicas.")
    cost_delay: Number = option(PRICES, "Cost of a request out of SLO, USD, with --sweep-replicas.")
    warmup: Text = option(
        ANALYSIS,
        "Warm-up excluded from the statistics: seconds or auto; auto for steady loads.",
        "--warmup",
        "--warmup-s",
    )
    itl: bool = option(
        ANALYSIS, "Inter-token latency (ITL) percentiles, by a second run.", "--itl", default=False
    )
    bin_s: float = option(
        ANALYSIS, "Bin width of utilization over time, s.", "--bin-s", default=60.0, min=0.001
    )
    workers: int | None = option(
        ANALYSIS, "Worker processes of --sweep-replicas; all cores by default.", min=1
    )
    stream: bool = option(
        ANALYSIS,
        "Constant memory: requests or jobs are streamed, at any length.",
        "--stream",
        default=False,
    )
    jobs: Path | None = option(
        CLUSTER, "Job trace to replay: Philly, Helios, Acme, PAI, sacct, pods, CSV …"
    )
    compare: Text = option(CLUSTER, "Policies to compare, e.g. fifo,easy,fair,kueue.")
    change_nodes: int = option(
        CLUSTER, "Nodes more and fewer of each group to try, up to this.", default=0, min=0, max=64
    )
    advise_quotas: bool = option(
        CLUSTER, "Find the smallest quota that meets each violated wait target.", default=False
    )
    advise_mig: bool = option(
        CLUSTER,
        "Find MIG partitions for jobs on part of a GPU, beside MPS and time-slicing.",
        default=False,
    )
    render_to: Path | None = option(
        CLUSTER, "Folder for Kueue and Slurm configuration, advised quotas in it."
    )
    seed: Seed = 0
    overlay: Overlay = None
    calibration: Calibration = None
    out: Path | None = option(
        OUTPUT, "Results of each request to write: .parquet or .csv.", "--out"
    )
    chart: list[str] | None = option(
        OUTPUT, "Charts: - for the terminal, FILE.html or FILE.png; repeatable.", "--chart"
    )
