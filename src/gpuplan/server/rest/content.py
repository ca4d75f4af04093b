"""Requests bring content: a text that could name a file or an address is refused."""

import json
from collections.abc import Mapping
from typing import Any

from gpuplan.errors import InputError, Problem

FILE_MARKS = ("/", "~", "\\")
CONTENT = ("body.text",)  # read as it stands, and never taken for a name


def refuse_files(value: Any, where: str = "body") -> None:
    """Raise InputError where a text could name a file or an address."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            refuse_files(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            refuse_files(inner, f"{where}[{i}]")
    elif isinstance(value, str) and _is_file(value, where):
        fix = "send the content itself: nothing is opened on behalf of a request"
        raise InputError("request", [Problem(where, "names a file or an address", fix)])


def refuse_repeated(body: bytes) -> None:
    """Raise InputError where an object has a key twice: which of them was meant is unknown."""

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError("request", [Problem(f"body.{twice}", "is given twice", "keep one")])
        return found

    json.loads(body, object_pairs_hook=each_once)


def _is_file(text: str, where: str) -> bool:
    """Sources within a plan are citations: they are printed, and never opened."""
    if where in CONTENT:
        return False
    if where.startswith(("body.plan.", "body.other.")) and ".scenario." not in where:
        return False
    return text.startswith(FILE_MARKS) or "://" in text or ".." in text.replace("...", "")
