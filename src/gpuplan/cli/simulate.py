"""`gpuplan simulate`: replay requests against a fleet and see what users would feel."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpuplan.cli import simulate_batching as b
from gpuplan.cli import simulate_options as o
from gpuplan.cli import simulate_trace as t
from gpuplan.cli.options import Json, Output, user_store
from gpuplan.cli.output import Form, busy, chosen, emit
from gpuplan.cli.simulate_load import Sources, check_sources, load, marked, recorded_lengths
from gpuplan.cli.simulate_parse import sizes
from gpuplan.cli.simulate_show import (
    RequestFile,
    check_targets,
    leaving_nothing,
    n_cores,
    progress,
    show_charts,
    write_requests,
)

if TYPE_CHECKING:
    from gpuplan.domain.chart import Chart
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.simulation.simulation import CurveRequest, PreparedFleet, SimulateRequest
    from gpuplan.domain.traffic.drawn import LoadSource
    from gpuplan.domain.traffic.stream import Requests

    Shown = tuple[Sheet, tuple[Chart, ...]]

MANY = 500_000  # requests: below, a run is over before a bar is drawn
Served = tuple[str, str, list[Path]]  # model, accelerator, overlays


def simulate(
    on: o.On,
    model: o.Model = None,
    trace: o.Trace = None,
    tp: o.Tp = None, pp: o.PipelineParallel = 1, dp: o.DataParallel = 1,
    ep: o.ExpertParallel = 1, lora_rank: o.LoraRank = 0, loras: o.Loras = None,
    replicas: o.Replicas = 1,
    router: o.Router = "least_outstanding",
    precision: o.Precision = None, kv_precision: o.KvPrecision = None,
    engine: o.Engine = "vllm", engine_version: o.EngineVersion = None,
    max_num_seqs: o.MaxSeqs = None,
    max_num_batched_tokens: o.MaxTokens = None,
    kv_blocks: o.KvBlocks = None,
    long_prefill_tokens: o.LongPrefill = None,
    prefix_caching: o.PrefixCaching = None,
    scheduling: o.Scheduling = "fcfs", async_scheduling: o.AsyncScheduling = None,
    speculative_tokens: o.SpeculativeTokens = None,
    acceptance: o.Acceptance = None, draw_acceptance: o.DrawAcceptance = False,
    batching: b.BatchingKind = b.Batching.CONTINUOUS,
    max_batch: b.MaxBatch = None, max_delay_ms: b.MaxDelay = None,
    preferred_batch: b.PreferredBatch = None,
    scale: o.Scale = 1.0, columns: t.Columns = None, where: t.Where = None,
    lengths_from: t.LengthsFrom = None, priorities: t.Priorities = None,
    shared_prefix: t.SharedPrefix = None,
    scenario: o.ScenarioFile = None,
    workload: o.Workload = None,
    rate: o.Rate = None,
    arrivals: o.Arrivals = None,
    burstiness: o.Burstiness = None,
    phases: o.Phases = None,
    users: o.Users = None, think_s: o.Think = None, turns: o.Turns = None,
    input_tokens: o.InputTokens = None, output_tokens: o.OutputTokens = None,
    input_p95: o.InputP95 = None, output_p95: o.OutputP95 = None,
    lengths: o.Lengths = None,
    duration: o.Duration = None,
    n_requests: o.NRequests = None,
    profile: o.Profile = None,
    growth: o.Growth = 0.0,
    months: o.Months = None,
    slo_ttft_ms: o.SloTtft = None, slo_tpot_ms: o.SloTpot = None,
    slo_e2e_s: o.SloE2e = None,
    slo_percentile: o.SloKept = None,
    warmup: o.Warmup = None, gaps: o.Gaps = False,
    bin_s: o.Bin = 60.0,
    curve: o.Curve = None,
    cost_waste: o.CostWaste = None, cost_delay: o.CostDelay = None,
    workers: o.Workers = None,
    stream: o.Stream = False,
    fleet: o.FleetFile = None,
    seed: o.Seed = 0,
    overlay: o.Overlay = None, calibration: o.CalibrationFile = None,
    out: o.Out = None,
    chart: o.ChartTo = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Replay requests against a fleet: latencies, throughput, use over time, kept promises.

    Requests come from --trace, from --scenario, or are drawn: --rate 5 --input-tokens 1000
    --output-tokens 200.
    """
    typed = o.Typed(**locals())
    with leaving_nothing():
        _simulate(typed)


