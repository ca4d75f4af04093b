"""What a user file says, each value with the line or the option that it came from."""

import copy
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from gpuplan.domain.noun import dataclass
from gpuplan.errors import InputError, Problem, printable
from gpuplan.inputs.documents.scalars import shorten

KeyPath = tuple[str | int, ...]
MAX_DEPTH = 50


def show_path(path: KeyPath) -> str:
    """The path as people write it: workloads[0].slo.ttft_p95_ms."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The line of a value, and those of the values inside it."""

    line: int
    children: Mapping[str | int, "Lines"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A tree of dicts, lists, text, numbers, truth values and None that knows its origins."""

    name: str
    data: Any  # aliased parts are shared: never changed in place
    lines: Lines | None = None  # None: built in Python rather than read from a file
    origins: Mapping[KeyPath, str] = field(default_factory=dict)  # options that set a key

    def line_of(self, path: KeyPath) -> int | None:
        """The line of the key, or of the nearest part around it; None where an option set it."""
        if self.lines is None or self._origin(path) is not None:
            return None
        lines = self.lines
        for part in path:
            child = lines.children.get(part)
            if child is None:
                break
            lines = child
        return lines.line

    def place(self, path: KeyPath) -> str:
        """Where the user finds the key: `scenario.yaml:16: policy.survive`, or `--set KEY`."""
        shown, origin = show_path(path), self._origin(path)
        if origin is not None:
            return origin if origin.endswith(f" {shown}") else f"{origin}: {shown}"
        line = self.line_of(path)
        file = self.name if line is None else f"{self.name}:{line}"
        return f"{file}: {shown}" if shown else file

    def part(self, path: KeyPath) -> "Document":
        """The document below a key that exists, with the lines that it has in the file."""
        data, lines = self.data, self.lines
        for key in path:
            data = data[key]
            lines = lines.children.get(key) if lines else None
        return replace(self, data=data, lines=lines)

    def with_value(self, path: KeyPath, value: Any, *, origin: str) -> "Document":
        """A copy in which the key has this value, which the option named as origin gave."""
        data = copy.deepcopy(self.data)
        set_key(data, path, value)
        return replace(self, data=data, origins={**self.origins, path: origin})

    def _origin(self, path: KeyPath) -> str | None:
        parts = (path[:n] for n in range(len(path), 0, -1))
        return next((self.origins[part] for part in parts if part in self.origins), None)


def set_key(tree: Any, path: KeyPath, value: Any) -> None:
    """Set a value, making the mappings on the way; lists are never lengthened."""
    inner = tree
    for step in path[:-1]:
        if isinstance(inner, list):
            inner = inner[_index(inner, step)]
        else:
            inner = inner.setdefault(step, {})
        if not isinstance(inner, dict | list):
            raise TypeError(f"{step} holds a value, not keys")
    last = path[-1]
    inner[_index(inner, last) if isinstance(inner, list) else last] = value


def _index(items: list[Any], step: str | int) -> int:
    if not isinstance(step, int) or step >= len(items):
        raise IndexError(f"there are {len(items)} entries, counted from 0; got [{step}]")
    return step


def document_from_dict(tree: Mapping[str, Any], *, name: str) -> Document:
    """The document of a dict; raises InputError with every value that a file could not hold."""
    problems: list[Problem] = []
    data = _plain(tree, (), problems)
    if problems:
        raise InputError(name, problems)
    return Document(name=name, data=data)


def _plain(value: Any, path: KeyPath, problems: list[Problem]) -> Any:
    """Dicts, lists and scalars of a value; what is none of these is noted."""
    if len(path) > MAX_DEPTH:
        problems.append(_problem(path, f"is nested deeper than {MAX_DEPTH} levels", "flatten it"))
        return None
    if isinstance(value, Mapping):
        odd = [key for key in value if not isinstance(key, str)]
        problems += [_problem(path, f"has the key {key!r}", "use text as keys") for key in odd]
        return {str(key): _plain(item, (*path, str(key)), problems) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, i), problems) for i, item in enumerate(value)]
    if value is not None and not isinstance(value, str | bool | int | float):
        kind = type(value).__name__
        problems.append(_problem(path, f"holds a {kind}", "give text, a number, a list or a dict"))
    return value


def _problem(path: KeyPath, what: str, fix: str) -> Problem:
    return Problem(shorten(printable(show_path(path)), 80) or "scenario", printable(what), fix)
