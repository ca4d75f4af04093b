"""What an error says: where, what, fix; all of them at once."""

import pickle

import pytest

from gpuplan.errors import DriftError, InputError, Problem, one


@pytest.mark.parametrize(
    ("source", "where", "shown"),
    [
        ("plan", "--replay", "plan: --replay: a; b"),
        ("s.yaml", "s.yaml:16 policy.survive", "s.yaml:16: policy.survive: a; b"),
        ("s.yaml", "s.yaml:16: policy.survive", "s.yaml:16: policy.survive: a; b"),
        ("my file.yaml", "line 16, policy", "my file.yaml:16: policy: a; b"),
        ("t.csv", "line 3", "t.csv:3: a; b"),
        ("t.csv", "t.csv", "t.csv: a; b"),
    ],
)
def test_one_problem_is_one_line(source, where, shown):
    assert str(one(InputError, source, where, "a", "b")) == shown


def test_several_problems_are_counted():
    error = InputError("s.yaml", [Problem("line 1, a", "x", "y"), Problem("line 2, b", "x", "y")])
    assert str(error) == "s.yaml: 2 errors\n  s.yaml:1: a: x; y\n  s.yaml:2: b: x; y"


def test_an_error_of_another_process_arrives_whole():
    error = one(DriftError, "plan.yaml", "TTFT p95", "planned 1 s, observed 2 s", "plan again")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.exit_code) == (DriftError, str(error), 6)
