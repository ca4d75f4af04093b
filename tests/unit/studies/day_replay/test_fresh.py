"""Facts for the checker, and a replay that comes from what the plan names."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan
from gpuplan.studies.day_replay.fresh import fresh_replay, plan_facts
from gpuplan.studies.planning.inputs import plan_inputs

TREE = {
    "version": 1,
    "name": "small",
    "workloads": [
        {
            "name": "small",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "demand": {"requests_per_s": 10},
            "request": {"input_tokens": 500, "output_tokens": 100},
            "slo": {"ttft_p95_ms": 1000, "tpot_p95_ms": 40},
        }
    ],
    "policy": {"accelerators": {"allowed": ["H100"], "forbidden": ["A100"]}},
}


@pytest.fixture(scope="module")
def made():
    request = PlanRequest(target="small", tree=TREE, today=date(2026, 11, 16), n_samples=0)
    return plan_inputs(request), plan(request)


def test_facts_are_of_the_scenario_and_the_catalog(made):
    facts = plan_facts(*made)
    assert facts.allowed == {"h100-sxm"}
    assert facts.forbidden == {"a100-sxm-80gb"}
    assert facts.models["small"].n_params == pytest.approx(8.03e9, rel=1e-3)
    assert facts.accelerators["h100-sxm"].memory.bytes_per_s == pytest.approx(3.35e12)


def test_the_replay_is_of_the_planned_replicas_at_the_peak(made):
    inputs, answer = made
    replay = fresh_replay(inputs, answer, "small")
    pool = answer.plan.pools[0]
    assert replay.n_replicas == pool.n_replicas - pool.n_spare_replicas
    rate = len(replay.arrive_s) / replay.arrive_s[-1]
    assert rate == pytest.approx(10, rel=0.05)
    assert replay.is_finished.all()
    assert float(np.quantile(replay.ttft_s, 0.95)) < 1.0


def test_an_edited_count_is_what_is_replayed(made):
    inputs, answer = made
    pool = answer.plan.pools[0]
    more = replace(answer, plan=replace(answer.plan, pools=(replace(pool, n_replicas=4),)))
    assert fresh_replay(inputs, more, "small").n_replicas == 4 - pool.n_spare_replicas
    none = replace(answer, plan=replace(answer.plan, pools=(replace(pool, n_replicas=0),)))
    assert fresh_replay(inputs, none, "small") is None


def test_a_layout_that_cannot_run_has_no_replay(made):
    inputs, answer = made
    pool = answer.plan.pools[0]
    other = replace(pool, precision="fp64")
    odd = replace(answer, plan=replace(answer.plan, pools=(other,)))
    assert fresh_replay(inputs, odd, "small") is None


def test_a_workload_that_is_not_in_the_plan_has_no_replay(made):
    assert fresh_replay(*made, "another") is None
