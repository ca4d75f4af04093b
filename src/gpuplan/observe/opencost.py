"""Allocations as OpenCost and Kubecost export them: JSON of the allocation API."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from gpuplan.domain.money.statement import ActualCost
from gpuplan.errors import InputError, one
from gpuplan.observe.guard import guarded, json_document
from gpuplan.units import HOUR, MINUTE

IDLE = "__idle__"
# Parts of an allocation where no total is exported.
PARTS = ("gpuCost", "cpuCost", "ramCost", "pvCost", "networkCost", "loadBalancerCost", "sharedCost")
LABELS = ("team", "owner", "app", "model", "app_kubernetes_io_name", "app.kubernetes.io/name")
FIX = "export /model/allocation of OpenCost or Kubecost as JSON"


def read_opencost(path: Path) -> tuple[ActualCost, ...]:
    """Every allocation of the file; several windows of one name add up. InputError without any."""
    with guarded(str(path)):
        try:
            document = json_document(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise one(InputError, str(path), "costs", "cannot be read as JSON", FIX) from error
        found = [*_allocations(document)]
    if not found:
        raise one(InputError, str(path), "costs", "no allocations in it", FIX)
    return tuple(found)


def _allocations(document: Any) -> Iterator[ActualCost]:
    sets = document.get("data") if isinstance(document, Mapping) else document
    windows = [part for part in sets or () if isinstance(part, Mapping)]
    merged: dict[str, list[Mapping[str, Any]]] = {}
    for part in windows:
        for name, one_cost in part.items():
            if isinstance(one_cost, Mapping):
                merged.setdefault(str(one_cost.get("name", name)), []).append(one_cost)
    for name, parts in merged.items():
        spans = [span for part in parts if (span := _window_s(part)) is not None]
        yield ActualCost(
            name=name,
            names=tuple(dict.fromkeys(known for part in parts for known in _names(name, part))),
            usd=sum(map(_usd, parts)),
            accelerator_s=sum(_number(part, "gpuHours") for part in parts) * HOUR,
            window_s=sum(spans) if spans else None,
            is_idle=name.startswith(IDLE),
        )


def _usd(part: Mapping[str, Any]) -> float:
    if "totalCost" in part:
        return _number(part, "totalCost")
    return sum(_number(part, name) for name in PARTS)


def _number(part: Mapping[str, Any], key: str) -> float:
    value = part.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        what = f"{key} of {part.get('name', 'an allocation')} is {value!r}"
        raise one(InputError, "costs", key, what, "give a number of 0 or more")
    return float(value)


def _names(name: str, part: Mapping[str, Any]) -> Iterator[str]:
    yield name
    known = part.get("properties")
    if not isinstance(known, Mapping):
        return
    for key in ("namespace", "controller", "container"):
        if isinstance(known.get(key), str):
            yield known[key]
    labels = known.get("labels")
    if isinstance(labels, Mapping):
        yield from (labels[key] for key in LABELS if isinstance(labels.get(key), str))


def _window_s(part: Mapping[str, Any]) -> float | None:
    """The window as exported; where only minutes of running are known, those."""
    window = part.get("window")
    if isinstance(window, Mapping) and window.get("start") and window.get("end"):
        begin, end = (datetime.fromisoformat(str(window[key])) for key in ("start", "end"))
        return (end - begin).total_seconds()
    minutes = part.get("minutes")
    return float(minutes) * MINUTE if isinstance(minutes, int | float) else None
