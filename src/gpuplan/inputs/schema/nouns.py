"""From the keys of a file to nouns in base units: one mechanism for every file format.

A key becomes the field of its name in base units: `power_kw` becomes `power_w`, `nodes` `n_nodes`.
`to` names the field where it is called otherwise, and `means` gives the value of a choice. The
types of the noun's fields say which nouns stand inside.
"""

import dataclasses
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from gpuplan.domain.ranges import Range
from gpuplan.inputs.schema.keys import Spread, Strict
from gpuplan.inputs.schema.units import PLAIN, UNITS, field_names

Noun = TypeVar("Noun")


def noun_of(spec: Strict, noun: type[Noun], **own: Any) -> Noun:
    """The noun with every given key in its field; `own` are fields worked out by the caller.

    A key that was left out leaves the field to the noun's own default, or to None without one.
    """
    made: Noun = _made(noun, {**_fields_of(spec, noun, skipped=own), **own})
    return made


def range_of(value: Spread, factor: float = 1.0) -> Range:
    """The range in another unit."""
    return Range(low=value.low, mid=value.mid, high=value.high).times(factor)


def _fields_of(spec: Strict, noun: Any, *, skipped: dict[str, Any]) -> dict[str, Any]:
    """Values in base units by the field that they become; dots lead into a noun inside."""
    fields: dict[str, Any] = {}
    for name, value in spec:
        extra: Any = type(spec).model_fields[name].json_schema_extra or {}
        unit = extra.get("x-unit", "")
        field = extra["x-to"] if "x-to" in extra else _field(noun, name, unit)
        if value is None or not field or field in skipped:
            continue
        if field == "*":
            fields |= _fields_of(value, noun, skipped=skipped)
            continue
        outer, _, inner = field.rpartition(".")
        target = fields.setdefault(outer, {}) if outer else fields
        factor = UNITS.get(unit, PLAIN).factor
        target[inner] = extra["x-means"][value] if "x-means" in extra else _scaled(value, factor)
    return fields


def _field(noun: Any, key: str, unit: str) -> str:
    known = [name for name in field_names(key, unit) if name in _kinds(noun)]
    if not known:
        raise TypeError(f"{noun.__name__} has no field for the key {key}; name one with to=")
    return known[0]


def _scaled(value: Any, factor: float) -> Any:
    """The value in base units; mappings of the file wait for the type of their field."""
    if isinstance(value, Spread):
        return range_of(value, factor)
    if isinstance(value, list):
        return tuple(_scaled(item, factor) for item in value)
    return value if factor == 1 or isinstance(value, Strict) else value * factor


def _made(noun: Any, fields: dict[str, Any]) -> Any:
    kinds = _kinds(noun)
    values = {name: _inner(value, kinds.get(name)) for name, value in fields.items()}
    missing = (name for name in _nullable(noun) if name not in values)
    return noun(**values, **dict.fromkeys(missing))


def _inner(value: Any, kind: type[Any] | None) -> Any:
    """A mapping of the file as the noun of its field; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(_inner(item, kind) for item in value)
    if kind is not None and isinstance(value, Strict):
        return noun_of(value, kind)
    return _made(kind, value) if kind is not None and isinstance(value, dict) else value


@cache
def _kinds(noun: type[Any]) -> dict[str, type[Any] | None]:
    """The noun that stands in each field; None where it holds plain values."""
    return {name: _noun_in(kind) for name, kind in get_type_hints(noun).items()}


def _noun_in(kind: Any) -> type[Any] | None:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return kind
    return next(filter(None, map(_noun_in, get_args(kind))), None)


@cache
def _nullable(noun: type[Any]) -> tuple[str, ...]:
    """Fields without a default that may be None."""
    none, hints = dataclasses.MISSING, get_type_hints(noun)
    return tuple(
        field.name
        for field in dataclasses.fields(noun)
        if field.default is none and field.default_factory is none
        if type(None) in get_args(hints[field.name])
    )
