"""A planned cluster on screen, as JSON and as a file that is read again."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import InfeasibleError, InputError
from gpuplan.inputs.cluster import read_cluster
from gpuplan.report.cluster.file import cluster_text
from kernels.cluster.cases import BURST, DISTURBED, SERVICE, cluster, quota_teams
from shared_data import ROOT

JOBS = """submit_s,duration_s,gpus,team
0,7200,8,a
60,7200,8,a
120,7200,8,b
86460,7200,8,b
86500,3600,4,a
"""
CLUSTER = """version: 1
name: tiny
nodes:
  - {accelerator: A100-SXM-80GB, nodes: 1, accelerators_per_node: 8, usd_per_accelerator_h: 1.5}
  - {accelerator: L40S, nodes: 0, accelerators_per_node: 8, usd_per_accelerator_h: 1.0}
teams:
  - {name: a, wait_p90_min: 10}
  - {name: b, wait_p90_min: 10}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "c.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "j.csv").write_text(JOBS, encoding="utf-8")
    return [str(tmp_path / "c.yaml"), "--jobs", str(tmp_path / "j.csv"), "--samples", "0"]


def run(*arguments):
    return CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=True)


def test_three_jobs_at_once_are_three_nodes(files, tmp_path):
    out = tmp_path / "planned.yaml"
    found = run(*files, "--json", "--out", str(out))
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    (pool,) = document["plan"]["pools"]
    assert (pool["accelerator"], pool["n_nodes"], pool["n_accelerators"]) == (
        "A100-SXM-80GB",
        3,
        24,
    )
    # 3 nodes × 8 GPUs × $1.50 × 730 h
    assert document["plan"]["cost_usd_per_month"]["value"] == pytest.approx(26_280.0)
    assert document["feasible"]
    assert document["plan"]["slo"]["is_kept"]
    assert document["rejected"][0]["candidate"] == "L40S"
    assert document["binding"][0]["missed"][0]["kind"] == "wait"
    assert read_cluster(out).groups[0].n_nodes == 3


def test_the_table_begins_with_the_answer(files):
    found = run(*files)
    assert "Run “tiny” on 3 nodes of 8 × A100-SXM-80GB" in " ".join(found.output.split())


def test_a_budget_that_is_too_small_ends_with_three(files):
    found = run(*files, "--budget", "20000")
    assert isinstance(found.exception, InfeasibleError)
    assert found.exception.exit_code == 3
    assert "raise the budget from $20,000 to $26,280 a month" in str(found.exception)


def test_options_of_serving_are_refused(files):
    found = run(*files, "--users", "10")
    assert isinstance(found.exception, InputError)
    assert "--users" in str(found.exception)


def test_a_cluster_survives_its_file(tmp_path):
    whole = cluster(
        read_cluster(ROOT / "examples" / "clusters" / "six-teams.yaml").policy,
        teams=quota_teams(),
        burst=BURST,
        **{**DISTURBED, "services": (replace(SERVICE, replicas_by_hour=(1,) * 24),)},
    )
    plain = tuple(replace(group, slices=()) for group in whole.groups)
    whole = replace(whole, groups=plain)
    path = tmp_path / "again.yaml"
    path.write_text(cluster_text(whole), encoding="utf-8")
    assert read_cluster(path) == whole


def test_the_plan_is_also_a_page(files, tmp_path):
    target = tmp_path / "planned.html"
    found = run(*files, "--html", str(target))
    assert found.exit_code == 0, found.output
    page = target.read_text(encoding="utf-8")
    assert "“tiny”, simulated" in page
    assert page.count("<svg") == 1
    assert "$26,280" in page.partition("</h1>")[0]


def test_no_plan_is_a_page_that_says_so(files, tmp_path):
    target = tmp_path / "refused.html"
    found = run(*files, "--budget", "100", "--html", str(target))
    assert found.exit_code != 0
    head = target.read_text(encoding="utf-8").partition("<h1>")[2].partition("</h1>")[0]
    assert head.startswith("No fleet")
    assert "$100 to $26,280" in head  # the smallest budget that helps
