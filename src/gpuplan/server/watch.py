"""The watch: looks every minute, publishes what it finds, outlives the server it looks at."""

import json
import logging
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from gpuplan import api
from gpuplan.domain.telemetry.watching import WatchPoint, WatchReading, WatchRequest
from gpuplan.errors import PlannerError
from gpuplan.server.metrics import library, registry_of
from gpuplan.server.state import read_state, write_state

LOG = logging.getLogger("gpuplan.watch")
STALE_LOOKS = 5  # missed in a row: then the watch is not healthy


class Watch:
    """One watched server; `look` may be called by a loop or by a test."""

    def __init__(
        self,
        asked: WatchRequest,
        *,
        state: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        library()  # say what is missing before anything starts
        self.asked, self.state, self.clock = asked, state, clock
        self.points, trouble = read_state(state)
        if trouble:
            LOG.warning(trouble)
        self.reading: WatchReading | None = None
        self.is_up, self.n_failures, self.n_missed = False, 0, 0
        self.last_error = ""
        self.lock = threading.Lock()

    def look(self) -> bool:
        """One look; a failure keeps the last reading and is counted."""
        try:
            reading, points = api.watch_look(self.asked, self.points, now_s=self.clock())
        except PlannerError as error:
            with self.lock:
                self.is_up, self.last_error = False, str(error)
                self.n_failures += 1
                self.n_missed += 1
            LOG.warning("look failed: %s", error)
            return False
        with self.lock:
            self.reading, self.is_up, self.n_missed, self.last_error = reading, True, 0, ""
            is_new = _hours(points) != _hours(self.points)
            self.points = points
        if is_new:
            write_state(self.state, points)
        return True

    def metrics(self) -> bytes:
        """The text of /metrics."""
        with self.lock:
            registry = registry_of(
                self.reading, is_up=self.is_up, n_failures=self.n_failures, now_s=self.clock()
            )
        return bytes(library().generate_latest(registry))

    def health(self) -> tuple[int, dict[str, object]]:
        """Status and body of /healthz: well while looks succeed, or have not failed for long."""
        with self.lock:
            is_well = self.n_missed < STALE_LOOKS
            body: dict[str, object] = {
                "ok": is_well,
                "up": self.is_up,
                "missed": self.n_missed,
                "last_error": self.last_error,
                "hours_kept": len(self.points),
            }
        return (200 if is_well else 503), body


def _hours(points: tuple[WatchPoint, ...]) -> tuple[int, float]:
    return len(points), points[-1].at_s if points else 0.0


def serve(watch: Watch, *, host: str, port: int) -> ThreadingHTTPServer:
    """An HTTP server of /metrics and /healthz; the caller runs and closes it."""

    class Handler(BaseHTTPRequestHandler):
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

    return ThreadingHTTPServer((host, port), Handler)


def run(watch: Watch, *, host: str, port: int, n_looks: int | None = None) -> None:
    """Look and serve until stopped, or for so many looks."""
    server = serve(watch, host=host, port=port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = 0
    try:
        while n_looks is None or done < n_looks:
            start_s = time.monotonic()
            watch.look()
            done += 1
            left_s = watch.asked.every_s - (time.monotonic() - start_s)
            if left_s > 0 and (n_looks is None or done < n_looks):
                time.sleep(left_s)
    except KeyboardInterrupt:
        LOG.info("stopped")
    finally:
        server.shutdown()
        server.server_close()
        write_state(watch.state, watch.points)
