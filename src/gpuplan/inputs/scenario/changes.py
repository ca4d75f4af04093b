"""Changing keys of a scenario before it is read, in: "growth.per_month_frac=0.1"; out: a tree."""

import copy
import re
from collections.abc import Sequence
from typing import Any

from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.scalars import printable, shorten
from gpuplan.inputs.documents.yaml_reader import KeyPath, read_yaml_text, show_path

Tree = dict[str, Any]
_STEP = re.compile(r"([A-Za-z_][\w-]*)|\[(\d{1,4})\]")
MAX_PATH_PARTS = 20


def changed(tree: Tree, changes: Sequence[str]) -> Tree:
    """A copy of the tree with every `key=value` set; raises with all that cannot be read."""
    made = copy.deepcopy(tree)
    problems = []
    for change in changes:
        key, sign, text = change.partition("=")
        try:
            path = key_path(key)
            if not sign or not text.strip():
                raise ValueError("has no value")
            set_key(made, _found(made, path), _value(text))
        except (ValueError, IndexError, TypeError, KeyError) as error:
            where = shorten(printable(change), 60)
            fix = "write key=value, e.g. workloads[0].demand.users=12000 or users=12000"
            problems.append(Problem(where, str(error).strip("'\""), fix))
    if problems:
        raise InputError("what-if", problems)
    return made


def key_path(text: str) -> KeyPath:
    """The steps of workloads[0].demand.users."""
    steps: list[str | int] = []
    rest = text.strip()
    while rest:
        match = _STEP.match(rest)
        if match is None or len(steps) >= MAX_PATH_PARTS:
            raise ValueError("is no key")
        steps.append(match[1] if match[1] else int(match[2]))
        rest = rest[match.end() :].removeprefix(".")
    if not steps:
        raise ValueError("names no key")
    return tuple(steps)


def set_key(tree: Tree, path: KeyPath, value: Any) -> None:
    """Set a value, making the mappings on the way; lists are never lengthened."""
    place: Any = tree
    for step in path[:-1]:
        if isinstance(place, list):
            place = place[_index(place, step)]
        else:
            place = place.setdefault(step, {})
        if not isinstance(place, dict | list):
            raise TypeError(f"{step} holds a value, not keys")
    last = path[-1]
    place[_index(place, last) if isinstance(place, list) else last] = value


def _index(items: list[Any], step: str | int) -> int:
    if not isinstance(step, int) or step >= len(items):
        raise IndexError(f"there are {len(items)} entries, counted from 0; got [{step}]")
    return step


def _found(tree: Tree, path: KeyPath) -> KeyPath:
    """The key itself, or the one place where a key of that single name stands already."""
    if len(path) > 1 or path[0] in tree or not isinstance(path[0], str):
        return path
    places = [found for found in _paths(tree) if found[-1] == path[0]]
    if len(places) > 1:
        raise KeyError(f"stands in {len(places)} places: {', '.join(map(show_path, places[:3]))}")
    return places[0] if places else path


def _paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    found: list[KeyPath] = []
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for step, item in entries:
        here = (*path, step)
        found.append(here)
        if isinstance(item, dict | list):
            found += _paths(item, here)
    return found


def _value(text: str) -> Any:
    return read_yaml_text(f"value: {text.strip()}", name="what-if").data["value"]
