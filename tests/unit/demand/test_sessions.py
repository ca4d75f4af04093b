import numpy as np
import pytest

from gpuplan.demand.arrivals import poisson
from gpuplan.demand.sessions import Conversation, closed_loop, conversations
from gpuplan.domain.columns import floats
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.errors import InputError

FIXED = TokenLengths(shape="fixed", mean_tokens=10.0)


def shape(**changed):
    known = {"message": FIXED, "answer": FIXED, "n_turns_mean": 3.0, "think_s": 20.0,
             "answer_s_per_token": 0.1} | changed  # fmt: skip
    return Conversation(**known)


def test_turns_and_pauses_have_their_means():
    found = conversations(poisson(5.0, 2000.0, seed=1), shape(), seed=2)
    _, n_turns = np.unique(found.session, return_counts=True)
    assert n_turns.mean() == pytest.approx(3.0, rel=0.03)
    order = np.lexsort((found.arrive_s, found.session))
    gaps = np.diff(found.arrive_s[order])[np.diff(found.session[order]) == 0]
    assert gaps.mean() == pytest.approx(20.0 + 1.0, rel=0.03)


def test_no_starts_no_requests():
    assert len(conversations(floats([]), shape(), seed=0)) == 0


@pytest.mark.parametrize("wrong", [{"n_turns_mean": 0.5}, {"think_s": -1.0}, {"think_s": np.nan}])
def test_impossible_conversations_are_refused(wrong):
    with pytest.raises(InputError):
        conversations(floats([0.0]), shape(**wrong), seed=0)


def test_closed_loop_has_rows_of_each_user_together():
    found = closed_loop(3, 4, request=shape(), seed=0)
    assert found.user.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert np.all(found.think_s >= 0)
    assert len(found.input_tokens) == len(found.think_s) == 12
    with pytest.raises(InputError, match="at least 1"):
        closed_loop(0, 4, request=shape(), seed=0)


def test_in_a_closed_loop_prompts_hold_all_that_was_said_in_their_conversation():
    found = closed_loop(40, 50, request=shape(n_turns_mean=4.0), seed=3)
    assert found.prefix_tokens is not None
    said = np.zeros(1)
    is_first = found.prefix_tokens == 0
    assert is_first[::50].all()  # every user begins from nothing
    assert 2000 / is_first.sum() == pytest.approx(4.0, rel=0.15)
    for row in range(2000):
        said = np.zeros(1) if is_first[row] else said
        assert found.prefix_tokens[row] == said
        assert found.input_tokens[row] == said + 10
        said = said + 10 + found.output_tokens[row]


def test_single_questions_carry_nothing():
    assert closed_loop(3, 4, request=shape(n_turns_mean=1.0), seed=0).prefix_tokens is None
