"""What the paths answer: jobs, pages of jobs, and the one shape of errors."""

import json
from time import time
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from gpuplan.server.rest.jobs import Job


class Fault(BaseModel):
    """One thing that is wrong: where, what, and how to fix it."""

    where: str
    what: str
    fix: str


class ErrorBody(BaseModel):
    """The one shape of errors."""

    code: str
    message: str
    problems: list[Fault] = []


class ErrorAnswer(BaseModel):
    """An error, as every path answers it."""

    error: ErrorBody


class Progress(BaseModel):
    """How far a job is: jobs before it, its stage, how long it runs and such jobs usually take."""

    n_ahead: int = 0
    stage: str | None = None
    elapsed_s: float = 0.0
    usual_s: float | None = None


class JobAnswer(BaseModel):
    """A job, and its result once it is done."""

    id: str
    verb: str
    state: str
    created_s: float
    started_s: float | None = None
    ended_s: float | None = None
    progress: Progress | None = None
    result: Any = None
    error: ErrorBody | None = None


class Jobs(BaseModel):
    """A page of jobs, newest first."""

    jobs: list[JobAnswer]
    next: int | None = None


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 403, 404, 413, 422, 429)
}


class RefusalError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        self.status, self.body = status, {"code": code, "message": message, "problems": []}
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(message)


def answer_of(job: Job, progress: Progress | None = None) -> dict[str, Any]:
    """The job without its result; one that has not ended with its progress."""
    found: dict[str, Any] = {
        "id": job.id,
        "verb": job.verb,
        "state": job.state,
        "created_s": job.created_s,
        "started_s": job.started_s,
        "ended_s": job.ended_s,
    }
    if not job.is_ended:
        elapsed = 0.0 if job.started_s is None else max(0.0, time() - job.started_s)
        known = progress or Progress()
        found["progress"] = {**known.model_dump(), "elapsed_s": elapsed}
    if job.error:
        found["error"] = json.loads(job.error)
    return found


def response_of(job: Job, status: int) -> Response:
    """The job as JSON; the result is put in as it was stored."""
    head = json.dumps(answer_of(job))
    text = head if job.result is None else f'{head[:-1]}, "result": {job.result}}}'
    where = {"Location": f"/v1/jobs/{job.id}"}
    return Response(text, status, media_type="application/json", headers=where)
