"""What every path shares: who may ask, questions as jobs, and waiting for them to end."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from time import monotonic
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse, StreamingResponse

from gpuplan.server.rest.access import HEADERS, LOCAL, TOKEN_COOKIE, Access, Rates
from gpuplan.server.rest.answers import (
    JobAnswer,
    Jobs,
    Progress,
    RefusalError,
    answer_of,
    response_of,
)
from gpuplan.server.rest.bodies import Body
from gpuplan.server.rest.content import refuse_files, refuse_repeated
from gpuplan.server.rest.jobs import Job, JobStore, digest_of
from gpuplan.server.rest.verbs import Verb
from gpuplan.server.rest.workers import Workers, error_body

FIRST_WAIT_S, LONGEST_WAIT_S, HEARTBEAT_S = 0.005, 0.1, 1.0
LOG = logging.getLogger("gpuplan.serve")
OPEN_PATHS = ("/healthz", "/login", "/static/")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
Wait = Annotated[float, Query(ge=0, le=300, description="Seconds to wait for the answer.")]
Sheet = Annotated[bool, Query(alias="sheet", description="Also tables and remarks for people.")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=200, description="Names this question once."),
]
JobId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
Handler = Callable[[Request], Awaitable[Response]]


class Door:
    """What the paths share."""

    def __init__(
        self,
        store: JobStore,
        workers: Workers,
        access: Access,
        version: str,
        *,
        hosts: Sequence[str] = ("*",),
    ) -> None:
        self.store, self.workers, self.access, self.version = store, workers, access, version
        self.hosts = frozenset(hosts)  # names that this server is asked by; *: any
        self.rates = Rates(access)

    async def guard(self, request: Request, following: Handler) -> Response:
        """Token, origin, rate and size before, headers after."""
        try:
            self._admit(request)
            found = await following(request)
        except RefusalError as refusal:
            found = self._refused(request, refusal)
        except Exception as error:
            LOG.exception("%s %s", request.method, request.url.path)
            found = JSONResponse({"error": error_body(error)}, 500)
        found.headers.update({k: v for k, v in HEADERS.items() if k not in found.headers})
        return found

    def _refused(self, request: Request, refusal: RefusalError) -> Response:
        if refusal.status == 401 and is_page(request):
            return RedirectResponse("/login", 303)
        return JSONResponse({"error": refusal.body}, refusal.status, headers=refusal.headers)

    def _admit(self, request: Request) -> None:
        name = request.headers.get("host", "").lower()
        bare = name if name.endswith("]") else name.rpartition(":")[0] or name
        if not self.hosts & {"*", bare}:
            raise RefusalError(400, "host", f"this server is not called {bare[:100]!r}")
        cookie = request.cookies.get(TOKEN_COOKIE)
        given = request.headers.get("authorization") or (cookie and f"Bearer {cookie}")
        owner = self.access.owner_of(given)
        if owner is None and not request.url.path.startswith(OPEN_PATHS):
            message = "needs a token: Authorization: Bearer …"
            raise RefusalError(401, "token", message, WWW_Authenticate="Bearer")
        request.state.owner = owner or ""
        if self.access.owners and not self.rates.allows(owner or LOCAL):
            raise RefusalError(429, "rate", "too many requests: wait a moment", Retry_After="1")
        self._refuse_foreign(request)
        length = request.headers.get("content-length", "")
        is_sized = length.isdigit() or request.method not in ("POST", "PUT", "PATCH")
        if not is_sized:
            raise RefusalError(400, "length", "needs a Content-Length")
        if length.isdigit() and int(length) > self.access.max_body_bytes:
            most = self.access.max_body_bytes
            raise RefusalError(413, "size", f"the body is longer than {most} bytes")

    def _refuse_foreign(self, request: Request) -> None:
        """Pages of other sites change nothing here, even where the browser would let them."""
        origin = request.headers.get("origin")
        if request.method in SAFE_METHODS or origin is None:
            return
        if urlsplit(origin).netloc != request.headers.get("host"):
            raise RefusalError(403, "origin", "pages of other sites may not ask")

    def requested(self, name: str, verb: Verb) -> Callable[..., Awaitable[Response]]:
        """The path of a verb."""

        async def handler(
            request: Request, body: Body, wait: Wait = 30.0, sheet: Sheet = False, key: Key = None
        ) -> Response:
            refuse_repeated(await request.body())
            verb_name = f"{name}+sheet" if sheet else name
            plain = body.model_dump(mode="json")
            job = await self.ask(request.state.owner, verb_name, plain, wait, key)
            return response_of(job, 200 if job.is_ended else 202)

        handler.__annotations__["body"] = verb.body
        handler.__name__ = name.replace("-", "_")
        return handler

    async def ask(
        self, owner: str, name: str, plain: Mapping[str, Any], wait: float, key: str | None = None
    ) -> Job:
        """The job of a question when it has ended, or when nobody waits any longer."""
        refuse_files(plain)
        if self.store.n_waiting(owner) >= self.access.max_waiting:
            message = "too many jobs wait: let some of them end"
            raise RefusalError(429, "waiting", message, Retry_After="10")
        digest = digest_of(name, plain, self.version)
        known = self.store.keyed(owner, key)
        if known is not None and known.digest != digest:
            raise RefusalError(422, "key", "this Idempotency-Key belongs to another question")
        job = await asyncio.to_thread(self.store.add, owner, name, plain, digest, key)
        return await self.ended(job, wait)

    async def ended(self, job: Job, wait: float) -> Job:
        """The job when it has ended, or when nobody waits any longer."""
        end_s, pause = monotonic() + wait, FIRST_WAIT_S
        while not job.is_ended and monotonic() < end_s:
            await asyncio.sleep(pause)
            pause = min(LONGEST_WAIT_S, pause * 1.5)
            job = self.store.get(job.id) or job
        return job

    async def jobs(
        self,
        request: Request,
        before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> Jobs:
        """A page of the owner's jobs, without their results."""
        found = self.store.page(request.state.owner, before, limit)
        last = found[-1].n if len(found) == limit else None
        return Jobs(jobs=[JobAnswer(**answer_of(job)) for job in found], next=last)

    async def job(self, request: Request, job_id: JobId, wait: Wait = 0.0) -> Response:
        """One job with its result."""
        return response_of(await self.ended(self.own(request, job_id), wait), 200)

    async def cancel(self, request: Request, job_id: JobId) -> Response:
        """Cancel a job; one that has ended stays as it is."""
        job = self.own(request, job_id)
        self.workers.cancel(job)
        return response_of(await self.ended(job, 2.0), 200)

    async def events(self, request: Request, job_id: JobId) -> StreamingResponse:
        """States and progress of a job as server-sent events, until it has ended."""
        job = self.own(request, job_id)
        usual_s = self.store.usual_s(job.verb)

        async def lines() -> AsyncIterator[str]:
            now = job
            while True:
                n_ahead = self.store.n_ahead(now) if now.state == "queued" else 0
                stage = self.store.stages.get(now.id)
                known = Progress(n_ahead=n_ahead, usual_s=usual_s, stage=stage)
                text = json.dumps(answer_of(now, known))
                yield f"event: {now.state}\ndata: {text}\n\n"
                if now.is_ended:
                    return
                now = await self.ended(now, HEARTBEAT_S)

        return StreamingResponse(lines(), media_type="text/event-stream")

    def own(self, request: Request, job_id: str) -> Job:
        """The owner's job; others' are not known to exist."""
        job = self.store.get(job_id)
        if job is None or job.owner != request.state.owner:
            raise RefusalError(404, "job", "there is no such job")
        return job


def is_page(request: Request) -> bool:
    """Whether a browser asks for a page, rather than a program for a document."""
    path, accepted = request.url.path, request.headers.get("accept", "")
    return not path.startswith("/v1") and "text/html" in accepted
