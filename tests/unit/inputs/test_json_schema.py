"""The published schema says what the reader does."""

import json
from pathlib import Path
from typing import Any

import pytest
from build_scenario_reference import fleet_reference, scenario_reference
from jsonschema import Draft202012Validator

from gpuplan.inputs.documents.yaml_reader import read_yaml, read_yaml_text
from gpuplan.inputs.scenario.template import TEMPLATE_KINDS, scenario_template
from gpuplan.inputs.schema.reference import scenario_schema
from gpuplan.inputs.schema.scenario import ScenarioSpec
from unit.inputs.scenarios import CHAT, DELETE, changed

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = scenario_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    assert VALIDATOR.is_valid(SCHEMA["examples"][0])


def properties() -> list[tuple[str, str, dict[str, Any]]]:
    found = []
    for place, model in [("", SCHEMA), *SCHEMA["$defs"].items()]:
        objects = [model, *model.get("anyOf", [])]
        for inner in objects:
            found += [(place, key, entry) for key, entry in inner.get("properties", {}).items()]
    return found


def test_every_key_is_described() -> None:
    assert len(properties()) > 150
    for place, key, entry in properties():
        assert entry.get("description"), f"{place}.{key}"


def test_every_number_has_a_unit() -> None:
    for place, key, entry in properties():
        if place.endswith("Spread") or (place, key) == ("", "version"):
            continue
        is_spread = entry.get("$ref", "").endswith(("Spread", "LengthSpec"))
        if entry.get("type") in ("number", "integer") or is_spread:
            assert entry.get("x-unit"), f"{place}.{key}"


def test_null_is_never_allowed() -> None:
    assert '"null"' not in json.dumps(SCHEMA)


SCENARIOS = sorted(p for p in (ROOT / "examples").glob("*.yaml") if p.stem != "questions")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda p: p.stem)
def test_examples_validate(path: Path) -> None:
    assert list(VALIDATOR.iter_errors(read_yaml(path).data)) == []


@pytest.mark.parametrize("kind", TEMPLATE_KINDS)
def test_templates_validate(kind: str) -> None:
    data = read_yaml_text(scenario_template(kind), name=kind).data
    assert list(VALIDATOR.iter_errors(data)) == []


def accepted_by_model(data: object) -> bool:
    try:
        ScenarioSpec.model_validate(data)
    except ValueError:  # which pydantic's error is
        return False
    return True


W0 = "workloads.0."
BAD = [
    {"name": DELETE}, {"name": 5}, {"name": ""}, {"name": " "}, {"name": "a\nb"},
    {"name": "x" * 301}, {"version": 2}, {"version": "1"}, {"workloads": []}, {"workloads": {}},
    {"workloads.0": "x"}, {"extra": 1}, {W0 + "kind": "x"}, {W0 + "kind": DELETE},
    {W0 + "model": 5}, {W0 + "model": {"params_b": 0}}, {W0 + "model": {"size": 1}},
    {W0 + "demand": []}, {W0 + "demand.users": 0}, {W0 + "demand.users": "6000"},
    {W0 + "demand.users": True}, {W0 + "demand.users": 1e25}, {W0 + "demand.active_frac": 1.1},
    {W0 + "demand.peak_to_mean": 0.5}, {W0 + "demand.hourly_profile": [1] * 23},
    {W0 + "demand.hourly_profile": [-1] * 24}, {W0 + "demand.load_duration": []},
    {W0 + "demand.load_duration": [{"hours_per_week": 169}]}, {W0 + "slo.ttft_p95_s": 2},
    {W0 + "slo.ttft_p95_ms": -5}, {W0 + "slo.availability_frac": 1.5},
    {W0 + "request.input_tokens": "many"}, {W0 + "request.input_tokens": {"p50": 0}},
    {W0 + "request.input_tokens": {"median": 5}}, {W0 + "request.prefix_hit_frac": 2},
    {W0 + "request.prefix_hit_frac": {"low": 0, "mid": 0.5}}, {W0 + "request": DELETE},
    {W0 + "priority": 1.5}, {W0 + "precision": []}, {W0 + "precision": [5]},
    {W0 + "precision": {}}, {W0 + "layout": {"tp": 0}}, {W0 + "layout": {"sharding": "x"}},
    {"workloads.1.training.method": "x"}, {"workloads.1.training.method": DELETE},
    {"workloads.4.training.method": "lora"}, {"workloads.4.training.tokens": -1},
    {"workloads.2.batch.deadline_h": 0}, {"workloads.3.work": 4},
    {"growth.per_month_frac": -1}, {"growth.monthly_profile": [1] * 11}, {"site.pue": 0.9},
    {"site.cooling": "water"}, {"site.rack": {"circuit": {"volts": 1, "amps": 1, "phases": 2}}},
    {"owned": [{"accelerator": "H100"}]}, {"budget.capex_usd": -1}, {"budget.horizon_months": 0},
    {"policy.purchases": ["gift"]}, {"policy.purchases": []}, {"policy.spot_allowed": "yes"},
    {"policy.survive": "meteor"}, {"policy.max_accelerators": 0}, {"prices.offers": {}},
    {"prices.offers": [{"usd_per_node_h": 1}]}, {"teams": [{"name": "a", "share": 0}]},
    {"objective": "fame"}, {"objective": ["cost"]},
]  # fmt: skip
GOOD: list[dict[str, Any]] = [
    {}, {"version": 1}, {W0 + "precision": ["bf16", "fp8"]}, {W0 + "priority": 3.0},
    {W0 + "model": {"params_b": 70}}, {W0 + "request.input_tokens": {"p50": 1, "p95": 2}},
    {W0 + "request.prefix_hit_frac": {"low": 0, "mid": 0.5, "high": 1}}, {"teams": []},
    {"policy": {}}, {"growth": {}}, {"site": {}}, {"policy.max_accelerators": 8.0},
    {W0 + "layout": {}}, {W0 + "data_path": {"storage": {"kind": "object"}}},
]  # fmt: skip


@pytest.mark.parametrize("changes", BAD, ids=str)
def test_both_refuse(changes: dict[str, Any]) -> None:
    data = changed(changes)
    assert not VALIDATOR.is_valid(data)
    assert not accepted_by_model(data)


@pytest.mark.parametrize("changes", GOOD, ids=str)
def test_both_accept(changes: dict[str, Any]) -> None:
    data = changed(changes)
    assert list(VALIDATOR.iter_errors(data)) == []
    assert accepted_by_model(data)


def test_the_tests_begin_with_a_sound_scenario() -> None:
    assert VALIDATOR.is_valid(CHAT)


def test_the_published_files_are_fresh() -> None:
    fix = "run python tools/build_scenario_reference.py"
    reference = ROOT / "docs" / "reference"
    schema = json.loads((reference / "scenario.schema.json").read_text(encoding="utf-8"))
    assert schema == SCHEMA, fix
    assert (reference / "scenario.md").read_text(encoding="utf-8") == scenario_reference(), fix
    assert (reference / "fleet.md").read_text(encoding="utf-8") == fleet_reference(), fix
