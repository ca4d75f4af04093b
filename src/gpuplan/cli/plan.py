"""`gpuplan plan`: which accelerators, how many, from where, at what cost, and why."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gpuplan import api
from gpuplan.cli.command import OUTPUT, Form
from gpuplan.cli.options import (
    ANALYSIS,
    COMMON,
    FLEET,
    LOAD,
    MODEL,
    PRICES,
    SITE,
    SLO,
    AsOf,
    Calibration,
    Concurrency,
    KvPrecision,
    Overlay,
    Precision,
    PrefixHitRate,
    Seed,
    Store,
    ThinkTime,
    accelerators_in,
    arg,
    model_in,
    option,
    user_store,
    usual,
)
from gpuplan.cli.output import busy, check_writable, deliver, emit, names
from gpuplan.errors import InputError, Problem, one

if TYPE_CHECKING:
    from gpuplan.cli.output import FileToWrite
    from gpuplan.domain.cluster.plan import ClusterPlanRequest
    from gpuplan.domain.requests.plan import PlanRequest

Count = float | None
Target = Annotated[
    str, arg('Scenario file (YAML), or a description: "Llama-3.3-70B, 6000 users, chat".')
]
Changes = list[str] | None


class PlanOptions(NamedTuple):
    """Options of the command, in the order of its help."""

    target: Target = ""
    model: Annotated[str | None, model_in(COMMON)] = None
    users: Count = option(COMMON, "Number of users of the service.", min=0)
    rate: Count = option(COMMON, "Peak request rate, requests per second.", min=0)
    input_tokens: int | None = option(COMMON, "Mean prompt length in tokens.", min=1)
    output_tokens: int | None = option(COMMON, "Mean output length in tokens.", min=0)
    ttft_p95_ms: Count = option(
        COMMON,
        "Target of time to first token (TTFT) p95, ms.",
        "--ttft-p95-ms",
        "--ttft-p95",
        min=0,
    )
    tpot_p95_ms: Count = option(
        COMMON, "Target of time per output token (TPOT) p95, ms.", "--tpot-p95-ms", "--tpot", min=0
    )
    on: Annotated[
        str | None, accelerators_in(COMMON, "Only these accelerators, e.g. H100,L40S.")
    ] = None
    budget: Count = option(COMMON, "Maximum cost, USD per month.", min=0)
    out: Path | None = option(COMMON, "Plan file to write, e.g. plan.yaml.", "--out")
    save: Path | None = option(
        OUTPUT, "Scenario file to write from a description, e.g. scenario.yaml.", "--save"
    )
    precision: Precision = None
    kv_precision: KvPrecision = None
    engines: str | None = option(
        MODEL, "Engines to choose from, each planned for whole, e.g. vllm,sglang."
    )
    prefix_cache_hit_rate: PrefixHitRate = None
    active: Count = option(LOAD, "Share of users active at the peak, 0 to 1.", min=0, max=1)
    requests_per_hour: Count = option(
        LOAD, "Requests per hour of one active user.", "--requests-per-hour", min=0
    )
    requests_per_day: Count = option(LOAD, "Total requests per day.", "--requests-per-day", min=0)
    concurrency: Concurrency = None
    think_time_s: ThinkTime = None
    growth: Count = option(LOAD, "Demand growth per month, 0.05 is 5 %.")
    largest_load: bool | None = option(
        LOAD,
        "Find the largest load that the allowed hardware carries within all SLOs and limits; the "
        "stated load is not used.",
        "--largest-load",
    )
    jobs: Path | None = option(
        LOAD, "Job trace of a shared cluster: plan the nodes of a cluster file for it.", "--jobs"
    )
    e2e_p95_s: Count = option(
        SLO, "Target of end-to-end latency (E2E) p95, s.", "--e2e-p95-s", min=0
    )
    survive: str | None = option(
        FLEET, "Failure to tolerate within SLO: gpu, replica, node, rack or zone."
    )
    max_utilization: Count = option(
        FLEET, "Maximum utilization at the peak, 0 to 1.", "--max-utilization", min=0, max=1
    )
    cloud: str | None = option(PRICES, "Only these cloud providers, e.g. aws,gcp.")
    region: str | None = option(PRICES, "Only these regions, e.g. us-east-1.")
    indicative_prices: bool | None = option(
        PRICES,
        "Use indicative prices too: marketplaces, auctions, old prices, advertised discounts.",
        "--indicative-prices",
    )
    as_of: AsOf = None
    power_kw: Count = option(SITE, "Power capacity of your site, kW.", "--power-kw", min=0)
    overlay: Overlay = None
    store: Store = None
    calibration: Calibration = None
    what_if: Changes = option(ANALYSIS, "Change to compare with the plan, key=value; repeatable.")
    set_key: Changes = option(ANALYSIS, "Scenario key to override, key=value; repeatable.", "--set")
    weights: str | None = option(
        ANALYSIS,
        "Weights of the objective over cost, time, energy, carbon, risk: cost=1,energy=0.5.",
    )
    samples: int = option(
        ANALYSIS,
        "Monte Carlo samples of uncertain inputs; 0 is none.",
        default=200,
        min=0,
        max=100_000,
    )
    confidence: Count = option(
        SLO,
        "Least probability of meeting all SLOs, 0 to 1; 0.8 by default.",
        "--confidence",
        "--robust",
        min=0,
        max=1,
    )
    replay: str = option(
        ANALYSIS,
        "Simulated share of the load: usual samples long days, full is all.",
        default="usual",
    )
    seed: Seed = 0
    check: bool = option(
        OUTPUT, "Exit with code 4 when a limit is violated.", "--check", default=False
    )
    force: bool = option(
        OUTPUT, "Exit with code 0 although a training run is past the knee.", default=False
    )
    html: Path | None = option(OUTPUT, "HTML report to write, e.g. plan.html.", "--html")
    verbose: bool = option(
        OUTPUT, "Print every table and assumption of the plan.", "--verbose", "-v", default=False
    )


CLUSTER_DRAWS = 20  # streams like the trace's, at most
OF_EVERY_PLAN = {"target", "jobs", "as_of", "overlay", "store", "samples", "confidence", "seed"}
OF_EVERY_PLAN |= {"out", "html"}
OF_A_CLUSTER = OF_EVERY_PLAN | {"on", "budget"}
# Every other option stands for a key of the scenario.
OF_THE_RUN = OF_EVERY_PLAN | {"calibration", "what_if", "set_key", "weights", "engines", "replay"}
OF_THE_RUN |= {"check", "force", "save", "verbose", "largest_load"}


def plan(options: PlanOptions, form: Form) -> None:
    """Plan a fleet: which accelerators, how many, from where, at what cost, and why.

    With --jobs, the file is a cluster file: how many of which nodes, which policy and quotas.
    """
    if options.jobs is not None:
        plan_cluster_jobs(options, options.jobs, form)
        return
    check_writable(options.out, options.html, options.save)
    request = _request(options)
    _describe(request, options.save)
    if options.what_if:
        _compare(request, tuple(options.what_if), form)
    else:
        _plan(request, options, form)


def plan_cluster_jobs(options: PlanOptions, jobs: Path, form: Form) -> None:
    """Plan the nodes, policy and quotas of a shared cluster for a job trace."""
    _check_cluster(options)
    check_writable(options.out, options.html)
    with busy("simulating fleets; the first run on a computer compiles its kernel"):
        found = api.plan_cluster(_cluster_request(options, jobs))
    run, out = found.simulation, options.out
    files: list[FileToWrite] = []
    if run is not None:
        note = f"; next: gpuplan simulate {out} --jobs {jobs}"
        files.append((out, lambda: api.cluster_text(run.cluster), note))
    sheet = api.cluster_plan_sheet(found)
    files.append((options.html, lambda: api.cluster_page(sheet, run), ""))
    deliver(sheet, form, files)
    api.refuse_cluster(found)


def _cluster_request(options: PlanOptions, jobs: Path) -> "ClusterPlanRequest":
    from gpuplan.domain.cluster.plan import ClusterPlanRequest

    return ClusterPlanRequest(
        cluster_file=Path(options.target),
        jobs_file=jobs,
        today=_day(options.as_of),
        accelerators=tuple(names(options.on) or ()),
        budget_usd_per_month=options.budget,
        n_draws=min(options.samples, CLUSTER_DRAWS),
        min_probability_frac=options.confidence,
        overlays=tuple(options.overlay or ()),
        store=user_store(options.store),
        seed=options.seed,
    )


def _check_cluster(options: PlanOptions) -> None:
    """Options of a serving fleet say nothing about a cluster file."""
    default = usual(PlanOptions)
    problems = [
        Problem(f"--{name.replace('_', '-')}", "has no meaning with --jobs", "remove it")
        for name, value in options._asdict().items()
        if name not in OF_A_CLUSTER and value != default[name]
    ]
    if problems:
        raise InputError("plan", problems)


def _describe(request: "PlanRequest", save: Path | None) -> None:
    """Say first how a description in words was understood, and keep it as a file if asked."""
    from gpuplan.cli.output import write_whole

    found = api.describe(request)
    if found is None:
        return
    typer.echo("\n".join(api.description_lines(found)), err=True)
    if save is not None:
        write_whole(save, api.scenario_text(found))
        typer.echo(f"wrote {save}; next: gpuplan plan {save}", err=True)


def _request(options: PlanOptions) -> "PlanRequest":
    from gpuplan.domain.requests.plan import PlanBasis, PlanRequest

    return PlanRequest(
        target=options.target,
        today=_day(options.as_of),
        given=_given(options),
        changes=(*(options.set_key or ()), *_weight_changes(options.weights)),
        seed=options.seed,
        n_samples=options.samples,
        min_probability_frac=options.confidence,
        is_check=options.check,
        overlays=tuple(options.overlay or ()),
        store=user_store(options.store),
        basis=PlanBasis(
            calibration=options.calibration,
            is_replay_full=_is_full(options.replay),
            engines=tuple(dict.fromkeys(names(options.engines) or ())),
            is_largest=options.largest_load,
        ),
    )


def _weight_changes(text: str | None) -> tuple[str, ...]:
    """cost=1,energy=0.5 as keys of the scenario."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return ("objective=weighted", *(f"policy.weights.{part}" for part in parts))


