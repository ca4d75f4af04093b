"""`gpuplan simulate`: replay requests against a fleet and report what users experience.

`gpuplan simulate cluster.yaml --jobs trace`: replay jobs on a shared cluster.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpuplan import api
from gpuplan.cli.command import Form
from gpuplan.cli.options import user_store
from gpuplan.cli.output import busy, emit, names, whole_file, write_whole
from gpuplan.cli.simulate.conflicts import (
    check_fleet,
    check_jobs,
    check_options,
    check_plan,
    is_network,
    with_network_load,
    with_recorded_lengths,
)
from gpuplan.cli.simulate.files import (
    RequestFile,
    check_targets,
    cleaning_up,
    load,
    n_cores,
    progress,
    show_charts,
    trace_query,
    write_requests,
)
from gpuplan.cli.simulate.options import SimulateOptions
from gpuplan.cli.simulate.parse import seconds, sizes
from gpuplan.cli.simulate.request import drawn_load, simulate_request
from gpuplan.errors import InputError, Problem, one
from gpuplan.units import HOUR

if TYPE_CHECKING:
    from gpuplan.cli.simulate.files import Query
    from gpuplan.domain.chart import Chart
    from gpuplan.domain.columns import Ints
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.simulation.outcome import Outcome
    from gpuplan.domain.simulation.simulation import CurveRequest, PreparedFleet, SimulateRequest
    from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource
    from gpuplan.domain.traffic.stream import Requests

    Shown = tuple[Sheet, tuple[Chart, ...], Callable[[], None] | None]  # the last writes --out
    from gpuplan.domain.cluster.answer import ClusterSimulation


MANY = 500_000  # requests: below, a run is over before a bar is drawn
SIMULATING = "simulating; the first run on a computer compiles its kernels"


def simulate(options: SimulateOptions, form: Form) -> None:
    """Simulate a fleet serving requests: latency, throughput, utilization, SLO attainment.

    Requests come from --trace, from --scenario, or are generated: --rate 5 --input-tokens 1000
    --output-tokens 200. A plan file alone is simulated as it is: its fleet at its peak load.
    With --jobs, a job trace is replayed on the shared cluster of a cluster file.
    """
    with cleaning_up():
        _simulate(options, form)


def _simulate(options: SimulateOptions, form: Form) -> None:
    check_jobs(options)
    if options.jobs is not None and options.plan is not None:
        simulate_cluster_jobs(options, options.plan, options.jobs, form)
        return
    check_plan(options)
    if options.plan is not None:
        check_targets(options.out, options.chart or [])
        _show(options, form, _planned(options, options.plan))
        return
    options = with_recorded_lengths(with_network_load(options))
    query, drawn = trace_query(options), drawn_load(options)
    check_targets(options.out, options.chart or [])
    check_fleet(options)
    check_options(options)
    request = simulate_request(options)
    if options.stream:
        shown = _stream(options, drawn, query, request)
    else:
        shown = _in_memory(options, load(options, drawn, query), request)
    _show(options, form, shown)


def _show(options: SimulateOptions, form: Form, shown: "Shown") -> None:
    """The file of requests first, then the result, which a full disk does not cost."""
    (sheet, charts, write), failed = shown, None
    try:
        if write is not None:
            write()
    except InputError as error:
        failed = error
    emit(sheet, form)
    show_charts(options.chart or [], charts, sheet.head, is_beside=form is not Form.TABLE)
    if failed is not None:
        raise failed


def _requests_to(
    path: Path | None, outcome: "Outcome", end: "Ints | None" = None
) -> "Callable[[], None] | None":
    return None if path is None else partial(write_requests, path, outcome, end)


def _in_memory(
    options: SimulateOptions, taken: "LoadSource", request: "SimulateRequest"
) -> "Shown":
    request = api.with_described(request, taken)
    options = options._replace(model=options.model or taken.model)
    if options.fleet is not None:
        return _autoscaled(options, options.fleet, taken, request)
    if is_network(options):
        return _network(options, taken, request)
    if options.sweep_replicas is None:
        return _run(options, taken, request)
    return _sweep(options, taken, request)


def _planned(options: SimulateOptions, path: Path) -> "Shown":
    with busy(SIMULATING):
        found = api.simulate_planned(
            path,
            options.workload,
            duration_s=seconds(options.duration, "--duration"),
            seed=options.seed,
            overlays=options.overlay or [],
            store=user_store(),
        )
    write = _requests_to(options.out, found.outcome)
    return api.simulate_sheet(found), api.simulate_charts(found), write


def _network(options: SimulateOptions, taken: "LoadSource", request: "SimulateRequest") -> "Shown":
    model, overlays = _model(options), options.overlay or []
    with busy(SIMULATING):
        found = api.simulate_network(model, options.on, taken, request, overlays=overlays)
    write = _requests_to(options.out, found.outcome)
    return api.simulate_sheet(found), api.simulate_charts(found), write


def _model(options: SimulateOptions) -> str:
    if options.model is None:
        raise one(InputError, "simulate", "--model", "missing", "name the model to serve")
    return options.model


def _ready(
    options: SimulateOptions, requests: "Requests", request: "SimulateRequest"
) -> "PreparedFleet":
    model, overlays, store = _model(options), options.overlay or [], user_store()
    with busy("loading; the first run on a computer compiles its kernels"):
        return api.prepare_fleet(
            model, options.on, requests, request, overlays=overlays, store=store
        )


def _run(options: SimulateOptions, taken: "LoadSource", request: "SimulateRequest") -> "Shown":
    ready, n = _ready(options, taken.requests, request), len(taken.requests)
    if n < MANY:
        with busy(SIMULATING):
            found = api.simulate_load(ready, taken, request)
    else:
        with progress(n, "requests") as progressed:
            found = api.simulate_load(ready, taken, request, on_progress=progressed)
    if options.itl:
        with busy("simulating again, token by token, for ITL"):
            found = api.with_gaps(found)
    write = _requests_to(options.out, found.outcome)
    return api.simulate_sheet(found), api.simulate_charts(found), write


def _autoscaled(
    options: SimulateOptions, fleet: Path, taken: "LoadSource", request: "SimulateRequest"
) -> "Shown":
    served, overlays, store = (options.model, options.on), options.overlay or [], user_store()
    with busy(f"{SIMULATING}, for some 20 s"):
        found = api.simulate_fleet(
            fleet, taken, request, served=served, overlays=overlays, store=store
        )
    write = _requests_to(options.out, found.found.outcome, found.found.end)
    return api.fleet_sheet(found), api.fleet_charts(found), write


def _stream(
    options: SimulateOptions, drawn: "DrawnLoad", query: "Query", request: "SimulateRequest"
) -> "Shown":
    if options.trace is not None:
        coming = api.trace_blocks(options.trace, query)
    else:
        coming = api.drawn_blocks(drawn, seed=request.seed)
    ready = _ready(options, coming.first, request)
    with progress(coming.n_expected, "requests") as progressed, RequestFile(options.out) as file:
        found = api.simulate_stream(ready, coming, request, on_progress=progressed, sink=file.sink)
    name = options.trace.name if options.trace else "load"
    for line in coming.remarks:
        typer.echo(f"{name}: {line}", err=True)
    return api.simulate_sheet(found), api.simulate_charts(found), None


def _sweep(options: SimulateOptions, taken: "LoadSource", request: "SimulateRequest") -> "Shown":
    sweep = _sweep_request(options)
    ready = _ready(options, taken.requests, request)
    ready = replace(ready, assumptions=(*taken.assumptions, *ready.assumptions))
    with progress(len(set(sweep.sizes)), "fleet sizes") as progressed:
        found = api.simulate_curve(
            ready,
            taken.requests,
            sweep,
            request=request,
            blocks=taken.blocks,
            on_progress=progressed,
        )
    return api.curve_sheet(found), api.curve_charts(found), None


def _sweep_request(options: SimulateOptions) -> "CurveRequest":
    from gpuplan.domain.simulation.simulation import CurveRequest

    waste_usd, delay_usd = options.cost_waste, options.cost_delay
    if waste_usd is None or delay_usd is None:
        costs = (
            ("--cost-waste", waste_usd, "give the cost of an unused GPU-hour, e.g. 2.5"),
            ("--cost-delay", delay_usd, "give the cost of a request out of SLO, e.g. 0.01"),
        )
        missing = [Problem(flag, "missing", fix) for flag, value, fix in costs if value is None]
        raise InputError("simulate", missing)
    return CurveRequest(
        sizes=sizes(options.sweep_replicas or ""),
        waste_usd_per_accelerator_s=waste_usd / HOUR,
        delay_usd_per_request=delay_usd,
        n_workers=options.workers or n_cores(),
    )


def simulate_cluster_jobs(options: SimulateOptions, cluster: Path, jobs: Path, form: Form) -> None:
    """Replay, show, and write what was asked for."""
    from gpuplan.domain.cluster.answer import ClusterRequest

    _check_targets(options)
    request = ClusterRequest(
        policies=tuple(names(options.compare) or ()),
        n_changes=options.change_nodes,
        advises_quotas=options.advise_quotas,
        advises_fractions=options.advise_mig,
        is_streamed=options.stream,
        seed=options.seed,
    )
    with busy("replaying jobs; the first run on a computer compiles its kernel"):
        found = api.simulate_jobs(cluster, jobs, request)
    if options.out is not None:
        _write_jobs(options.out, found)
    sheet = api.cluster_sheet(found)
    emit(sheet, form)
    if options.render_to is not None:
        options.render_to.mkdir(parents=True, exist_ok=True)
        for one in api.cluster_files(found):
            write_whole(options.render_to / one.path, one.content)
            typer.echo(f"wrote {options.render_to / one.path}", err=True)
    for path in map(Path, options.chart or []):
        if path.suffix == ".html":
            write_whole(path, api.cluster_page(sheet, found))
        else:
            drawn = api.cluster_svg(found)
            write_whole(path, api.svg_png(drawn) if path.suffix == ".png" else drawn)
        typer.echo(f"wrote {path}", err=True)


def _check_targets(options: SimulateOptions) -> None:
    problems = [
        Problem("--chart", f"{target!r} has no known format", "end in .html, .svg or .png")
        for target in options.chart or []
        if Path(target).suffix not in (".html", ".svg", ".png")
    ]
    if options.stream and (options.out or options.chart):
        what, fix = "keeps no job by itself", "leave out --out and --chart, or --stream"
        problems.append(Problem("--stream", what, fix))
    if options.out is not None and options.out.suffix not in (".csv", ".parquet"):
        what = f"{options.out.name!r} has no known format"
        problems.append(Problem("--out", what, "end in .parquet or .csv"))
    if problems:
        raise InputError("simulate", problems)


def _write_jobs(path: Path, found: "ClusterSimulation") -> None:
    """Every job in a file of its own."""
    import polars

    table = polars.DataFrame(api.job_columns(found))
    with whole_file(path) as part:
        if path.suffix == ".csv":
            table.write_csv(part)
        else:
            table.write_parquet(part)
    typer.echo(f"wrote {len(found.jobs)} jobs to {path}", err=True)
