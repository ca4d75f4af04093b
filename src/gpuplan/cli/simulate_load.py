"""Where the requests of `gpuplan simulate` come from: one source, and what was asked beside it."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from gpuplan.cli import simulate_options as o
from gpuplan.cli import simulate_trace as t
from gpuplan.cli.simulate_idle import idle_problems

if TYPE_CHECKING:
    from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource
    from gpuplan.domain.traffic.trace import TraceQuery


class Sources(NamedTuple):
    """Where requests may come from, as typed."""

    trace: Path | None
    query: "TraceQuery | None"
    scale: float
    scenario: Path | None
    workload: str | None
    drawn: "DrawnLoad"


def check_sources(sources: Sources, typed: o.Typed) -> None:
    """One source, one that can be streamed where that was asked, and nothing beside it."""
    from gpuplan.errors import InputError, Problem

    is_stream, is_gaps = typed.stream, typed.gaps
    given = [
        flag
        for flag, value in (
            ("--trace", sources.trace),
            ("--scenario", sources.scenario),
            ("--rate", sources.drawn.requests_per_s),
            ("--phases", sources.drawn.phases or None),
            ("--users", sources.drawn.n_users),
        )
        if value is not None
    ]
    problems = []
    if len(given) != 1:
        what = f"got {' and '.join(given) or 'none'}"
        fix = (
            "give one of --trace FILE, --scenario FILE, --rate REQUESTS_PER_S, --phases or --users"
        )
        problems.append(Problem("load", what, fix))
    if is_gaps and (is_stream or sources.drawn.n_users is not None):
        what = "with --stream or --users"
        problems.append(Problem("--gaps", what, "leave it out: TPOT and the mean gap remain"))
    if is_stream and (sources.scenario is not None or sources.drawn.n_users is not None):
        what = "with --scenario or --users"
        problems.append(Problem("--stream", what, "use --trace or --rate"))
    if sources.scale != 1.0 and (sources.trace is None or is_stream):
        what = "without --trace" if sources.trace is None else "with --stream"
        problems.append(Problem("--scale", what, "scale a trace in memory, or the --rate"))
    problems += idle_problems(typed)
    if problems:
        raise InputError("simulate", problems)


def load(sources: Sources, seed: int) -> "LoadSource":
    """Requests from the one source that was given."""
    from gpuplan import api

    if sources.trace is not None and sources.trace.is_dir():
        taken = api.clients_load(
            sources.trace, query=sources.query, duration_s=sources.drawn.duration_s,
            scale=sources.scale, seed=seed,
        )  # fmt: skip
    elif sources.trace is not None:
        taken = api.trace_load(sources.trace, query=sources.query, scale=sources.scale, seed=seed)
    elif sources.scenario is not None:
        seconds = sources.drawn.duration_s
        taken = api.scenario_load(sources.scenario, sources.workload, duration_s=seconds, seed=seed)
    else:
        taken = api.drawn_load(sources.drawn, seed=seed)
    name = (sources.trace or sources.scenario or Path("load")).name
    for line in taken.told:
        typer.echo(f"{name}: {line}", err=True)
    return taken


def recorded_lengths(typed: o.Typed) -> o.Typed:
    """Lengths of a file stand in for the figures, which would be passed over beside it."""
    from gpuplan.errors import InputError, Problem

    if typed.lengths_from is None:
        return typed
    beside = {
        "--trace": typed.trace, "--scenario": typed.scenario, "--turns": typed.turns,
        "--input-tokens": typed.input_tokens, "--output-tokens": typed.output_tokens,
        "--input-p95": typed.input_p95, "--output-p95": typed.output_p95,
        "--lengths": typed.lengths, "--stream": typed.stream or None,
    }  # fmt: skip
    given = [flag for flag, value in beside.items() if value is not None]
    fix = "leave one of them out: the file says how long requests are, not when they come"
    if given:
        raise InputError("simulate", [Problem(flag, "with --lengths-from", fix) for flag in given])
    return typed._replace(input_tokens=1.0, output_tokens=1.0)


def marked(taken: "LoadSource", sources: Sources, typed: o.Typed) -> "LoadSource":
    """The load with lengths and urgencies that were asked for beside its source."""
    from gpuplan import api

    n_told = len(taken.told)
    if typed.lengths_from is not None:
        query, seed = sources.query, typed.seed
        taken = api.with_lengths(taken, typed.lengths_from, query, seed=seed)
    if typed.shared_prefix is not None:
        taken = api.with_shared_prefix(taken, typed.shared_prefix)
    mix = t.urgencies(typed.priorities)
    if mix:
        taken = api.with_urgencies(taken, mix, seed=typed.seed)
    for line in taken.told[n_told:]:
        typer.echo(line, err=True)
    return taken
