"""What `gpuplan simulate` writes beside its result: requests, charts, progress.

Where the requests of `gpuplan simulate` come from: one source, and its adjustments.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from gpuplan import api
from gpuplan.cli.output import check_writable, is_plain, whole_file, write_whole
from gpuplan.cli.simulate.options import SimulateOptions
from gpuplan.cli.simulate.parse import priority_mix
from gpuplan.errors import InputError, Problem

if TYPE_CHECKING:
    from gpuplan.domain.chart import Chart
    from gpuplan.domain.columns import Ints
    from gpuplan.domain.simulation.outcome import Outcome, RequestTimes
    from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource
    from gpuplan.domain.traffic.stream import Requests
    from gpuplan.domain.traffic.trace import TraceQuery

    Query = TraceQuery | None


TERMINAL = "-"
SIGNALLED = 128  # what shells add to the number of a signal
Progressed = Callable[[int], None]


def check_targets(out: Path | None, charts: list[str]) -> None:
    """Before anything is computed: can what was asked be written?"""
    problems = []
    if out is not None and out.suffix not in (".csv", ".parquet"):
        problems.append(
            Problem("--out", f"{out.name!r} has no known format", "end in .parquet or .csv")
        )
    for target in charts:
        if target != TERMINAL and Path(target).suffix not in (".html", ".png"):
            fix = "use - for the terminal, or a name that ends in .html or .png"
            problems.append(Problem("--chart", f"{target!r} has no known format", fix))
    if problems:
        raise InputError("simulate", problems)
    check_writable(out, *(Path(chart) for chart in charts if chart != TERMINAL))


def write_requests(path: Path, outcome: "Outcome", end: "Ints | None" = None) -> None:
    """Every request in a file of its own; `end` says how those of an autoscaled fleet ended."""
    with whole_file(path) as part:
        if path.suffix == ".csv":
            with part.open("w", encoding="utf-8") as file:
                file.writelines(api.requests_csv(outcome, end))
        else:
            import polars

            columns = api.passed_columns(outcome.requests, outcome.times, end=end)
            polars.DataFrame(columns).write_parquet(part)
    typer.echo(f"wrote {outcome.n_requests} requests to {path}", err=True)


class RequestFile:
    """Requests written as they pass: parts beside the file, joined at the end.

    A Parquet file is written whole; parts keep memory small until then.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._n = 0
        self._n_parts = 0
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> "RequestFile":
        if self._path is not None:
            folder, name = self._path.resolve().parent, f".{self._path.name}."
            self._folder = TemporaryDirectory(dir=folder, prefix=name)
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if self._path is None or self._folder is None:
            return
        with self._folder as folder:
            if kind is None and self._n_parts:
                with whole_file(self._path) as whole:
                    self._join(Path(folder), whole)
        if kind is None:
            typer.echo(f"wrote {self._n} requests to {self._path}", err=True)

    @property
    def sink(self) -> "Callable[[Requests, RequestTimes], None] | None":
        """Where passed requests go; None where no file was asked for."""
        return None if self._path is None else self._take

    def _take(self, requests: "Requests", times: "RequestTimes") -> None:
        if not len(requests) or self._folder is None:
            return
        import polars

        columns = api.passed_columns(requests, times, first=self._n)
        part = Path(self._folder.name) / f"{self._n_parts:06d}.parquet"
        polars.DataFrame(columns).write_parquet(part)
        self._n += len(requests)
        self._n_parts += 1

    def _join(self, folder: Path, whole: Path) -> None:
        import polars

        parts = polars.scan_parquet(sorted(folder.glob("*.parquet")))
        if self._path is not None and self._path.suffix == ".csv":
            parts.sink_csv(whole)
        else:
            parts.sink_parquet(whole)


def show_charts(
    targets: list[str], charts: "tuple[Chart, ...]", title: str, *, is_beside: bool
) -> None:
    """Charts where they were asked for; beside a result that machines read, on stderr."""
    if not charts:
        typer.echo("there are no numbers to draw: no chart is written", err=True)
        return
    for target in targets:
        path = Path(target)
        if target == TERMINAL:
            typer.echo(api.charts_text(charts), err=is_beside)
        elif path.suffix == ".html":
            write_whole(path, api.charts_html(charts, title))
        else:
            write_whole(path, api.charts_png(charts, title))
        if target != TERMINAL:
            typer.echo(f"wrote {len(charts)} charts to {path}", err=True)


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def progress(n_all: int | None, what: str) -> Iterator[Progressed]:
    """A progress bar on stderr; none where stderr is not a terminal."""
    if not sys.stderr.isatty() or is_plain():
        yield lambda n_done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=n_all)
        yield lambda n_done: bar.update(task, completed=n_done)


@contextmanager
def cleaning_up() -> Iterator[None]:
    """A request to end lets what was begun be cleared away, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: object) -> None:
        sys.exit(SIGNALLED + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def trace_query(options: SimulateOptions) -> "Query":
    """Columns and rows of the trace; None where nothing was typed."""
    from gpuplan.domain.traffic.trace import TraceQuery

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
    for line in taken.remarks:
        typer.echo(f"{name}: {line}", err=True)
    n_remarks = len(taken.remarks)
    taken = _adjusted(taken, options, query)
    for line in taken.remarks[n_remarks:]:
        typer.echo(line, err=True)
    return taken


def _from_source(options: SimulateOptions, drawn: "DrawnLoad", query: "Query") -> "LoadSource":
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
    if options.lengths_from is not None:
        taken = api.with_lengths(taken, options.lengths_from, query, seed=options.seed)
    if options.shared_prefix is not None:
        taken = api.with_shared_prefix(taken, options.shared_prefix)
    mix = priority_mix(options.priorities)
    if mix:
        taken = api.with_priorities(taken, mix, seed=options.seed)
    return taken
