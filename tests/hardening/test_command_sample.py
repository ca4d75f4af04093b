"""A sample of what `python tools/fuzz_commands.py` tries: no line ends by our fault."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from fuzz_commands import WORKING, drawn, is_failure, options_of, outcome

N_EACH, SLOW = 12, {"plan", "probe", "verify", "simulate", "replan", "report", "calibrate"}
N_SLOW = 3


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("fuzz") / "plan.yaml"
    made = outcome(["plan", *WORKING["plan"][0], "--out", str(path)])
    assert made.exit_code == 0
    return str(path)


@pytest.mark.parametrize("verb", WORKING)
def test_no_drawn_line_ends_by_our_fault(
    verb: str, plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    options = options_of(verb)
    for number in range(N_SLOW if verb in SLOW else N_EACH):
        words = drawn(verb, options, random.Random(f"0 {verb} {number}"), plan)
        found = outcome(words)
        assert not is_failure(found), (words, found)


def test_an_unforeseen_end_is_found(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("fuzz_commands.app", broken)
    assert is_failure(outcome(["fit"]))
    assert "ZeroDivisionError" in outcome(["fit"]).what
