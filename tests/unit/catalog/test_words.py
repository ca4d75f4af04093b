"""The table of words: every list is read somewhere, and holds each word once."""

import re
from collections import Counter
from pathlib import Path

import pytest

from gpuplan.catalog import words as table
from gpuplan.csv_rows import packaged_rows

ROWS = packaged_rows("gpuplan.catalog", "data/words.csv")
LISTS = {row["list"] for row in ROWS}
ROOM = Path(table.__file__).parent


def test_every_list_is_read_and_every_list_that_is_read_is_there():
    source = "".join(path.read_text(encoding="utf-8") for path in ROOM.rglob("*.py"))
    asked = set(re.findall(r'\b(?:words|meanings|by_meaning)\("(\w+)"\)', source))
    assert asked == LISTS


def test_a_word_stands_once_in_its_list():
    counted = Counter((row["list"], row["word"]) for row in ROWS)
    assert all(n == 1 for n in counted.values()), [key for key, n in counted.items() if n > 1]
    assert all(word and word == word.strip() for _, word in counted)


@pytest.mark.parametrize("name", sorted(LISTS))
def test_words_keep_the_order_of_the_table(name):
    assert table.words(name) == tuple(row["word"] for row in ROWS if row["list"] == name)


def test_words_by_what_they_mean_are_all_of_them():
    found = table.by_meaning("module_in_layer")
    assert sorted(sum(found.values(), ())) == sorted(table.words("module_in_layer"))
    assert "self_attn.q_proj" in found["attention"]


def test_a_list_that_is_not_there_is_empty():
    assert table.words("no such list") == ()
