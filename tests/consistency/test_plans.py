"""Plans of every kind agree with an independent checker, and come back from their files."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consistency.plans import document, failed, forget, planned, reopened
from consistency.strategies import KINDS, N_EXAMPLES
from gpuplan import api

CONSISTENCY = settings.get_profile("consistency")
# Closed loops take several seconds each to plan, the others half a second: in CI fewer of them, and
# more of the others.
FEWER = {"agents": 6}


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_agrees_with_the_checker_and_with_its_file(kind):
    n = CONSISTENCY.max_examples
    n = FEWER.get(kind, n + 3) if N_EXAMPLES == 300 else n

    @settings(CONSISTENCY, max_examples=n)
    @given(KINDS[kind])
    def check(tree):
        answer = planned(tree)
        if answer.plan is None:
            assert answer.explanation.conflicts, "no plan, and no reason"
            return
        assert not failed(answer.proof.certificate)
        assert reopened(answer) == answer

    check()


@settings(CONSISTENCY, max_examples=10)
@given(st.sampled_from(["chat", "embeddings", "batch", "finetuning"]).flatmap(KINDS.get))
def test_a_plan_file_is_verified_from_the_file_alone(tmp_path_factory, tree):
    answer = planned(tree)
    if answer.plan is None:
        return
    path = tmp_path_factory.mktemp("plans") / "plan.yaml"
    path.write_text(api.plan_text(answer), encoding="utf-8")
    verified = api.verify(path)
    assert not failed(verified.checks)
    assert len(verified.checks) >= len(answer.proof.certificate)


@settings(CONSISTENCY, max_examples=10)
@given(st.sampled_from(["chat", "recurring", "pretraining"]).flatmap(KINDS.get))
def test_the_same_question_has_the_same_answer(tree):
    one = document(planned(tree))
    forget()
    again = document(planned(tree))
    assert json.dumps(one) == json.dumps(again)
