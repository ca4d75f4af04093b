"""One line of words becomes a scenario; what it does not say is assumed under a flag's name."""

import pytest

from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.inputs.scenario.short_form import USES, short_scenario


def tree_of(text, **given):
    return short_scenario(text, given)[0].data


def work_of(text, **given):
    return tree_of(text, **given)["workloads"][0]


def test_the_line_of_the_readme():
    work = work_of("Llama-3.3-70B, 6000 users, chat")
    assert work["model"] == "Llama-3.3-70B"
    assert work["demand"] == {"users": 6000}
    assert work["slo"] == dict(USES["chat"].slo)


@pytest.mark.parametrize(
    ("part", "where", "value"),
    [
        ("1,200 users", ("demand", "users"), 1200),
        ("6k users", ("demand", "users"), 6000),
        ("5 requests/s", ("demand", "requests_per_s"), 5),
        ("12 rps", ("demand", "requests_per_s"), 12),
        ("5,000/s", ("demand", "requests_per_s"), 5000),
        ("40 docs per second", ("demand", "requests_per_s"), 40),
        ("200k docs/day", ("demand", "requests_per_day"), 200_000),
        ("ttft 1.5 s", ("slo", "ttft_p95_ms"), 1500),
        ("tpot 40 ms", ("slo", "tpot_p95_ms"), 40),
        ("fp8", ("precision",), "fp8"),
    ],
)
def test_parts_are_understood(part, where, value):
    found = work_of(f"Qwen3-32B, 3 users, chat, {part}")
    for key in where:
        found = found[key]
    assert found == value


def test_policy_and_budget_are_understood():
    tree = tree_of("Qwen3-32B, 10 users, on H100 or L40S, $20k/month, N+1")
    assert tree["policy"] == {
        "accelerators": {"allowed": ["H100", "L40S"]},
        "survive": "replica",
    }
    assert tree["budget"] == {"usd_per_month": 20_000}


def test_place_power_and_kinds_are_understood():
    tree = tree_of("Qwen3-32B, 10 users, TPU only, in EU, 10 kW, spot")
    assert tree["policy"] == {
        "accelerators": {"allowed": ["TPU"]},
        "regions": {"allowed": ["EU"]},
        "spot_allowed": True,
    }
    assert tree["site"] == {"power_kw": 10}


@pytest.mark.parametrize(
    ("words", "method"),
    [("fine-tune, LoRA", "lora"), ("qlora", "qlora"), ("fine-tune with LoRA", "lora"),
     ("fine-tuning", "full")],
)  # fmt: skip
def test_a_run_is_understood(words, method):
    text = f"Llama-3.1-8B, {words}, 50M tokens, 3 epochs, in 36 hours"
    document, notes = short_scenario(text, {})
    tree = document.data
    [work] = tree["workloads"]
    assert work["kind"] == "finetuning"
    assert work["training"] == {
        "method": method, "tokens": 5e7, "epochs": 3, "deadline_days": 1.5
    }  # fmt: skip
    assert [note.what for note in notes] == (["method of fine-tuning"] if method == "full" else [])
    assert scenario_from_dict(tree, name="line").workloads[0].kind == "finetuning"


def test_a_long_run_is_understood():
    tree = tree_of("Llama-3.1-8B, pretraining, 2T tokens, in 45 days")
    assert tree["workloads"][0]["training"] == {"tokens": 2e12, "deadline_days": 45}


def test_images_have_a_promise_for_the_whole():
    work = work_of("FLUX.1-dev, 2 images/s")
    assert work["demand"] == {"requests_per_s": 2}
    assert work["slo"] == dict(USES["images"].slo)


def test_flags_win_over_words_and_over_what_is_usual():
    work = work_of("Qwen3-32B, 10 users, chat", users=99.0, ttft_p95_ms=800.0, input_tokens=123)
    assert work["demand"]["users"] == 99
    assert work["slo"] == {"ttft_p95_ms": 800, "tpot_p95_ms": USES["chat"].slo["tpot_p95_ms"]}
    assert work["request"]["input_tokens"] == 123


def test_every_assumption_names_its_flag():
    _, notes = short_scenario("Qwen3-32B, 10 users, agents", {})
    assert {note.change for note in notes} == {
        "--input-tokens",
        "--output-tokens",
        "--prefix-cache-hit-rate",
        "--ttft-p95-ms",
        "--tpot-p95-ms",
    }
    assert all(note.why for note in notes)


@pytest.mark.parametrize("use", sorted(USES))
def test_every_use_makes_a_scenario_that_is_read(use):
    tree = tree_of(f"Qwen3-32B, 10 users, {use}")
    assert scenario_from_dict(tree, name="line").workloads[0].name == use


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("chat, 10 users", "model"),
        ("Qwen3-32B, chat", "load"),
        ("Llama-3.1-8B, fine-tune", "tokens"),
        ("Llama-3.1-8B, LoRA, 5M tokens", "deadline"),
        ("Qwen3-32B, 10 users, purple, unicorns", "not understood"),
        ("", "model"),
    ],
)
def test_what_is_missing_or_strange_is_told(text, said):
    with pytest.raises(InputError, match=said):
        short_scenario(text, {})


def test_a_promise_for_the_whole_answer_stands_alone():
    assert work_of("Qwen3-32B, 10 users, chat", e2e_p95_s=9.0)["slo"] == {"e2e_p95_s": 9.0}
