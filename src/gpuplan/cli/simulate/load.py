"""Where the requests of `gpuplan simulate` come from: one source, and its adjustments."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpuplan.cli.simulate.options import SimulateOptions
from gpuplan.cli.simulate.parse import priority_mix

if TYPE_CHECKING:
    from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource
    from gpuplan.domain.traffic.trace import TraceQuery

    Query = TraceQuery | None


def trace_query(options: SimulateOptions) -> "Query":
    """Columns and rows of the trace; None where nothing was typed."""
    from gpuplan import api
    from gpuplan.domain.traffic.trace import TraceQuery
    from gpuplan.errors import InputError, Problem

    pairs = [part.partition("=") for part in options.where or []]
    bad = [
        Problem("--where", f"cannot read {''.join(pair)!r}", "write COLUMN=VALUE")
        for pair in pairs
        if not (pair[0].strip() and pair[1])
    ]
    if bad:
        raise InputError("simulate", bad)
    if options.columns is None and not pairs:
        return None
    return TraceQuery(
        columns=None if options.columns is None else api.column_map(options.columns),
        where=tuple((name.strip(), value.strip()) for name, _, value in pairs),
    )


def load(options: SimulateOptions, drawn: "DrawnLoad", query: "Query") -> "LoadSource":
    """Requests from the one source that was given, with lengths and priorities as asked."""
    taken = _from_source(options, drawn, query)
    name = (options.trace or options.scenario or Path("load")).name
    for line in taken.told:
        typer.echo(f"{name}: {line}", err=True)
    n_told = len(taken.told)
    taken = _adjusted(taken, options, query)
    for line in taken.told[n_told:]:
        typer.echo(line, err=True)
    return taken


def _from_source(options: SimulateOptions, drawn: "DrawnLoad", query: "Query") -> "LoadSource":
    from gpuplan import api

    trace, scale, seed = options.trace, options.scale, options.seed
    seconds = drawn.duration_s
    if trace is not None and trace.is_dir():
        return api.clients_load(trace, query=query, duration_s=seconds, scale=scale, seed=seed)
    if trace is not None:
        return api.trace_load(trace, query=query, scale=scale, seed=seed)
    if options.scenario is not None:
        workload = options.workload
        return api.scenario_load(options.scenario, workload, duration_s=seconds, seed=seed)
    return api.drawn_load(drawn, seed=seed)


def _adjusted(taken: "LoadSource", options: SimulateOptions, query: "Query") -> "LoadSource":
    from gpuplan import api

    if options.lengths_from is not None:
        taken = api.with_lengths(taken, options.lengths_from, query, seed=options.seed)
    if options.shared_prefix is not None:
        taken = api.with_shared_prefix(taken, options.shared_prefix)
    mix = priority_mix(options.priorities)
    if mix:
        taken = api.with_priorities(taken, mix, seed=options.seed)
    return taken
