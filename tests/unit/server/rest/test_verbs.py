"""Each verb over HTTP gives what the verb itself gives."""

import json

import pytest

from gpuplan import api
from gpuplan.domain.requests.requests import FitRequest, LoadRequest, NetworkRequest, PredictRequest
from gpuplan.errors import InputError
from gpuplan.server.rest.content import refuse_files
from gpuplan.server.rest.verbs import VERBS, answer

MODEL, CARD = "Llama-3.1-8B", "H100"


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def plain(document):
    return json.loads(json.dumps(document, allow_nan=False))


def test_fit_passes_layout_and_load():
    asked = {"model": MODEL, "on": "2xH100", "tp": 2, "context_tokens": 4096, "concurrency": 8}
    request = FitRequest(tp=2, context_tokens=4096, n_sequences=8)
    assert answer("fit", asked) == plain(api.fit(MODEL, "2xH100", request).to_dict())


def test_predict_passes_the_load():
    asked = {"model": MODEL, "on": CARD, "concurrency": 16, "input_tokens": 500, "precision": "fp8"}
    load = LoadRequest(n_concurrent=16, input_tokens=500)
    wanted = api.predict(MODEL, CARD, PredictRequest(load=load, precision="fp8"))
    assert answer("predict", asked) == plain(wanted.to_dict())


def test_predict_network_passes_the_batch():
    asked = {"network": "resnet50", "on": "A100", "batch": 64}
    wanted = api.predict_network("resnet50", "A100", NetworkRequest(batch=64))
    assert answer("predict-network", asked) == plain(wanted.to_dict())


def test_predict_training_passes_the_columns():
    asked = {"model": MODEL, "on": CARD, "devices": 16, "columns": {"tp": 2, "seq_len": 2048}}
    run = api.training_run(MODEL, CARD, devices=16, tp=2, seq_len=2048)
    assert answer("predict-training", asked) == plain(api.predict_training(run).to_dict())


def test_simulate_passes_layout_and_adapters():
    """Fewer adapters an iteration than the traffic has keep others waiting."""
    body = {"model": MODEL, "on": "2xH100", "tp": 1, "requests_per_s": 8, "duration_s": 30}
    body |= {"lora_rank": 16, "loras": 8, "input_tokens": 500, "output_tokens": 100}
    ttft_s = [
        answer("simulate", body | more)["ttft_s"]["mean"]
        for more in ({}, {"max_loras": 8}, {"max_loras": 1}, {"pp": 2})
    ]
    assert ttft_s[0] == ttft_s[1] < 0.2 * ttft_s[2]
    assert ttft_s[3] != ttft_s[0]


def test_simulate_draws_the_same_requests_for_the_same_seed():
    asked = {"model": MODEL, "on": CARD, "requests_per_s": 2, "duration_s": 60, "seed": 3}
    first, again, other = (
        {key: value for key, value in answer("simulate", body).items() if "wall_s" not in key}
        for body in (asked, asked, {**asked, "seed": 4})
    )
    assert first == again != other


def test_diagnose_reads_a_pasted_table():
    rows = "\n".join(f"2026-01-01T00:{i:02d}:00,95" for i in range(30))
    assert answer("diagnose", {"text": f"time,utilization\n{rows}\n"})


def test_the_catalog_lists_its_kinds():
    names = json.dumps(answer("catalog", {"what": "accelerators"}))
    assert "h100-sxm" in names
    with pytest.raises(InputError, match="accelerators"):
        answer("catalog", {"what": "cheese"})


@pytest.mark.parametrize("body", [{}, {"scenario": {}, "words": "chat"}])
def test_a_plan_needs_a_scenario_or_words(body):
    with pytest.raises(InputError, match="one of scenario and words"):
        answer("plan", body)


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_keys_are_refused_by_every_verb(verb):
    with pytest.raises(ValueError, match="no such key"):
        answer(verb, {"no such key": 1})


@pytest.mark.parametrize(
    "body",
    [
        {"model": "/root/x"},
        {"scenario": {"workloads": [{"demand": {"trace": "../x.csv"}}]}},
        {"changes": ["workloads.0.trace=https://x"]},
        {"plan": {"provenance": {"scenario": {"trace": "/etc/passwd"}}}},
    ],
)
def test_texts_that_name_files_are_refused_wherever_they_stand(body):
    with pytest.raises(InputError, match="names a file"):
        refuse_files(body)


@pytest.mark.parametrize(
    "body",
    [
        {"words": "40 requests/s, 2.5 s … 3 s, e.g. chat"},
        {"model": "meta-llama/Llama-3.1-8B-Instruct"},
        {"plan": {"sources": ["https://example.org/prices"]}},
        {"words": "more... or less"},
    ],
)
def test_ordinary_texts_pass(body):
    refuse_files(body)


BRIEF = "Llama-3.1-8B chat, 4 requests/s, 500 input tokens, 100 output tokens, on L40S"


def test_a_brief_plan_has_the_numbers_of_the_whole_one():
    whole = answer("plan+sheet", {"words": BRIEF})
    brief = answer("plan+quick", {"words": BRIEF, "brief": True})
    assert brief["head"] == whole["head"]
    mine, yours = brief["document"], whole["document"]
    for key in ("feasible", "gap", "comparison"):
        assert mine[key] == yours[key], key
    for key in ("cost_usd_per_month", "power_w", "slo"):
        assert mine["plan"][key] == yours["plan"][key], key
    without_use = [{k: v for k, v in p.items() if k != "use"} for p in yours["plan"]["pools"]]
    assert [
        {k: v for k, v in p.items() if k != "use"} for p in mine["plan"]["pools"]
    ] == without_use
    assert mine["risk"]["probability_frac"] == yours["risk"]["probability_frac"]
    assert (mine["charts"], mine["alternatives"], brief["purchases"]) == ([], [], [])
    fleets = {(row["accelerator"], row["precision"]) for row in yours["comparison"]}
    assert {(each["accelerator"], each["precision"]) for each in whole["purchases"]} <= fleets
