"""Changing keys of a document before it is read, in: "growth.per_month_frac=0.1"."""

import re
from collections.abc import Sequence
from typing import Any

from gpuplan.errors import InputError, Problem, printable
from gpuplan.inputs.documents.document import Document, KeyPath, show_path
from gpuplan.inputs.documents.scalars import shorten
from gpuplan.inputs.documents.yaml_reader import read_yaml_text

_STEP = re.compile(r"([A-Za-z_][\w-]*)|\[(\d{1,4})\]")
MAX_PATH_PARTS = 20


def with_changes(document: Document, changes: Sequence[str], *, option: str = "--set") -> Document:
    """The document with every `key=value` set; raises InputError with all that cannot be set."""
    problems = []
    for change in changes:
        key, sign, text = change.partition("=")
        origin = f"{option} {shorten(printable(key.strip()), 60)}".strip()
        try:
            path = _existing_path(document.data, key_path(key))
            if not sign or not text.strip():
                raise ValueError("has no value")
            value = read_yaml_text(f"value: {text.strip()}", name=origin).data["value"]
            document = document.with_value(path, value, origin=origin)
        except (ValueError, IndexError, TypeError, KeyError) as error:
            fix = "write key=value, e.g. workloads[0].demand.users=12000 or users=12000"
            problems.append(Problem(origin, str(error).strip("'\""), fix))
    if problems:
        raise InputError(option, problems)
    return document


def key_path(text: str) -> KeyPath:
    """The steps of a key as people write it: workloads[0].demand.users."""
    steps: list[str | int] = []
    rest = text.strip()
    while rest:
        match = _STEP.match(rest)
        if match is None or len(steps) >= MAX_PATH_PARTS:
            raise ValueError("is not a key")
        steps.append(match[1] if match[1] else int(match[2]))
        rest = rest[match.end() :].removeprefix(".")
    if not steps:
        raise ValueError("names no key")
    return tuple(steps)


def _existing_path(tree: Any, path: KeyPath) -> KeyPath:
    """The key itself, or the only key of that single name that the tree holds."""
    if len(path) > 1 or path[0] in tree or not isinstance(path[0], str):
        return path
    found = [known for known in _paths(tree) if known[-1] == path[0]]
    if len(found) > 1:
        shown = ", ".join(map(show_path, found[:3]))
        raise KeyError(f"is ambiguous: {len(found)} keys have this name: {shown}")
    return found[0] if found else path


def _paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    found: list[KeyPath] = []
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for step, item in entries:
        here = (*path, step)
        found.append(here)
        if isinstance(item, dict | list):
            found += _paths(item, here)
    return found
