"""Tables of words: every list is read somewhere in its room, and holds each word once."""

import re
from collections import Counter
from pathlib import Path

import pytest

from gpuplan import csv_rows as table
from gpuplan.csv_rows import packaged_rows

SOURCE = Path(table.__file__).parent
ROOMS = {
    ".".join(path.relative_to(SOURCE).parts[:-2]): path.parent.parent
    for path in SOURCE.rglob("data/words.csv")
}


def rows_of(room: str) -> tuple[dict[str, str], ...]:
    return packaged_rows(f"gpuplan.{room}", "data/words.csv")


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_every_list_is_read_and_every_list_that_is_read_is_there(room):
    source = "".join(path.read_text(encoding="utf-8") for path in ROOMS[room].rglob("*.py"))
    asked = re.findall(rf'\b(?:words|meanings|by_meaning)\("{room}", "(\w+)"\)', source)
    assert set(asked) == {row["list"] for row in rows_of(room)}


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_word_stands_once_in_its_list_and_keeps_its_place(room):
    counted = Counter((row["list"], row["word"]) for row in rows_of(room))
    assert all(n == 1 for n in counted.values()), [key for key, n in counted.items() if n > 1]
    assert all(word and word == word.strip() for _, word in counted)
    for name in {row["list"] for row in rows_of(room)}:
        listed = [row["word"] for row in rows_of(room) if row["list"] == name]
        assert list(table.words(room, name)) == listed


def test_words_by_what_they_mean_are_all_of_them():
    found = table.by_meaning("catalog", "module_in_layer")
    assert sorted(sum(found.values(), ())) == sorted(table.words("catalog", "module_in_layer"))
    assert "self_attn.q_proj" in found["attention"]


def test_a_list_that_is_not_there_is_empty():
    assert table.words("catalog", "no such list") == ()
