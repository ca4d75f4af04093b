"""Results reach stdout whatever it is: an old encoding, a closed neighbour, a full disk."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
import yaml

from hardening.command import PROGRAM, SENTENCE, environment, gpuplan

FIT = ("fit", "Llama-3.1-8B", "--on", "H100")
PLAN = ("plan", SENTENCE, "--samples", 0)


def test_yaml_says_what_json_says():
    as_yaml, as_json = (gpuplan(*PLAN, "-o", form).stdout for form in ("yaml", "json"))
    assert yaml.safe_load(as_yaml) == json.loads(as_json)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii", "utf-8"])
def test_every_encoding_of_stdout_is_served(encoding: str):
    done = gpuplan(*PLAN, env={"PYTHONIOENCODING": encoding})
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode(encoding)
    assert "?" not in text
    assert " x " in text or " × " in text


@pytest.mark.parametrize("closed", ["2>&-", "1>&-", "0<&-", "2>&- 0<&-", "1>&- 2>&-"])
def test_closed_streams_cost_nothing_else(closed: str, tmp_path: Path):
    """Nor does a file that is opened later become the stream."""
    out = tmp_path / "plan.yaml"
    program = " ".join(f"'{part}'" for part in [*PROGRAM, *map(str, PLAN), "--out", str(out)])
    command = ["sh", "-c", f"{program} {closed}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, env=environment())
    assert done.returncode == 0
    assert out.read_text().startswith("# A plan")
    assert ("1>&-" in closed) == (done.stdout == b"")


def test_a_full_disk_under_stdout_is_said():
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = gpuplan(*FIT, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"No space left" in done.stderr


@pytest.mark.parametrize("lost", ["2> /dev/full", "2< /dev/null"])
def test_remarks_that_cannot_be_written_cost_nobody_the_result(lost: str):
    program = " ".join(f"'{part}'" for part in [*PROGRAM, *map(str, PLAN)])
    done = subprocess.run(
        ["sh", "-c", f"{program} {lost}"], stdout=subprocess.PIPE, check=False, env=environment()
    )
    assert done.returncode == 0
    assert b"H100" in done.stdout


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_there_are_no_escapes(plain: dict[str, str]):
    assert b"\x1b" not in on_a_terminal(plain | {"COLUMNS": "100"})


def test_a_terminal_gets_bold_otherwise():
    assert b"\x1b[1m" in on_a_terminal({"TERM": "xterm", "COLUMNS": "100"})


def on_a_terminal(changes: dict[str, str]) -> bytes:
    """What a terminal shows of a run."""
    env = {k: v for k, v in environment().items() if k not in ("NO_COLOR", "TERM")} | changes
    main, side = pty.openpty()
    process = subprocess.Popen([*PROGRAM, *FIT], stdout=side, stderr=side, env=env)
    os.close(side)
    shown = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # the terminal's other side is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(main)
    assert process.wait() == 0
    return shown
