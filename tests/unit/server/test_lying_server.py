"""A watch against servers that lie, drip, hang and go; and against its own disk and port."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")

from gpuplan.domain.telemetry.monitoring import ServerAccess, WatchPoint, WatchRequest
from gpuplan.errors import InputError
from gpuplan.server import watch as watching
from gpuplan.server.watch import MAX_THREADS, STALE_LOOKS, Watch, serve

NAMES = b'{"status":"success","data":["DCGM_FI_DEV_GPU_UTIL","vllm:num_requests_running"]}'
LABELS = '"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"0","Hostname":"n"}'


def series(points: str, labels: str = LABELS) -> bytes:
    inner = f'{{{labels},"values":{points}}}'
    return f'{{"status":"success","data":{{"resultType":"matrix","result":[{inner}]}}}}'.encode()


LIES = {
    "null": b"null",
    "data is null": b'{"status":"success","data":null}',
    "a list": b"[1,2]",
    "deep": b'{"data":' + b"[" * 100_000,
    "digits": b'{"data":' + b"9" * 5000 + b"}",
    "no JSON": b"<html>",
    "empty": b"",
    "result is null": b'{"status":"success","data":{"resultType":"matrix","result":null}}',
    "values are words": series('[[1,"much"],[2,null]]'),
    "times are NaN": series('[["NaN","5"],[1e300,"5"],[null,"5"]]'),
    "points are numbers": series("[1,2,3]"),
    "labels are lists": series('[[1,"5"]]', '"metric":{"__name__":["x"],"gpu":{"a":1}}'),
    "an error with escapes": b'{"status":"error","error":"\\u001b[31mred"}',
}


@pytest.fixture
def lying() -> Iterator[Callable[..., str]]:
    """A server that answers every question with these bytes, as slowly as asked."""
    servers = []

    def start(answer: bytes, *, names: bytes = NAMES, drip: str = "") -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = names if "label" in self.path else answer
                if drip == "headers":
                    self._drip(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 1000)
                self.send_response(200)
                self.end_headers()
                self._drip(b" " * 10_000) if drip == "body" else self.wfile.write(body)

            def _drip(self, data: bytes) -> None:
                for byte in data:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(0.05)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def watch_of(url: str, *, every_s: float = 60.0, total_s: float = 5.0, **settings) -> Watch:
    access = ServerAccess(url=url, n_tries=1, timeout_s=2.0, total_s=total_s)
    return Watch(WatchRequest(access=access, every_s=every_s), **settings)


@pytest.mark.parametrize("place", ["names", "samples"])
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_ends_the_watch(lying: Callable[..., str], lie: str, place: str):
    url = lying(LIES[lie]) if place == "samples" else lying(b"{}", names=LIES[lie])
    watch = watch_of(url)
    watch.look()
    assert b"gpuplan_up" in watch.metrics()
    assert "internal error" not in watch.last_error
    assert "\x1b" not in watch.last_error
    assert watch.health()[0] == 200  # once is not for long


@pytest.mark.parametrize("drip", ["headers", "body"])
def test_a_server_that_drips_is_cut_off(lying: Callable[..., str], drip: str):
    watch = watch_of(lying(b"{}", drip=drip), total_s=0.7)
    begin_s = time.monotonic()
    assert not watch.look()
    assert time.monotonic() - begin_s < 3.0
    assert "took longer than 0.7 s in total" in watch.last_error


def test_a_look_that_never_ends_fails_liveness_and_its_reading_goes_stale():
    now = [0.0]
    watch = watch_of("http://127.0.0.1:9", every_s=60.0, elapsed=lambda: now[0])
    watch.is_up = True
    assert watch.health()[0] == 200
    now[0] = STALE_LOOKS * 60.0 + 1.0
    status, body = watch.health()
    assert (status, body["ok"], body["up"]) == (503, False, False)
    assert b"gpuplan_up 0.0" in watch.metrics()


def test_a_clock_that_jumps_is_no_outage():
    wall = [1.7e9]
    watch = watch_of("http://127.0.0.1:9", clock=lambda: wall[0], elapsed=lambda: 0.0)
    for jump_s in (1e7, -1e8, 1e9):
        wall[0] += jump_s
        assert watch.health()[0] == 200


def test_a_fault_of_our_own_is_told_and_outlived(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(watching.api, "watch_look", broken)
    watch = watch_of("http://127.0.0.1:9")
    assert not watch.look()
    assert watch.last_error == "internal error: KeyError: 'x'"


def test_a_state_that_cannot_be_written_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    watch = watch_of("http://127.0.0.1:9", state=tmp_path / "file" / "state.json")
    watch.points = (WatchPoint(at_s=1.7e9, n_demand=1.0, metric="gpu_util_frac"),)
    watch.keep()
    assert "cannot be written" in str(watch.health()[1]["state_error"])


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[" * 100_000, "\x00"),
        '{"version":1,"points":[[NaN,1,"x"]]}',
        '{"version":1,"points":[[' + "9" * 400 + ',1,"x"]]}',
    ],
)
def test_a_spoiled_state_is_set_aside(tmp_path: Path, text: str):
    state = tmp_path / "state.json"
    state.write_text(text)
    watch = watch_of("http://127.0.0.1:9", state=state)
    assert watch.points == ()
    assert state.with_suffix(".json.spoiled").read_text() == text


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", 70_000), ("not a host", 1), ("8.8.8.8", 80)]
)
def test_an_address_that_is_none_is_the_users_to_mend(host: str, port: int):
    with pytest.raises(InputError, match="--listen"):
        serve(watch_of("http://127.0.0.1:9"), host=host, port=port)


def test_a_port_in_use_is_the_users_to_mend():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="use"):
        serve(watch_of("http://127.0.0.1:9"), host="127.0.0.1", port=taken.getsockname()[1])


def test_idle_connections_hold_few_threads_and_not_for_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watching, "IDLE_S", 0.3)
    server = serve(watch_of("http://127.0.0.1:9"), host="127.0.0.1", port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    before = threading.active_count()
    address = ("127.0.0.1", server.server_address[1])
    idle = [socket.create_connection(address) for _ in range(300)]
    time.sleep(0.2)
    assert threading.active_count() - before <= MAX_THREADS
    time.sleep(0.6)
    with socket.create_connection(address, timeout=5) as asking:
        asking.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: asking.recv(65536), b""))
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["ok"] is True
    for each in idle:
        each.close()
    server.shutdown()
    server.server_close()
