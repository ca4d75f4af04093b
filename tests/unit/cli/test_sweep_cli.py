"""`gpuplan sweep`: the file, its cases, its table and charts; killed in the middle and resumed."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gpuplan.cli.sweep import cases_of, compute_case, read_sweep
from gpuplan.errors import InputError
from gpuplan.report.sweep import value_at
from hardening.command import PROGRAM, environment, gpuplan

FIT = """
verb: fit
arguments: [Llama-3.1-8B]
options: {precision: fp8}
axes:
  "on": [H100, L40S, nothing]
  context: [1000, 2000]
columns: [fits, max_concurrency]
"""


def written(folder: Path, text: str = FIT) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text)
    return path


def test_every_combination_is_a_row_and_refusals_say_why(tmp_path: Path):
    done = gpuplan("sweep", written(tmp_path), "--workers", 1, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["cases"]
    assert [(row["on"], row["context"]) for row in found] == [
        (on, n) for on in ("H100", "L40S", "nothing") for n in (1000, 2000)
    ]
    assert all(row["fits"] and row["max_concurrency"] > 0 for row in found[:4])
    assert all("no such accelerator" in row["error"] for row in found[4:])
    again = gpuplan("sweep", written(tmp_path), "--workers", 1, "--json")
    assert again.stdout == done.stdout
    assert b"0 of 6 cases computed" in again.stderr


def test_killed_in_the_middle_it_goes_on_where_it_was(tmp_path: Path):
    path = written(tmp_path, FIT.replace("[1000, 2000]", "1000..1060"))
    command = [*PROGRAM, "sweep", str(path), "--workers", "1"]
    running = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)
    while len(list(tmp_path.rglob("*.json"))) < 5 and running.poll() is None:
        time.sleep(0.01)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    n_kept = len(list(tmp_path.rglob("*.json")))
    assert 5 <= n_kept < 183
    done = gpuplan("sweep", path, "--workers", 1, "-o", "csv")
    assert f"{183 - n_kept} of 183 cases computed".encode() in done.stderr
    whole = gpuplan("sweep", path, "--workers", 1, "-o", "csv", "--store", tmp_path / "other")
    assert whole.stdout == done.stdout


def test_a_changed_input_file_is_another_case(tmp_path: Path):
    text = "verb: simulate\noptions: {trace: t.csv}\naxes: {seed: 0..2}\n"
    asked = read_sweep(written(tmp_path, text))
    (tmp_path / "t.csv").write_text("a")
    before = [case.digest for case in cases_of(asked)]
    (tmp_path / "t.csv").write_text("b")
    after = [case.digest for case in cases_of(asked)]
    assert len(set(before + after)) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "is no mapping"),
        ("verb: serve\naxes: {a: [1]}", "verb"),
        ("verb: fit\ncolour: red\naxes: {a: [1]}", "no key"),
        ("verb: fit", "axes"),
        ("verb: fit\naxes: {a: 5}", r"axes\.a"),
        ("verb: fit\naxes: {a: []}", r"axes\.a"),
        ("verb: fit\naxes: {a: 0..99999999}", r"axes\.a"),
        ("verb: fit\naxes: {a: 9..3}", r"axes\.a"),
        ("verb: fit\naxes: {a: ²..³}", r"axes\.a"),
        (f"verb: fit\naxes: {{a: 0..{'9' * 5000}}}", r"axes\.a"),
        ("verb: fit\ncolumns: 5\naxes: {a: [1]}", "columns"),
        ("verb: fit\ncolumns: [[1]]\naxes: {a: [1]}", "columns"),
        ("verb: fit\n1: 2\ncolour: red\naxes: {a: [1]}", "no key"),
    ],
)
def test_what_is_no_sweep_is_refused(tmp_path: Path, text: str, said: str):
    with pytest.raises(InputError, match=said):
        read_sweep(written(tmp_path, text))


def test_too_many_cases_are_refused(tmp_path: Path):
    text = "verb: fit\naxes: {a: 0..9999, b: 0..9999}"
    with pytest.raises(InputError, match="100,000,000 cases"):
        list(cases_of(read_sweep(written(tmp_path, text))))


def test_a_misspelt_option_is_a_refusal_of_its_case(tmp_path: Path):
    found = compute_case({"verb": "fit", "arguments": ["--colour", "red"], "folder": str(tmp_path)})
    assert found["exit_code"] == 2


def test_a_zero_is_a_value_and_a_device_is_no_input_file(tmp_path: Path):
    text = (
        "verb: plan\narguments: [/dev/zero]\noptions: {samples: 0, exact: false}\naxes: {seed: [0]}"
    )
    (case,) = cases_of(read_sweep(written(tmp_path, text)))
    assert case.case["arguments"] == ["/dev/zero", "--samples", "0", "--seed", "0"]


def test_help_is_no_result(tmp_path: Path):
    found = compute_case({"verb": "fit", "arguments": ["--help"], "folder": str(tmp_path)})
    assert found == {"error": "its options print no JSON document", "exit_code": 2}


@pytest.mark.parametrize("key", ["²", "9" * 5000, "1", "-1"])
def test_a_column_that_is_not_there_is_empty(key: str):
    assert value_at({"rows": [1]}, f"rows.{key}") is None


@pytest.mark.parametrize("name", ["chart.png", "chart.html"])
def test_cases_without_numbers_have_no_chart(tmp_path: Path, name: str):
    path = written(tmp_path, FIT.replace("Llama-3.1-8B", "no-such-model"))
    done = gpuplan("sweep", path, "--workers", 1, "--chart", tmp_path / name)
    assert done.returncode == 0, done.stderr
    assert b"no chart is written" in done.stderr
    assert not (tmp_path / name).exists()
