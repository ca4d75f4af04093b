"""`gpuplan verify`: a plan file as it was written agrees, an edited one ends with 4."""

import json

import pytest
from typer.testing import CliRunner

from gpuplan import api
from gpuplan.cli.app import app
from gpuplan.errors import InfeasibleError, ViolationError

WORDS = "Llama-3.1-8B, 5 requests/s, 500/100 tokens, on H100"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "plan.yaml"
    path.write_text(api.plan_text(api.plan(WORDS, n_samples=0)), encoding="utf-8")
    return path


def test_a_plan_as_written_agrees(written):
    done = CliRunner().invoke(app, ["verify", str(written), "--json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["ok"]
    assert document["n_checks"] == len(document["checks"]) > 30


def test_an_edited_plan_ends_with_both_numbers(written, tmp_path):
    text = written.read_text(encoding="utf-8")
    edited = tmp_path / "edited.yaml"
    edited.write_text(text.replace("paid_frac: 1.0", "paid_frac: 0.5", 1), encoding="utf-8")
    done = CliRunner().invoke(app, ["verify", str(edited)])
    assert isinstance(done.exception, ViolationError)
    assert done.exception.exit_code == 4
    assert "nodes x price x hours" in str(done.exception)
    assert "NOT verified" in done.stdout


def test_without_a_plan_there_is_nothing_to_verify(tmp_path):
    answer = api.plan(f"{WORDS}, ttft 1 ms", n_samples=0)
    path = tmp_path / "none.yaml"
    path.write_text(api.plan_text(answer), encoding="utf-8")
    with pytest.raises(InfeasibleError):
        api.verify(path)
