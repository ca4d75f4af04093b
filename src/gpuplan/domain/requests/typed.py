"""Requests from what was typed: an option of a command or a key of a body fills its field."""

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeVar

from gpuplan.units import HOUR, MS, WEEK

Request = TypeVar("Request")
# How a name ends whose figure is in another unit than its field, which ends in `_s`.
UNITS_S = {"_ms": MS, "_h": HOUR, "_weeks": WEEK}


def request_of(request: type[Request], *typed: Any, **own: Any) -> Request:
    """The request with each field as it was typed; `own` are fields worked out by the caller.

    Names are those of the fields; a duration may be in another unit: `horizon_h` is `horizon_s`.
    """
    kind: Any = request
    fields = {field.name for field in dataclasses.fields(kind)}
    found: dict[str, Any] = {}
    for given in typed:
        found |= {name: value for name, value in _in_seconds(given, fields) if name in fields}
    return request(**found | own)


def _in_seconds(given: Any, fields: set[str]) -> Iterator[tuple[str, Any]]:
    """Names and values of options or of a body, durations in seconds."""
    for name, value in given._asdict().items() if hasattr(given, "_asdict") else given:
        stem, mark, unit = name.rpartition("_")
        factor = UNITS_S.get(mark + unit)
        if name in fields or factor is None:
            yield name, value
        else:
            yield f"{stem}_s", None if value is None else value * factor
