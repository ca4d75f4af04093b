"""`plan`, `explain`, `diff`, `report`: files, forms and exit codes."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.cli.plan import OF_THE_RUN, PlanOptions
from gpuplan.errors import PlannerError
from gpuplan.inputs.words.flags import KEYS
from shared_data import ROOT

EXAMPLE = str(ROOT / "examples" / "which-gpu.yaml")
FIXED = ["--as-of", "2026-11-01", "--samples", "20"]
LOAD = "workloads[0].demand.output_tokens_per_s"


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def exit_code(done) -> int:
    """Of the program: errors become codes in the outermost place."""
    return done.exception.exit_code if isinstance(done.exception, PlannerError) else done.exit_code


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "plan.yaml"
    done = run("plan", EXAMPLE, *FIXED, "--out", str(path))
    assert done.exit_code == 0, done.output
    return path


def test_json_keeps_the_contract():
    document = json.loads(run("plan", EXAMPLE, *FIXED, "--json").stdout)
    assert document["feasible"] is True
    assert document["plan"]["pools"][0]["n_accelerators"] == 2
    assert document["gap"] == 0.0
    assert document["rejected"][0].keys() >= {"candidate", "reason", "relaxation"}


def test_tables_fit_a_page():
    done = run("plan", EXAMPLE, *FIXED)
    assert done.exit_code == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= 100


def test_same_request_same_bytes(plan_file, tmp_path):
    again = tmp_path / "again.yaml"
    run("plan", EXAMPLE, *FIXED, "--out", str(again))
    assert again.read_bytes() == plan_file.read_bytes()


def test_explain_and_report_read_the_file(plan_file, tmp_path):
    done = run("explain", str(plan_file))
    assert done.exit_code == 0
    assert "Why this" in done.stdout
    page = tmp_path / "plan.html"
    assert run("report", str(plan_file), "--out", str(page)).exit_code == 0
    assert "h100-sxm" in page.read_text()


def test_report_goes_beside_the_plan(plan_file):
    assert run("report", str(plan_file)).exit_code == 0
    assert plan_file.with_suffix(".html").exists()


def test_diff_names_the_input(plan_file, tmp_path):
    other = tmp_path / "other.yaml"
    run("plan", EXAMPLE, *FIXED, "--set", f"{LOAD}=40000", "--out", str(other))
    same = json.loads(run("diff", str(plan_file), str(plan_file), "--json").stdout)
    assert same["is_same"]
    found = json.loads(run("diff", str(plan_file), str(other), "--json").stdout)
    assert found["inputs"] == [{"what": LOAD, "before": "4000", "after": "40000"}]
    assert found["cost_difference_usd_per_month"] == pytest.approx(6 * 2.95 * 730)


def test_what_if_compares():
    done = run("plan", EXAMPLE, *FIXED, "--what-if", "policy.survive=none", "--json")
    found = json.loads(done.stdout)
    assert found["cost_difference_usd_per_month"] == pytest.approx(-2.95 * 730)


def test_no_plan_ends_with_3_and_says_what_is_short():
    done = run("plan", EXAMPLE, *FIXED, "--budget", "3000")
    assert exit_code(done) == 3
    assert "$1,307/month short" in str(done.exception)


def test_check_ends_with_4_and_shows_the_plan():
    done = run("plan", EXAMPLE, *FIXED, "--budget", "3000", "--check", "--json")
    assert exit_code(done) == 4
    assert json.loads(done.stdout)["feasible"] is True
    assert "budget.usd_per_month" in str(done.exception)


def test_check_is_silent_where_all_is_kept():
    assert exit_code(run("plan", EXAMPLE, *FIXED, "--budget", "5000", "--check")) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "nowhere.yaml"],
        ["plan", "Nonesuch-13B, 6000 users"],
        ["plan", EXAMPLE, "--set", "nonsense=1"],
        ["plan", EXAMPLE, "--as-of", "yesterday"],
        ["explain", EXAMPLE],
        ["diff", EXAMPLE, EXAMPLE],
        ["report", "nowhere.yaml"],
    ],
    ids=["nothing", "no-file", "no-model", "no-key", "no-day", "no-plan", "no-plans", "no-report"],
)
def test_wrong_requests_end_with_2(arguments):
    assert exit_code(run(*arguments)) == 2


def test_stale_prices_end_with_5_and_name_the_cure():
    done = run("plan", EXAMPLE, "--as-of", "2031-01-01", "--set", "prices.offers=[]")
    assert exit_code(done) == 5
    assert "stale" in str(done.exception)
    assert "catalog update" in str(done.exception)


def test_every_option_is_of_the_run_or_a_key_of_the_scenario():
    assert set(PlanOptions._fields) - OF_THE_RUN == set(KEYS)
