"""`gpuplan render`: from a plan file to files, as a user types it."""

import pytest
import yaml
from typer.testing import CliRunner

from gpuplan.cli.app import app


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.yaml"
    words = "Llama-3.1-8B chat, 2 requests/s, on L40S"
    result = CliRunner().invoke(app, ["plan", words, "--samples", "0", "--out", str(path)])
    assert result.exit_code == 0, result.output
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["render", *map(str, arguments)])


def test_one_file_is_printed(plan_file):
    result = run(plan_file)
    assert result.exit_code == 0
    kinds = [each["kind"] for each in yaml.safe_load_all(result.stdout)]
    assert kinds[:3] == ["Deployment", "Service", "PodDisruptionBudget"]


def test_all_files_go_to_a_folder(plan_file, tmp_path):
    result = run(plan_file, "--to", "all", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    written = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {"gpuplan.rules.yml", "bom.csv", "bom.xlsx", "grafana-dashboard.json"} <= written


def test_a_target_that_does_not_exist_is_refused(plan_file):
    result = run(plan_file, "--to", "nomad")
    assert result.exit_code != 0
    assert "kubernetes" in str(result.exception)


def test_a_plan_without_a_run_gives_no_training_script(plan_file):
    result = run(plan_file, "--to", "training")
    assert result.exit_code != 0
    assert "a run" in str(result.exception)


def test_one_file_takes_the_name_that_is_given(plan_file, tmp_path):
    """`--out chat.yaml` made a folder of that name."""
    result = run(plan_file, "--to", "kubernetes", "--out", tmp_path / "sub" / "manifest.yaml")
    assert result.exit_code == 0
    assert "kind: Deployment" in (tmp_path / "sub" / "manifest.yaml").read_text()
