"""Stages are told to whoever listens, in order, and to nobody else."""

from gpuplan import api
from gpuplan.server.rest.verbs import answer
from gpuplan.stages import begin, listening

WORDS = "Llama-3.1-8B chat, 4 requests/s, 500 input tokens, 100 output tokens, on L40S"


def test_nobody_listens_by_default():
    begin("nothing")


def test_a_listener_hears_what_begins_inside_and_no_more():
    heard = []
    with listening(heard.append):
        begin("first")
        with listening(lambda stage: heard.append(f"inner {stage}")):
            begin("second")
        begin("third")
    begin("after")
    assert heard == ["first", "inner second", "third"]


def test_a_plan_passes_its_stages_in_order_and_a_brief_one_fewer():
    heard, brief = [], []
    with listening(heard.append):
        whole = answer("plan", {"words": WORDS})
    with listening(brief.append):
        answer("plan", {"words": WORDS, "brief": True})
    assert [stage.split(" ")[0] for stage in dict.fromkeys(heard)] == [
        "sizing",
        "selecting",
        "simulating",
        "comparing",
        "verifying",
    ]
    assert "verifying the plan independently" not in brief
    assert whole == answer("plan", {"words": WORDS})
    assert api.plan(WORDS).plan is not None
