"""A description taken apart, in: words; out: the facts stated, and the words that are none.

First names are marked, then each rule takes the phrases that it knows out of the text. Rules look
for their phrases anywhere: the order of phrases does not matter, and no phrase is read twice.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from gpuplan.inputs.words.amounts import LOADS, OPEN
from gpuplan.inputs.words.hours import HOURS
from gpuplan.inputs.words.lengths import LENGTHS
from gpuplan.inputs.words.lexicon import Lexicon, NamedModel
from gpuplan.inputs.words.phrases import MARKS, Phrase, Rule, compiled
from gpuplan.inputs.words.tables import pattern_of
from gpuplan.inputs.words.targets import DEADLINES, GROWTH, LIMITS, MONEY
from gpuplan.inputs.words.tasks import TASKS
from gpuplan.inputs.words.terms import TERMS

# What is more particular comes first: "50 tokens/s per user" before "50 tokens/s".
COUNTS = (*HOURS, *GROWTH, *LIMITS, *LENGTHS, *MONEY, *TERMS, *LOADS)
_COUNTED = pattern_of("<counted>")
MAX_WORDS = 5  # of a name
LEAST_NUMBER = 1000  # in the name of an accelerator, where it comes first: 4090 Ti
_PERCENT = re.compile(r"(?<=\d)\s*(?:percent|per\s+cent|pct)\b", re.IGNORECASE)
_PATCHES = re.compile(r"\b(vit-[a-z])/(\d+)", re.IGNORECASE)  # the slash of a repository is another
_AT_MOST = re.compile(
    r"\b(?:(?:may|must|can|should|shall|will|do|does|is|are)\s*)?(?:not|never|n't)\s+(?:to\s+)?(?:allowed\s+to\s+)?"
    r"(?:exceed|(?:(?:use|draw|cost|spend|take|be|go|want|pay|need)\s+)?(?:to\s+\w+\s+)?(?:more\s+than|over|above|beyond))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\s,;:+&()\"'“”!?|]+")
_GAP = re.compile(r"[ \t]+")
_COUNT = re.compile(r"\d{1,6}\s*[x×*](?=[a-z])", re.IGNORECASE)
_CARD_WORDS = re.compile(
    r"\d+\s*gi?b|\d{1,4}|sxm\d?|pcie|nvl\d*|hbm\w*|ada|pro|max-?q|workstation|v\d\w*|nvidia|amd|intel"
    r"|rtx|spark|geforce|tesla|instinct|tpu|gaudi|trainium|inferentia|super|ti",
    re.IGNORECASE,
)
# Words that publishers put into names and people say of the work: apart, they are no name.
_APART = re.compile(r"(?:nv|mx)?fp\d+|bf16|int\d|awq|gptq|w\da\d+|chat|it|preview|inst", re.I)
_OFFLOADED = re.compile(r"\boffload\w*\s+(?:to|on|onto|into)\s+(?:the\s+)?$", re.IGNORECASE)
_PLACE_BEFORE = re.compile(r"\b(?:in|within|from|at|near|inside)\s+(?:the\s+)?$", re.IGNORECASE)
_PLACE_AFTER = re.compile(r"\s*(?:$|[,;]|only\b|regions?\b|data\s*cent)", re.IGNORECASE)
_EMBEDS = re.compile(r"embed|rerank|e5-mistral|gte-qwen", re.IGNORECASE)
_SIZE = re.compile(r"(?:.*\s)?(?:\d+(?:\.\d+)?b|\d+(?:\.\d+)?\s+billion)", re.IGNORECASE)
_DRAFT = re.compile(
    r"\s*(?:model\s+)?(?:as\s+(?:an?\s+|the\s+)?)?(?:draft|speculat)", re.IGNORECASE
)
_NO_SIZE_AFTER = re.compile(
    rf"[\s-]*(?:are\s+)?active\b|[\s-]*(?:[a-z]+[\s-]+)?{_COUNTED}\b(?!-)"
    r"|\s+(?:input|output)\s+(?:and|/|,)",
    re.IGNORECASE,
)
_KINDS = re.compile(
    rf"{compiled('{n}').pattern}(?P<gap>\s+)(?P<kinds>[a-z][\w'/-]*(?:\s+[a-z][\w'/-]*){{0,3}}?)(?=\s+{_COUNTED}\b(?!-))",
    re.IGNORECASE,
)
REFUSED = frozenset(
    ("not", "no", "without", "except", "excluding", "never", "avoid", "none", "nor", "neither")
)


class Fact(NamedTuple):
    """A field with its value, and the words that state it."""

    field: str
    value: Any
    words: str
    start: int


class Named(NamedTuple):
    """A model, and the words that name it."""

    model: NamedModel
    words: str
    start: int


class Scan(NamedTuple):
    """What a description states, the models that it names, and what is not understood."""

    facts: tuple[Fact, ...]
    models: tuple[Named, ...]
    rest: tuple[tuple[str, int], ...]  # words and where they begin


class _Marked(NamedTuple):
    text: str
    names: Mapping[int, str]
    models: tuple[Named, ...]


def scan(text: str, lexicon: Lexicon) -> Scan:
    """The facts of a description; whatever no rule takes is returned as rest."""
    marked = _marked(text, lexicon)
    reader = _Reader(text, marked.names, _bare(marked.text, _is_kind))
    reader.read(COUNTS)
    # Phrases that others stood within, and nouns behind words that say nothing: 25 PhD students.
    reader.read(COUNTS, is_bare=True)
    if not any(
        fact.field.startswith(("demand.users", "rate.", "amount.", "mean."))
        for fact in reader.facts
    ):
        reader.read(OPEN, is_open=True)
    reader.read((*DEADLINES, *TASKS))
    return Scan(tuple(reader.facts), marked.models, tuple(_rest(text, reader.left)))


class _Reader:
    """A text from which phrases are taken, and the facts that they stated."""

    def __init__(self, text: str, names: Mapping[int, str], left: str) -> None:
        self.text, self.names, self.left = text, names, left
        self.facts: list[Fact] = []

    def read(self, rules: Iterable[Rule], *, is_bare: bool = False, is_open: bool = False) -> None:
        """Take the phrases of rules, in this order; bare: over words before a counted noun."""
        view = _bare(self.left, _is_any_kind) if is_bare else self.left
        for rule in rules:
            for match in list(rule.matches(view)):
                is_known = is_open and not _is_any_kind(match["noun"].lower())
                if match.group().strip() and not is_known:
                    self._take(rule, match, view)
                    view, self.left = _without(view, match, view), _without(self.left, match, view)

    def _take(self, rule: Rule, match: re.Match[str], view: str) -> None:
        start, end = match.span()
        stated = rule.make(Phrase(match, self.names))
        words = _typed(self.text, view, start, end)
        self.facts += [Fact(field, value, words, start) for field, value in stated.items()]


def _bare(text: str, is_kind: Callable[[str], bool]) -> str:
    """The text without words between a number and the noun that it counts: 5M legal documents."""

    def bare(match: re.Match[str]) -> str:
        start, end = match.start("kinds") - match.start(), match.end("kinds") - match.start()
        is_all = all(is_kind(word) for word in match["kinds"].lower().split())
        kinds = " " * (end - start) if is_all else match["kinds"]
        return match[0][:start] + kinds + match[0][end:]

    return _KINDS.sub(bare, text)


def _is_kind(word: str) -> bool:
    return word in _words("kinds.txt")


def _is_any_kind(word: str) -> bool:
    return word not in _words("between.txt")


def _without(text: str, match: re.Match[str], view: str) -> str:
    """The text without a phrase; words of it that say something else too are left to their rule."""
    start, end = match.span()
    others = match.span("kept") if match.groupdict().get("kept") else (end, end)
    blank = (
        text[i] if others[0] <= i < others[1] or view[i] == " " else " " for i in range(start, end)
    )
    return text[:start] + "".join(blank) + text[end:]


def _typed(text: str, left: str, start: int, end: int) -> str:
    """The words of a phrase as typed, without those that other phrases took from its midst."""
    typed = (text[i] if left[i] != " " else " " for i in range(start, end))
    return " ".join("".join(typed).split()).strip(" ,;:")


def _marked(text: str, lexicon: Lexicon) -> _Marked:
    """The text with every name replaced by as many marks of its kind."""
    left = _PATCHES.sub(lambda patch: patch[1].ljust(len(patch[0])), text)  # no amount
    left = _PERCENT.sub(lambda sign: "%".ljust(len(sign[0])), left)
    left = _AT_MOST.sub(lambda limit: "at most".ljust(len(limit[0])), left)
    names: dict[int, str] = {}
    models: list[Named] = []
    for start, end, model in _models(text, lexicon):
        models.append(Named(model, text[start:end], start))
        left = _with_mark(left, "model", start, end)
    finders = (("cloud", _any_name, lexicon.cloud), ("card", _card, lexicon.card))
    for kind, window, find in (*finders, ("place", _place, lexicon.place)):
        for start, end, name in _found(left, window, find):
            names[start] = name
            left = _with_mark(left, kind, start, end)
    # A model is taken by its mark alone: what is said about it stands in phrases of their own.
    left = left.replace(MARKS["model"], " ")
    return _Marked(left, names, tuple(models))


def _with_mark(text: str, kind: str, start: int, end: int) -> str:
    return text[:start] + MARKS[kind] * (end - start) + text[end:]


def _windows(text: str, at: int, words: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Spans of several words from this one on, the longest first; only blanks lie between."""
    n = 1
    while (
        n < MAX_WORDS
        and at + n < len(words)
        and _GAP.fullmatch(text[words[at + n - 1].end() : words[at + n].start()])
    ):
        n += 1
    for size in range(n, 0, -1):
        yield words[at].start(), words[at + size - 1].end()