def _simulate(typed: o.Typed) -> None:
    form = chosen(typed.output, as_json=typed.as_json)
    typed = recorded_lengths(_whole_requests(typed))
    query = t.trace_query(typed.columns, typed.where)
    drawn = o.drawn_load(typed)
    sources = Sources(typed.trace, query, typed.scale, typed.scenario, typed.workload, drawn)
    check_targets(typed.out, typed.chart or [])
    _check_fleet(typed)
    check_sources(sources, typed)
    asked = o.simulate_request(typed)
    if typed.stream:
        served = (_model(typed.model, None), typed.on, typed.overlay or [])
        sheet, charts = _stream(served, sources, asked, typed.out)
    else:
        sheet, charts = _in_memory(typed, sources, asked)
    emit(sheet, form)
    show_charts(typed.chart or [], charts, sheet.head, is_beside=form is not Form.TABLE)


def _in_memory(typed: o.Typed, sources: Sources, asked: "SimulateRequest") -> "Shown":
    taken = marked(load(sources, typed.seed), sources, typed)
    asked = replace(
        asked,
        slo=asked.slo or taken.slo,
        precision=typed.precision or taken.precision,
        cache_precision=typed.kv_precision or taken.cache_precision,
    )
    if typed.fleet is not None:
        return _living(typed, typed.fleet, taken, asked)
    served = (_model(typed.model, taken.model), typed.on, typed.overlay or [])
    if _is_network(typed):
        return _network(served, taken, asked, typed)
    if typed.curve is None:
        return _run(served, taken, asked, typed)
    curve = _sizes(typed.curve, typed.cost_waste, typed.cost_delay, typed.workers)
    return _curve(served, taken, asked, curve)


def _is_network(typed: o.Typed) -> bool:
    from gpuplan import api

    is_fixed = typed.batching is not b.Batching.CONTINUOUS
    return is_fixed and typed.model is not None and api.is_network(typed.model)


def _whole_requests(typed: o.Typed) -> o.Typed:
    """Of a network a request is one sample: it needs no tokens, and has no stream of them."""
    from gpuplan.errors import InputError, Problem

    if not _is_network(typed):
        _check_batching(typed)
        return typed
    beside = {
        "--stream": typed.stream,
        "--gaps": typed.gaps,
        "--curve": typed.curve is not None,
        "--fleet": typed.fleet is not None,
        "--users": typed.users is not None,
    }
    fix = "leave it out: a network is served by whole requests"
    problems = [
        Problem(flag, f"with {typed.model}", fix) for flag, is_on in beside.items() if is_on
    ]
    if problems:
        raise InputError("simulate", problems)
    return typed._replace(
        input_tokens=typed.input_tokens or 1.0, output_tokens=typed.output_tokens or 1.0
    )


def _check_batching(typed: o.Typed) -> None:
    """What is served by whole requests needs a rule for its batches."""
    from gpuplan import api
    from gpuplan.errors import InputError, one

    if typed.model is not None and typed.input_tokens is None and api.is_network(typed.model):
        what = f"continuous with {typed.model}, which is served by whole requests"
        fix = "use --batching dynamic --max-batch 16 --max-delay-ms 5, or static"
        raise one(InputError, "simulate", "--batching", what, fix)


def _network(
    served: Served, taken: "LoadSource", asked: "SimulateRequest", typed: o.Typed
) -> "Shown":
    from gpuplan import api

    model, on, overlays = served
    with busy("replaying; the first run on a machine compiles its kernels"):
        found = api.simulate_network(model, on, taken, asked, overlays=overlays)
    if typed.out is not None:
        write_requests(typed.out, found.outcome)
    return api.simulate_sheet(found), api.simulate_charts(found)


def _model(named: str | None, of_scenario: str | None) -> str:
    from gpuplan.errors import InputError, one

    found = named or of_scenario
    if found is None:
        raise one(InputError, "simulate", "--model", "missing", "name the model to serve")
    return found


def _ready(served: Served, requests: "Requests", asked: "SimulateRequest") -> "PreparedFleet":
    from gpuplan import api

    model, on, overlays = served
    with busy("loading; the first run on a machine compiles its kernels"):
        return api.prepare_fleet(model, on, requests, asked, overlays=overlays, store=user_store())


