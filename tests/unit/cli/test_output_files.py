"""Files that were asked for: refused before work where they can be, never at the plan's cost."""

import json
import os
import resource
import signal
import stat
import threading
from pathlib import Path

import pytest
import yaml

from hardening.command import SENTENCE, gpuplan

PLAN = ("plan", SENTENCE, "--samples", 0)


def small_files() -> None:
    """As on a disk that is nearly full: no file grows beyond 4 KiB."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_finished_plan_is_printed_where_it_cannot_be_written(tmp_path: Path):
    out, warm = tmp_path / "plan.yaml", tmp_path / "warm.yaml"
    assert gpuplan(*PLAN, "--out", warm).returncode == 0
    done = gpuplan(*PLAN, "--out", out, preexec_fn=small_files)
    assert done.returncode == 2
    assert b"plan: " in done.stderr
    assert b"cannot be written: File too large" in done.stderr
    assert done.stdout == warm.read_bytes()  # the plan, as the file would have held it
    assert [path.name for path in tmp_path.iterdir()] == ["warm.yaml"]


def test_other_forms_hold_the_plan_themselves(tmp_path: Path):
    done = gpuplan(*PLAN, "--out", tmp_path / "plan.yaml", "--json", preexec_fn=small_files)
    assert done.returncode == 2
    assert json.loads(done.stdout)["feasible"] is True
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--out", "--html"])
def test_pipes_links_and_devices_stay_what_they_are(tmp_path: Path, option: str):
    pipe, link, found = tmp_path / "pipe", tmp_path / "link", []
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "real")
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    assert gpuplan(*PLAN, option, pipe).returncode == 0
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert gpuplan(*PLAN, option, link).returncode == 0
    assert link.is_symlink()
    assert link.read_bytes() == found[0]
    if option == "--out":
        assert yaml.safe_load(found[0])["kind"] == "gpuplan-plan"


@pytest.mark.parametrize(
    "command",
    [
        ("plan", SENTENCE, "--out"),
        ("plan", SENTENCE, "--html"),
        ("plan", SENTENCE, "--save"),
        ("simulate", "--model", "x", "--on", "H100", "--rate", 1, "--chart"),
        ("validate", "--out"),
        ("init", "--out"),
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_a_folder_that_is_not_there_is_said_before_work(tmp_path: Path, command: tuple[object]):
    done = gpuplan(*command, tmp_path / "none" / "file.html")
    assert done.returncode == 2
    assert f"{command[0]}: ".encode() in done.stderr
    assert b"cannot be written: No such file or directory" in done.stderr
    assert done.stdout == b""
