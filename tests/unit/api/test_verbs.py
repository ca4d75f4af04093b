"""Verbs as a program calls them: files, words or mappings in; public types out."""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

import gpuplan
from gpuplan import api
from shared_data import ROOT

TREE = {
    "name": "small chat",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "Llama-3.1-8B",
            "demand": {"requests_per_s": 2},
            "request": {"input_tokens": 500, "output_tokens": 100},
            "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 60},
        }
    ],
    "policy": {"accelerators": {"allowed": ["H100"]}},
}


def test_a_scenario_is_built_without_a_file():
    made = gpuplan.scenario(TREE)
    assert isinstance(made, gpuplan.Scenario)
    assert made.workloads[0].name == "chat"
    assert gpuplan.scenario(**TREE) == made


def test_a_wrong_key_of_a_mapping_is_named():
    with pytest.raises(gpuplan.InputError, match="requests_per_second"):
        gpuplan.scenario(
            {**TREE, "workloads": [{**TREE["workloads"][0], "requests_per_second": 1}]}
        )


@pytest.fixture(scope="module")
def answer():
    return gpuplan.plan(TREE, n_samples=0)


def test_a_mapping_is_planned(answer):
    assert isinstance(answer, gpuplan.Answer)
    assert answer.feasible
    assert {pool.accelerator for pool in answer.plan.pools} == {"h100-sxm"}


def test_a_plan_is_short_in_a_line_and_whole_in_a_document(answer):
    assert len(repr(answer)) < 400
    assert answer.to_dict()["plan"]["pools"][0]["accelerator"] == "h100-sxm"


def test_words_and_files_are_planned_too():
    words = gpuplan.plan("Llama-3.1-8B, 200 users, chat, on H100", n_samples=0)
    path = ROOT / "examples" / "which-gpu.yaml"
    assert words.feasible
    assert gpuplan.plan(path, n_samples=0) == gpuplan.plan(str(path), n_samples=0)


def test_options_of_a_request_may_be_changed():
    request = gpuplan.PlanRequest(target="x", today=gpuplan.plan.__globals__["date"].today())
    with pytest.raises(gpuplan.InputError):
        gpuplan.plan(request, target="no-such-file.yaml")


def test_a_training_run_is_built_from_keywords():
    run = gpuplan.training_run("Llama-3.1-8B", "H100", devices=64, tp=2, mtbf_h=50.0)
    assert dict(run.columns)["n_accelerators"] == "64"
    assert run.mtbf_s == 50 * 3600
    assert gpuplan.predict_training(run).forecast.step_s.value > 0


def test_an_unknown_column_of_a_run_is_named():
    with pytest.raises(gpuplan.InputError, match="micro_batches"):
        gpuplan.training_run("Llama-3.1-8B", "H100", micro_batches=2)


def test_telemetry_is_diagnosed_from_a_file_by_name(tmp_path: Path):
    path = tmp_path / "use.csv"
    path.write_text("Time (min),GPU Utilization (%)\n0,20\n1,50\n2,90\n3,85\n4,95\n")
    found = gpuplan.diagnose(str(path))
    assert found.to_dict()["mean"] == pytest.approx(0.68, abs=0.01)
    assert found.verdicts == gpuplan.diagnose_text(path.read_text()).verdicts


def test_the_catalog_is_a_value():
    facts = gpuplan.catalog()
    assert facts.accelerators["h100-sxm"].memory.visible_bytes > 80e9


@pytest.mark.parametrize("name", gpuplan.__all__)
def test_a_public_name_loads_and_is_documented(name):
    found = getattr(gpuplan, name)
    assert found.__doc__
    assert f"`{name}" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["catalog", "design", "diagnose", "forecast", "report"])
def test_a_verb_is_not_hidden_by_the_room_of_its_name(name):
    importlib.import_module(f"gpuplan.{name}")
    assert callable(getattr(gpuplan, name))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'no_such_verb'"):
        gpuplan.no_such_verb  # noqa: B018


def test_completion_sees_public_names_alone():
    assert dir(gpuplan) == gpuplan.__all__


@pytest.mark.parametrize("layout", [{"tp": 0}, {"pp": 0}, {"dp": -1}])
def test_a_layout_of_nothing_is_refused(layout):
    with pytest.raises(gpuplan.InputError, match="use 1 or more"):
        gpuplan.fit("Llama-3.1-8B", "H100", gpuplan.FitRequest(**layout))


@pytest.mark.parametrize("name", ["infinity", "nan", "1e5", "-inf"])
def test_a_plan_whose_texts_look_like_numbers_is_read_back(answer, name, tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(api.plan_text(replace(answer, name=name)))
    assert gpuplan.read_plan(path).name == name
