"""The watch: looks every minute, publishes what it finds, outlives the server it looks at."""

import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gpuplan import api
from gpuplan.domain.telemetry.monitoring import WatchPoint, WatchReading, WatchRequest
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.server.metrics import library, registry_of
from gpuplan.server.state import read_state, write_state

LOG = logging.getLogger("gpuplan.watch")
STALE_LOOKS = 5  # intervals without a good look: then the watch is not healthy, its reading stale
MAX_THREADS = 32  # connections that are answered at once; more are closed
IDLE_S = 5.0  # for a client that says nothing


class Watch:
    """One watched server; `look` may be called by a loop or by a test.

    Readings carry the time of the clock; how long ago something was is told by a second clock
    that never jumps.
    """

    def __init__(
        self,
        request: WatchRequest,
        *,
        state: Path | None = None,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        library()  # say what is missing before anything starts
        self.requested, self.state, self.clock, self.elapsed = request, state, clock, elapsed
        self.points, self.state_error = read_state(state)
        if self.state_error:
            LOG.warning(self.state_error)
        self.reading: WatchReading | None = None
        self.is_up, self.n_failures, self.n_missed = False, 0, 0
        self.last_error = ""
        self.good_at_s = elapsed()  # of the last good look, or of the start
        self.lock = threading.Lock()

    def look(self) -> bool:
        """One look; a failure keeps the last reading and is counted."""
        try:
            reading, points = api.watch_look(self.requested, self.points, now_s=self.clock())
        except PlannerError as error:
            return self._failed(str(error))
        except Exception as error:
            LOG.exception("a look ended in an internal error")
            return self._failed(f"internal error: {type(error).__name__}: {error}")
        with self.lock:
            self.reading, self.is_up, self.n_missed, self.last_error = reading, True, 0, ""
            self.good_at_s = self.elapsed()
            is_new = _hours(points) != _hours(self.points)
            self.points = points
        if is_new:
            self.keep()
        return True

    def _failed(self, why: str) -> bool:
        with self.lock:
            self.is_up, self.last_error = False, why
            self.n_failures += 1
            self.n_missed += 1
        LOG.warning("look failed: %s", why)
        return False

    def keep(self) -> None:
        """Write the state; a watch whose disk is full goes on, and says so."""
        try:
            write_state(self.state, self.points)
        except OSError as error:
            why = f"{self.state} cannot be written ({error.strerror or error})"
            if why != self.state_error:
                LOG.warning(why)
            self.state_error = why
        else:
            self.state_error = ""

    @property
    def is_stale(self) -> bool:
        """No good look for so long that what is known no longer counts."""
        return self.elapsed() - self.good_at_s > STALE_LOOKS * self.requested.every_s

    def metrics(self) -> bytes:
        """The text of /metrics; a stale reading is not published."""
        with self.lock:
            registry = registry_of(
                None if self.is_stale else self.reading,
                is_up=self.is_up and not self.is_stale,
                n_failures=self.n_failures,
                now_s=self.clock(),
            )
        return bytes(library().generate_latest(registry))

    def health(self) -> tuple[int, dict[str, object]]:
        """Status and body of /healthz: well while looks succeed, or have not failed for long.

        A look that never ends is no success: a frozen watch is not well either.
        """
        with self.lock:
            is_well = self.n_missed < STALE_LOOKS and not self.is_stale
            body: dict[str, object] = {
                "ok": is_well,
                "up": self.is_up and not self.is_stale,
                "missed": self.n_missed,
                "last_good_look_s": round(self.elapsed() - self.good_at_s, 1),
                "last_error": self.last_error,
                "state_error": self.state_error,
                "hours_kept": len(self.points),
            }
        return (200 if is_well else 503), body


def _hours(points: tuple[WatchPoint, ...]) -> tuple[int, float]:
    return len(points), points[-1].at_s if points else 0.0


class BoundedServer(ThreadingHTTPServer):
    """At most so many connections at once; idle ones are closed."""

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._free = threading.Semaphore(MAX_THREADS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if one is free."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then leave the place to the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is no event."""
        LOG.debug("a client went away", exc_info=True)


def serve(watch: Watch, *, host: str, port: int) -> BoundedServer:
    """An HTTP server of /metrics and /healthz; the caller runs and closes it."""

    class Handler(BaseHTTPRequestHandler):
        timeout = IDLE_S

        def do_GET(self) -> None:
            if self.path.split("?")[0] == "/metrics":
                self._answer(200, watch.metrics(), "text/plain; version=0.0.4; charset=utf-8")
            elif self.path.split("?")[0] == "/healthz":
                status, body = watch.health()
                self._answer(status, json.dumps(body).encode(), "application/json")
            else:
                self._answer(404, b"see /metrics and /healthz\n", "text/plain")

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            LOG.debug(format, *args)

    return _listening(host, port, Handler)


def _listening(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> BoundedServer:
    try:
        return BoundedServer((host.strip("[]"), port), handler)
    except (OSError, OverflowError, UnicodeError) as error:
        what = f"{host}:{port} cannot be listened on: {getattr(error, 'strerror', None) or error}"
        fix = "choose an address of this server and a free port"
        raise one(InputError, "watch", "--listen", what, fix) from error


def run(watch: Watch, *, host: str, port: int, n_looks: int | None = None) -> None:
    """Look and serve until stopped, or for so many looks."""
    server = serve(watch, host=host, port=port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    LOG.warning("serving http://%s:%s/metrics and /healthz", host, server.server_address[1])
    done = 0
    try:
        while n_looks is None or done < n_looks:
            start_s = time.monotonic()
            watch.look()
            done += 1
            left_s = watch.requested.every_s - (time.monotonic() - start_s)
            if left_s > 0 and (n_looks is None or done < n_looks):
                time.sleep(left_s)
    except KeyboardInterrupt:
        LOG.info("stopped")
    finally:
        server.shutdown()
        server.server_close()
        watch.keep()