def _run(served: Served, taken: "LoadSource", asked: "SimulateRequest", typed: o.Typed) -> "Shown":
    from gpuplan import api

    ready, n = _ready(served, taken.requests, asked), len(taken.requests)
    if n < MANY:
        with busy("replaying; the first run on a machine compiles its kernels"):
            found = api.simulate_load(ready, taken, asked)
    else:
        with progress(n, "requests") as told:
            found = api.simulate_load(ready, taken, asked, told=told)
    if typed.gaps:
        with busy("stepping through it again for the gaps"):
            found = api.with_gaps(found)
    if typed.out is not None:
        write_requests(typed.out, found.outcome)
    return api.simulate_sheet(found), api.simulate_charts(found)


def _check_fleet(typed: o.Typed) -> None:
    """A fleet of a file says itself how many replicas it has, and is run as a whole."""
    from gpuplan.errors import InputError, Problem

    if typed.fleet is None:
        return
    beside = {
        "--stream": typed.stream,
        "--gaps": typed.gaps,
        "--curve": typed.curve is not None,
        "--replicas": typed.replicas != 1,
        "--router": typed.router != "least_outstanding",
        "--batching": typed.batching is not b.Batching.CONTINUOUS,
        "--pp": typed.pp != 1,
        "--dp": typed.dp != 1,
        "--ep": typed.ep != 1,
        "--lora-rank": typed.lora_rank != 0,
    }
    problems = [
        Problem("--fleet", f"with {flag}", f"leave {flag} out; the file says what pools can have")
        for flag, is_given in beside.items()
        if is_given
    ]
    if problems:
        raise InputError("simulate", problems)


def _living(typed: o.Typed, fleet: Path, taken: "LoadSource", asked: "SimulateRequest") -> "Shown":
    from gpuplan import api

    served = (typed.model or taken.model, typed.on)
    with busy("replaying; the first run on a machine compiles its kernels, for some 20 s"):
        found = api.simulate_fleet(
            fleet, taken, asked, served=served, overlays=typed.overlay or [], store=user_store()
        )
    if typed.out is not None:
        write_requests(typed.out, found.found.outcome, found.found.end)
    return api.fleet_sheet(found), api.fleet_charts(found)


def _stream(
    served: Served, sources: Sources, asked: "SimulateRequest", out: Path | None
) -> "Shown":
    from gpuplan import api

    coming = (
        api.trace_blocks(sources.trace, sources.query)
        if sources.trace is not None
        else api.drawn_blocks(sources.drawn, seed=asked.seed)
    )
    ready = _ready(served, coming.first, asked)
    with progress(coming.n_expected, "requests") as told, RequestFile(out) as file:
        found = api.simulate_stream(ready, coming, asked, told=told, sink=file.sink)
    for line in coming.told:
        typer.echo(f"{(sources.trace or Path('load')).name}: {line}", err=True)
    return api.simulate_sheet(found), api.simulate_charts(found)


def _sizes(
    curve: str, cost_waste: float | None, cost_delay: float | None, workers: int | None
) -> "CurveRequest":
    from gpuplan.domain.simulation.simulation import CurveRequest
    from gpuplan.errors import InputError, Problem
    from gpuplan.units import HOUR

    problems = [
        Problem(flag, "missing", f"say what {what} costs, e.g. {example}")
        for flag, value, what, example in (
            ("--cost-waste", cost_waste, "a wasted GPU-hour", "2.5"),
            ("--cost-delay", cost_delay, "a late request", "0.01"),
        )
        if value is None
    ]
    if cost_waste is None or cost_delay is None:
        raise InputError("simulate", problems)
    return CurveRequest(
        sizes=sizes(curve),
        waste_usd_per_accelerator_s=cost_waste / HOUR,
        delay_usd_per_request=cost_delay,
        n_workers=workers or n_cores(),
    )


def _curve(
    served: Served, taken: "LoadSource", asked: "SimulateRequest", curve: "CurveRequest"
) -> "Shown":
    from gpuplan import api

    ready = _ready(served, taken.requests, asked)
    ready = replace(ready, assumptions=(*taken.assumptions, *ready.assumptions))
    with progress(len(set(curve.sizes)), "fleet sizes") as told:
        found = api.simulate_curve(
            ready, taken.requests, curve, request=asked, blocks=taken.blocks, told=told
        )
    return api.curve_sheet(found), api.curve_charts(found)
