"""A disaggregated plan is what simulate, verify, render and its own file say of it."""

import copy

import numpy as np
import pytest
import yaml

from consistency.plans import document, failed, planned, reopened
from gpuplan import api
from gpuplan.report.plan.document import plan_text

TREE = {
    "version": 1,
    "name": "long-prompts",
    "workloads": [
        {
            "name": "assistant",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.3-70B-Instruct",
            "precision": "fp8",
            "demand": {"requests_per_s": 12},
            "request": {"input_tokens": 6000, "output_tokens": 300},
            "slo": {"ttft_p95_ms": 2500, "tpot_p95_ms": 30},
        }
    ],
    "prices": {
        "offers": [
            {
                "name": "node",
                "accelerator": "h100-sxm",
                "accelerators_per_node": 8,
                "usd_per_node_h": 24,
                "network_gbit_per_s": 3200,
            }
        ]
    },
    "policy": {"accelerators": {"allowed": ["h100-sxm"]}},
}


def plan(policy, **demand):
    tree = copy.deepcopy(TREE)
    tree["policy"]["disaggregation"] = policy
    if demand:
        tree["workloads"][0]["demand"] = demand
    return planned(tree)


def rows(answer, *, is_split):
    found = [row for row in answer.decision.comparison if row.layout is not None]
    return [row for row in found if bool(row.layout.n_prefill) == is_split]


@pytest.fixture(scope="module")
def allowed():
    return plan("allowed")


def test_roles_are_pools_whose_sums_are_the_plan(allowed):
    prefill, decode = allowed.plan.pools
    assert (prefill.layout.role, decode.layout.role) == ("prefill", "decode")
    assert prefill.layout.tp == decode.layout.tp
    [row] = [row for row in allowed.decision.comparison if row.is_chosen]
    assert row.n_accelerators == prefill.n_accelerators + decode.n_accelerators
    n_each = row.layout.n_prefill + row.layout.n_decode
    assert row.n_replicas * n_each == prefill.n_replicas + decode.n_replicas
    assert not failed(allowed.proof.certificate)
    assert reopened(allowed) == allowed
    assert {pool["role"] for pool in document(allowed)["plan"]["pools"]} == {"prefill", "decode"}


def test_it_is_chosen_only_where_it_is_cheapest_and_allowed(allowed):
    never, shown, always = plan("never"), plan("auto"), plan("always")
    [split], whole = rows(allowed, is_split=True), rows(allowed, is_split=False)
    assert split.is_chosen
    assert all(
        split.usd_per_month <= row.usd_per_month for row in whole if row.evidence.is_eligible
    )
    assert not rows(never, is_split=True)
    # Unless it is allowed it is a row beside the plan, with the same figures.
    [beside] = rows(shown, is_split=True)
    assert not beside.is_chosen
    assert not beside.evidence.is_eligible
    assert beside.usd_per_month == pytest.approx(split.usd_per_month)
    assert shown.plan.cost_usd_per_month == never.plan.cost_usd_per_month
    assert always.plan.cost_usd_per_month.value == pytest.approx(split.usd_per_month)
    assert split.usd_per_month < never.plan.cost_usd_per_month.value


@pytest.mark.parametrize("demand", [{"requests_per_s": 12}, {"concurrent_requests": 80}])
def test_a_disaggregated_plan_is_what_simulate_says(demand, tmp_path):
    answer = plan("always", **demand)
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer))
    found = api.simulate_planned(path)
    times, n = found.outcome.times, len(found.outcome.times.ttft_s)
    part = slice(n // 5, n - n // 20)
    columns = {"ttft p95": times.ttft_s[part], "tpot p95": times.tpot_s[part]}
    for slo in answer.plan.slo.promises:
        value = float(np.quantile(np.asarray(columns[slo.what]), 0.95))
        assert value == pytest.approx(slo.reached_s.value, rel=0.15), slo.what


def test_every_target_knows_the_roles(allowed, tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(allowed))
    prefill, decode = allowed.plan.pools

    def rendered(target):
        return {file.path: file.content.decode() for file in api.render(path, target)}

    [values] = (yaml.safe_load(text) for text in rendered("llm-d").values())
    assert values["prefill"]["replicas"] == prefill.n_replicas
    assert values["decode"]["replicas"] == decode.n_replicas
    [graph] = (yaml.safe_load(text) for text in rendered("dynamo").values())
    assert [each["type"] for each in graph["spec"]["components"]] == [
        "frontend",
        "prefill",
        "decode",
    ]
    for name, text in {**rendered("vllm"), **rendered("kubernetes")}.items():
        assert "NixlConnector" in text, name
    assert set(rendered("kubernetes")) == {"assistant-prefill.yaml", "assistant-decode.yaml"}
