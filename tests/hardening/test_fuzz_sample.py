"""A sample of what `python tools/fuzz_readers.py` tries: every input is read or refused, soon."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import fuzz_readers


def test_no_drawn_input_does_anything_else():
    failed: list[str] = []
    fuzz_readers.run(
        0, 1500, 0, lambda reader, number, what, _: failed.append(f"{reader} {number}: {what}")
    )
    assert failed == []


def test_inputs_are_drawn_from_their_number_alone():
    corpus = fuzz_readers.seeds()
    assert fuzz_readers.drawn(7, 0, corpus) == fuzz_readers.drawn(7, 0, corpus)
    assert fuzz_readers.drawn(7, 0, corpus) != fuzz_readers.drawn(8, 0, corpus)
