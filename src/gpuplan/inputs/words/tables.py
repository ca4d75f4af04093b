"""Phrases as data, in: the tables of words and of their parts; out: rules, in the order written.

A part stands as <people> within words. Facts are written field=value: n, m, q, r and t are numbers,
texts and times of the phrase, #n a whole number, $name a group; @name is a reader of the module.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gpuplan.csv_rows import packaged_rows
from gpuplan.inputs.words.phrases import Facts, Phrase, Rule
from gpuplan.units import MONTH

_PART = re.compile(r"(?<!\?P)<([a-z]\w*)>")
_NUMBER = re.compile(r"(?P<whole>#?)(?P<what>[nmqrt])(?:(?P<sign>[*/])(?P<factor>[\w.]+))?")
_TEXTS = ("q", "r")
Reader = Callable[[Phrase], Facts]


def rules_of(group: str, readers: Mapping[str, Reader] | None = None) -> tuple[Rule, ...]:
    """The rules of a group; @name of the table is a reader given here."""
    rows = packaged_rows("gpuplan.inputs", "data/phrases.csv")
    return tuple(
        Rule(pattern_of(row["words"]), _reader(row["facts"], readers or {}))
        for row in rows
        if row["group"] == group
    )


def named(*readers: Reader, **others: Reader) -> dict[str, Reader]:
    """Readers by the names that the table calls them by."""
    return {reader.__name__.strip("_"): reader for reader in readers} | others


def pattern_of(words: str) -> str:
    """The words with their parts filled in."""
    filled = _PART.sub(lambda part: _parts()[part[1]], words)
    return filled if filled == words else pattern_of(filled)


@cache
def _parts() -> dict[str, str]:
    rows = packaged_rows("gpuplan.inputs", "data/phrase_parts.csv")
    return {row["name"]: row["words"] for row in rows}


def _reader(facts: str, readers: Mapping[str, Reader]) -> Reader:
    if facts.startswith("@"):
        return readers[facts[1:]]
    pairs = [one.split("=", 1) for one in facts.split()]
    return lambda phrase: {
        field: value for name, text in pairs for field, value in _facts(phrase, name, text).items()
    }


def _facts(phrase: Phrase, name: str, text: str) -> dict[str, Any]:
    """A field with its value, and what units of text it was converted from."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        return {name: phrase.get(text[1:]) if text.startswith("$") else _constant(text)}
    what, factor = number["what"], number["factor"]
    if what in _TEXTS:
        return {name: phrase.tokens(what), **phrase.converted(what)}
    value = phrase.seconds() if what == "t" else phrase.number(what)
    if number["sign"] == "/":
        return {name: value / MONTH}
    value = round(value * float(factor or 1), 12)
    return {name: int(value) if number["whole"] else value}


def _constant(text: str) -> Any:
    """A value as the table writes it: yes, 1, [a|b] or a word."""
    if text in ("yes", "no"):
        return text == "yes"
    if text.startswith("["):
        return text[1:-1].split("|")
    return float(text) if re.fullmatch(r"[\d.]+", text) else text
