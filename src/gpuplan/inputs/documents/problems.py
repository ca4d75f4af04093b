"""What the schema refuses, in words: where, what was found, what would be right."""

import copy
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from gpuplan.csv_rows import packaged_rows
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.document import Document, KeyPath
from gpuplan.inputs.documents.scalars import shorten
from gpuplan.inputs.documents.yaml_reader import shown_problem
from gpuplan.inputs.schema.keys import SMALLEST, Strict
from gpuplan.inputs.schema.places import locate, models_in, walk_models


class Finding(NamedTuple):
    """A problem before the line of the file is known."""

    path: KeyPath
    what: str
    fix: str


Spec = TypeVar("Spec", bound=Strict)
MAX_SHOWN = 100
MAX_WORD = 60
_UNIT = re.compile(
    r"_(ms|us|s|sec|seconds|min|minutes|h|hours|days|weeks|months|years|kb|mb|gb|tb|kib|mib|gib|tib"
    r"|w|kw|mw|usd|eur|frac|pct|percent|ratio|tokens|b|m|gbit_per_s|gb_per_s|gbps)$"
)
_NUMBER_WITH_UNIT = re.compile(r"\s*[-+]?[0-9][0-9_,.]*\s*[A-Za-z%/$€]+.*")
_COMPARISONS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_SHAPES = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "model_type": "a mapping of keys",
    "model_attributes_type": "a mapping of keys",
    "dict_type": "a mapping of keys",
}
_SCALAR_FORMS = {
    "ModelSpec": "the name of a model, or a mapping of keys",
    "LengthSpec": "a number of tokens, or a mapping of keys",
    "Spread": "a number, or low, mid and high",
    "PositiveSpread": "a number above 0, or low, mid and high",
    "FracSpread": "a number from 0 to 1, or low, mid and high",
    "NonNegativeSpread": "a number from 0 on, or low, mid and high",
    "GrowthSpread": "a number, e.g. 0.05, or low, mid and high",
}
_TEXTS = {
    "string_too_short": "must be one line of text that is not blank",
    "string_pattern_mismatch": "must be one line of text that is not blank",
    "string_too_long": "must be at most 300 characters long",
}


def validated(root: type[Spec], document: Document) -> Spec:
    """The keys of a document in their schema; raises InputError with every problem found."""
    data = document.data
    if not isinstance(data, dict):
        what = f"the file holds {show(data)} instead of keys"
        required = [name for name, info in root.model_fields.items() if info.is_required()]
        refuse(document, [Finding((), what, f"begin with {': and '.join(required)}:")])
    findings = list(null_findings(data))
    empty = {finding.path for finding in findings}
    try:
        spec = root.model_validate(data)
    except ValidationError as error:
        found = [*_schema_findings(error, data, root), *_behind_kinds(error, data, root)]
        refuse(document, findings + [f for f in found if f.path not in empty])
        raise
    refuse(document, findings)
    return spec


def refuse(document: Document, findings: Iterable[Finding]) -> None:
    """Raise InputError with the findings in the order of their lines; without any, return."""
    ordered = sorted(findings, key=lambda finding: document.line_of(finding.path) or 0)
    shown = ordered[:MAX_SHOWN]
    problems = [shown_problem(document.place(path), what, fix) for path, what, fix in shown]
    if len(ordered) > MAX_SHOWN:
        problems.append(
            Problem(document.name, "has more errors than these", "fix them and try again")
        )
    if problems:
        raise InputError(document.name, problems)


def _schema_findings(error: ValidationError, data: Any, root: type[Strict]) -> list[Finding]:
    """Every refusal once, by its place in the file."""
    found: dict[tuple[KeyPath, str], Finding] = {}
    # Three parts of one number at most: enough to fill what is shown.
    for detail in error.errors(include_url=False)[: 3 * MAX_SHOWN + 3]:
        finding = _finding(detail, data, root)
        # A number given for low, mid and high fails three times and is one problem.
        found.setdefault((finding.path, finding.what), finding)
    return list(found.values())


