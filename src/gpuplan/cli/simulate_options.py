"""Options of `gpuplan simulate`, and what they become."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gpuplan.cli.completion import accelerator_names, model_names
from gpuplan.cli.options import Json, Output
from gpuplan.cli.simulate_batching import (
    BatchingKind,
    MaxBatch,
    MaxDelay,
    PreferredBatch,
    batch_policy,
)
from gpuplan.cli.simulate_parse import hours, lengths, objective, phases, seconds, warmup_s
from gpuplan.cli.simulate_trace import Columns, LengthsFrom, Priorities, SharedPrefix, Where
from gpuplan.units import MONTH

if TYPE_CHECKING:
    from gpuplan.domain.inference.performance import Drafts
    from gpuplan.domain.scenario.demand import LengthShape
    from gpuplan.domain.simulation.simulation import ReplicaRequest, SimulateRequest
    from gpuplan.domain.traffic.drawn import DrawnLoad


class Law(StrEnum):
    """How arrivals are drawn."""

    POISSON = "poisson"
    GAMMA = "gamma"
    WEIBULL = "weibull"
    MMPP = "mmpp"
    CLOSED = "closed"


class Shape(StrEnum):
    """How lengths are drawn."""

    FIXED = "fixed"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"
    UNIFORM = "uniform"


Model = Annotated[
    str | None,
    typer.Option(
        "--model", help="Model name, config.json, or its folder.", autocompletion=model_names
    ),
]
On = Annotated[
    str,
    typer.Option(
        help="Accelerator of one replica, e.g. H100, 2xH100.", autocompletion=accelerator_names
    ),
]
Tp = Annotated[int | None, typer.Option(min=1, help="Tensor parallel of one replica.")]
Replicas = Annotated[int, typer.Option(min=1, help="Replicas behind the router.")]
Router = Annotated[
    str,
    typer.Option(help="least_outstanding, round_robin, power_of_two, prefix_affinity, session."),
]
Precision = Annotated[str | None, typer.Option(help="Of the weights; as published by default.")]
KvPrecision = Annotated[str | None, typer.Option(help="Of the key-value cache.")]
Engine = Annotated[str, typer.Option(help="vllm, sglang, trtllm …")]
EngineVersion = Annotated[str | None, typer.Option(help="Its version; a recent one by default.")]
MaxSeqs = Annotated[int | None, typer.Option("--max-num-seqs", min=1, help="Of one iteration.")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-num-batched-tokens", min=1, help="Of one iteration.")
]
KvBlocks = Annotated[int | None, typer.Option(min=1, help="Of the cache; computed by default.")]
LongPrefill = Annotated[
    int | None, typer.Option(min=1, help="The most that one prompt takes of an iteration.")
]
PrefixCaching = Annotated[
    bool | None,
    typer.Option(
        "--prefix-caching/--no-prefix-caching",
        help="Keep the text of prompts; by default where they share any.",
    ),
]
Scheduling = Annotated[str, typer.Option(help="fcfs, or priority: lower numbers first.")]
AsyncScheduling = Annotated[
    bool | None,
    typer.Option(
        "--async-scheduling/--no-async-scheduling",
        help="Draw up an iteration while one runs; by default as the engine's version does.",
    ),
]
SpeculativeTokens = Annotated[
    int | None, typer.Option(min=1, max=128, help="Drafted per iteration.")
]
Acceptance = Annotated[
    float | None, typer.Option(min=0, max=1, help="Chance that a draft is kept.")
]

DrawAcceptance = Annotated[
    bool, typer.Option("--draw-acceptance/--mean-acceptance", help="By chance, step by step.")
]
PipelineParallel = Annotated[int, typer.Option("--pp", min=1, help="Pipeline stages.")]
DataParallel = Annotated[int, typer.Option("--dp", min=1, help="Attention replicas.")]
ExpertParallel = Annotated[
    int, typer.Option("--ep", min=1, help="Devices that the experts are dealt to.")
]
LoraRank = Annotated[int, typer.Option(min=0, help="Rank of the requests' adapters; 0: none.")]
Loras = Annotated[int | None, typer.Option(min=1, help="Adapters in rotation; 1 if unsaid.")]
CalibrationFile = Annotated[
    Path | None,
    typer.Option("--calibration", help="Constants refitted with your own runs (calibrate --out)."),
]
Trace = Annotated[
    Path | None,
    typer.Option(help="Requests: CSV, JSON, Parquet, known formats as is; or clients' folder."),
]
Scale = Annotated[float, typer.Option(help="With --trace: so many times its load, as bursty.")]
ScenarioFile = Annotated[Path | None, typer.Option("--scenario", help="Or a scenario's workload.")]
Workload = Annotated[str | None, typer.Option(help="Which workload of the scenario.")]
Rate = Annotated[float | None, typer.Option(help="Or requests a second, with lengths as below.")]
Arrivals = Annotated[Law | None, typer.Option(help="Law of the gaps between arrivals.")]
Burstiness = Annotated[
    float | None, typer.Option(help="Deviation over mean of gaps; 1 is Poisson, 3 bursty.")
]
Phases = Annotated[str | None, typer.Option(help="Of mmpp: rate x mean seconds, e.g. 2x300,20x30.")]
Users = Annotated[
    int | None, typer.Option(help="Or a closed loop: users who wait for each answer.")
]
Think = Annotated[
    float | None, typer.Option("--think-s", help="Mean pause of a user after an answer.")
]
Turns = Annotated[
    float | None, typer.Option(help="Mean turns of a conversation: prompts hold all said before.")
]
InputTokens = Annotated[float | None, typer.Option(help="Mean tokens of a prompt.")]
OutputTokens = Annotated[float | None, typer.Option(help="Mean tokens of an answer.")]
InputP95 = Annotated[float | None, typer.Option("--input-p95", help="Lengths are lognormal then.")]
OutputP95 = Annotated[float | None, typer.Option("--output-p95", help="As --input-p95.")]
Lengths = Annotated[Shape | None, typer.Option(help="Law of the lengths.")]
Duration = Annotated[
    str | None, typer.Option(help="Of the arrivals: 600, 10m, 2h, 7d; an hour by default.")
]
NRequests = Annotated[int | None, typer.Option("--requests", help="Or so many requests.")]
Profile = Annotated[
    str | None, typer.Option(help="24 or 168 relative hourly loads, with commas, or a file.")
]
Growth = Annotated[float, typer.Option(help="Of the rate per month: 0.05 is 5 %.")]
Months = Annotated[
    float | None, typer.Option(min=0, help="Of growth before the run; else it grows in it.")
]

SloTtft = Annotated[float | None, typer.Option("--slo-ttft-ms", min=0, help="To the first token.")]
SloTpot = Annotated[float | None, typer.Option("--slo-tpot-ms", min=0, help="Per later token.")]
SloE2e = Annotated[float | None, typer.Option("--slo-e2e-s", min=0, help="For the whole answer.")]
SloKept = Annotated[
    float | None,
    typer.Option("--slo-percentile", min=0, max=100, help="Share that must keep it; 99 if unsaid."),
]
Warmup = Annotated[
    str | None,
    typer.Option(
        "--warmup", "--warmup-s", help="Seconds not measured, or auto; auto for steady loads."
    ),
]
Gaps = Annotated[
    bool, typer.Option("--gaps", help="Also single gaps between tokens (ITL): a second run.")
]
Bin = Annotated[float, typer.Option("--bin-s", min=0.001, help="Width of the use over time.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all that is drawn.")]
Curve = Annotated[str | None, typer.Option(help="Compare fleet sizes, e.g. 1..12 or 1,2,4,8.")]
CostWaste = Annotated[
    float | None, typer.Option(help="With --curve: USD of a GPU-hour that does nothing useful.")
]
CostDelay = Annotated[float | None, typer.Option(help="With --curve: USD of a late request.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes of --curve; as many as cores by default.")
]

Overlay = Annotated[list[Path] | None, typer.Option(help="Your facts over the catalog's (YAML).")]
Out = Annotated[Path | None, typer.Option("--out", help="Every request: .parquet or .csv.")]
ChartTo = Annotated[
    list[str] | None, typer.Option("--chart", help="- for the terminal, FILE.html or FILE.png.")
]
Stream = Annotated[
    bool, typer.Option("--stream", help="Keep no request in memory: for loads of any length.")
]


FleetFile = Annotated[
    Path | None, typer.Option("--fleet", help="A living fleet: pools, scaling, failures (YAML).")
]


class Typed(NamedTuple):
    """Every option of the command, as typed."""

    on: On
    model: Model
    trace: Trace
    tp: Tp
    replicas: Replicas
    router: Router
    precision: Precision
    kv_precision: KvPrecision
    engine: Engine
    engine_version: EngineVersion
    max_num_seqs: MaxSeqs
    max_num_batched_tokens: MaxTokens
    kv_blocks: KvBlocks
    long_prefill_tokens: LongPrefill
    prefix_caching: PrefixCaching
    scheduling: Scheduling
    async_scheduling: AsyncScheduling
    speculative_tokens: SpeculativeTokens
    acceptance: Acceptance
    draw_acceptance: DrawAcceptance
    pp: PipelineParallel
    dp: DataParallel
    ep: ExpertParallel
    lora_rank: LoraRank
    loras: Loras
    batching: BatchingKind
    max_batch: MaxBatch
    max_delay_ms: MaxDelay
    preferred_batch: PreferredBatch
    scale: Scale
    columns: Columns
    where: Where
    lengths_from: LengthsFrom
    priorities: Priorities
    shared_prefix: SharedPrefix
    scenario: ScenarioFile
    workload: Workload
    rate: Rate
    arrivals: Arrivals
    burstiness: Burstiness
    phases: Phases
    users: Users
    think_s: Think
    turns: Turns
    input_tokens: InputTokens
    output_tokens: OutputTokens
    input_p95: InputP95
    output_p95: OutputP95
    lengths: Lengths
    duration: Duration
    n_requests: NRequests
    profile: Profile
    growth: Growth
    months: Months
    slo_ttft_ms: SloTtft
    slo_tpot_ms: SloTpot
    slo_e2e_s: SloE2e
    slo_percentile: SloKept
    warmup: Warmup
    gaps: Gaps
    bin_s: Bin
    curve: Curve
    cost_waste: CostWaste
    cost_delay: CostDelay
    workers: Workers
    stream: Stream
    fleet: FleetFile
    seed: Seed
    overlay: Overlay
    calibration: CalibrationFile
    out: Out
    chart: ChartTo
    output: Output
    as_json: Json


def drawn_load(typed: Typed) -> "DrawnLoad":
    """The load that the figures describe, whether or not they are enough."""
    from gpuplan.domain.traffic.drawn import DrawnLoad, LoadTerms

    shape: LengthShape | None = typed.lengths.value if typed.lengths else None
    terms = LoadTerms(
        hourly_profile=hours(typed.profile),
        growth_frac_per_month=typed.growth,
        after_s=None if typed.months is None else typed.months * MONTH,
    )
    return DrawnLoad(
        law=typed.arrivals.value if typed.arrivals else None,
        requests_per_s=typed.rate,
        burstiness_ratio=typed.burstiness,
        phases=phases(typed.phases),
        input=lengths(typed.input_tokens, typed.input_p95, shape),
        output=lengths(typed.output_tokens, typed.output_p95, shape),
        duration_s=seconds(typed.duration, "--duration"),
        n_requests=typed.n_requests,
        n_users=typed.users,
        think_s=typed.think_s,
        n_turns_mean=typed.turns,
        terms=terms,
    )


def _drafts(typed: Typed) -> "Drafts | None":
    from gpuplan.domain.inference.performance import Drafts
    from gpuplan.errors import InputError, one

    if typed.speculative_tokens is None and typed.acceptance is None:
        return None
    if typed.speculative_tokens is None or typed.acceptance is None:
        lacking = "--acceptance" if typed.acceptance is None else "--speculative-tokens"
        fix = "give the drafted tokens and their acceptance together"
        raise one(InputError, "simulate", lacking, "missing", fix)
    return Drafts(n_tokens=typed.speculative_tokens, acceptance_frac=typed.acceptance)


def _replica(typed: Typed) -> "ReplicaRequest":
    from gpuplan.domain.inference.serving import LoraUse
    from gpuplan.domain.simulation.simulation import ReplicaRequest

    lora = LoraUse(rank=typed.lora_rank, n_adapters=typed.loras or 1) if typed.lora_rank else None
    return ReplicaRequest(
        pp=typed.pp, dp=typed.dp, ep=typed.ep, adapters=lora,
        calibration=None if typed.calibration is None else str(typed.calibration),
    )  # fmt: skip


def simulate_request(typed: Typed) -> "SimulateRequest":
    """The fleet, and how to judge it."""
    from gpuplan.domain.simulation.simulation import EngineRequest, SimulateRequest

    scheduler = EngineRequest(
        max_sequences=typed.max_num_seqs,
        max_batch_tokens=typed.max_num_batched_tokens,
        n_blocks=typed.kv_blocks,
        long_prefill_tokens=typed.long_prefill_tokens,
        caches_prefixes=typed.prefix_caching,
        scheduling=typed.scheduling,
        is_ahead=typed.async_scheduling,
        drafts=_drafts(typed),
        draws_acceptance=typed.draw_acceptance,
        replica=_replica(typed),
        batching=batch_policy(
            typed.batching,
            typed.max_batch,
            max_delay_ms=typed.max_delay_ms,
            preferred=typed.preferred_batch,
        ),
    )
    limits = (typed.slo_ttft_ms, typed.slo_tpot_ms, typed.slo_e2e_s)
    return SimulateRequest(
        tp=typed.tp,
        n_replicas=typed.replicas,
        router=typed.router,
        precision=typed.precision,
        cache_precision=typed.kv_precision,
        engine=typed.engine,
        engine_version=typed.engine_version,
        scheduler=scheduler,
        slo=objective(*limits, typed.slo_percentile),
        warmup_s=warmup_s(typed.warmup, is_steady=_is_steady(typed)),
        bin_s=typed.bin_s,
        seed=typed.seed,
    )


def _is_steady(typed: Typed) -> bool:
    """One law from first to last: what differs at the start is the empty fleet, and no more.

    Recordings, phases, days, growth and fleets that start and break have no such part: a cut would
    throw away what the run is for.
    """
    is_moving = (typed.profile, typed.phases, typed.fleet, typed.scenario) != (None,) * 4
    is_growing = typed.growth != 0 and typed.months is None
    return typed.trace is None and not is_moving and not is_growing
