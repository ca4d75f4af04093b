"""A scenario from words, in: a description and flags; out: its document and what it rests on.

What neither words nor flags say is taken from the use case, and each such value is an assumption
that names its flag. The document then goes the way of every scenario file.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import Description
from gpuplan.errors import InputError, Problem, printable
from gpuplan.inputs.documents.document import Document
from gpuplan.inputs.documents.scalars import shorten
from gpuplan.inputs.words.assemble import assemble
from gpuplan.inputs.words.draft import Draft, merged, place_of
from gpuplan.inputs.words.flags import with_flags
from gpuplan.inputs.words.lexicon import Lexicon, NamedModel
from gpuplan.inputs.words.questions import question_of
from gpuplan.inputs.words.scan import REFUSED, Fact, Named, Scan, scan
from gpuplan.inputs.words.several import assemble_services, services_of

MAX_TEXT = 2000
SOUGHT = "the largest that is carried"  # a load that is asked for, not stated
EXAMPLES = {
    row["word"]: row["example"]
    for row in packaged_rows("gpuplan.inputs", "data/phrase_examples.csv")
}
PARTS = "a model, what it is for, and a load: " + ", ".join(
    f'"{EXAMPLES[word]}"' for word in ("users", "docs", "ttft", "budget", "europe")
)


def described_scenario(
    text: str, given: Mapping[str, Any], lexicon: Lexicon
) -> tuple[Document, Description]:
    """The scenario of a description and flags, and what it rests on; flags win over words."""
    if len(text) > MAX_TEXT:
        fix = f"write at most {MAX_TEXT} characters, or a scenario file"
        raise InputError("plan", [Problem("description", f"has {len(text)} characters", fix)])
    found = _with_family(text, scan(text, lexicon), lexicon)
    facts, problems = merged(found.facts)
    models = _models(found, given, lexicon)
    services = services_of(text, found, _is_own)
    if services:
        facts, problems = merged(fact for fact in found.facts if not _is_own(fact.field))
    question = question_of(text, facts)
    if question == "enough":
        _with_owned_alone(facts)
    if question:
        facts["question"] = Fact("question", question, "", 0)
    largest = _with_largest(facts)
    problems += _unbounded(largest, facts)
    problems += _faults(text, found, models, lexicon, is_task=any(map(_is_task, facts)))
    if problems:
        raise InputError("plan", problems)
    draft = Draft(shorten(printable(text.strip()) or str(given.get("model")), 80), facts, given)
    if services:
        assemble_services(draft, services)
    else:
        assemble(draft, models)
    if draft.facts:
        raise InputError("plan", [_unused(fact) for fact in draft.facts.values()])
    document = with_flags(Document(name="the description", data=draft.tree), given)
    return document, Description(
        tree=document.data,
        understood=tuple(
            replace(each, value=SOUGHT) if largest and each.words == largest.words else each
            for each in draft.understood
        ),
        assumptions=(*_ignored(found), *draft.assumed),
        asks_largest=largest is not None,
        question=question,
    )


LIMITS = {"policy.max_accelerators", "owned", "money", "site.power_kw"}
# Of the whole plan, however many workloads there are.
SHARED = (
    "policy.",
    "budget.",
    "growth.",
    "grow_to",
    "site.",
    "objective",
    "money",
    "price_limit",
    "spent",
    "owned",
    "existing_only",
    "question",
)
OF_RUNS = ("precision", "layout.", "kv_precision", "deadline_s", "span_s", "hours")


def _is_own(field: str) -> bool:
    """Whether a fact is one of a workload, not of the plan."""
    return not field.startswith(SHARED)


def _is_task(field: str) -> bool:
    """Whether a fact says something about the work itself."""
    return field == "owned" or (_is_own(field) and not field.startswith(OF_RUNS))


def _models(found: Scan, given: Mapping[str, Any], lexicon: Lexicon) -> tuple[Named, ...]:
    """The models that words and the flag name; the flag takes the place of the first."""
    models = found.models
    if any(fact.field == "kind" and fact.value == "pretraining" for fact in found.facts):
        models = tuple(_bare_checkpoint(named, lexicon) for named in models)
    if given.get("model"):
        name = str(given["model"])
        known = lexicon.model(name) or NamedModel(name, "decoder")
        models = (Named(known._replace(name=name), "--model", 0), *models[1:])
    return models


_TUNED = re.compile(r"-(?:instruct|chat|it)\b(?=-|$)", re.IGNORECASE)


def _bare_checkpoint(named: Named, lexicon: Lexicon) -> Named:
    """What pre-training begins with: the base model, unless the words name a tuned one."""
    name = named.model.name
    if not _TUNED.search(name) or re.search(r"instruct|chat|\bit\b", named.words, re.IGNORECASE):
        return named
    bare = _TUNED.sub("", name)
    owner, _, rest = bare.partition("/")
    for each in (bare, f"{owner}/Meta-{rest}", f"{bare}-Base", f"{bare}-pt", f"{bare}-hf"):
        model = lexicon.model(each)
        if model is not None and not _TUNED.search(model.name):
            return named._replace(model=model)
    return named


def _with_family(text: str, found: Scan, lexicon: Lexicon) -> Scan:
    """A family without a number, where a model is named and none was found: host codestral."""
    for words, start in () if found.models else found.rest:
        is_placed = _BEFORE_NAME.search(text[:start]) or _is_name(text, words, start)
        stated = lexicon.nearest_models(words) if is_placed else ""
        model = lexicon.model(stated.removeprefix(_IT_IS)) if stated.startswith(_IT_IS) else None
        if model is not None:
            rest = tuple(each for each in found.rest if each != (words, start))
            return found._replace(models=(Named(model, words, start),), rest=rest)
    return found


def _faults(
    text: str, found: Scan, models: tuple[Named, ...], lexicon: Lexicon, *, is_task: bool
) -> list[Problem]:
    """Choices between models, numbers and negations that no phrase takes, and a missing task."""
    if not models and _SHARING.search(text) and not any(f.field == "use" for f in found.facts):
        fix = "describe groups and their jobs in a file: gpuplan plan cluster.yaml"
        what = "asks for a cluster that several groups share, which one line does not describe"
        return [Problem("description", what, f"{fix} (docs/howto/cluster.md)")]
    if not models and _ASKS_MODEL.search(text):
        what = "asks which model, and a plan is for one that is named"
        return [Problem("description", what, "name a model, or plan for each that is in question")]
    is_known = bool(models) or is_task
    strange = [
        each
        for each in found.rest
        if _is_weighty(each[0], bool(models))
        or not is_known
        or (_is_name(text, *each) and (not models or _HYPHENATED.search(each[0])))
        or (each[0][0].isupper() and _IN_PLACE.search(text[: each[1]]))
    ]
    faults = _either(text, found.models) + _engines(found)
    faults += [_not_understood(*each, lexicon, is_named=bool(models)) for each in strange]
    if not is_known and not strange:
        faults.append(Problem("description", "names neither a model nor a task", f"write {PARTS}"))
    return faults


def _with_largest(facts: dict[str, Fact]) -> Fact | None:
    """What hardware carries, where no load is named: the search begins with one of it."""
    requested = facts.pop("largest", None) or _price_of_tokens(facts)
    if requested is not None and "streams" in facts:
        _of_streams(facts)
    if requested is None or any(name.startswith(("demand.", "rate.", "amount.")) for name in facts):
        return None
    facts[requested.value] = requested._replace(field=requested.value, value=1)
    _with_owned_alone(facts)
    return requested


def _of_streams(facts: dict[str, Fact]) -> None:
    """Images a second of one stream: as many of them are as many streams."""
    streams = facts.pop("streams")
    if "rate.image" in facts:
        each = facts.pop("rate.image")
        facts.setdefault("use", streams._replace(value=("captioning",), words=each.words))


def _price_of_tokens(facts: dict[str, Fact]) -> Fact | None:
    """A price per token of hardware is that of hardware in full use."""
    requested = facts.pop("price_of_tokens", None)
    return requested if requested is not None and LIMITS & set(facts) else None


def _with_owned_alone(facts: dict[str, Fact]) -> None:
    """What is owned is what is asked about: nothing is rented or bought beside it."""
    owned = facts.get("owned")
    others = {"policy.purchases", "policy.spot_allowed", "money"}
    if owned is not None and not others & set(facts):
        facts["existing_only"] = owned._replace(field="existing_only", value=True)


def _unbounded(requested: Fact | None, facts: dict[str, Fact]) -> list[Problem]:
    """Without hardware, money or power that there is, any load is carried."""
    if requested is None or LIMITS & set(facts):
        return []
    fix = 'name what there is, e.g. "on 8 H100", "we own 16 L40S" or "$20k/month"'
    where = place_of(shorten(printable(requested.words), 60), requested.start)
    return [Problem(where, "asks for the largest load, and nothing limits it", fix)]


def _either(text: str, models: tuple[Named, ...]) -> list[Problem]:
    """Models of which one is to be chosen: each is a scenario of its own."""
    for one, other in pairwise(models):
        between = text[one.start + len(one.words) : other.start]
        if re.fullmatch(r"\s*,?\s*(?:or|vs\.?|versus|instead of)\s+", between, re.IGNORECASE):
            both = f"{one.words!r} or {other.words!r}"
            return [Problem(both, "is a choice between models", "plan each, then compare")]
    return []


def _engines(found: Scan) -> list[Problem]:
    """Engines of which one is to be chosen: a flag plans for each."""
    stated = [fact for fact in found.facts if fact.field == "engines"]
    fix = "name one, or leave them out and add e.g. --engines vllm,sglang"
    return [Problem(repr(fact.words), "is a choice between engines", fix) for fact in stated]


_STRANGE_HARDWARE = re.compile(
    r"\b(?:jetson|orin|mac(?:book|\s?studio|\s?mini)?|apple|m[1-5]\s+(?:ultra|max|pro)|cerebras|groq|ipu"
    r"|sambanova|tenstorrent|graphcore|ryzen|threadripper|xeon|epyc|raspberry|snapdragon|npu|fpga)\b",
    re.IGNORECASE,
)


def _is_weighty(words: str, is_named: bool) -> bool:
    """Words that would change the plan: numbers, hardware, parts of names, whatever is denied."""
    if _STRANGE_HARDWARE.search(words):
        return True
    has_digit = any(letter.isdigit() for letter in words)
    is_part = not is_named and (words.startswith("-") or words.endswith("-"))
    return has_digit or is_part or bool(REFUSED & set(words.lower().split()))


_IT_IS = "it is "
_IN_PLACE = re.compile(r"\b(?:in|within|inside)\s+(?:the\s+)?$", re.IGNORECASE)
_HYPHENATED = re.compile(r"(?:[\w.]+/)?[A-Z][A-Za-z]+-[A-Z][A-Za-z]*")
_BEFORE_COMPOUND = re.compile(
    r"(?:^|[,;:(&]|\b(?:tuning\s+of|training\s+of|by|on|from|model|and|or|plus))\s*(?:(?:the|our)\s+)?$",
    re.IGNORECASE,
)
_ASKS_MODEL = re.compile(
    r"\b(?:which|what)\s+(?:(?:size|kind)\s+of\s+)?(?:[a-z]+\s+)?(?:models?|llms?)\b", re.IGNORECASE
)
_SHARING = re.compile(
    r"\b(?:\d+|several|many|two|three|four|five|ten)\s+(?:[a-z]+\s+){0,2}?"
    r"(?:groups|teams|departments|labs|tenants|projects|chairs|institutes)\b",
    re.IGNORECASE,
)
_BEFORE_NAME = re.compile(
    r"\b(?:with|using|use|serv(?:e|ing)|run(?:ning)?|train(?:ing)?|deploy(?:ing)?|host(?:ing)?|via|tun(?:e|ing))\s+"
    r"(?:(?:an?|the|our)\s+)?$",
    re.IGNORECASE,
)


def _is_name(text: str, words: str, start: int) -> bool:
    """Whether words stand where a model is named, or are written like one: Mistral-Nemo."""
    is_written = any(letter.isupper() for letter in words) and len(words) > len("SQL")
    is_compound = _HYPHENATED.match(words) and _BEFORE_COMPOUND.search(text[:start])
    return bool(is_compound or (is_written and _BEFORE_NAME.search(text[:start])))


def _not_understood(words: str, start: int, lexicon: Lexicon, *, is_named: bool) -> Problem:
    if _STRANGE_HARDWARE.search(words):
        where = place_of(shorten(printable(words), 60), start)
        fix = "name another (gpuplan catalog list accelerators), or add it with --overlay"
        return Problem(where, "is no accelerator of the catalog", fix)
    what, fix = "is not understood", _hint(words).removeprefix("; ") or f"write e.g. {PARTS}"
    is_name = any(letter.isdigit() or letter.isupper() for letter in words) and words[0].isalpha()
    if is_name and (not is_named or _HYPHENATED.match(words)):
        what, fix = "is no model of the catalog", lexicon.nearest_models(words)
    return Problem(place_of(shorten(printable(words), 60), start), what, fix)


def _hint(words: str) -> str:
    """The phrase that is understood and most like these words; empty where none is."""
    for word in sorted(words.lower().split(), key=len, reverse=True):
        close = difflib.get_close_matches(word, list(EXAMPLES), n=1, cutoff=0.75)
        if close:
            return f'; nearest: "{EXAMPLES[close[0]]}"'
    return ""


def _ignored(found: Scan) -> list[Assumption]:
    """Words without a number that no phrase takes: named, and left out."""
    return [
        Assumption(
            what="words not understood",
            value=place_of(shorten(printable(words), 60), start),
            why="ignored" + _hint(words),
            change="reword them, or write a scenario file",
        )
        for words, start in found.rest
    ]


def _unused(fact: Fact) -> Problem:
    fix = "leave it out"
    where = place_of(shorten(printable(fact.words), 60), fact.start)
    return Problem(where, "has no place in this kind of work", fix)
