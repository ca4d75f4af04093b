"""A column map as typed: `arrive=ts,input=prompt,output=answer,unit=ms`."""

from typing import cast, get_args

from gpuplan.domain.traffic.trace import ColumnMap, TimeUnit
from gpuplan.errors import InputError, Problem

KEYS = ("arrive", "input", "output", "session", "priority", "unit")


def column_map(text: str) -> ColumnMap:
    """The map; InputError names every part that is unclear."""
    given: dict[str, str] = {}
    problems = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign or not value or key not in KEYS or key in given:
            what = f"{key} is given twice" if key in given else f"got {part[:60]!r}"
            problems.append(Problem("columns", what, f"write KEY=COLUMN, KEY of {', '.join(KEYS)}"))
        given.setdefault(key, value)
    unit = given.get("unit")
    if unit is not None and unit not in get_args(TimeUnit):
        problems.append(Problem("columns", f"unit is {unit[:20]!r}", "must be s, ms, us or ns"))
    if not given:
        problems.append(
            Problem("columns", "nothing is mapped", "e.g. arrive=ts,input=in,output=out")
        )
    if problems:
        raise InputError("trace", problems)
    return ColumnMap(
        arrive=given.get("arrive"),
        input_tokens=given.get("input"),
        output_tokens=given.get("output"),
        session=given.get("session"),
        priority=given.get("priority"),
        time_unit=cast("TimeUnit | None", unit),
    )
