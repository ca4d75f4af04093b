"""The list of what was tried on commands: exit code 1 (our fault) is provoked by none of it.

Telemetry is listed in `spoiled.py` and tried in tests/unit/observe/test_spoiled.py, servers in
tests/unit/server/test_lying_server.py, disks and streams in tests/unit/cli/test_output_files.py
and test_streams.py, the writer in tests/unit/test_files.py, caches in test_kernel_cache.py.
"""

import resource
import subprocess
from pathlib import Path

import pytest

from gpuplan.cli.app import _run
from hardening.command import PROGRAM, ROOT, SENTENCE, environment, gpuplan

SIMULATE = "simulate --model Llama-3.1-8B --on H100 --input-tokens 10 --output-tokens 10"
TRIED = {
    "0.1 requests a day": ["plan", SENTENCE, "--requests-per-day", "0.1", "--samples", "0"],
    "2^63 requests a second": ["plan", SENTENCE, "--rate", "9223372036854775808"],
    "10^12 users": ["plan", SENTENCE, "--users", "1e12"],
    "10^8 samples": ["plan", SENTENCE, "--samples", "100000000"],
    "2^63 at once": [
        "predict",
        "Llama-3.1-8B",
        "--on",
        "H100",
        "--concurrency",
        "9223372036854775808",
    ],
    "10^9 ranks": ["predict", "Llama-3.1-8B", "--on", "H100", "--tp", "1000000000"],
    "10^9 accelerators": ["fit", "Llama-3.1-8B", "--on", "1000000000xH100"],
    "10^9 replicas": [*SIMULATE.split(), "--rate", "1", "--replicas", "1000000000"],
    "10^18 requests a second to simulate": [*SIMULATE.split(), "--rate", "1e18"],
    "an hour without a request": [*SIMULATE.split(), "--rate", "0.000001"],
    "NaN requests": [*SIMULATE.split(), "--rate", "nan"],
    "a bad address": ["watch", "http://127.0.0.1:9", "--listen", "127.0.0.1:99999"],
    "no address": ["watch", "http://127.0.0.1:9", "--listen", "nowhere"],
    "no server": ["diagnose", "http://user:secret@127.0.0.1:9"],
    "a name that is no text": ["explain", "plan\udc80.yaml"],
    "a folder as a file": ["explain", "/"],
    "a folder as telemetry": ["forecast", "/"],
    "a node that carries more than all": [
        "plan",
        ROOT / "examples" / "cpu-is-enough.yaml",
        "--samples",
        "0",
        "--set",
        "workloads[0].capacity[0].requests_per_s=1.0e+18",
    ],
    "a device without end as a table": ["validate", "/dev/zero"],
    "a device without end as a plan": ["explain", "/dev/urandom"],
    "a day before all prices": ["plan", SENTENCE, "--samples", "0", "--as-of", "0001-01-01"],
    "the last day of the calendar": ["plan", SENTENCE, "--samples", "0", "--as-of", "9999-12-31"],
}


@pytest.mark.parametrize("name", TRIED)
def test_it_is_not_our_fault(name: str, tmp_path: Path):
    done = gpuplan(*TRIED[name], cwd=tmp_path)
    assert done.returncode not in (1, -6, -9, -11), done.stderr
    assert b"Traceback" not in done.stderr
    assert b"secret" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


ENVIRONMENTS: dict[str, dict[str, str]] = {
    "no time zone of that name": {"TZ": "Nonsense/Zone"},
    "no home": {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"},
    "a screen of no width": {"COLUMNS": "0"},
    "warnings as errors": {"PYTHONWARNINGS": "error"},
    "no docstrings": {"PYTHONOPTIMIZE": "2"},
    "no folder for temporary files": {"TMPDIR": "/nowhere"},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_environment_makes_it_our_fault(name: str, tmp_path: Path):
    done = gpuplan("fit", "Llama-3.1-8B", "--on", "H100", cwd=tmp_path, env=ENVIRONMENTS[name])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(
    "error", [MemoryError(), ImportError("x.so: failed to map segment from shared object")]
)
def test_too_little_memory_is_said(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full() -> None:
        raise error

    monkeypatch.setattr("gpuplan.cli.app.app", full)
    monkeypatch.setattr("sys.argv", ["gpuplan", "catalog"])
    with pytest.raises(SystemExit) as ended:
        _run()
    assert ended.value.code == 2
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize("mib", [100, 300, 350, 400, 511])
def test_too_little_address_space_is_refused_soon(mib: int, tmp_path: Path):
    """The libraries abort, wait forever or end with exit code 1, by how little there is."""

    def narrow() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    done = gpuplan("plan", SENTENCE, "--samples", "0", cwd=tmp_path, preexec_fn=narrow, timeout=60)
    assert done.returncode == 2, done.stderr
    assert f"{mib} MiB of address space" in done.stderr.decode()


def test_a_folder_that_is_gone_is_no_obstacle(tmp_path: Path):
    program = " ".join(f"'{part}'" for part in [*PROGRAM, "fit", "Llama-3.1-8B", "--on", "H100"])
    command = ["sh", "-c", f"mkdir gone && cd gone && rmdir ../gone && {program}"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr
