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
    Json,
    KvPrecision,
    LoraRank,
    MaxSeqs,
    NodeGbit,
    Output,
    Overlay,
    Pp,
    Precision,
    Seed,
    ThinkTime,
    accelerators_in,
    arg,
    model_in,
    opt,
)
from gpuplan.cli.output import Form

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
    trace: Annotated[
        Path | None,
        opt(COMMON, "Request trace (CSV, JSON or Parquet, known formats), or a client folder."),
    ] = None
    rate: Annotated[
        Number, opt(COMMON, "Request rate of a generated load, requests per second.")
    ] = None
    input_tokens: Annotated[Number, opt(COMMON, "Mean prompt length in tokens.")] = None
    output_tokens: Annotated[Number, opt(COMMON, "Mean output length in tokens.")] = None
    replicas: Annotated[int, opt(COMMON, "Number of replicas behind the router.", min=1)] = 1
    tp: Annotated[int | None, opt(COMMON, "Tensor-parallel size of one replica.", min=1)] = None
    slo_ttft_ms: Annotated[
        Number,
        opt(COMMON, "SLO target of time to first token (TTFT), ms.", "--slo-ttft-ms", min=0),
    ] = None
    slo_tpot_ms: Annotated[
        Number,
        opt(COMMON, "SLO target of time per output token (TPOT), ms.", "--slo-tpot-ms", min=0),
    ] = None
    precision: Precision = None
    kv_precision: KvPrecision = None
    pp: Pp = 1
    dp: Dp = 1
    ep: Ep = 1
    node_gbit: NodeGbit = None
    scale: Annotated[
        float, opt(TRACE, "Load factor of the trace; its burstiness is preserved.")
    ] = 1.0
    columns: Annotated[
        Text,
        opt(
            TRACE,
            "Column names of a plain trace: arrive=ts,input=prompt,output=completion,session=,"
            "unit=ms.",
        ),
    ] = None
    where: Annotated[
        list[str] | None,
        opt(TRACE, "Filter of the trace, COLUMN=VALUE, e.g. run=tp1_bs64; repeatable."),
    ] = None
    lengths_from: Annotated[
        Path | None, opt(TRACE, "Trace whose request lengths a generated load takes.")
    ] = None
    scenario: Annotated[
        Path | None, opt(LOAD, "Scenario file whose workload is simulated.", "--scenario")
    ] = None
    workload: Annotated[Text, opt(LOAD, "Workload name within the scenario.")] = None
    duration: Annotated[
        Text, opt(LOAD, "Duration of the load: 600, 10m, 2h, 7d; an hour by default.")
    ] = None
    n_requests: Annotated[
        int | None, opt(LOAD, "Number of requests, instead of a duration.", "--requests")
    ] = None
    arrivals: Annotated[
        ArrivalProcess | None, opt(LOAD, "Arrival process of a generated load.")
    ] = None
    burstiness: Annotated[
        Number, opt(LOAD, "Burstiness (CV of inter-arrival times); 1 is Poisson, 3 is bursty.")
    ] = None
    phases: Annotated[
        Text, opt(LOAD, "Phases of an MMPP: rate x mean seconds, e.g. 2x300,20x30.")
    ] = None
    users: Annotated[
        int | None, opt(LOAD, "Concurrent users of a closed loop; each waits for its response.")
    ] = None
    think_time_s: ThinkTime = None
    turns: Annotated[
        Number, opt(LOAD, "Mean turns of a conversation; prompts contain earlier turns.")
    ] = None
    input_p95: Annotated[
        Number, opt(LOAD, "Prompt length p95 in tokens; makes lengths lognormal.", "--input-p95")
    ] = None
    output_p95: Annotated[
        Number, opt(LOAD, "Output length p95 in tokens; makes lengths lognormal.", "--output-p95")
    ] = None
    length_distribution: Annotated[
        LengthDistribution | None, opt(LOAD, "Distribution of prompt and output lengths.")
    ] = None
    shared_prefix: Annotated[
        int | None, opt(LOAD, "Shared prefix of all prompts in tokens, e.g. a system prompt.")
    ] = None
    priorities: Annotated[
        Text, opt(LOAD, "Priority mix of the requests: priority x share, e.g. 0x0.2,1x0.8.")
    ] = None
    lora_rank: LoraRank = 0
    loras: Annotated[
        int | None, opt(LOAD, "Distinct LoRA adapters in the traffic; 1 by default.", min=1)
    ] = None
    profile: Annotated[
        Text, opt(LOAD, "Hourly load profile: 24 or 168 relative loads, with commas, or a file.")
    ] = None
    growth: Annotated[float, opt(LOAD, "Growth of the rate per month, 0.05 is 5 %.")] = 0.0
    months: Annotated[
        Number, opt(LOAD, "Months of growth before the run; by default it grows during it.", min=0)
    ] = None
    engine: Engine = "vllm"
    engine_version: EngineVersion = None
    max_num_seqs: MaxSeqs = None
    max_num_batched_tokens: Annotated[
        int | None,
        opt(ENGINE, "Maximum tokens per iteration (vLLM's max_num_batched_tokens).", min=1),
    ] = None
    kv_blocks: Annotated[
        int | None, opt(ENGINE, "Number of KV cache blocks; computed by default.", min=1)
    ] = None
    step_time: Annotated[
        Text,
        opt(
            ENGINE,
            "Step times of your own: step_s=0.008,token_s=2e-5,context_s=4e-8,pair_s=1e-9.",
        ),
    ] = None
    step_table: Annotated[
        Path | None,
        opt(
            ENGINE,
            "Measured step times (CSV): tokens, step_s, and perhaps context_tokens, prefill_pairs.",
        ),
    ] = None
    long_prefill_token_threshold: Annotated[
        int | None,
        opt(
            ENGINE,
            "Maximum tokens of one prompt per iteration (vLLM's long_prefill_token_threshold).",
            min=1,
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        opt(
            ENGINE,
            "Requested length (max_tokens), which SGLang reserves; the output by default.",
            min=1,
        ),
    ] = None
    prefix_caching: Annotated[
        bool | None,
        opt(
            ENGINE,
            "Prefix cache; the engine version's default otherwise.",
            "--prefix-caching/--no-prefix-caching",
        ),
    ] = None
    scheduling_policy: Annotated[
        str,
        opt(ENGINE, "Scheduling policy: fcfs, priority (lower values first), or SGLang's lpm."),
    ] = "fcfs"
    async_scheduling: Annotated[
        bool | None,
        opt(
            ENGINE,
            "Schedule an iteration while the previous one runs; the version's default otherwise.",
            "--async-scheduling/--no-async-scheduling",
        ),
    ] = None
    reserve_full_isl: Annotated[
        bool | None,
        opt(
            ENGINE,
            "Admit a request only where its whole prompt has blocks (vLLM's "
            "scheduler_reserve_full_isl); the version's default otherwise.",
            "--reserve-full-isl/--no-reserve-full-isl",
        ),
    ] = None
    enable_chunked_prefill: Annotated[
        bool,
        opt(
            ENGINE,
            "Cut prompts where an iteration has no room for all of them; else they wait.",
            "--enable-chunked-prefill/--no-enable-chunked-prefill",
        ),
    ] = True
    watermark: Annotated[
        Number,
        opt(ENGINE, "Share of KV blocks that admissions leave free (vLLM's watermark).", min=0),
    ] = None
    ignore_eos: Annotated[
        bool | None,
        opt(
            ENGINE,
            "Responses end at max_tokens, as in benchmarks, or by EOS, known a step later.",
            "--ignore-eos/--no-ignore-eos",
        ),
    ] = None
    num_speculative_tokens: Annotated[
        int | None,
        opt(
            SPECULATIVE,
            "Draft tokens per iteration (vLLM's num_speculative_tokens).",
            min=1,
            max=128,
        ),
    ] = None
    acceptance_rate: Annotated[
        Number, opt(SPECULATIVE, "Acceptance rate of a draft token, 0 to 1.", min=0, max=1)
    ] = None
    draw_acceptance: Annotated[
        bool,
        opt(
            SPECULATIVE,
            "Random acceptance per step instead of its mean.",
            "--draw-acceptance/--mean-acceptance",
        ),
    ] = False
    batching: Annotated[
        Batching,
        opt(BATCHING, "Batching: continuous; static waits for a full batch, dynamic for a delay."),
    ] = Batching.CONTINUOUS
    max_batch_size: Annotated[
        int | None, opt(BATCHING, "Maximum size of a static or dynamic batch.", min=1)
    ] = None
    max_queue_delay_ms: Annotated[
        Number, opt(BATCHING, "Maximum queue delay of a dynamic batch, ms.", min=0)
    ] = None
    preferred_batch_size: Annotated[
        Text, opt(BATCHING, "Preferred sizes of a dynamic batch, run without delay, e.g. 4,8.")
    ] = None
    router: Annotated[
        str,
        opt(
            FLEET,
            "Routing policy: least_outstanding, round_robin, power_of_two, prefix_affinity "
            "or session.",
        ),
    ] = "least_outstanding"
    fleet: Annotated[
        Path | None,
        opt(FLEET, "Fleet file (YAML): pools, autoscaling, failures, disaggregation.", "--fleet"),
    ] = None
    sweep_replicas: Annotated[
        Text, opt(FLEET, "Fleet sizes to compare, e.g. 1..12 or 1,2,4,8.")
    ] = None
    slo_e2e_s: Annotated[
        Number, opt(SLO, "SLO target of end-to-end latency (E2E), s.", "--slo-e2e-s", min=0)
    ] = None
    slo_percentile: Annotated[
        Number,
        opt(SLO, "Percentile of requests that must meet the SLO; 99 by default.", min=0, max=100),
    ] = None
    cost_waste: Annotated[
        Number, opt(PRICES, "Cost of an unused GPU-hour, USD, with --sweep-replicas.")
    ] = None
    cost_delay: Annotated[
        Number, opt(PRICES, "Cost of a request out of SLO, USD, with --sweep-replicas.")
    ] = None
    warmup: Annotated[
        Text,
        opt(
            ANALYSIS,
            "Warm-up excluded from the statistics: seconds or auto; auto for steady loads.",
            "--warmup",
            "--warmup-s",
        ),
    ] = None
    itl: Annotated[
        bool, opt(ANALYSIS, "Inter-token latency (ITL) percentiles, by a second run.", "--itl")
    ] = False
    bin_s: Annotated[
        float, opt(ANALYSIS, "Bin width of utilization over time, s.", "--bin-s", min=0.001)
    ] = 60.0
    workers: Annotated[
        int | None,
        opt(ANALYSIS, "Worker processes of --sweep-replicas; all cores by default.", min=1),
    ] = None
    stream: Annotated[
        bool,
        opt(ANALYSIS, "Constant memory: requests or jobs are streamed, at any length.", "--stream"),
    ] = False
    jobs: Annotated[
        Path | None,
        opt(CLUSTER, "Job trace to replay: Philly, Helios, Acme, PAI, sacct, pods, CSV …"),
    ] = None
    compare: Annotated[Text, opt(CLUSTER, "Policies to compare, e.g. fifo,easy,fair,kueue.")] = None
    change_nodes: Annotated[
        int, opt(CLUSTER, "Nodes more and fewer of each group to try, up to this.", min=0, max=64)
    ] = 0
    advise_quotas: Annotated[
        bool, opt(CLUSTER, "Find the smallest quota that meets each violated wait target.")
    ] = False
    advise_mig: Annotated[
        bool,
        opt(CLUSTER, "Find MIG partitions for jobs on part of a GPU, beside MPS and time-slicing."),
    ] = False
    render_to: Annotated[
        Path | None, opt(CLUSTER, "Folder for Kueue and Slurm configuration, advised quotas in it.")
    ] = None
    seed: Seed = 0
    overlay: Overlay = None
    calibration: Calibration = None
    out: Annotated[
        Path | None,
        opt(OUTPUT, "Results of each request to write: .parquet or .csv.", "--out"),
    ] = None
    chart: Annotated[
        list[str] | None,
        opt(OUTPUT, "Charts: - for the terminal, FILE.html or FILE.png; repeatable.", "--chart"),
    ] = None
    output: Output = Form.TABLE
    as_json: Json = False
