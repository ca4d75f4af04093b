"""Options of plan, fit, predict, forecast and diff that compare: read, refused, exit codes."""

import json

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.cli.plan import _weight_changes
from gpuplan.cli.watch import telemetry_source
from gpuplan.domain.telemetry.monitoring import LiveSource
from gpuplan.errors import InputError, PlannerError

HEAD = "model,concurrency,driver,measured_output_tokens_per_s\n"


def run(*words):
    done = CliRunner().invoke(app, [*words])
    if isinstance(done.exception, PlannerError):
        return done.exception.exit_code, done.stdout
    return done.exit_code, done.stdout


def test_weights_are_keys_of_the_scenario():
    assert _weight_changes(None) == ()
    assert _weight_changes("cost=1, energy=0.5") == (
        "objective=weighted",
        "policy.weights.cost=1",
        "policy.weights.energy=0.5",
    )


def test_a_url_is_a_server_and_all_else_a_file(tmp_path):
    live = telemetry_source("http://prometheus:9090", hours=2.0, step_s=30.0)
    assert isinstance(live, LiveSource)
    assert live.window.end_s - live.window.begin_s == pytest.approx(7200.0)
    assert telemetry_source(str(tmp_path), hours=1.0, step_s=1.0) == tmp_path


def test_rank_needs_accelerators_and_orders_them():
    assert run("fit", "Llama-3.1-8B", "--rank")[0] == InputError.exit_code
    code, out = run("fit", "Llama-3.1-8B", "--on", "L4,H100", "--rank", "--json")
    assert code == 0
    assert [one["accelerator"] for one in json.loads(out)["ranking"]] == ["h100-sxm", "l4"]
    large = ("fit", "Llama-3.3-70B", "--on", "L4", "--rank", "--strict")
    assert run(*large)[0] == 3


def test_precisions_do_not_go_with_one_precision():
    both = ("--precisions", "bf16,fp8", "--precision", "fp8")
    assert run("predict", "Llama-3.1-8B", "--on", "H100", *both)[0] == 2
    assert run("predict", "Llama-3.1-8B", "--on", "H100", "--precisions", ",")[0] == 2
    code, out = run("predict", "Llama-3.1-8B", "--on", "H100", "--precisions", "fp8,bf16", "--json")
    assert code == 0
    assert [one["precision"] for one in json.loads(out)["precisions"]] == ["bf16", "fp8"]


@pytest.mark.parametrize(
    "words",
    [
        ("--growth-model", "quadratic"),
        ("--lead-weeks-high", "10"),
        ("--lead-weeks", "16", "--lead-weeks-high", "8"),
    ],
)
def test_a_forecast_refuses_what_makes_no_sense(tmp_path, words):
    file = tmp_path / "use.csv"
    file.write_text("timestamp,gpu_util\n" + "".join(f"{1.75e9 + 3600 * k},50\n" for k in range(9)))
    assert run("forecast", str(file), *words)[0] == 2


def test_a_regression_between_runs_exits_with_4(tmp_path):
    for name, rate in (("a", 100), ("b", 90), ("c", 98)):
        (tmp_path / f"{name}.csv").write_text(f"{HEAD}m,8,570,{rate}\n")
    first = str(tmp_path / "a.csv")
    code, out = run("diff", first, str(tmp_path / "b.csv"), "--json")
    assert code == 4
    assert json.loads(out)["regression"]
    assert run("diff", first, str(tmp_path / "c.csv"))[0] == 0
    assert run("diff", first, str(tmp_path / "b.csv"), "--tolerance", "0.2")[0] == 0
