"""`gpuplan simulate cluster.yaml --jobs trace`: replay jobs on a shared cluster."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpuplan.cli.output import busy, chosen, emit, names, whole_file, write_whole
from gpuplan.cli.simulate.options import SimulateOptions

if TYPE_CHECKING:
    from gpuplan.domain.cluster.answer import ClusterSimulation


def simulate_cluster_jobs(options: SimulateOptions, cluster: Path, jobs: Path) -> None:
    """Replay, show, and write what was asked for."""
    from gpuplan import api
    from gpuplan.domain.cluster.answer import ClusterRequest

    _check_targets(options)
    request = ClusterRequest(
        policies=tuple(names(options.compare) or ()),
        n_changes=options.change_nodes,
        advises_quotas=options.advise_quotas,
        advises_fractions=options.advise_mig,
        seed=options.seed,
    )
    with busy("replaying jobs; the first run on a machine compiles its kernel"):
        found = api.simulate_jobs(cluster, jobs, request)
    if options.out is not None:
        _write_jobs(options.out, found)
    emit(api.cluster_sheet(found), chosen(options.output, as_json=options.as_json))
    if options.render_to is not None:
        options.render_to.mkdir(parents=True, exist_ok=True)
        for one in api.cluster_files(found):
            write_whole(options.render_to / one.path, one.content)
            typer.echo(f"wrote {options.render_to / one.path}", err=True)
    for target in options.chart or []:
        write_whole(Path(target), api.cluster_svg(found))
        typer.echo(f"wrote {target}", err=True)


def _check_targets(options: SimulateOptions) -> None:
    from gpuplan.errors import InputError, Problem

    problems = [
        Problem("--chart", f"{target!r} has no known format", "end in .svg")
        for target in options.chart or []
        if Path(target).suffix != ".svg"
    ]
    if options.out is not None and options.out.suffix not in (".csv", ".parquet"):
        what = f"{options.out.name!r} has no known format"
        problems.append(Problem("--out", what, "end in .parquet or .csv"))
    if problems:
        raise InputError("simulate", problems)


def _write_jobs(path: Path, found: "ClusterSimulation") -> None:
    """Every job in a file of its own."""
    import polars

    from gpuplan import api

    table = polars.DataFrame(api.job_columns(found))
    with whole_file(path) as part:
        if path.suffix == ".csv":
            table.write_csv(part)
        else:
            table.write_parquet(part)
    typer.echo(f"wrote {len(found.jobs)} jobs to {path}", err=True)
