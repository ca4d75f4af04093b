"""Preferred facts, in: rows about one item; out: the noun they describe, in base units."""

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from gpuplan.catalog.schema import PRECISIONS, QUANTITIES, Kind, Quantity, in_base_units
from gpuplan.domain.hardware.catalog import Fact
from gpuplan.domain.hardware.devices import (
    ANNOUNCED,
    Accelerator,
    Link,
    Nic,
    Server,
    StorageClass,
    Switch,
)
from gpuplan.errors import Problem

NOUNS: Mapping[Kind, Any] = {
    "accelerator": Accelerator,
    "server": Server,
    "switch": Switch,
    "nic": Nic,
    "link": Link,
    "storage": StorageClass,
}


def missing(item: str, facts: Iterable[Fact], *, kind: Kind) -> list[Problem]:
    """What the item still needs before it can be planned with."""
    known = {fact.quantity for fact in facts if fact.preferred}
    wanted = [q for q in QUANTITIES[kind].values() if q.required and q.name not in known]
    problems = [
        Problem(f"{item}.{q.name}", "missing", f"add a preferred fact in {q.unit}") for q in wanted
    ]
    if kind == "accelerator" and not any(f"peak_{name}" in known for name in PRECISIONS):
        problems.append(
            Problem(f"{item}.peak_*", "missing", "add the dense peak of one precision in TFLOP/s")
        )
    return problems


def described(item: str, facts: Iterable[Fact], *, kind: Kind) -> Any:
    """The noun that the facts describe: each quantity in the field that the schema names."""
    known = {fact.quantity: fact for fact in facts if fact.preferred}
    fields: dict[str, Any] = {"id": item}
    for quantity in QUANTITIES[kind].values():
        outer, _, inner = quantity.to.rpartition(".")
        if quantity.to:
            target = fields.setdefault(outer, {}) if outer else fields
            target[inner] = _value(quantity, known.get(quantity.name))
    if kind == "accelerator":
        _complete(fields)
    for name, (part, needed) in _parts(NOUNS[kind]).items():
        given = fields[name]
        is_known = all(given[each] is not None for each in needed)
        fields[name] = part(**given) if is_known else None
    return NOUNS[kind](**fields)


def _value(quantity: Quantity, fact: Fact | None) -> str | int | float | None:
    """The word, empty where there is none; the number, None where nothing is published."""
    if quantity.is_text:
        return fact.value if fact else ""
    value = None if fact is None else in_base_units(fact.value, fact.unit)
    return int(value) if value is not None and quantity.unit == "count" else value


def _complete(fields: dict[str, Any]) -> None:
    """What an accelerator has beyond its facts: what only has a launch is on sale."""
    peaks, up, life = fields["peak_flop_per_s"], fields["scale_up"], fields["lifecycle"]
    rates = {name: rate for name, rate in peaks.items() if rate is not None}
    fields["peak_flop_per_s"] = MappingProxyType({n: rates[n] for n in PRECISIONS if n in rates})
    up["n_domain_max"] = up["n_domain_max"] or up["n_domain"]
    life["status"] = ANNOUNCED if life["launched"] == ANNOUNCED else life["status"] or "on sale"


@cache
def _parts(noun: Any) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """The nouns that stand inside one, by field, and what each of them cannot be without."""
    found = {}
    for name, kind in get_type_hints(noun).items():
        inner = next(iter(get_args(kind)), kind)
        if hasattr(inner, "__dataclass_fields__"):
            hints = get_type_hints(inner).items()
            found[name] = inner, tuple(n for n, k in hints if type(None) not in get_args(k))
    return found


def items_of(kinds: Mapping[str, Kind], kind: Kind) -> list[str]:
    """The items of one kind, in table order."""
    return [item for item, found in kinds.items() if found == kind]
