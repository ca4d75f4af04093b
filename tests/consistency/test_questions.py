"""Forty worked questions: every answer lies within its bounds, and its certificate agrees.

`python3 dev.py consistency --questions all` asks all of them; without it one of each kind is asked
that is answered within seconds.
"""

import os

import pytest

from consistency.worked import QUANTITIES, answered, outside, quantity, questions, value_of

KINDS = ("chat", "agents", "rag", "embeddings", "batch", "recurring", "pretrain", "finetune",
         "media", "owned")  # fmt: skip
# The rest takes longer: it is asked with --questions all.
ASKED_ALWAYS = (
    "chat-8b", "chat-mixtral", "chat-405b", "agents-8b", "agents-30b", "rag-32b", "rag-8b-l4",
    "rag-rerank-heavy", "embeddings-m3", "embeddings-e5", "embeddings-bge-large",
    "batch-8b", "batch-70b", "batch-small", "recurring-l40s", "recurring-embeddings",
    "pretrain-7b", "pretrain-70b", "pretrain-moe",
    "finetune-70b-lora", "finetune-8b-full", "finetune-8b-qlora",
    "media-sdxl", "media-flux", "media-vit", "media-whisper", "finetune-7b-a100", "owned-growth",
)  # fmt: skip


def asked():
    is_all = os.environ.get("GPUPLAN_QUESTIONS") == "all"
    return [q for q in questions() if is_all or q["id"] in ASKED_ALWAYS]


@pytest.mark.parametrize("question", asked(), ids=lambda question: question["id"])
def test_the_answer_is_within_its_bounds(question):
    document = answered(question)
    assert not outside(question, document)
    wrong = [check["name"] for check in document["certificate"] if not check["ok"]]
    assert not wrong


def test_there_are_four_of_each_kind():
    ids = [question["id"] for question in questions()]
    assert len(set(ids)) == 40
    assert all(sum(name.startswith(f"{kind}-") for name in ids) == 4 for kind in KINDS)
    assert set(ASKED_ALWAYS) <= set(ids)


def test_every_bound_is_a_number_with_a_reason():
    for question in questions():
        assert question["bounds"]
        for bound in question["bounds"]:
            [side] = bound.keys() & {"least", "most"}
            assert bound[side].split("(")[0] in QUANTITIES
            assert value_of(str(bound["value"])) >= 0
            assert len(bound["because"]) > 10


def test_only_arithmetic_is_understood():
    assert value_of("ceil(2.1) * 3 + 2**3 / 4 - 1") == 10
    with pytest.raises(ValueError, match="only plain arithmetic"):
        value_of("__import__('os')")


def test_an_answer_outside_its_bounds_is_told_with_both_numbers():
    line = {"n_nodes": 2, "n_accelerators_per_node": 8, "paid_frac": 1.0, "purchase": "on_demand"}
    pool = {"workload": "a", "n_accelerators": 16, "purchases": [line]}
    document = {"plan": {"pools": [pool], "span_s": 2 * 730 * 3600.0}}
    question = {"bounds": [{"least": "accelerators", "value": "17", "because": "so it is"}]}
    assert outside(question, document) == ["accelerators is 16, at least 17: so it is"]
    assert quantity("accelerators(a)", document) == 16
    assert quantity("accelerator_hours", document) == 16 * 1460
    assert outside(question, {"plan": None, "explanation": {"conflicts": ["x"]}})
