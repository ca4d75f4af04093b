"""No default is hidden: whatever was left out is told with the key that changes it."""

import json
from typing import Any

import pytest

from fakes.scenarios import read_scenario_text
from gpuplan.domain.provenance import Assumption
from gpuplan.inputs.schema.places import walk_models
from gpuplan.inputs.schema.scenario import ScenarioSpec
from unit.inputs.scenarios import changed


def notes(changes: dict[str, Any]) -> dict[str, Assumption]:
    scenario = read_scenario_text(json.dumps(changed(changes)))
    return {note.change: note for note in scenario.assumptions}


def test_every_default_of_the_format_has_a_reason() -> None:
    for place, model in walk_models(ScenarioSpec):
        for name, field in model.model_fields.items():
            if field.is_required() or field.default is None or field.default_factory is not None:
                continue
            extra = field.json_schema_extra
            assert isinstance(extra, dict), f"{place}.{name}"
            assert extra.get("x-why"), f"{place}.{name}"


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({}, "objective", "cost"),
        ({}, "policy.survive", "none"),
        ({}, "policy.purchases", "on_demand, reserved, capacity_block"),
        ({"policy.spot_allowed": True}, "policy.purchases",
         "on_demand, reserved, capacity_block, spot"),
        ({}, "growth.per_month_frac", "0"),
        ({}, "budget.horizon_months", "36"),
        ({}, "workloads[0].demand.burstiness_cv", "1"),
        ({}, "workloads[0].demand.peak_to_mean", "1"),
        ({}, "workloads[0].request.prefix_hit_frac", "0"),
        ({}, "workloads[0].request.input_tokens.distribution", "near"),
        ({}, "workloads[0].kv_precision", "as published"),
        ({}, "workloads[1].precision", "as published"),
        ({}, "workloads[1].training.lora_rank", "16"),
        ({}, "workloads[4].training.sequence_tokens", "4096"),
        ({"workloads.0.demand": {"users": 9}}, "workloads[0].demand.active_frac", "0.2"),
        ({"workloads.0.demand": {"users": 9}}, "workloads[0].demand.requests_per_user_per_h", "10"),
        ({"workloads.0.demand": {"requests_per_day": 9}}, "workloads[0].demand.peak_to_mean", "3"),
        ({"site.rack": {"circuit": {"volts": 230, "amps": 16, "phases": 1}}},
         "site.rack.circuit.derate_frac", "0.8"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_noted(changes: dict[str, Any], key: str, value: str) -> None:
    found = notes(changes)
    assert found[key].value == value
    assert found[key].why


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"objective": "time"}, "objective"),
        ({"policy.survive": "none"}, "policy.survive"),
        ({"policy.purchases": ["owned"]}, "policy.purchases"),
        ({"growth.per_month_frac": 0}, "growth.per_month_frac"),
        ({"workloads.0.demand.peak_to_mean": 1}, "workloads[0].demand.peak_to_mean"),
        ({"workloads.0.demand.hourly_profile": [1] * 24}, "workloads[0].demand.peak_to_mean"),
        ({"workloads.0.demand": {"concurrent_requests": 9}}, "workloads[0].demand.peak_to_mean"),
        ({"workloads.1.training.lora_rank": 16}, "workloads[1].training.lora_rank"),
        ({"workloads.1.training.method": "full"}, "workloads[1].training.lora_rank"),
        ({}, "workloads[0].precision"),
        ({}, "workloads[0].demand.active_frac"),
        ({}, "workloads[3].precision"),
    ],
)
def test_what_was_given_or_does_not_apply_is_not_noted(changes: dict[str, Any], key: str) -> None:
    assert key not in notes(changes)


def test_hours_that_the_steps_leave_out_are_noted() -> None:
    steps = [{"hours_per_week": 60, "accelerators": 8}]
    scenario = read_scenario_text(
        json.dumps(changed({"workloads.3.work": {"load_duration": steps}}))
    )
    assert any(note.value == "108 h" for note in scenario.assumptions)


def test_giving_an_assumed_value_changes_nothing_but_the_note() -> None:
    silent = read_scenario_text(json.dumps(changed({})))
    told = read_scenario_text(
        json.dumps(changed({"objective": "cost", "budget.horizon_months": 36}))
    )
    assert told.budget == silent.budget
    assert told.objective == silent.objective
    assert len(silent.assumptions) - len(told.assumptions) == 2