def _behind_kinds(error: ValidationError, data: Any, root: type[Strict]) -> list[Finding]:
    """What a wrong kind hides: the entry is read as the kind that was likely meant."""
    wrong = [
        detail["loc"]
        for detail in error.errors(include_url=False)
        if detail["type"] in ("union_tag_invalid", "union_tag_not_found")
    ]
    if not wrong:
        return []
    likely = {loc: _likely_kind(_value_at(data, _path_in_file(loc, data)), root) for loc in wrong}
    mended = copy.deepcopy(data)
    for loc, kind in likely.items():
        entry = _value_at(mended, _path_in_file(loc, mended))
        if kind is not None and isinstance(entry, dict):
            entry["kind"] = kind
    inside = [_path_in_file(loc, data) for loc, kind in likely.items() if kind is not None]
    try:
        root.model_validate(mended)
    except ValidationError as again:
        found = _schema_findings(again, mended, root)
        return [f for f in found if any(f.path[: len(path)] == path for path in inside)]
    return []


def _likely_kind(entry: Any, root: type[Strict]) -> str | None:
    """The kind that is spelled like the one given, else the one that has most of the keys."""
    if not isinstance(entry, Mapping):
        return None
    kinds = {
        get_args(model.model_fields["kind"].annotation)[0]: set(model.model_fields)
        for model in models_in(root.model_fields["workloads"].annotation)
    }
    close = nearest(str(entry.get("kind", "")), list(kinds))
    return close or max(kinds, key=lambda kind: len(kinds[kind] & set(entry)))


def null_findings(data: Any) -> Iterator[Finding]:
    """Keys that are written and hold nothing: unclear, so refused."""
    pending: list[tuple[KeyPath, Any]] = [((), data)]
    while pending:
        path, value = pending.pop()
        if value is None:
            yield Finding(path, "got nothing", "give a value, or remove the key")
        elif isinstance(value, Mapping):
            pending += [((*path, key), item) for key, item in reversed(list(value.items()))]
        elif isinstance(value, list):
            items = [((*path, i), item) for i, item in enumerate(value)]
            pending += reversed(items)


def show(value: object) -> str:
    """The value as the user may have written it, shortened."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return shorten(json.dumps(value, ensure_ascii=False, default=str))


def other_names(file: str) -> dict[str, tuple[str, ...]]:
    """What other tools call things in such a file, by what is meant; the surest name first."""
    found: dict[str, list[str]] = {}
    for row in packaged_rows("gpuplan.inputs", "data/other_names.csv"):
        if row["file"] == file:
            found.setdefault(row["meaning"], []).append(row["name"])
    return {meaning: tuple(names) for meaning, names in found.items()}


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word most like this one, or None."""
    if len(word) > MAX_WORD:
        return None
    lowered = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    longer = [name for name in known if word and name.lower().startswith(word.lower())]
    return lowered[matches[0]] if matches else longer[0] if longer else None


def _finding(detail: ErrorDetails, data: Any, root: type[Strict]) -> Finding:
    path = _path_in_file(detail["loc"], data)
    kind, context = detail["type"], detail.get("ctx", {})
    model, field = locate(detail["loc"], root)
    if kind == "missing":
        return Finding(path, "missing", _what_to_add(field))
    if kind == "extra_forbidden":
        return Finding(path, "unknown key", _what_key(str(path[-1]), model, root))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _kind_finding(path, data, root)
    if kind == "literal_error":
        choices = _choices(context.get("expected", ""))
        return Finding(path, *_unknown_value(detail["input"], choices))
    what = f"got {show(_value_at(data, path))}"
    return Finding(path, what, _what_value(kind, context, detail) + _unit_of(field))


def _what_value(kind: str, context: Mapping[str, Any], detail: ErrorDetails) -> str:
    if kind in _COMPARISONS:
        name, word = _COMPARISONS[kind]
        bound = context[name]
        value = detail["input"]
        is_sign = bound == SMALLEST and value <= 0
        share = f": {value:g} % is {value / 100:g}" if bound == 1 < value <= 100 else ""
        return "must be above 0" if is_sign else f"must be {word} {bound:g}{share}"
    if kind in _SHAPES:
        shape = _SCALAR_FORMS.get(str(context.get("class_name")), _SHAPES[kind])
        return f"must be {shape}{_hint(detail['input'])}"
    if kind in ("too_short", "too_long"):
        bound = context.get("min_length", context.get("max_length"))
        word = "at least" if kind == "too_short" else "at most"
        return f"must hold {word} {bound}, has {context.get('actual_length')}"
    return _TEXTS.get(kind, f"is refused: {detail['msg'][:1].lower()}{detail['msg'][1:]}")


