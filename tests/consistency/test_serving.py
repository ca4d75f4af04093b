"""A plan is what `simulate` says of its fleet, and `predict` agrees in the means.

Every case is planned, written, simulated from its file and predicted from its own figures.
"""

from math import exp
from typing import Any

import pytest
import yaml

from gpuplan import api
from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.report.plan.document import plan_text

SLO = {"ttft_p95_ms": 3000, "tpot_p95_ms": 60}
# model, accelerator, demand, request, SLO and other keys of the workload
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "chat on L40S": ("Qwen/Qwen3-8B", "L40S", {"requests_per_s": 8},
                     {"input_tokens": 1000, "output_tokens": 250},
                     {"slo": {"ttft_p95_ms": 400, "tpot_p95_ms": 50}}),
    "few users on A100": ("Qwen/Qwen3-8B", "A100", {"users": 300},
                          {"input_tokens": 600, "output_tokens": 300}, {}),
    "bursts on H100": ("meta-llama/Llama-3.3-70B-Instruct", "H100",
                       {"requests_per_s": 6, "burstiness_cv": 2.0},
                       {"input_tokens": {"mean": 1500, "p95": 6000}, "output_tokens": 250},
                       {"precision": "fp8"}),
    "long prompts": ("meta-llama/Llama-3.1-8B-Instruct", "H100", {"requests_per_s": 4},
                     {"input_tokens": 24000, "output_tokens": 300}, {}),
    "cached prompts": ("meta-llama/Llama-3.1-8B-Instruct", "H100", {"requests_per_s": 20},
                       {"input_tokens": 8000, "output_tokens": 200, "prefix_hit_frac": 0.8}, {}),
    "experts": ("Qwen/Qwen3-30B-A3B", "H100", {"requests_per_s": 12},
                {"input_tokens": 2000, "output_tokens": 400}, {}),
    "AMD": ("meta-llama/Llama-3.3-70B-Instruct", "MI300X", {"requests_per_s": 5},
            {"input_tokens": 1200, "output_tokens": 300}, {}),
    "E2E alone": ("mistralai/Mistral-7B-Instruct-v0.3", "L40S", {"requests_per_s": 5},
                  {"input_tokens": 800, "output_tokens": 200}, {"slo": {"e2e_p95_s": 12}}),
    "a day": ("Qwen/Qwen3-8B", "H100",
              {"requests_per_s": 30, "hourly_profile": [1] * 8 + [4] * 8 + [2] * 8},
              {"input_tokens": 900, "output_tokens": 200}, {}),
}  # fmt: skip


def scenario(model, on, demand, request, more) -> dict[str, Any]:
    workload = {"name": "service", "kind": "online_inference", "model": model, "slo": SLO,
                "demand": demand, "request": request, **more}  # fmt: skip
    policy = {"accelerators": {"allowed": [on]}}
    return {"version": 1, "name": "case", "workloads": [workload], "policy": policy}


def planned(tmp_path, tree: dict[str, Any]) -> tuple[Answer, Any]:
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(tree))
    answer = api.plan(file)
    assert answer.plan is not None, answer.explanation.conflicts
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer))
    return answer, api.simulate_planned(path)


def percentile(found, what: str) -> tuple[float, float]:
    """The simulated figure, and how far chance may move it."""
    metric, statistic = what.split()
    latency = getattr(found.statistics, metric)
    value = getattr(latency, f"{statistic}_s")
    bounds = {"p50": 0, "p90": 1, "p95": 2, "p99": 3}
    ends = latency.bounds[bounds[statistic]]
    known = [end for end in (ends.low_s, ends.high_s) if end is not None]
    return value, max((abs(end - value) for end in known), default=0.0)


@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_what_simulate_says_of_its_fleet(tmp_path, name):
    answer, found = planned(tmp_path, scenario(*CASES[name]))
    assert found.outcome.n_completed == found.outcome.n_requests
    assert not found.statistics.is_overloaded
    for promise in answer.plan.slo.promises:
        value, half = percentile(found, promise.what)
        assert promise.is_kept
        assert promise.reached_s.value == pytest.approx(value, rel=0.06, abs=2 * half), promise.what
        assert value <= 1.02 * promise.limit_s


def scattered(n_tokens: int) -> dict[str, float]:
    """Lengths as predictions assume them: lognormal, 0.6 in the logarithm."""
    return {"mean": n_tokens, "p95": n_tokens * exp(1.645 * 0.6 - 0.6**2 / 2)}


@pytest.mark.parametrize("name", ["chat on L40S", "experts", "AMD", "E2E alone"])
def test_predict_agrees_in_the_means_within_its_range(tmp_path, name):
    model, on, demand, request, more = CASES[name]
    lengths = {key: scattered(value) for key, value in request.items()}
    answer, found = planned(tmp_path, scenario(model, on, demand, lengths, more))
    [pool] = answer.plan.pools
    n = pool.n_replicas - pool.n_spare_replicas
    load = LoadRequest(requests_per_s=demand["requests_per_s"], **request)
    layout = {name: getattr(pool.layout, name) for name in ("tp", "pp", "dp", "ep")}
    asked = PredictRequest(**layout, n_replicas=n, precision=pool.precision, load=load)
    served = api.predict(model, pool.accelerator, asked).served
    ttft, tpot = found.statistics.ttft, found.statistics.tpot
    assert served.ttft_mean_s.low <= ttft.mean_s <= served.ttft_mean_s.high
    assert served.tpot_mean_s.low <= tpot.mean_s <= served.tpot_mean_s.high


@pytest.mark.parametrize("think_s", [0, 15])
def test_a_closed_loop_is_planned_as_it_is_simulated(tmp_path, think_s):
    request = {"input_tokens": 3000, "output_tokens": 300, "think_time_s": think_s}
    tree = scenario("Qwen/Qwen3-30B-A3B", "H100", {"concurrent_requests": 600}, request, {})
    answer, found = planned(tmp_path, tree)
    for promise in answer.plan.slo.promises:
        value, half = percentile(found, promise.what)
        assert promise.is_kept
        assert value <= 1.02 * promise.limit_s
        # A few replicas speak for all, with the share of clients of the fullest: never too quick.
        assert promise.reached_s.value == pytest.approx(value, rel=0.15, abs=2 * half)
        assert promise.reached_s.value >= 0.97 * value - 2 * half
    [load] = answer.load
    cycle_s = found.statistics.e2e.mean_s + think_s
    assert load.peak_requests_per_s * cycle_s == pytest.approx(600, rel=0.08)
    assert load.residence_s == pytest.approx(found.statistics.e2e.mean_s, rel=0.08)


def test_one_replica_fewer_violates_an_slo_or_is_too_unsure(tmp_path):
    tree = scenario(*CASES["bursts on H100"])
    answer, _ = planned(tmp_path, tree)
    [pool] = answer.plan.pools
    n = pool.n_replicas - pool.n_spare_replicas
    assert n > 1
    fewer = f"{n - 1} is not enough"
    unsure = "1 more than the predicted speed needs"
    assert any(fewer in line or unsure in line for line in answer.explanation.why)
