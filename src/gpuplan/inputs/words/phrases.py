"""The pattern language of phrases, in: templates such as "{n} users"; out: facts of a match.

Names of models, accelerators, clouds and regions are marked in the text before, each by a run of
one private character, so that a template sees them as {model}, {card}, {cloud} and {place}.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from gpuplan.csv_rows import packaged_rows

MARKS = {"model": "\ue000", "card": "\ue001", "cloud": "\ue002", "place": "\ue003"}


def number_words(kind: str) -> dict[str, float]:
    """Words and what they stand for: scales, numbers, seconds, tokens of a unit of text."""
    rows = packaged_rows("gpuplan.inputs", "data/number_words.csv")
    return {row["words"]: float(row["value"]) for row in rows if row["kind"] == kind}


SCALES, WORDS, SECONDS = number_words("scale"), number_words("number"), number_words("time")
# Tokens of a unit of text: of English, at 500 words a page, 100 a paragraph, 20 a sentence.
TEXT, ADVERBS = number_words("text"), number_words("adverb")


def _any(words: Sequence[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?"
_SCALE = rf"(?:\s?(?P<NAME_scale>{_any(list(SCALES))})(?![a-z\d]))?"
_SPELLED = rf"(?:{_any(list(WORDS))})(?=\s+(?:thousand|million|billion|trillion)\b)"
# A few of a thing: one image a minute, two H100, a single H100.
_FEW = rf"(?:(?<![\w.,])(?P<NAME>{_any(list(WORDS))})(?!\w))"
# Spelled out it is a number wherever digits are, but for "a" and "one", which are articles too.
_MORE = [word for word, value in WORDS.items() if value > 1]
_NUMBER = rf"(?:(?<![\w.,])(?P<NAME>{_DIGITS}|{_SPELLED}|(?:{_any(_MORE)})(?![\w-]))\+?{_SCALE})"
# A spelled number ends before its unit: "and" is not "an d".
_TIME_NUMBER = rf"(?<![\w.,])(?P<NAME>{_DIGITS}|(?:{_any(list(WORDS))})(?![a-z]))"
_TIME = rf"(?:{_TIME_NUMBER}[\s-]*(?P<NAME_unit>{_any(list(SECONDS))})(?![a-z]))"
_UNIT_OR_TIME = rf"(?:(?:{_TIME_NUMBER}[\s-]*)?\b(?P<NAME_unit>{_any(list(SECONDS))})(?![a-z]))"
_PER = (
    rf"(?:\s*(?:/|\bper\b|\ban?\b|\bevery\b|\beach\b)\s*"
    rf"(?:(?<=every )(?P<periods>{_DIGITS}|{_any(list(WORDS))})[\s-]*)?"
    rf"(?P<per>{_any(list(SECONDS))})\b"
    rf"|\s+(?P<adverb>{_any(list(ADVERBS))})\b)"
)
_TEXT_UNIT = rf"(?P<NAME_unit>{_any(list(TEXT))})(?![a-z])"
_TEXT = (
    rf"(?:(?<![\w.,$€£])(?P<NAME>{_DIGITS}|(?:{_any(list(WORDS))})(?=[\s-]+(?:{_any(list(TEXT))})\b))"
    rf"\+?{_SCALE}(?:[\s-]*{_TEXT_UNIT})OPTIONAL)"
)
_JOIN = r"(?:\s*(?:,|/|\+|&|\bor\b|\band\b|\band/or\b)+\s*(?:on\s+|in\s+)?(?:the\s+)?)"


@cache
def compiled(template: str) -> re.Pattern[str]:
    """The template with numbers {n} {m}, texts {q} {r}, times {t}, {per} and names filled in.

    {q!} is a text whose unit is written; {q} may be a number of tokens.
    """
    pattern = template
    for name in ("n", "m", "n2"):
        pattern = pattern.replace(f"{{{name}}}", _NUMBER.replace("NAME", name))
    for name in ("q", "r"):
        text = _TEXT.replace("NAME", name)
        pattern = pattern.replace(f"{{{name}}}", text.replace("OPTIONAL", "?"))
        pattern = pattern.replace(f"{{{name}!}}", text.replace("OPTIONAL", ""))
    pattern = pattern.replace("{mark}", MARKS["card"]).replace("{few}", _FEW.replace("NAME", "n"))
    pattern = pattern.replace("{t}", _TIME.replace("NAME", "t")).replace("{per}", _PER)
    pattern = pattern.replace("{ot}", _UNIT_OR_TIME.replace("NAME", "t"))
    for name, mark in MARKS.items():
        pattern = pattern.replace(f"{{{name}}}", f"(?P<{name}>{mark}+)")
        many = f"(?P<{name}s>{mark}+(?:{_JOIN}{mark}+)*)"
        pattern = pattern.replace(f"{{{name}s}}", many)
    return re.compile(pattern, re.IGNORECASE)


class Phrase:
    """A match of a template: its numbers, times and names."""

    def __init__(self, match: re.Match[str], names: Mapping[int, str]) -> None:
        self.match = match
        self._names = names

    def get(self, group: str) -> str:
        """The text of a group in small letters; empty where the phrase has none."""
        found = self.match.groupdict().get(group)
        return (found or "").lower()

    def number(self, group: str = "n") -> float:
        """A number with its scale: 10k is 10,000; n2 is n at another place of the words."""
        group = "n2" if group == "n" and self.get("n2") else group
        scale = SCALES.get(self.get(f"{group}_scale"), 1.0)
        return _value(self.get(group)) * scale

    def seconds(self, group: str = "t") -> float:
        """A time in seconds; a unit without a number is one of it."""
        return (_value(self.get(group)) if self.get(group) else 1.0) * _named(
            SECONDS, self.get(f"{group}_unit")
        )

    def tokens(self, group: str = "q") -> float:
        """Tokens of a length of text: two pages, 300 words, 4k."""
        unit = self.get(f"{group}_unit")
        return self.number(group) * (_named(TEXT, unit) if unit else 1.0)

    def converted(self, *groups: str) -> dict[str, float]:
        """Tokens per unit, of the units of text other than tokens."""
        units = {self.get(f"{group}_unit") for group in groups} - {""}
        each = {unit: _named(TEXT, unit) for unit in units}
        return {
            f"tokens_per_{unit.split()[0].rstrip('s')}": n for unit, n in each.items() if n != 1.0
        }

    def period_s(self) -> float:
        """Seconds of the unit after "per", or of so many of them after "every"."""
        adverb, n = self.get("adverb"), self.get("periods")
        if adverb:
            return ADVERBS[adverb]
        return _named(SECONDS, self.get("per")) * (_value(n) if n else 1.0)

    def names(self, group: str) -> list[str]:
        """The marked names within a group, in the order typed."""
        start, end = self.match.span(group)
        return [name for at, name in sorted(self._names.items()) if start <= at < end]


Facts = Mapping[str, Any]


class Rule(NamedTuple):
    """A template of a phrase, and the facts that it states."""

    template: str
    make: Callable[[Phrase], Facts]

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Where the phrase stands."""
        return compiled(self.template).finditer(text)


def _value(text: str) -> float:
    if text in WORDS:
        return WORDS[text]
    return float(text.replace(",", "").replace("_", ""))


def _named(units: Mapping[str, float], name: str) -> float:
    return next(value for pattern, value in units.items() if re.fullmatch(pattern, name))
