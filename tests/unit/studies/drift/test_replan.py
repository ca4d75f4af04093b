"""A plan held against what happened: drift, new demand, hysteresis, change budget."""

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from fakes.telemetry import STEP_S, Scene
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.telemetry.replan import ReplanRequest
from gpuplan.errors import InputError
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.plan_file import plan_of
from gpuplan.observe.read import read_text
from gpuplan.observe.service import observed_service
from gpuplan.pipeline.plan import plan
from gpuplan.pipeline.replan import replan
from gpuplan.report.plan.difference import replan_sheet
from gpuplan.report.plan.document import plan_text

SCENARIO = """
version: 1
name: small chat
workloads:
  - name: chat
    kind: online_inference
    model: meta-llama/Llama-3.1-8B-Instruct
    demand: {requests_per_s: 4}
    request: {input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95_ms: 2000, tpot_p95_ms: 60}
prices:
  offers:
    - {accelerator: L40S, usd_per_accelerator_h: 1.60}
policy: {accelerators: {allowed: [L40S]}}
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "chat.yaml"
    path.write_text(SCENARIO)
    return plan(PlanRequest(target=str(path), today=date(2026, 11, 1), n_samples=0))


def service(rate: float, *, ttft_s: float = 0.1, replicas: int | None = None, old=None):
    """Telemetry of a service at a steady rate; replicas as planned unless said."""
    n = replicas or old.plan.pools[0].n_replicas
    scene = Scene(n_samples=120)
    for k in range(n):
        labels = {"model_name": "m", "instance": f"r{k}"}
        scene.counter("vllm:request_success_total", rate / n, **labels)
        scene.gauge("vllm:num_requests_running", 5.0, **labels)
        name = "vllm:time_to_first_token_seconds"
        for upper in (0.01, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0):
            scene.counter(f"{name}_bucket", rate / n * (upper >= ttft_s), le=str(upper), **labels)
        scene.counter(f"{name}_bucket", rate / n, le="+Inf", **labels)
    return scene


def lengths(scene: Scene, rate: float, *, tokens_in: float, tokens_out: float) -> Scene:
    for name, mean in (("prompt", tokens_in), ("generation", tokens_out)):
        base = f"vllm:request_{name}_tokens"
        scene.counter(f"{base}_bucket", rate, le="+Inf")
        scene.counter(f"{base}_sum", rate * mean)
    return scene


def test_what_a_service_saw():
    scene = lengths(service(8.0, replicas=2), 8.0, tokens_in=900.0, tokens_out=150.0)
    seen = observed_service(scene.telemetry())
    assert seen.peak_requests_per_s == pytest.approx(8.0)
    assert seen.input_tokens == pytest.approx(900.0)
    assert seen.output_tokens == pytest.approx(150.0)
    assert 0.05 <= seen.ttft_p95_s <= 0.1
    assert seen.n_replicas == 2
    assert seen.span_s == pytest.approx(119 * STEP_S, rel=0.02)


def test_as_planned_is_kept(old):
    found = replan(old, service(4.0, old=old, ttft_s=0.1).telemetry(), ReplanRequest())
    assert found.advice == "keep"
    assert found.n_added == 0
    assert not found.has_drifted


def test_more_demand_needs_more(old):
    found = replan(old, service(40.0, old=old).telemetry(), ReplanRequest())
    assert found.advice == "change"
    assert found.n_added > 0
    assert found.has_drifted
    assert found.saved_usd_per_month < 0
    drift = next(one for one in found.drifts if one.what == "requests at the peak")
    assert drift.change_ratio == pytest.approx(10.0, rel=0.01)
    document = replan_sheet(found).document
    assert json.dumps(document, allow_nan=False)
    assert document["n_added"] == found.n_added


def test_a_change_budget_makes_steps(old):
    asked = ReplanRequest(max_added_accelerators=1)
    found = replan(old, service(40.0, old=old).telemetry(), asked)
    assert found.advice == "change in steps"
    assert found.n_step == 1 < found.n_added
    whole = replan(old, service(40.0, old=old).telemetry(), ReplanRequest())
    share = found.n_step / found.n_added
    assert found.saved_usd_per_month == pytest.approx(whole.saved_usd_per_month * share)


def test_a_budget_below_one_node_changes_nothing(old):
    asked = ReplanRequest(max_added_accelerators=0)
    found = replan(old, service(40.0, old=old).telemetry(), asked)
    assert (found.advice, found.n_step) == ("keep", 0)
    assert any("the change budget of 0 allows none" in reason for reason in found.reasons)


def test_a_broken_promise_is_drift(old):
    found = replan(old, service(4.0, ttft_s=5.0, old=old).telemetry(), ReplanRequest())
    assert any(one.is_beyond and one.what.startswith("ttft") for one in found.drifts)


def test_a_slower_service_at_the_planned_load_corrects_the_model(old):
    """Twice the highest promised TTFT at the planned rate: the limit to plan for shrinks alike."""
    promise = next(one for one in old.plan.slo.promises if one.what.startswith("ttft"))
    slow = service(4.0, ttft_s=5.0, old=old).telemetry()
    seen = observed_service(slow)
    ratio = seen.ttft_p95_s / promise.reached_s.value
    found = replan(old, slow, ReplanRequest())
    work = found.new.provenance.scenario["workloads"][0]
    assert work["slo"]["ttft_p95_ms"] == pytest.approx(2000.0 / ratio)
    assert any(one.what == "correction of ttft p95" for one in found.assumptions)


def test_a_slower_service_at_a_higher_load_corrects_nothing(old):
    found = replan(old, service(40.0, ttft_s=5.0, old=old).telemetry(), ReplanRequest())
    assert found.new.provenance.scenario["workloads"][0]["slo"]["ttft_p95_ms"] == 2000
    assert not any("correction" in one.what for one in found.assumptions)


def test_another_catalog_is_told_and_is_no_drift_of_reality(old):
    before = replace(old, provenance=replace(old.provenance, catalog_sha256="0" * 64))
    found = replan(before, service(4.0, old=old).telemetry(), ReplanRequest())
    assert any(one.what == "catalog" for one in found.drifts)
    assert not found.has_drifted


def test_boards_that_draw_more_than_planned_are_drift(old):
    limit_w = old.plan.power_w.high
    for watts, is_beyond in ((0.5 * limit_w, False), (2.0 * limit_w, True)):
        scene = service(4.0, old=old)
        scene.device(gpu_util=0.8, power_w=watts)
        found = replan(old, scene.telemetry(), ReplanRequest())
        power = next(one for one in found.drifts if one.what.startswith("power"))
        assert power.is_beyond == is_beyond


@pytest.mark.parametrize(("rate", "budget"), [(12.0, 1), (25.0, 2), (60.0, 3)])
def test_steps_never_pass_the_budget_nor_the_need(old, rate, budget):
    asked = ReplanRequest(max_added_accelerators=budget)
    found = replan(old, service(rate, old=old).telemetry(), asked)
    assert found.n_step == min(found.n_added, budget)
    assert (found.advice == "change in steps") == (found.n_added > budget)


def test_a_saving_below_the_hysteresis_is_no_reason_to_move(old):
    scene = service(2.0, old=old).telemetry()
    moved = replan(old, scene, ReplanRequest(hysteresis_frac=0.0))
    share = moved.saved_usd_per_month / old.plan.cost_usd_per_month.value
    stay = replan(old, scene, ReplanRequest(hysteresis_frac=min(1.0, max(share, 0.0) + 0.01)))
    assert stay.advice == "keep"
    assert stay.n_step == 0


def test_growth_is_planned_for(old):
    scene = service(16.0, old=old).telemetry()
    now, later = (
        replan(old, scene, ReplanRequest(growth_frac_per_month=g)).n_added for g in (0.0, 2.0)
    )
    assert later > now


def test_telemetry_without_requests_is_refused(old):
    with pytest.raises(InputError, match="how many requests"):
        replan(old, Scene().device(gpu_util=0.5).telemetry(), ReplanRequest())
    with pytest.raises(InputError, match="not one of the plan's services"):
        replan(old, service(4.0, old=old).telemetry(), ReplanRequest(workload="other"))


def test_the_new_plan_can_be_written_and_read(old):
    found = replan(old, service(8.0, old=old).telemetry(), ReplanRequest())
    again = plan_of(read_yaml_text(plan_text(found.new), name="new"))
    assert again.plan.pools == found.new.plan.pools


def test_demand_over_days_is_forecast():
    hours = np.arange(24 * 6)
    rate = 4.0 + 2.0 * np.sin(hours / 24 * 2 * np.pi)
    text = "timestamp,requests_per_s\n"
    text += "".join(f"{1.7e9 + 3600 * k:.0f},{v:.4f}\n" for k, v in zip(hours, rate, strict=True))
    seen = observed_service(read_text(text, source="made"))
    assert seen.peak_requests_per_s == pytest.approx(6.0, rel=0.01)
