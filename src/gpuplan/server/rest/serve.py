"""`gpuplan serve`: the application behind uvicorn."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpuplan.errors import InputError, one
from gpuplan.server.rest.access import Access, read_tokens, refuse_open

if TYPE_CHECKING:
    from fastapi import FastAPI

KEEP_ALIVE_S = 75  # longer than clients pause between two questions
LOOPBACK = ["127.0.0.1", "localhost", "[::1]", "::1"]


class ServeOptions(NamedTuple):
    """Where the server listens, what it keeps, and how much it does at once."""

    host: str
    port: int
    state: Path
    tokens: Path | None
    n_workers: int
    limit_s: float


def serve(options: ServeOptions) -> None:
    """Answer until interrupted."""
    for package in ("fastapi", "jinja2", "uvicorn"):
        if find_spec(package) is None:
            fix = "install it with: pip install 'gpuplan[serve]'"
            raise one(InputError, "serve", package, "is not installed", fix)
    access = Access(owners=read_tokens(options.tokens) if options.tokens else {})
    refuse_open(options.host, access)
    import uvicorn  # noqa: PLC0415

    app = application(options, access, is_shown=True)
    uvicorn.run(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
    )


def application(options: ServeOptions, access: Access, *, is_shown: bool = False) -> "FastAPI":
    """The application with its store on the disk and its workers; shown: with its page ready."""
    from gpuplan.server.rest.app import make_app  # noqa: PLC0415
    from gpuplan.server.rest.jobs import JobStore  # noqa: PLC0415
    from gpuplan.server.rest.workers import Workers  # noqa: PLC0415

    try:
        options.state.parent.mkdir(parents=True, exist_ok=True)
        store = JobStore(options.state)
    except Exception as error:
        if not isinstance(error, OSError) and type(error).__module__ != "sqlite3":
            raise
        fix = "name a file that can be written (--state)"
        raise one(InputError, "serve", str(options.state), str(error), fix) from None
    workers = Workers(store, options.n_workers, options.limit_s, has_quick=is_shown)
    # Where tokens guard the door any name may lead to it; without, only this machine's own.
    hosts = ["*"] if access.owners else LOOPBACK
    return make_app(
        store, workers, access, hosts=hosts, version=version("gpuplan"), is_shown=is_shown
    )