def _given(options: PlanOptions) -> dict[str, Any]:
    """Options that stand for keys of a scenario."""
    given = {key: value for key, value in options._asdict().items() if key not in OF_THE_RUN}
    return {**given, **{key: names(given[key]) for key in ("on", "cloud", "region")}}


def _is_full(replay: str) -> bool:
    if replay not in ("usual", "full"):
        what = f"unknown value {replay!r}"
        raise one(InputError, "plan", "--replay", what, "use usual or full")
    return replay == "full"


def _plan(request: "PlanRequest", options: PlanOptions, form: Form) -> None:
    with busy("planning; the first run compiles its kernels"):
        answer = api.plan(request)
    api.refuse_unverified(answer)
    sheet = api.plan_sheet(answer)
    out, html = options.out, options.html
    files: list[FileToWrite] = [
        (out, lambda: api.plan_text(answer), f"; next: gpuplan explain {out}"),
        (html, lambda: api.plan_page(answer), ""),
    ]
    deliver(sheet.with_details() if options.verbose else sheet, form, files)
    api.refuse(answer, is_check=request.is_check, is_forced=options.force)


def _compare(request: "PlanRequest", changes: tuple[str, ...], form: Form) -> None:
    with busy("planning twice"):
        before, after = api.what_if(request, changes)
    api.refuse_unverified(before)
    api.refuse_unverified(after)
    emit(api.diff_sheet(before, after), form)


def _day(text: str | None) -> date:
    if text is None:
        return date.today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        what, fix = f"{text!r} is not a date", "write it as 2026-11-01"
        raise one(InputError, "plan", "--as-of", what, fix) from None
