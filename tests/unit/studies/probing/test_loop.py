"""A plan, its probe, runs that come back, and the plan that follows."""

import json
from datetime import date
from pathlib import Path

import pytest

from gpuplan import api
from gpuplan.domain.inference.performance import USUAL_VERSIONS
from gpuplan.domain.plan.probe import ProbeRequest
from gpuplan.domain.telemetry.replan import ReplanRequest
from gpuplan.errors import InputError

EXAMPLE = Path(__file__).parents[4] / "examples" / "chat.yaml"
AS_OF = "2026-11-01"
MODEL = "meta-llama/Llama-3.3-70B-Instruct"
GIVEN = {
    "model": MODEL, "accelerator": "2xh100-sxm", "tp": "2", "precision": "fp8",
    "kv_precision": "fp16", "engine": "vllm", "engine_version": USUAL_VERSIONS["vllm"],
}  # fmt: skip


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("probe") / "plan.yaml"
    answer = api.plan(EXAMPLE, today=date.fromisoformat(AS_OF))
    path.write_text(api.plan_text(answer), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def advice(plan_file):
    return api.probe(plan_file)


def runs(folder: Path, slower: float) -> list[Path]:
    """What `vllm bench serve` would write at a site whose steps take so many times as long."""
    found = []
    for users, tpot_ms, ttft_ms in ((1, 18.7, 250.0), (17, 28.2, 480.0), (34, 38.2, 690.0)):
        tpot, ttft, n = tpot_ms * slower, ttft_ms * slower, 10 * users
        e2e = ttft + 349 * tpot
        result = {
            "date": "20261101-101500", "backend": "vllm", "model_id": MODEL, "num_prompts": n,
            "request_rate": "inf", "burstiness": 1.0, "max_concurrency": users,
            "duration": 10 * e2e / 1e3, "completed": n, "failed": 0,
            "total_input_tokens": 2200 * n, "total_output_tokens": 350 * n,
            "output_throughput": users * 350 / e2e * 1e3, "mean_ttft_ms": ttft,
            "mean_tpot_ms": tpot, "mean_e2el_ms": e2e,
        }  # fmt: skip
        found.append(folder / f"probe-1-c{users}.json")
        found[-1].write_text(json.dumps(result))
    return found


def calibrated(folder: Path, slower: float) -> Path:
    path = folder / "site.json"
    api.calibrate(runs(folder, slower), given=GIVEN, out=path)
    return path


def test_the_plans_own_fleet_is_the_run_worth_most(advice):
    [best, *_] = advice.probes
    assert best.subject.startswith("2 x h100-sxm TP2 fp8, vllm")
    assert len(best.concurrency) in (1, 3)  # at the planned load, or spread over loads from one on
    assert len(best.concurrency) == 1 or best.concurrency[0] == 1
    assert 2 < best.cost.duration_s / 60 < 30
    assert 0 < best.cost.usd < 20 < best.cost.value_usd
    assert advice.considered[0][1].net_usd == best.cost.net_usd


def test_a_run_narrows_and_could_change_the_decision(advice):
    [best, *_] = advice.probes
    (low, high), (after_low, after_high) = best.range_before, best.range_after
    assert low < after_low < 1 < after_high < high
    assert 0 < sum(change.probability_frac for change in best.changes) < 1
    assert all(change.fleet != advice.fleet for change in best.changes)


def test_commands_can_be_typed_as_they_stand(advice):
    n_runs = len(advice.probes[0].concurrency)
    texts = [each.command for each in advice.probes[0].commands]
    assert texts[0].startswith(f"vllm serve {MODEL} --tensor-parallel-size 2 ")
    assert "--quantization fp8" in texts[0]
    assert sum(text.startswith("vllm bench serve ") for text in texts) == n_runs
    assert "--random-input-len 2200 --random-output-len 350" in texts[1]
    assert {text.split()[0] for text in texts[1 + n_runs :]} == {"aiperf", "guidellm"}
    assert "--on 2xh100-sxm --tp 2 --precision fp8" in advice.after[0].command


def test_a_short_decision_or_no_money_asks_for_no_run(plan_file):
    short = api.probe(plan_file, ProbeRequest(n_months=1e-5))
    poor = api.probe(plan_file, ProbeRequest(budget_usd=0.01))
    assert short.probes == poor.probes == ()
    assert "no run pays" in short.lines[0]
    assert "as planned" in api.probe_sheet(short).head


def test_slow_runs_make_the_plan_larger_and_quick_ones_do_not(plan_file, tmp_path):
    size = {}
    for slower in (0.95, 1.3):
        site = calibrated(tmp_path, slower)
        old, new = api.replan_measured(plan_file, ReplanRequest(calibration=site, as_of=AS_OF))
        assert old.plan
        assert new.plan
        size[slower] = new.plan.cost_usd_per_month.value / old.plan.cost_usd_per_month.value
        ranges = [
            promise.reached_s.high / promise.reached_s.low
            for answer in (old, new)
            for promise in answer.plan.slo.promises
            if promise.what.startswith("tpot")
        ]
        assert ranges[1] < ranges[0]
    assert size[0.95] <= 1.0 < size[1.3]


def test_a_file_that_is_no_calibration_is_refused(plan_file, tmp_path):
    path = tmp_path / "site.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="calibration"):
        api.replan_measured(plan_file, ReplanRequest(calibration=path))
