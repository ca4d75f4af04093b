"""Every rule across keys: a scenario that breaks it is refused, and the place is named."""

import json
from typing import Any

import pytest

from fakes.scenarios import read_scenario_text
from gpuplan.errors import InputError
from unit.inputs.scenarios import CHAT, DELETE, changed

W0 = "workloads.0."


def problems(changes: dict[str, Any]) -> list[str]:
    text = json.dumps(changed(changes), indent=1)
    try:
        read_scenario_text(text, name="s.json")
    except InputError as error:
        return [str(problem) for problem in error.problems]
    return []


def test_the_scenario_that_is_changed_is_sound() -> None:
    assert problems({}) == []


RULES = [
    ({W0 + "demand.requests_per_s": 5}, "contradicts itself"),
    ({W0 + "demand.requests_per_day": 5}, "contradicts itself"),
    ({W0 + "demand": {"peak_to_mean": 2}}, "does not state the load"),
    ({W0 + "demand.trace": "t.csv"}, "may contradict"),
    ({W0 + "demand.concurrent_requests": 5}, "may contradict"),
    ({W0 + "demand": {"requests_per_s": 1, "active_frac": 0.1}}, "stands without users"),
    ({W0 + "demand": {"concurrent_requests": 8, "peak_to_mean": 2}}, "stands beside"),
    ({W0 + "demand.hourly_profile": [1] * 25}, "must hold 24 (a day) or 168"),
    ({W0 + "demand.hourly_profile": [0] * 24}, "is 0 in every hour"),
    (
        {W0 + "demand.hourly_profile": [1] * 23 + [9], W0 + "demand.peak_to_mean": 2},
        "hourly_profile alone reaches",
    ),
    ({W0 + "demand": {"load_duration": [{"hours_per_week": 5}]}}, "has no load"),
    (
        {W0 + "demand": {"load_duration": [
            {"hours_per_week": 20, "requests_per_s": 1},
            {"hours_per_week": 50, "requests_per_s": 2},
        ]}},
        "at least that load",
    ),
    (
        {W0 + "demand": {"load_duration": [
            {"hours_per_week": 20, "requests_per_s": 1},
            {"hours_per_week": 10, "accelerators": 2},
        ]}},
        "mixes",
    ),
    ({W0 + "demand": {"load_duration": [{"hours_per_week": 169, "requests_per_s": 1}]}}, "168"),
    ({W0 + "request.output_tokens": 0}, "tpot_p95_ms: limits the time between tokens"),
    ({W0 + "request.output_tokens": 0, W0 + "demand": {"output_tokens_per_s": 9}}, "counts output"),
    ({W0 + "request.input_tokens": 0}, "must be above 0"),
    ({W0 + "request.input_tokens": {"p50": 9, "p95": 8}}, "must be at least p50"),
    ({W0 + "request.input_tokens": {"p50": 9, "p99": 8}}, "must be at least p50"),
    ({W0 + "request.input_tokens": {"mean": 9, "max": 8}}, "must be at least mean"),
    ({W0 + "request.input_tokens": {"p95": 8}}, "does not state the length"),
    ({W0 + "request.input_tokens": {"mean": 8, "distribution": "uniform"}}, "add max"),
    ({W0 + "request.input_tokens": {"mean": 8, "distribution": "lognormal"}}, "without spread"),
    ({W0 + "request.input_tokens": {"mean": 8, "cv": 1, "distribution": "fixed"}}, "lognormal"),
    ({W0 + "request.input_tokens": {"p50": 8, "cv": 1}}, "stands without mean"),
    ({W0 + "slo": {"availability_frac": 0.9}}, "has no latency target"),
    ({W0 + "slo.ttft_p99_ms": 1999}, "must be at least ttft_p95_ms"),
    ({W0 + "slo.e2e_p95_s": 1.9}, "shorter than the first token"),
    ({W0 + "max_context_tokens": 2500}, "must be at least 2550"),
    ({W0 + "precision": "fp9"}, "did you mean fp8?"),
    ({W0 + "kv_precision": "quux"}, "must be one of fp32"),
    ({W0 + "team": "x"}, "is not among teams"),
    ({W0 + "model": {"params_b": 7, "active_params_b": 8}}, "must be at most 7"),
    ({W0 + "model": {"name": "x", "params_b": 7}}, "a name and a size"),
    ({W0 + "model": {"name": "x", "active_params_b": 7}}, "remove it: the catalog knows"),
    ({W0 + "model": {}}, "neither a name nor a size"),
    ({W0 + "model": "./config.json"}, "cannot be named here"),
    ({W0 + "demand": {"trace": "trace.csv"}}, "cannot be named here"),
    ({W0 + "capacity": [{"accelerator": "L4"}]}, "holds no figure"),
    ({W0 + "capacity": [{"accelerator": "L4", "mfu_frac": 0}]}, "must be above 0"),
    (
        {W0 + "capacity": [{"accelerator": "L4", "requests_per_s": 1, "samples_per_s": 1}]},
        "keep the one",
    ),
    (
        {W0 + "capacity": [{"accelerator": "L4", "mfu_frac": 0.4}] * 2},
        "was given before, at capacity[0]",
    ),
    ({"workloads.1.name": "chat"}, "is the name of workloads[0] too"),
    ({"workloads.1.training.samples": 5}, "has tokens and samples"),
    ({"workloads.1.training.tokens": DELETE}, "does not state the amount"),
    ({"workloads.1.training.global_batch_tokens": 100}, "less than one sequence"),
    (
        {
            "workloads.1.training.global_batch_tokens": 8192,
            "workloads.1.training.tokens_per_accelerator_per_step": 9000,
        },
        "more than global_batch_tokens",
    ),
    (
        {"workloads.1.training.method": "full", "workloads.1.training.lora_rank": 8},
        "stands beside method: full",
    ),
    ({"workloads.1.training.mfu_frac": 0}, "must be above 0"),
    ({"workloads.2.batch.docs": 5}, "has docs_per_day and docs"),
    ({"workloads.2.batch.deadline_h": 0}, "must be above 0"),
    ({"workloads.3.work": {"training": True}}, "does not state the amount"),
    ({"workloads.3.work": {"accelerators": 4, "samples": 4}}, "has accelerators and samples"),
    ({"workloads.3.work": {"accelerators": 4, "deadline_h": 4}}, "stands without samples"),
    (
        {"workloads.3.work": {"load_duration": [{"hours_per_week": 5, "requests_per_s": 2}]}},
        "give accelerators",
    ),
    ({"growth.per_month_frac": {"low": 0.1, "mid": 0.05, "high": 0.2}}, "must rise"),
    (
        {"growth": {"trigger_utilization_frac": 0.8, "target_utilization_frac": 0.9}},
        "orders would never end",
    ),
    ({"growth.monthly_profile": [0] * 12}, "0 in every month"),
    (
        {"policy.accelerators": {"allowed": ["H100", "L4"], "forbidden": ["h100"]}},
        "allowed and forbidden",
    ),
    (
        {
            "policy.accelerators": {"allowed": ["L4"]},
            "owned": [{"accelerator": "H100", "nodes": 1, "accelerators_per_node": 8}],
        },
        "not in policy.accelerators.allowed",
    ),
    (
        {
            "policy.accelerators": {"forbidden": ["L4"]},
            "prices.offers": [{"accelerator": "L4", "usd_per_accelerator_h": 1}],
        },
        "in policy.accelerators.forbidden",
    ),
    ({"policy": {"survive": "gpu", "max_accelerators": 1}}, "must be above 1"),
    ({"policy": {"purchases": ["spot"], "spot_allowed": False}}, "keep one of them"),
    ({"policy": {"purchases": ["owned"], "spot_allowed": True}}, "add spot to purchases"),
    ({"policy": {"precisions": "bf16"}}, "add one that both allow"),
    ({"policy": {"precisions": "bf61"}}, "did you mean bf16?"),
    ({"prices.offers": [{"accelerator": "L4"}]}, "has no price"),
    (
        {"prices.offers": [
            {"accelerator": "L4", "usd_per_accelerator_h": 1, "usd_per_node_h": 1},
        ]},
        "has two prices",
    ),
    (
        {"prices.offers": [{"accelerator": "L4", "usd_per_node_h": 1, "term_months": 12}]},
        "set purchase: reserved",
    ),
    (
        {"prices.offers": [{"accelerator": "L4", "usd_per_node_h": 1, "purchase": "spot"}]},
        "spot is not allowed by policy",
    ),
    (
        {
            "policy.purchases": ["owned"],
            "prices.offers": [{"accelerator": "L4", "usd_per_node_h": 1}],
        },
        "on_demand is not in policy.purchases",
    ),
    (
        {"prices.offers": [{"accelerator": "L4", "usd_per_node_h": 1,
                            "availability": {"interruptions_per_week": 1}}]},
        "it is for purchase: spot",
    ),
    (
        {"prices.offers": [{"name": "a", "accelerator": "L4", "usd_per_node_h": 1}] * 2},
        "is given twice",
    ),
    (
        {"prices.hardware": [
            {"accelerator": "L4", "usd_per_accelerator": 1, "usd_per_node": 2},
        ]},
        "the node is paid once",
    ),
    (
        {"site.rack": {"power_kw": 34, "circuit": {
            "volts": 208, "amps": 60, "phases": 3, "feeds": "A+B"}}},
        "A and B are not added",
    ),
    ({"site": {"power_kw": 10, "rack": {"power_kw": 11}}}, "more than the whole site"),
    (
        {"owned": [{"accelerator": "H100", "nodes": 1, "accelerators_per_node": 8,
                    "peak_utilization_frac": 0.5, "mean_utilization_frac": 0.6}]},
        "above the peak",
    ),
    (
        {"owned": [{"accelerator": "H100", "nodes": 1, "accelerators_per_node": 8,
                    "accelerator_cap_w": 700, "node_max_kw": 5}]},
        "exceed node_max_kw",
    ),
    ({"teams": [{"name": "a"}, {"name": "a"}]}, "is the name of teams[0] too"),
    (
        {"teams": [{"name": "a", "quota_accelerators": 9}], "policy.max_accelerators": 8},
        "guarantee 9 accelerators",
    ),
    ({"budget.capex_usd": -1}, "must be at least 0"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), RULES)
