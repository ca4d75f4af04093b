"""`gpuplan probe` and `replan --calibration`: what is printed, and what is refused."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import InputError

EXAMPLE = Path(__file__).parents[3] / "examples" / "chat.yaml"


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "plan.yaml"
    run("plan", EXAMPLE, "--as-of", "2026-11-01", "--out", path)
    return path


def test_the_runs_are_printed_with_cost_worth_and_commands(plan_file):
    text = run("probe", plan_file).output
    for part in ("minutes", "worth $", "vllm serve", "vllm bench serve", "aiperf", "guidellm"):
        assert part in text
    assert "gpuplan calibrate probe-*.json" in text
    assert text.startswith("Before buying 6 × H100 SXM TP2")


def test_the_document_has_every_run_that_was_weighed(plan_file):
    found = json.loads(run("probe", plan_file, "--runs", "1", "--json").stdout)
    assert found["kind"] == "probe"
    assert len(found["probes"]) == 1
    nets = [each["net_usd"] for each in found["considered"]]
    assert nets == sorted(nets, reverse=True)
    assert found["probes"][0]["net_usd"] == nets[0]


def test_replan_without_anything_new_is_refused(plan_file):
    done = CliRunner().invoke(app, ["replan", str(plan_file)])
    assert isinstance(done.exception, InputError)
    assert "--calibration" in str(done.exception)


def test_a_file_that_is_no_plan_is_refused(tmp_path):
    path = tmp_path / "no.yaml"
    path.write_text("a: 1")
    done = CliRunner().invoke(app, ["probe", str(path)])
    assert isinstance(done.exception, InputError)
