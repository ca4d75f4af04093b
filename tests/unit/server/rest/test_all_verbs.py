"""Verbs that read files on the command line take the content over HTTP, and answer the same."""

import json
from pathlib import Path

import pytest
import yaml

from gpuplan import api
from gpuplan.errors import InputError
from gpuplan.server.rest.bodies import EXAMPLES
from gpuplan.server.rest.verbs import VERBS, answer

FILES = Path(__file__).parents[4] / "examples"
RUNS = (FILES / "data/my_runs.csv").read_text(encoding="utf-8")
TELEMETRY = (FILES / "data/telemetry.csv").read_text(encoding="utf-8")
REQUESTS = (FILES / "data/requests.csv").read_text(encoding="utf-8")
SYSTEM = FILES / "system-undersized-supply.yaml"
SHOP = {
    "version": 1,
    "name": "shop",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "demand": {"requests_per_s": 4},
            "request": {"input_tokens": 500, "output_tokens": 100},
            "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 60},
        }
    ],
    "policy": {"accelerators": {"allowed": ["L40S"]}},
}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def plain(document):
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.fixture(scope="module")
def plan():
    return plain(api.plan(SHOP, n_samples=0).to_dict())


def test_check_is_that_of_the_file():
    system = yaml.safe_load(SYSTEM.read_text(encoding="utf-8"))
    wanted = api.check_sheet(api.check(SYSTEM)).document
    assert answer("check", {"system": system})["bottlenecks"] == wanted["bottlenecks"]


def test_design_is_that_of_the_plan(plan):
    found = answer("design", {"plan": plan})
    Path("same.yaml").write_text(yaml.safe_dump(plan), encoding="utf-8")
    assert found == plain(api.design_sheet(api.design(Path("same.yaml"))).document)


def test_what_if_says_what_differs():
    change = "workloads[0].demand.requests_per_s=400"
    found = answer("what-if", {"scenario": SHOP, "what_if": [change], "samples": 0})
    assert not found["is_same"]
    assert found["cost_difference_usd_per_month"] > 0


def test_roofline_is_that_of_the_verb():
    asked = {"model": "Llama-3.1-8B", "on": "H100", "concurrency": 8}
    points = answer("roofline", asked)["points"]
    assert {"prefill", "decode"} <= {point["phase"] for point in points}


def test_scale_passes_counts():
    found = answer("scale", {"model": "Llama-3.1-8B", "on": "H100", "counts": [8, 32]})
    assert [point["n_accelerators"] for point in found["points"]] == [8, 32]


def test_fit_training_passes_the_task():
    found = answer("fit-training", {"model": "Llama-3.1-8B", "on": "8xH100", "task": "lora"})
    assert found["task"] == "lora"


def test_a_trace_is_told_in_figures():
    found = answer("trace", {"text": REQUESTS})
    assert found["n_requests"] == len(REQUESTS.splitlines()) - 1
    assert found["input_tokens"]["p50"] <= found["input_tokens"]["p99"]
    assert found["mean_requests_per_s"] <= found["peak_minute_requests_per_s"] * 1.001


def test_diagnose_passes_price_and_accelerator():
    body = {"text": TELEMETRY, "accelerator": "H100", "usd_per_h": 2.0}
    dear = answer("diagnose", {**body, "usd_per_h": 4.0})
    cheap = answer("diagnose", body)
    assert cheap["mean"] == dear["mean"]
    assert cheap != dear


def test_telemetry_may_hold_addresses():
    assert answer("diagnose", {"text": TELEMETRY.replace("node-00000", "https://node/../x")})


def test_diagnose_with_its_sheet_has_a_heat_map():
    found = answer("diagnose+sheet", {"text": TELEMETRY})
    heat = found["heat"]
    assert len(heat["rows"]) == len(heat["use_frac"])
    assert all(len(row) == len(heat["at_s"]) for row in heat["use_frac"])
    json.dumps(found, allow_nan=False)


def test_forecast_looks_so_far_ahead():
    short = answer("forecast", {"text": TELEMETRY, "horizon_h": 2})
    long = answer("forecast", {"text": TELEMETRY, "horizon_h": 6})
    assert len(long["expected"]) > len(short["expected"])


def test_replan_says_what_telemetry_lacks(plan):
    with pytest.raises(InputError, match="how many requests"):
        answer("replan", {"plan": plan, "text": TELEMETRY})


def test_validate_and_predictions_of_own_rows():
    found = answer("validate", {"text": RUNS})
    assert found["rows"] == len(RUNS.splitlines()) - 1
    lines = answer("predict-table", {"text": RUNS})["csv"].splitlines()
    assert lines[0].startswith("id,")
    assert len(lines) - 1 == found["covered"]


def test_calibrate_returns_the_calibration_itself():
    found = answer("calibrate", {"text": RUNS})
    assert found["n_rows"] > 0
    assert json.loads(found["calibration"])


def test_one_item_of_the_catalog_names_its_sources():
    found = answer("catalog", {"item": "H100"})
    assert all(fact["source"] for fact in found["facts"])


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_summary_and_described_examples(verb):
    assert VERBS[verb].summary.endswith((".", "…"))
    schema = json.dumps(VERBS[verb].body.model_json_schema())
    assert "examples" in schema or "description" in schema


def test_a_sheet_has_the_document_of_the_verb():
    asked = {"model": "Llama-3.1-8B", "on": "H100"}
    found = answer("fit+sheet", asked)
    assert found["document"] == answer("fit", asked)
    assert found["tables"][0]["columns"]
    assert found["heat"] is None


RUN_AS_SHOWN = (
    "fit",
    "fit-training",
    "predict",
    "roofline",
    "predict-training",
    "predict-network",
    "scale",
    "simulate",
    "trace",
    "catalog",
    "diagnose",
)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_shows_a_question_that_it_reads(verb):
    VERBS[verb].body.model_validate(EXAMPLES[verb])


@pytest.mark.parametrize("verb", RUN_AS_SHOWN)
def test_a_question_that_is_shown_is_answered(verb):
    assert answer(verb, EXAMPLES[verb])
