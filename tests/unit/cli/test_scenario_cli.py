"""`scenario write` and `plan --save`: words become a file, and what was understood is printed."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import PlannerError

WORDS = "70B, chat, 6k users, TTFT 1 s"


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def exit_code(done) -> int:
    return done.exception.exit_code if isinstance(done.exception, PlannerError) else done.exit_code


def test_words_are_shown_with_the_keys_that_they_became():
    done = run("scenario", "write", WORDS)
    assert done.exit_code == 0
    assert "workloads[0].demand.users" in done.stdout
    assert "6k users" in done.stdout


def test_the_same_as_a_document():
    document = json.loads(run("scenario", "write", WORDS, "--json").stdout)
    keys = {each["key"]: each["value"] for each in document["understood"]}
    assert keys["workloads[0].slo.ttft_p95_ms"] == 1000
    demand = document["scenario"]["workloads"][0]["demand"]
    assert demand == {"users": 6000, "active_frac": 0.2, "requests_per_user_per_h": 10}


def test_a_written_scenario_is_one_that_is_read(tmp_path):
    path = tmp_path / "scenario.yaml"
    assert run("scenario", "write", WORDS, "--out", str(path)).exit_code == 0
    text = path.read_text()
    assert "# assumed: prompt length" in text
    assert yaml.safe_load(text)["workloads"][0]["model"] == "meta-llama/Llama-3.3-70B-Instruct"
    assert run("scenario", "check", str(path)).exit_code == 0


def test_a_file_is_no_description(tmp_path):
    path = tmp_path / "scenario.yaml"
    path.write_text("version: 1")
    assert exit_code(run("scenario", "write", str(path))) == 2


def test_a_plan_says_first_what_it_understood_and_keeps_it(tmp_path):
    path = tmp_path / "scenario.yaml"
    done = run("plan", "whisper-tiny, 10 hours/day", "--samples", "0", "--save", str(path))
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("Understood:")
    assert "10 hours/day" in done.stderr
    assert yaml.safe_load(path.read_text())["workloads"][0]["batch"]["docs_per_day"] == 1200


@pytest.mark.parametrize("words", ["", "hello world", "GPT-5, 10 users", "Qwen3-32B, 7 frobs"])
def test_what_is_not_understood_ends_with_2(words):
    assert exit_code(run("plan", words)) == 2
