"""`gpuplan serve` as a process: killed in the middle of jobs, it loses nothing acknowledged."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing

import httpx
import pytest

BODY = {"model": "Llama-3.1-8B", "on": "H100"}


def free_port():
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    def __init__(self, state):
        self.state, self.port = state, free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = [sys.executable, "-m", "gpuplan", "serve", "--port", str(self.port)]
        command += ["--state", str(self.state), "--workers", "1"]
        self.process = subprocess.Popen(
            command, stderr=subprocess.DEVNULL, start_new_session=True, env=dict(os.environ)
        )
        for _ in range(600):
            try:
                if httpx.get(f"{self.base}/healthz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise TimeoutError("the server did not start")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def server(tmp_path):
    found = Server(tmp_path / "jobs.sqlite")
    yield found
    found.kill()


def test_what_was_acknowledged_is_answered_after_a_kill(server):
    ids = []
    for n in range(1, 6):
        asked = httpx.post(
            f"{server.base}/v1/fit", json={**BODY, "concurrency": n}, params={"wait": 0}, timeout=30
        )
        assert asked.status_code in (200, 202)
        ids.append(asked.json()["id"])
    server.kill()
    server.start()
    states = [
        httpx.get(f"{server.base}/v1/jobs/{each}", params={"wait": 120}, timeout=150).json()[
            "state"
        ]
        for each in ids
    ]
    assert states == ["done"] * 5


def test_an_open_door_needs_tokens(tmp_path):
    command = [sys.executable, "-m", "gpuplan", "serve", "--host", "0.0.0.0"]
    command += ["--state", str(tmp_path / "jobs.sqlite")]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 2
    assert "--tokens" in found.stderr