def _choices(expected: str) -> list[str]:
    """The values that a key may have, from pydantic's sentence about them."""
    return re.findall(r"'([^']*)'", expected) or re.findall(r"-?\d+", expected)


def _unknown_value(value: object, choices: Sequence[str]) -> tuple[str, str]:
    """What is wrong with a value outside the choices, and the likely one or all of them."""
    shown = f"'{shorten(value)}'" if isinstance(value, str) else show(value)
    guess = nearest(str(value), choices) if len(choices) > 1 else None
    one_of = f"must be one of {', '.join(choices)}" if len(choices) > 1 else f"must be {choices[0]}"
    return f"unknown value {shown}", f"did you mean '{guess}'?" if guess else one_of


def _hint(value: object) -> str:
    if not isinstance(value, str):
        return ""
    if value.strip().endswith("%"):
        return ": write a share, e.g. 0.2 for 20 %"
    try:
        float(value)
    except ValueError:
        is_measure = _NUMBER_WITH_UNIT.fullmatch(value) is not None
        return ": write the number alone, the unit is in the key" if is_measure else ""
    return ", without quotes"


def _kind_finding(path: KeyPath, data: Any, root: type[Strict]) -> Finding:
    kinds = [str(kind) for kind in _kinds(root)]
    given = _value_at(data, path)
    if isinstance(given, Mapping) and "kind" in given:
        return Finding((*path, "kind"), *_unknown_value(given["kind"], kinds))
    if not isinstance(given, Mapping):
        return Finding(path, f"got {show(given)}", "must be a mapping of keys")
    return Finding((*path, "kind"), "missing", f"add one of {', '.join(kinds)}")


def _kinds(root: type[Strict]) -> Iterator[str]:
    for model in models_in(root.model_fields["workloads"].annotation):
        yield from get_args(model.model_fields["kind"].annotation)


def _what_to_add(field: FieldInfo | None) -> str:
    if field is None:
        return "add it"
    example = f", e.g. {show(field.examples[0])}" if field.examples else ""
    text = field.description or "it"
    return f"add it: {text[:1].lower()}{text[1:]}{example}{_unit_of(field)}"


def _unit_of(field: FieldInfo | None) -> str:
    extra = field.json_schema_extra if field is not None else None
    unit = extra.get("x-unit") if isinstance(extra, dict) else None
    return f" ({unit})" if unit else ""


def _what_key(name: str, model: type[Strict] | None, root: type[Strict]) -> str:
    known = list(model.model_fields) if model else []
    same_quantity = [key for key in known if _stem(key) == _stem(name)]
    words = other_names("scenario").items()
    guess = next((key for key, others in words if name.lower() in others), name)
    close = same_quantity[0] if same_quantity else guess if guess in known else None
    homes = _homes(root).get(name) or _homes(root).get(guess)
    if close is None and homes:
        return f"it belongs at {' or '.join(homes[:2])}"
    close = close or nearest(name, known)
    if close is not None and model is not None:
        return f"did you mean {close}{_unit_of(model.model_fields[close])}?"
    return f"known here: {', '.join(known)}"


def _stem(name: str) -> str:
    return _UNIT.sub("", name.lower())


@cache
def _homes(root: type[Strict]) -> dict[str, list[str]]:
    """Where each key stands, with the kind of workload where only that has it."""
    homes: dict[str, list[str]] = {}
    for place, model in walk_models(root):
        kind = get_args(model.model_fields["kind"].annotation) if place == "workloads[]" else ()
        for name in model.model_fields:
            home = f"{place}.{name}".removeprefix(".") + (f" of kind {kind[0]}" if kind else "")
            if home not in homes.setdefault(name, []):
                homes[name].append(home)
    return homes


def _path_in_file(loc: tuple[str | int, ...], data: Any) -> KeyPath:
    """The location without what the schema adds: kinds, and parts of a number given alone."""
    path: list[str | int] = []
    value = data
    for i, part in enumerate(loc):
        if isinstance(value, Mapping):
            if part in value:
                value = value[part]
            elif value.get("kind") == part and i < len(loc) - 1:
                continue
            elif i < len(loc) - 1:
                break
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            break
        path.append(part)
    return tuple(path)


def _value_at(data: Any, path: KeyPath) -> Any:
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data
