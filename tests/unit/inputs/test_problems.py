"""What the schema refuses, word for word: place, finding, and what would be right."""

import json
from typing import Any

import pytest

from fakes.scenarios import read_scenario_text
from gpuplan.errors import InputError
from gpuplan.inputs.documents.problems import MAX_SHOWN
from gpuplan.inputs.scenario.read import scenario_from_dict
from unit.inputs.scenarios import DELETE, changed

W0 = "workloads.0."


def problems(changes: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_scenario_text(json.dumps(changed(changes)), name="s.yaml")
    return [str(problem).removeprefix("s.yaml:1: ") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {W0 + "slo.ttft_p95_ms": -5},
            "workloads[0].slo.ttft_p95_ms: got -5; must be above 0 (milliseconds)",
        ),
        (
            {W0 + "slo.ttft_p95_s": 2},
            "workloads[0].slo.ttft_p95_s: unknown key; did you mean ttft_p95_ms (milliseconds)?",
        ),
        (
            {"site.power": 500},
            "site.power: unknown key; did you mean power_kw (kW)?",
        ),
        (
            {"policy.power_kw": 500},
            "policy.power_kw: unknown key; it belongs at site.power_kw or site.rack.power_kw",
        ),
        (
            {W0 + "demand.qps": 5},
            "workloads[0].demand.qps: unknown key; "
            "did you mean requests_per_s (requests per second)?",
        ),
        (
            {W0 + "isl": 5},
            "workloads[0].isl: unknown key; it belongs at workloads[].request.input_tokens "
            "or workloads[].rollout.input_tokens",
        ),
        (
            {W0 + "batch": {}},
            "workloads[0].batch: unknown key; it belongs at workloads[].batch "
            "of kind batch_inference",
        ),
        ({"sites": {}}, "sites: unknown key; did you mean site?"),
        (
            {W0 + "kind": "online"},
            "workloads[0].kind: unknown value 'online'; did you mean 'online_inference'?",
        ),
        (
            {W0 + "kind": DELETE},
            "workloads[0].kind: missing; add one of online_inference, batch_inference, "
            "pretraining, finetuning, generic, reinforcement_learning, text_to_speech, "
            "recommender, classical_ml",
        ),
        ({"workloads.0": 5}, "workloads[0]: got 5; must be a mapping of keys"),
        (
            {"name": DELETE},
            'name: missing; add it: name of the scenario, e.g. "chat for 6000 users"',
        ),
        ({"workloads": []}, "workloads: got an empty list; must hold at least 1, has 0"),
        (
            {W0 + "demand.active_frac": 20},
            "workloads[0].demand.active_frac: got 20; must be at most 1: 20 % is 0.2 (fraction)",
        ),
        (
            {W0 + "demand.active_frac": "20%"},
            'workloads[0].demand.active_frac: got "20%"; '
            "must be a number: write a share, e.g. 0.2 for 20 % (fraction)",
        ),
        (
            {W0 + "slo.ttft_p95_ms": "2 s"},
            'workloads[0].slo.ttft_p95_ms: got "2 s"; '
            "must be a number: write the number alone, the unit is in the key (milliseconds)",
        ),
        (
            {W0 + "slo.ttft_p95_ms": "2000"},
            'workloads[0].slo.ttft_p95_ms: got "2000"; '
            "must be a number, without quotes (milliseconds)",
        ),
        (
            {W0 + "slo.ttft_p95_ms": True},
            "workloads[0].slo.ttft_p95_ms: got true; must be a number (milliseconds)",
        ),
        (
            {W0 + "slo.ttft_p95_ms": None},
            "workloads[0].slo.ttft_p95_ms: got nothing; give a value, or remove the key",
        ),
        ({W0 + "model": None}, "workloads[0].model: got nothing; give a value, or remove the key"),
        (
            {W0 + "model": 7},
            "workloads[0].model: got 7; must be the name of a model, or a mapping of keys",
        ),
        (
            {W0 + "request.prefix_hit_frac": 1.5},
            "workloads[0].request.prefix_hit_frac: got 1.5; must be at most 1: 1.5 % is 0.015",
        ),
        (
            {"growth.per_month_frac": "fast"},
            'growth.per_month_frac: got "fast"; '
            "must be a number, e.g. 0.05, or low, mid and high (fraction per month)",
        ),
        (
            {"policy.max_accelerators": 2.5},
            "policy.max_accelerators: got 2.5; must be a whole number (accelerators)",
        ),
        ({"policy.spot_allowed": 1}, "policy.spot_allowed: got 1; must be true or false"),
        ({"name": "  "}, 'name: got "  "; must be one line of text that is not blank'),
        ({"name": "x" * 301}, "characters long"),
        ({"version": 2}, "version: unknown value 2; must be 1"),
        (
            {"objective": "costs"},
            "objective: unknown value 'costs'; did you mean 'cost'?",
        ),
        (
            {"objective": "fame"},
            "objective: unknown value 'fame'; must be one of cost, time, energy, carbon, regret, "
            "weighted",
        ),
    ],
)
def test_messages(changes: dict[str, Any], told: str) -> None:
    found = problems(changes)
    assert len(found) == 1, found
    assert found[0] == told or found[0].endswith(told)


def test_all_problems_come_at_once_with_their_lines() -> None:
    text = "name: x\nworkloads:\n  - name: a\n    kind: generic\n    work:\n      acelerators: 4\n"
    text += "site:\n  pue: 0.9\n"
    with pytest.raises(InputError) as caught:
        read_scenario_text(text, name="scenario.yaml")
    assert str(caught.value) == (
        "scenario.yaml: 2 errors\n"
        "  scenario.yaml:6: workloads[0].work.acelerators: unknown key; "
        "did you mean accelerators (accelerators)?\n"
        "  scenario.yaml:8: site.pue: got 0.9; must be at least 1 (ratio)"
    )


@pytest.mark.parametrize("text", ["5", "[1, 2]", "just words", "null"])
def test_a_file_without_keys(text: str) -> None:
    with pytest.raises(InputError, match="instead of keys"):
        read_scenario_text(text)


def test_very_many_problems_are_cut_and_cheap() -> None:
    text = "name: x\nworkloads: []\n" + "".join(f"key{i}: {i}\n" for i in range(40_000))
    with pytest.raises(InputError) as caught:
        read_scenario_text(text)
    assert len(caught.value.problems) == MAX_SHOWN + 1
    assert "more errors" in caught.value.problems[-1].what


@pytest.mark.parametrize("kind", ["online_inferense", "serving", DELETE])
def test_a_wrong_kind_hides_no_other_error(kind: object) -> None:
    tree = changed({"workloads.0.kind": kind, "workloads.0.demand": {"userz": 6000}})
    with pytest.raises(InputError) as caught:
        scenario_from_dict(tree)
    assert {problem.where.split(": ")[-1] for problem in caught.value.problems} == {
        "workloads[0].kind",
        "workloads[0].demand.userz",
    }