def _models(text: str, lexicon: Lexicon) -> Iterator[tuple[int, int, NamedModel]]:
    """Every name of a model; a word such as fp8 that stands apart is not part of a name."""
    words, end = list(_WORD.finditer(text)), 0
    for at, word in enumerate(words):
        if word.start() < end or not word.group()[0].isalnum():
            continue
        for start, last in _windows(text, at, words):
            stop = start + len(text[start:last].rstrip(".-/"))
            found = _model(text, start, stop, lexicon)
            if found is not None:
                yield start, stop, found
                end = stop
                break


def _model(text: str, start: int, end: int, lexicon: Lexicon) -> NamedModel | None:
    name = text[start:end]
    parts = name.split()
    is_article = parts[0].lower() in ("a", "an", "the")
    if len(parts) > 1 and (is_article or any(_APART.fullmatch(part) for part in parts)):
        return None
    if " " in name.rpartition("/")[0] or _DRAFT.match(text, end):
        return None  # w/ Qwen3-8B is no repository; what only drafts tokens is no service
    if _SIZE.fullmatch(name) and _NO_SIZE_AFTER.match(text, end):
        return None  # 50B tokens
    if len(parts) == 2 and _SIZE.fullmatch(parts[0]):  # a 70B llama
        parts.reverse()
    found = lexicon.model(_PATCHES.sub(r"\1-\2", " ".join(parts)))
    if found is not None and found.kind == "decoder" and _EMBEDS.search(found.name):
        return found._replace(kind="encoder")  # of decoders' layers, and writes nothing
    return found


