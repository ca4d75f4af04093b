"""A real HTTP server on the own machine whose answers a test writes, the wicked ones too."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

Answer = Callable[[BaseHTTPRequestHandler], None]


class FakeServer:
    """Serves `answers` by path; anything else is 404. Remembers which paths were asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requested: list[str] = []
        self.url = ""

    def serve_prometheus(self, series: list[dict]) -> None:
        """Answer range queries as a Prometheus server that holds these series."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            asked = {k: v[0] for k, v in parse_qs(urlsplit(handler.path).query).items()}
            begin_s, end_s = float(asked["start"]), float(asked["end"])
            found = [
                {**one, "values": [v for v in one["values"] if begin_s <= v[0] <= end_s]}
                for one in series
                if one["metric"]["__name__"] == asked["query"]
            ]
            data = {"resultType": "matrix", "result": found}
            body(json.dumps({"status": "success", "data": data}))(handler)

        names = sorted({one["metric"]["__name__"] for one in series})
        self.answers["/api/v1/label/__name__/values"] = body(json.dumps({"data": names}))
        self.answers["/api/v1/query_range"] = answer


@contextlib.contextmanager
def running_server() -> Iterator[FakeServer]:
    """A server for the length of a test."""
    fake = FakeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            fake.requested.append(self.path)
            self.close_connection = True
            plain = urlsplit(self.path).path
            fake.answers.get(self.path, fake.answers.get(plain, status(404)))(self)

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """A client that hangs up on a wicked answer does right."""

    server = Server(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def body(content: bytes | str, *, announce: int | None = None, code: int = 200) -> Answer:
    """A plain answer; `announce` lies about its length."""
    data = content.encode() if isinstance(content, str) else content

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", str(len(data) if announce is None else announce))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def status(code: int, content: str = "<html>sorry</html>") -> Answer:
    """An error page."""
    return body(content, code=code)


def redirect(location: str) -> Answer:
    """Sends elsewhere."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", location)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def drip(content: bytes, *, pause_s: float) -> Answer:
    """One byte at a time: each read is quick, the whole never ends."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        for byte in content:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(pause_s)

    return answer


def drip_headers(*, pause_s: float) -> Answer:
    """Headers that never end, one byte at a time."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        for _ in range(1000):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(pause_s)

    return answer


def endless(sent: list[int] | None = None) -> Answer:
    """Chunks without end; `sent` collects how much of them went out."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while True:
            handler.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            if sent is not None:
                sent.append(0x10000)

    return answer


def compressed(content: bytes, coding: str) -> Answer:
    """A body in a coding that nobody asked for."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", coding)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer
