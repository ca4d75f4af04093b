"""`gpuplan calibrate`: flags become conditions, the file is written, faults end with 2."""

import json

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import InputError

RUN = {
    "model_id": "served-name", "backend": "openai", "request_rate": "inf", "num_prompts": 320,
    "completed": 320, "duration": 60.0, "total_input_tokens": 320_000,
    "total_output_tokens": 64_000,
}  # fmt: skip
FLAGS = ["--model", "Qwen/Qwen3-8B", "--on", "2xH100", "--tp", "2", "--precision", "bf16",
         "--engine", "vllm", "--engine-version", "0.10"]  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    paths = []
    for users, tpot_ms in ((1, 6.0), (8, 7.0), (32, 9.5)):
        rate = users * 200 / (0.06 + 0.2 * tpot_ms)
        run = {**RUN, "max_concurrency": users, "mean_ttft_ms": 60.0, "mean_tpot_ms": tpot_ms,
               "output_throughput": rate}  # fmt: skip
        path = tmp_path / f"run{users}.json"
        path.write_text(json.dumps(run))
        paths.append(str(path))
    return paths


def test_flags_and_file(runs, tmp_path):
    out = tmp_path / "site.json"
    done = CliRunner().invoke(app, ["calibrate", *runs, *FLAGS, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["n_rows"] == document["n_conditions"] == 3
    assert document["verdict"] in ("better", "no better")
    assert document["written"] == str(out)
    stored = json.loads(out.read_text())
    assert {row["model"] for row in stored["rows"]} == {"Qwen/Qwen3-8B"}
    assert {row["n_accelerators"] for row in stored["rows"]} == {"2"}
    assert any("'served-name' of the file gives way" in line for line in document["told"])


def test_table_for_people(runs):
    done = CliRunner().invoke(app, ["calibrate", *runs, *FLAGS])
    assert done.exit_code == 0
    assert "3 runs under 3 conditions" in done.stdout
    assert "Nothing is written" in " ".join(done.stdout.split())


def test_missing_conditions_name_their_flags(runs):
    done = CliRunner().invoke(app, ["calibrate", *runs])
    assert isinstance(done.exception, InputError)
    assert done.exception.exit_code == 2
    assert "give --on" in str(done.exception)
    assert "give --engine" in str(done.exception)
