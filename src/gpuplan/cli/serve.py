"""`gpuplan serve`: every verb over HTTP."""

import gc
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import opt
from gpuplan.cli.watch import LONG_LIVED

SERVICE = "Service"


def serve(
    host: Annotated[str, opt(SERVICE, "Address to listen on; others need --tokens.")] = "127.0.0.1",
    port: Annotated[int, opt(SERVICE, "Port to listen on.", min=1, max=65535)] = 8642,
    state: Annotated[Path | None, opt(SERVICE, "File of jobs and their results (SQLite).")] = None,
    tokens: Annotated[
        Path | None, opt(SERVICE, "File with `owner token` on each line: who may ask.")
    ] = None,
    workers: Annotated[int, opt(SERVICE, "Worker processes that run jobs.", min=1, max=256)] = 2,
    limit_s: Annotated[
        float, opt(SERVICE, "Seconds after which a job is ended.", "--limit-s", min=1)
    ] = 600.0,
) -> None:
    """Serve every verb over HTTP: questions become jobs; /openapi.json describes them."""
    from gpuplan.server.rest.serve import ServeOptions
    from gpuplan.server.rest.serve import serve as verb

    retained = state if state is not None else Path(typer.get_app_dir("gpuplan")) / "jobs.sqlite"
    options = ServeOptions(host, port, retained, tokens, workers, limit_s)
    typer.echo(f"http://{host}:{port}/openapi.json; jobs in {retained}", err=True)
    gc.set_threshold(*LONG_LIVED)
    verb(options)