def test_a_broken_rule_is_told(changes: dict[str, Any], words: str) -> None:
    found = problems(changes)
    assert any(words in problem for problem in found), found


SOUND: list[dict[str, Any]] = [
    {W0 + "demand.requests_per_s": 3.3333},  # agrees with the users
    {W0 + "demand": {"requests_per_s": 2, "requests_per_day": 86400, "peak_to_mean": 2}},
    {W0 + "request.output_tokens": 1, W0 + "slo": {"ttft_p95_ms": 9}},
    {"policy.accelerators": {"allowed": ["H100"]},
     "owned": [{"accelerator": "h100-sxm", "nodes": 1, "accelerators_per_node": 8}]},
    {"policy": {"survive": "gpu", "max_accelerators": 2}},
    {"site.rack": {"power_kw": 17.2, "circuit": {
        "volts": 208, "amps": 60, "phases": 3, "feeds": "A+B"}}},
    {"growth": {"trigger_utilization_frac": 0.85, "target_utilization_frac": 0.85}},
    {W0 + "precision": ["float16", "awq"]},
]  # fmt: skip


@pytest.mark.parametrize("changes", SOUND)
def test_what_only_looks_wrong_is_read(changes: dict[str, Any]) -> None:
    assert problems(changes) == []


def test_all_rules_are_told_in_one_go_in_order_of_lines() -> None:
    text = json.dumps(
        changed({"workloads.1.name": "chat", W0 + "max_context_tokens": 9, "site.power_kw": 1,
                 "site.rack": {"power_kw": 2}}),
        indent=1,
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        read_scenario_text(text, name="s.json")
    lines = [int(problem.where.split(":")[1].split()[0]) for problem in caught.value.problems]
    assert len(lines) == 3
    assert lines == sorted(lines)


def test_the_scenario_of_the_tests_is_not_changed_by_them() -> None:
    assert changed({}) == CHAT
