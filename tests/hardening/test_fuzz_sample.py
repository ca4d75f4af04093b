"""A sample of what `python tools/fuzz_readers.py` tries: every input is read or refused, soon."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from fuzz_readers import Fuzzer, table

from hardening.readers import READERS, kept, seeds

N_EACH, SLOW = 150, {"words": 15}
CORPUS = seeds()


@pytest.mark.parametrize("reader", READERS)
def test_no_drawn_input_does_anything_else(reader: str, tmp_path: Path):
    fuzzer = Fuzzer(reader, CORPUS, 0, 0, tmp_path)
    failed = list(fuzzer.turn(float("inf"), SLOW.get(reader, N_EACH)))
    assert [(each.number, each.what) for each in failed] == []


@pytest.mark.parametrize("reader", READERS)
def test_inputs_that_earlier_runs_kept_are_answered_too(reader: str, tmp_path: Path):
    fuzzer = Fuzzer(reader, CORPUS, 0, 0, tmp_path)
    found = [fuzzer.outcome(name, data) for kind, name, data in kept() if kind == reader]
    assert [what for what, is_failure in found if is_failure] == []
    assert len({what for what, _ in found}) >= len(found) / 2, "each was kept for what it does"


def test_inputs_are_drawn_from_their_number_alone(tmp_path: Path):
    first, again = (Fuzzer("table", CORPUS, 0, 7, tmp_path) for _ in range(2))
    assert first.drawn() == again.drawn()
    again.number = 8
    assert first.drawn() != again.drawn()


def test_a_failure_is_reported_with_its_number_and_its_bytes(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(READERS, "table", lambda *_: 1 / 0)
    found = list(Fuzzer("table", CORPUS, 0, 3, tmp_path).turn(float("inf"), 1))
    assert [(each.number, each.what) for each in found] == [
        (3, "ZeroDivisionError: division by zero")
    ]
    assert found[0].data


def test_the_table_adds_up():
    done = {"a": {"n": 10, "cpu_s": 2.0}, "b": {"n": 5, "cpu_s": 1.0}}
    assert "15 inputs" in table(done).splitlines()[-1]
    assert "5 a CPU-s" in table(done).splitlines()[0]
