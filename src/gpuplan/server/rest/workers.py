"""Processes that answer: warm, bounded in time, ended when their job is cancelled."""

import json
import os
import threading
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from gpuplan.errors import PlannerError
from gpuplan.server.rest.jobs import Job, JobStore
from gpuplan.server.rest.verbs import answer
from gpuplan.stages import listening
from gpuplan.units import MIB

try:
    import resource
except ImportError:  # not on this system: processes are not replaced for their size
    resource = None  # type: ignore[assignment]

POLL_S = 0.02
# A process that has grown past this is replaced after its job. Caches are bounded; what a large
# question has taken is kept by the allocator and by compiled code.
MOST_BYTES = 800 * MIB
INTERNAL = "gpuplan failed on this question: it is our fault, please report it"
WARM_UP = "Llama-3.3-70B chat for 6000 users on H100"
CODES = {2: "input", 3: "infeasible", 4: "violation"}


def error_body(error: Exception) -> dict[str, Any]:
    """What went wrong, in the one shape of all errors."""
    if not isinstance(error, PlannerError):
        return {"code": "internal", "message": INTERNAL, "problems": []}
    problems = [{"where": p.where, "what": p.what, "fix": p.fix} for p in error.problems]
    code = CODES.get(error.exit_code, "failed")
    return {"code": code, "message": str(error), "problems": problems}


def _serve(pipe: Connection, folder: str, is_warmed: bool) -> None:
    """One process: question in, document out, until the pipe is closed."""
    os.chdir(folder)
    if is_warmed and not pipe.poll(0):
        _warm_up()
    while True:
        try:
            verb, body = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            with listening(lambda stage: pipe.send(("stage", stage, 0))):
                found = answer(verb, body)
            pipe.send(("done", json.dumps(found, allow_nan=False), _peak_bytes()))
        except Exception as error:  # noqa: BLE001  (a question must not end the process)
            pipe.send(("failed", json.dumps(error_body(error)), _peak_bytes()))


def _peak_bytes() -> int:
    """The most memory that this process has had resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 if resource else 0


def _warm_up() -> None:
    """Load what a plan needs before anybody asks for one."""
    with suppress(PlannerError):
        answer("plan", {"words": WARM_UP, "samples": 1})


class Worker(threading.Thread):
    """One process and the thread that minds it; a quick one answers hands on sliders alone."""

    def __init__(self, store: JobStore, limit_s: float, *, is_quick: bool | None = None) -> None:
        super().__init__(daemon=True)
        self.store, self.limit_s, self.is_quick = store, limit_s, is_quick
        self.current: str | None = None
        self._halt, self._kill = threading.Event(), threading.Event()
        self._folder = TemporaryDirectory(prefix="gpuplan-")
        self._start_process()

    def _start_process(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._folder.name, bool(self.is_quick)), daemon=True
        )
        self._process.start()
        self._is_large = False
        theirs.close()

    def run(self) -> None:
        """Take the oldest job, again and again."""
        while not self._halt.is_set():
            job = self.store.take(is_quick=self.is_quick)
            if job is None:
                with self.store.queued:
                    self.store.queued.wait(timeout=1.0)
                continue
            self._work(job)
        self._end_process()
        self._folder.cleanup()

    def _work(self, job: Job) -> None:
        self._kill.clear()
        self.current = job.id
        try:
            state, text = self._requested(job)
        finally:
            self.current = None
            self.store.stages.pop(job.id, None)
        if state != "stopped":  # it stays running: the next start takes it up
            part = {"result": text} if state == "done" else {"error": text}
            self.store.end(job.id, state, **part)
        if self._is_large:
            self._restart()

    def _requested(self, job: Job) -> tuple[str, str]:
        end_s = monotonic() + self.limit_s
        try:
            self._pipe.send((job.verb, json.loads(job.body)))
            while True:
                if self._pipe.poll(POLL_S):
                    state, text, peak_bytes = self._pipe.recv()
                    if state != "stage":
                        self._is_large = peak_bytes > MOST_BYTES
                        return state, text
                    self.store.stages[job.id] = text
                if self._halt.is_set() or self._kill.is_set() or monotonic() > end_s:
                    return self._ended()
        except (EOFError, OSError):
            self._restart()
            return "failed", _reported("ended", "the process that answered ended: ask for less")

    def _ended(self) -> tuple[str, str]:
        """A job that nobody waits for, or that took too long: its process goes with it."""
        is_cancelled = self._kill.is_set()
        self._restart()
        if self._halt.is_set():
            return "stopped", ""
        if is_cancelled:
            return "cancelled", _reported("cancelled", "cancelled on request")
        return "failed", _reported("time", f"took longer than {self.limit_s:g} s: ask for less")

    def _restart(self) -> None:
        self._end_process()
        if not self._halt.is_set():
            self._start_process()

    def _end_process(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def cancel(self, job_id: str) -> None:
        """End the job if this worker is at it."""
        if self.current == job_id:
            self._kill.set()

    def stop(self) -> None:
        """Stop after this moment; the job in hand stays running in the store."""
        self._halt.set()


def _reported(code: str, message: str) -> str:
    return json.dumps({"code": code, "message": message, "problems": []})


class Workers:
    """So many of them, and one for hands on sliders."""

    def __init__(self, store: JobStore, n: int, limit_s: float, *, has_quick: bool = False) -> None:
        self.store = store
        lane = False if has_quick else None
        self._all = [Worker(store, limit_s, is_quick=lane) for _ in range(n)]
        if has_quick:
            self._all.append(Worker(store, limit_s, is_quick=True))

    def start(self) -> None:
        """Begin to take jobs."""
        for each in self._all:
            each.start()

    def cancel(self, job: Job) -> None:
        """Cancel a job, waiting or running."""
        if job.state == "queued":
            text = _reported("cancelled", "cancelled on request")
            self.store.end(job.id, "cancelled", error=text)
        for each in self._all:
            each.cancel(job.id)

    def stop(self) -> None:
        """Stop all of them."""
        for each in self._all:
            each.stop()
        with self.store.queued:
            self.store.queued.notify_all()
        for each in self._all:
            each.join(timeout=10)
