"""Runs that are stopped, and readers that go: nothing is left behind, nothing complains."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WAIT_S = 120.0  # for a machine that compiles first
LOAD = (
    "simulate", "--model", "Llama-3.1-8B", "--on", "H100", "--rate", "16",
    "--input-tokens", "500", "--output-tokens", "200",
)  # fmt: skip


def started(*arguments: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "gpuplan", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["ended", "broken off"])
def test_a_run_that_is_stopped_leaves_no_file(number: signal.Signals, tmp_path: Path):
    out = tmp_path / "requests.parquet"
    run = started(*LOAD, "--requests", 400_000_000, "--stream", "--out", out, "--json")
    until = time.monotonic() + WAIT_S
    while not any(tmp_path.glob(".*/*.parquet")):  # the first part has been written
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < until, "nothing was written"
        time.sleep(0.05)
    run.send_signal(number)
    stdout, _ = run.communicate(timeout=WAIT_S)
    assert run.returncode == 128 + number
    assert stdout == b""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_reader_that_goes_is_no_fault(form: str):
    run = started(*LOAD, "--requests", 2000, "-o", form)
    assert run.stdout is not None
    run.stdout.close()
    assert run.stderr is not None
    told = run.stderr.read().decode()
    run.stderr.close()
    assert run.wait(WAIT_S) == 0
    assert "fault" not in told
    assert "Traceback" not in told