def _found(
    text: str, window: Callable[[str, int, int], str | None], find: Callable[[str], str | None]
) -> Iterator[tuple[int, int, str]]:
    words, done = list(_WORD.finditer(text)), 0
    for at, word in enumerate(words):
        if word.start() < done:
            continue
        for first, last in _windows(text, at, words):
            count = _COUNT.match(text, first, last)
            start = count.end() if count else first
            end = start + len(text[start:last].rstrip(".-/ "))
            name = window(text, start, end)
            found = find(name) if name else None
            if found is not None:
                yield start, end, found
                done = end
                break


def _card(text: str, start: int, end: int) -> str | None:
    """What may be the name of an accelerator: one word, and others only as parts of such names."""
    first, *others = text[start:end].split() or [""]
    is_count = first.isdigit() and int(first) < LEAST_NUMBER
    if others and (is_count or first in ("a", "an")):
        return None  # 1 L40S is one of them; a 10 kW room is no A10
    if first.lower().startswith("cpu") and _OFFLOADED.search(text[:start]):
        return None  # memory, not what computes
    is_tail = all(_CARD_WORDS.fullmatch(word) for word in others)
    is_pair = len(others) == 1 and _CARD_WORDS.fullmatch(first) is not None
    return text[start:end] if is_tail or is_pair else None


def _any_name(text: str, start: int, end: int) -> str | None:
    return text[start:end]


def _place(text: str, start: int, end: int) -> str | None:
    """A region stands after "in", or alone between commas, or looks like one: us-east-1."""
    is_after_in = _PLACE_BEFORE.search(text[:start]) is not None
    is_after_in |= _is_after_cloud(text[:start], text[start:end])
    is_alone = not text[:start].strip() or text[:start].rstrip()[-1:] in (",", ";")
    is_region = re.fullmatch(r"[a-z]+-[a-z]+-?\d\w*", text[start:end], re.IGNORECASE)
    if is_after_in or is_region or (is_alone and _PLACE_AFTER.match(text, end)):
        return text[start:end]
    return None


def _is_after_cloud(before: str, name: str) -> bool:
    """Azure West Europe; the "in" of "Azure in Sweden" is no India."""
    return before.rstrip()[-1:] == MARKS["cloud"] and name.lower() not in _words("silent.txt")


@cache
def _words(name: str) -> frozenset[str]:
    """A list of words: silent.txt holds those that say nothing about a plan."""
    path = files("gpuplan.inputs.words").joinpath(name)
    return frozenset(path.read_text("utf-8").split())


def _rest(text: str, left: str) -> Iterator[tuple[str, int]]:
    """Runs of words that no rule took and that are not silent."""
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(left):
        plain = word.group().strip(".-–—=~≈/%*<>").lower()
        if not plain or plain in _words("silent.txt"):
            continue
        if run and not text[run[-1].end() : word.start()].isspace():
            yield _run(text, run)
            run = []
        run.append(word)
    if run:
        yield _run(text, run)


def _run(text: str, words: list[re.Match[str]]) -> tuple[str, int]:
    return text[words[0].start() : words[-1].end()].strip(), words[0].start()
