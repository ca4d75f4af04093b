"""`gpuplan simulate cluster.yaml --jobs` and `gpuplan eta` at the command line."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import InputError
from shared_data import ROOT

CLUSTERS = ROOT / "examples" / "clusters"
DAY = [str(CLUSTERS / "day-night.yaml"), "--jobs", str(CLUSTERS / "day-night.csv")]
TEAMS = [str(CLUSTERS / "six-teams.yaml"), "--jobs", str(CLUSTERS / "six-teams.csv")]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


def document(*arguments):
    found = run(*arguments, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_jobs_are_replayed_and_written(tmp_path):
    out, chart = tmp_path / "jobs.parquet", tmp_path / "run.svg"
    found = document("simulate", *DAY, "--out", str(out), "--chart", str(chart))
    assert found["n_jobs"] == 2
    assert pl.read_parquet(out)["end_s"][0] == 32 * 3600.0
    assert chart.read_text(encoding="utf-8").startswith("<svg")
    again = tmp_path / "jobs.csv"
    assert run("simulate", *DAY, "--out", str(again)).exit_code == 0
    assert pl.read_csv(again)["wait_s"].to_list() == pl.read_parquet(out)["wait_s"].to_list()


def test_comparisons_are_asked_for():
    found = document("simulate", *TEAMS, "--compare", "fifo,fair", "--advise-quotas")
    assert [row["name"] for row in found["policies"]] == ["fifo", "fair"]
    assert found["quotas"][0]["team"] == "speech"


def test_eta_answers_with_a_range():
    found = document(
        "eta", *TEAMS, "--gpus", "16", "--hours", "3", "--team", "speech", "--record", "5"
    )
    assert found["wait_low_s"] <= found["wait_high_s"]
    assert 0 < found["n_record"] <= 5  # those of them that had to wait, as this one has


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("simulate", "--jobs", "x.csv"), "cluster file"),
        (("simulate", *DAY, "--rate", "5"), "--rate"),
        (("simulate", "plan.yaml", "--compare", "fifo"), "--compare"),
        (("simulate", *DAY, "--chart", "x.gif"), "--chart"),
        (("simulate", *DAY, "--out", "x.txt"), "--out"),
        (("simulate", *DAY, "--compare", "best"), "unknown policy"),
        (("eta", *TEAMS, "--team", "nobody"), "no team"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, what):
    found = run(*arguments)
    assert isinstance(found.exception, InputError)
    assert what in str(found.exception)


def test_the_chart_is_also_a_page(tmp_path):
    target = tmp_path / "day.html"
    found = run("simulate", *DAY, "--chart", str(target))
    assert found.exit_code == 0, found.exception
    page = target.read_text(encoding="utf-8")
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert "“day and night”, simulated" in page
    assert page.count("<svg") == 1
    assert "Waits by team" in page


def test_the_chart_is_also_a_picture(tmp_path):
    target = tmp_path / "day.png"
    found = run("simulate", *DAY, "--chart", str(target))
    assert found.exit_code == 0, found.exception
    assert target.read_bytes().startswith(b"\x89PNG")
