"""plan.yaml → Answer: every key is known, every value has its type, the version fits."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.bill import PlanBill
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.domain.plan.comparison import Decision, RowEvidence
from gpuplan.errors import InputError, printable
from gpuplan.inputs.documents.document import Document, KeyPath
from gpuplan.inputs.documents.problems import MAX_SHOWN
from gpuplan.inputs.documents.scalars import shorten
from gpuplan.inputs.documents.yaml_reader import read_yaml, shown_problem
from gpuplan.units import HOURS_PER_WEEK

KIND = "gpuplan-plan"
FORMAT_MAJOR = "1"
ROUNDING = 1e-6  # of figures in documents
DAYS = ("as_of", "price_date")
DERIVED = ("schema_version", "kind", "feasible", "gap")


def read_plan(path: Path) -> Answer:
    """The plan of a file; raises InputError with every problem found."""
    return plan_of(read_yaml(path))


def plan_of(document: Document) -> Answer:
    """The plan that a document holds."""
    data = _cleaned(document.data)
    if not isinstance(data, dict) or data.get("kind") != KIND:
        fix = "give a file that `gpuplan plan … --out plan.yaml` wrote"
        if isinstance(data, dict) and "nodes" in data:
            fix = "it is a cluster: gpuplan simulate THIS --jobs TRACE --chart page.html"
        raise InputError(document.name, [shown_problem(document.name, "is no plan", fix)])
    if str(data.get("schema_version", "")).split(".")[0] != FORMAT_MAJOR:
        what = f"is a plan of format {data.get('schema_version')!r}"
        fix = f"make it anew: this version reads format {FORMAT_MAJOR}"
        raise InputError(document.name, [shown_problem(document.name, what, fix)])
    body = _with_nouns({key: value for key, value in data.items() if key not in DERIVED})
    body = _with_certificate(body)
    try:
        answer = TypeAdapter(Answer).validate_python(body)
    except ValidationError as error:
        fix = "plans are written by `gpuplan plan`; make it anew"
        found = error.errors()[:MAX_SHOWN]
        problems = [shown_problem(document.place(one["loc"]), one["msg"], fix) for one in found]
        raise InputError(document.name, problems) from None
    _refuse_impossible(document, data)
    unknown = list(_unknown(body, asdict(answer), ()))[:MAX_SHOWN]
    if unknown:
        fix = "plans are written by `gpuplan plan`; keep your notes elsewhere"
        raise InputError(
            document.name, [shown_problem(document.place(p), "is no key", fix) for p in unknown]
        )
    return answer


def _cleaned(value: Any) -> Any:
    """The same with nothing in its texts that a terminal obeys."""
    if isinstance(value, str):
        return value if value.isprintable() else "\n".join(map(printable, value.split("\n")))
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(each) for key, each in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, list) else value


def _refuse_impossible(document: Document, data: Any) -> None:
    found = [*_impossible(data, ()), *_short_weeks(data)][:MAX_SHOWN]
    fix = "plans are written by `gpuplan plan`; make it anew"
    if found:
        problems = [shown_problem(document.place(path), what, fix) for path, what in found]
        raise InputError(document.name, problems)


def _impossible(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Counts below zero, days that are none, and values outside the range beside them."""
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from _impossible(each, (*path, place))
    if not isinstance(value, dict):
        return
    numbers = {k: v for k, v in value.items() if isinstance(v, int | float)}
    for key, number in numbers.items():
        if str(key).startswith("n_") and number < 0:
            yield (*path, key), f"got {number}, which no count can be"
    if {"value", "low", "high"} <= numbers.keys():
        low, middle, high = (numbers[key] for key in ("low", "value", "high"))
        if not low <= middle * (1 + ROUNDING) or not middle <= high * (1 + ROUNDING):
            yield path, f"got {middle:g}, which is outside its own range, {low:g} … {high:g}"
    for key, each in value.items():
        if key in DAYS and isinstance(each, str) and each and not _is_day(each):
            yield (*path, key), f"got {shorten(each)!r}, which is no day; write it as 2026-11-01"
        yield from _impossible(each, (*path, key))


def _short_weeks(data: Any) -> Iterator[tuple[KeyPath, str]]:
    for place, row in enumerate((data.get("calendar") or {}).get("rows") or ()):
        n_hours = len(row["accelerators"])
        if n_hours != HOURS_PER_WEEK:
            what = f"has {n_hours} hours, not the {HOURS_PER_WEEK:.0f} of a week"
            yield ("calendar", "rows", place, "accelerators"), what


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _with_nouns(body: dict[str, Any]) -> dict[str, Any]:
    """Keys that stand among those of what holds them, as nouns of their own."""
    found: dict[str, Any] = _apart(body, Decision, "decision")
    rows = found["decision"].get("comparison")
    if isinstance(rows, list):
        found["decision"]["comparison"] = [_apart(row, RowEvidence, "evidence") for row in rows]
    plan = _apart(found.get("plan"), PlanBill, "bill")
    pools = plan.get("pools") if isinstance(plan, dict) else None
    found["plan"] = plan
    if isinstance(plan, dict) and isinstance(pools, list):
        laid = [_apart(each, PoolLayout, "layout") for each in pools]
        found["plan"] = {**plan, "pools": [_apart(each, RunSteps, "steps") for each in laid]}
    return found


def _with_certificate(body: dict[str, Any]) -> dict[str, Any]:
    """The checks, which stand at the top, as a part of the proof."""
    rest = {key: value for key, value in body.items() if key != "certificate"}
    proof, checks = body.get("proof"), body.get("certificate")
    if not isinstance(proof, dict) or not checks:
        return rest if checks == [] else body
    return {**rest, "proof": {**proof, "certificate": checks}}


def _apart(given: Any, noun: type[Any], name: str) -> Any:
    """What was given, with the keys of a noun under its name."""
    if not isinstance(given, dict):
        return given
    keys = [field.name for field in fields(noun)]
    rest = {key: value for key, value in given.items() if key not in keys}
    return {**rest, name: {key: given[key] for key in keys if key in given}}


def _unknown(given: Any, known: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Keys that the noun does not have: what was read, against what came of it."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            here = (*path, key)
            if key not in known:
                yield here
            else:
                yield from _unknown(value, known[key], here)
    elif isinstance(given, list) and isinstance(known, list | tuple):
        for i, (value, read) in enumerate(zip(given, known, strict=True)):
            yield from _unknown(value, read, (*path, i))
