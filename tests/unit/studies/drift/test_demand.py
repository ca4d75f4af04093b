"""The demand of the next plan: observed, forecast, grown; nothing else is replaced."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuplan.domain.plan.answer import PlannedLoad
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.telemetry.replan import Observed, ReplanRequest
from gpuplan.errors import InputError
from gpuplan.studies.drift.demand import (
    changed_request,
    demand_to_plan,
    planned_service,
    refuse_blind,
)
from gpuplan.studies.drift.refit import corrected, tightened

NOTHING = Observed(
    peak_requests_per_s=None,
    mean_requests_per_s=None,
    input_tokens=None,
    output_tokens=None,
    ttft_p95_s=None,
    tpot_p95_s=None,
    e2e_p95_s=None,
    n_replicas=None,
    power_w=None,
    span_s=3600.0,
)
OBSERVED = replace(NOTHING, peak_requests_per_s=4.0)
LOAD = PlannedLoad(
    workload="chat",
    kind="online_inference",
    model="m",
    peak_requests_per_s=3.0,
    mean_requests_per_s=None,
    residence_s=None,
    n_in_flight=None,
    lines=(),
)
TREE = {
    "workloads": [
        {
            "name": "chat",
            "demand": {"users": 10, "burstiness_cv": 2.0},
            "request": {"input_tokens": 100, "output_tokens": 10},
            "slo": {"ttft_p95_ms": 1000.0, "tpot_p95_ms": 50},
        },
        {"name": "other", "demand": {"users": 1}},
    ]
}


def answer(*loads: PlannedLoad, plan: object | None = "fleet"):
    scenario = SimpleNamespace(scenario=TREE, as_of="2026-11-16", seed=0)
    bare = SimpleNamespace(risk=None)
    return SimpleNamespace(load=loads, plan=plan, name="x", provenance=scenario, decision=bare)


def test_without_a_forecast_the_observed_peak_counts_and_that_is_said():
    demand, notes = demand_to_plan(OBSERVED, None, ReplanRequest())
    assert demand == 4.0
    assert [note.what for note in notes] == ["demand to come"]


@pytest.mark.parametrize(("ahead", "wanted"), [(6.0, 6.0), (2.0, 4.0)])
def test_the_higher_of_what_came_and_what_comes_is_planned_for(ahead, wanted):
    demand, notes = demand_to_plan(OBSERVED, SimpleNamespace(peak=ahead), ReplanRequest())
    assert (demand, notes) == (wanted, [])


def test_growth_is_put_on_top():
    asked = ReplanRequest(growth_frac_per_month=0.25)
    assert demand_to_plan(OBSERVED, None, asked)[0] == pytest.approx(5.0)


def test_observed_rate_and_lengths_replace_the_old_ones_and_burstiness_stays():
    seen = replace(OBSERVED, input_tokens=250.4, output_tokens=0.2)
    request = changed_request(answer(LOAD), LOAD, demand=5.0, observed=seen, query=ReplanRequest())
    chat, other = request.tree["workloads"]
    assert chat["demand"] == {"burstiness_cv": 2.0, "requests_per_s": 5.0}
    assert chat["request"] == {"input_tokens": 250, "output_tokens": 1}
    assert other == TREE["workloads"][1]
    assert TREE["workloads"][0]["demand"] == {"users": 10, "burstiness_cv": 2.0}


def test_a_service_is_found_by_name_or_because_it_is_alone():
    two = answer(LOAD, replace(LOAD, workload="search"))
    assert planned_service(answer(LOAD), None) is LOAD
    assert planned_service(two, "chat") is LOAD
    with pytest.raises(InputError, match="chat, search"):
        planned_service(two, None)
    with pytest.raises(InputError, match="none"):
        planned_service(answer(replace(LOAD, kind="batch_inference")), None)


def test_without_a_fleet_or_a_rate_nothing_can_be_held_against_the_plan():
    with pytest.raises(InputError, match="holds no fleet"):
        refuse_blind(answer(LOAD, plan=None), OBSERVED)
    with pytest.raises(InputError, match="how many requests"):
        refuse_blind(answer(LOAD), NOTHING)
    assert refuse_blind(answer(LOAD), OBSERVED) == "fleet"


def test_a_latency_twice_as_long_halves_the_limit_to_plan_for():
    assert tightened({"ttft_p95_ms": 1000.0, "tpot_p95_ms": 50}, {"ttft": 2.0}) == {
        "ttft_p95_ms": 500.0,
        "tpot_p95_ms": 50,
    }


def test_only_the_observed_service_is_corrected():
    request = PlanRequest(target="x", today=None, tree=TREE)
    changed = corrected(request, LOAD, {"tpot": 1.25}).tree["workloads"]
    assert changed[0]["slo"]["tpot_p95_ms"] == 40.0
    assert changed[1] == TREE["workloads"][1]
    assert corrected(request, LOAD, {}).tree["workloads"] == TREE["workloads"]


def test_a_new_plan_is_as_sure_as_the_old_one_was_meant_to_be():
    old = answer(LOAD)
    old.decision.risk = SimpleNamespace(level_frac=0.95)
    request = changed_request(old, LOAD, demand=5.0, observed=OBSERVED, query=ReplanRequest())
    assert (request.min_probability_frac, request.n_samples) == (0.95, 200)
    bare = changed_request(answer(LOAD), LOAD, demand=5.0, observed=OBSERVED, query=ReplanRequest())
    assert (bare.min_probability_frac, bare.n_samples) == (None, 0)
