"""The application: verbs become jobs, jobs are read, awaited, followed and cancelled."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from gpuplan.errors import PlannerError
from gpuplan.server.rest.access import Access
from gpuplan.server.rest.answers import ERRORS, JobAnswer, RefusalError
from gpuplan.server.rest.bodies import EXAMPLES
from gpuplan.server.rest.door import Door, is_page
from gpuplan.server.rest.jobs import JobStore
from gpuplan.server.rest.verbs import VERBS
from gpuplan.server.rest.workers import Workers, error_body
from gpuplan.server.web.pages import add_pages, ask_example, error_page

SEE = "see /openapi.json"
ABOUT = (
    "Every verb of gpuplan over HTTP. A question becomes a job; its answer is waited for, read "
    "later, or followed by server-sent events. Errors have one shape."
)


def make_app(
    store: JobStore,
    workers: Workers,
    access: Access,
    *,
    hosts: list[str],
    version: str,
    is_shown: bool = False,
) -> FastAPI:
    """The application around a store and its workers; shown: the example is answered at once."""
    door = Door(store, workers, access, version, hosts=hosts)
    has_example = is_shown and not access.owners
    life = asynccontextmanager(partial(_life, door, has_example=has_example))
    app = FastAPI(
        title="gpuplan",
        description=ABOUT,
        version=version,
        lifespan=life,
        responses=ERRORS,
        docs_url=None,
        redoc_url=None,
    )
    _add_paths(app, door)
    add_pages(app, door)
    _handle_errors(app)
    app.middleware("http")(door.guard)
    return app


async def _life(door: Door, _: FastAPI, *, has_example: bool) -> AsyncIterator[None]:
    """Workers and store live as long as the server."""
    door.workers.start()
    if has_example:
        await ask_example(door)
    yield
    door.workers.stop()
    door.store.close()


def _add_paths(app: FastAPI, door: Door) -> None:
    for name, verb in VERBS.items():
        shown = {"content": {"application/json": {"example": EXAMPLES.get(name, {})}}}
        app.post(
            f"/v1/{name}",
            summary=verb.summary,
            response_model=JobAnswer,
            responses={202: {"model": JobAnswer, "description": "Not answered yet."}},
            openapi_extra={"requestBody": shown},
            name=name,
        )(door.requested(name, verb))
    app.get("/v1/jobs", summary="Jobs, newest first.")(door.jobs)
    app.get("/v1/jobs/{job_id}", summary="One job.", response_model=JobAnswer)(door.job)
    app.delete("/v1/jobs/{job_id}", summary="Cancel a job.")(door.cancel)
    app.get("/v1/jobs/{job_id}/events", summary="Follow a job.", response_class=StreamingResponse)(
        door.events
    )
    app.get("/healthz", summary="Whether the server is there.")(_healthy)


async def _healthy() -> dict[str, str]:
    return {"state": "ok"}


def _unreadable(error: RequestValidationError) -> dict[str, Any]:
    problems = [
        {"where": ".".join(map(str, each["loc"])), "what": each["msg"], "fix": SEE}
        for each in error.errors()[:20]
    ]
    return {"code": "input", "message": "the request cannot be read", "problems": problems}


def _handle_errors(app: FastAPI) -> None:
    """Every error in one shape; as a page where a browser asks for one."""

    def remarks(request: Request, body: dict[str, Any], status: int, **headers: str) -> Response:
        if is_page(request):
            return error_page(body, status)
        return JSONResponse({"error": body}, status, headers=headers)

    @app.exception_handler(RefusalError)
    async def refused(request: Request, error: RefusalError) -> Response:
        return remarks(request, error.body, error.status, **error.headers)

    @app.exception_handler(PlannerError)
    async def planner(request: Request, error: PlannerError) -> Response:
        return remarks(request, error_body(error), 422)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return remarks(request, _unreadable(error), 422)

    @app.exception_handler(RecursionError)
    async def deep(request: Request, __: RecursionError) -> Response:
        body = {"code": "input", "message": "the body is nested too deeply", "problems": []}
        return remarks(request, body, 400)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        body = {"code": "http", "message": str(error.detail), "problems": []}
        return remarks(request, body, error.status_code, **(error.headers or {}))
