"""A real Prometheus on loopback, scraping an endpoint that replays recorded telemetry."""

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Exporter:
    """An endpoint whose text changes with every scrape."""

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self.n_scrapes = 0
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = text_of(exporter.n_scrapes).encode()
                exporter.n_scrapes += 1
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Prometheus:
    """The server's process; it may die and come back with its data."""

    def __init__(self, folder: Path, target_port: int) -> None:
        self.binary = shutil.which("prometheus")
        if self.binary is None:
            pytest.skip("prometheus is not installed (Debian package prometheus)")
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 250ms, scrape_timeout: 200ms}\n"
            "scrape_configs:\n"
            f"  - {{job_name: gpus, static_configs: [{{targets: ['127.0.0.1:{target_port}']}}]}}\n"
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                str(self.binary), f"--config.file={self.folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self.folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error",
            ],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.wait(lambda: httpx.get(f"{self.url}/-/ready", timeout=1.0).status_code == 200)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def has(self, name: str, n_samples: int) -> bool:
        answer = httpx.get(
            f"{self.url}/api/v1/query",
            params={"query": f"count_over_time({name}[1h])"},
            timeout=2.0,
        )
        result = answer.json()["data"]["result"]
        return bool(result) and float(result[0]["value"][1]) >= n_samples

    @staticmethod
    def wait(is_there: Callable[[], bool], limit_s: float = 20.0) -> None:
        end_s = time.monotonic() + limit_s
        while time.monotonic() < end_s:
            try:
                if is_there():
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        pytest.fail("the server did not get there in time")
