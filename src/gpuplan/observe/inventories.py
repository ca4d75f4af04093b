"""Lists that are no series: machines, pods, faults, spot capacity, demand by the day."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuplan.domain.telemetry.observation import Allocation, Span, Subject
from gpuplan.observe.clock import seconds
from gpuplan.observe.collect import Collector
from gpuplan.observe.names import Word
from gpuplan.units import DAY

Row = Mapping[str, object]
# Columns that tell a list of machines: name, model, accelerators.
_MACHINES = (
    ("sn", "model", "gpu"),
    ("node_name", "gpu_model", "gpu_capacity_num"),
    ("machine", "gpu_type", "cap_gpu"),
)


def is_spot(document: object) -> bool:
    """Whether this is capacity that could be had, in equal steps."""
    return (
        isinstance(document, Mapping)
        and isinstance(document.get("data"), list)
        and "gap_seconds" in (document.get("metadata") or {})
    )


def take_spot(collector: Collector, document: Mapping[str, Any]) -> None:
    """Instances that could be had at each step; several lists are several groups."""
    step_s = float(document["metadata"]["gap_seconds"])
    data = document["data"]
    groups = data if data and isinstance(data[0], list) else [data]
    for number, values in enumerate(groups):
        subject = collector.subject(Subject(service=f"group {number}" if len(groups) > 1 else ""))
        for place, value in enumerate(values):
            collector.sample(subject, Word("available_count"), place * step_s, float(value))


def is_faults(document: object) -> bool:
    """Whether this lists begins and ends of faults."""
    return (
        isinstance(document, list)
        and bool(document)
        and isinstance(document[0], Mapping)
        and {"node_id", "event_time", "event_type"} <= set(document[0])
    )


def take_faults(collector: Collector, events: Sequence[Mapping[str, Any]]) -> None:
    """How long each node was out, and why; a fault without an end lasts to the last event."""
    last_s = max(float(event["event_time"]) for event in events) * DAY
    open_since: dict[str, tuple[float, str]] = {}
    for event in sorted(events, key=lambda one: float(one["event_time"])):
        node, at_s = str(event["node_id"]), float(event["event_time"]) * DAY
        subject = collector.subject(Subject(node=node))
        if event["event_type"] == "fault_start":
            label = str((event.get("fault_type") or {}).get("Class", "fault"))
            open_since.setdefault(node, (at_s, label))
        elif node in open_since:
            begin_s, label = open_since.pop(node)
            collector.span(Span(subject=subject, begin_s=begin_s, end_s=at_s, label=label))
        else:
            collector.quirk("an end without a begin", node, "excluded")
    for node, (begin_s, label) in open_since.items():
        subject = collector.subject(Subject(node=node))
        collector.quirk("a fault without an end", node, "lasts to the last event")
        collector.span(Span(subject=subject, begin_s=begin_s, end_s=last_s, label=label))


def is_demand(document: object) -> bool:
    """Whether this is demand added up by the day and the minute."""
    return isinstance(document, Mapping) and {"daily", "week1_min"} <= set(document)


def take_demand(collector: Collector, document: Mapping[str, Any]) -> None:
    """Requests a second by the day, tokens a second by the minute; minutes not listed had none."""
    collector.sampling = "mean"
    days, minutes = collector.subject(Subject()), collector.subject(Subject(service="first week"))
    for row in document["daily"]:
        rate = float(row["req"]) / DAY
        collector.sample(days, Word("requests_per_s"), float(row["d"]) * DAY, rate)
    for row in document["week1_min"]:
        at_s, rate = float(row["t"]) * 60.0, float(row["tps"])
        collector.sample(minutes, Word("output_tokens_per_s"), at_s, rate)
    collector.quirk("tokens of prompts and answers together", "week1_min", "read as written ones")


def is_machines(columns: Iterable[str]) -> bool:
    """Whether this lists machines with their accelerators."""
    return any(set(names) <= set(columns) for names in _MACHINES)


def take_machines(collector: Collector, rows: Iterable[Row]) -> None:
    """Accelerators of each machine."""
    for number, row in enumerate(rows, start=2):
        name, model, count = next(names for names in _MACHINES if set(names) <= set(row))
        n = _number(row.get(count))
        if n is None:
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
            continue
        about = Subject(node=str(row[name]), model=str(row[model] or ""))
        collector.sample(collector.subject(about), Word("total_count"), 0.0, n)


def is_pods(columns: Iterable[str]) -> bool:
    """Whether this lists pods with shares of accelerators."""
    return {"num_gpu", "gpu_milli", "pod_phase", "creation_time"} <= set(columns)


def take_pods(collector: Collector, rows: Iterable[Row]) -> None:
    """Pods as allocations; a share counts in thousandths of a device."""
    for number, row in enumerate(rows, start=2):
        n, milli = _number(row.get("num_gpu")), _number(row.get("gpu_milli"))
        if n is None or milli is None:
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
            continue
        collector.allocation(
            Allocation(
                job=str(row["name"]),
                team=str(row.get("qos") or ""),
                n_accelerators=n * milli / 1000.0 if n == 1 else n,
                state=str(row["pod_phase"]).lower(),
                submit_s=_number(row["creation_time"]),
                begin_s=_number(row.get("scheduled_time")),
                end_s=_number(row["deletion_time"]),
            )
        )


def is_quotas(columns: Sequence[str]) -> bool:
    """Whether this gives accelerators of each team by the day."""
    return columns[:1] == ["date"] and columns[-1:] == ["total"] and columns[1].startswith("vc")


def take_quotas(collector: Collector, rows: Iterable[Row]) -> None:
    """Accelerators that belong to each team, day by day."""
    for row in rows:
        at_s = seconds(f"{row['date']} 00:00:00", collector)
        for name, cell in row.items():
            value = _number(cell)
            if name in ("date", "total") or at_s is None or value is None:
                continue
            subject = collector.subject(Subject(team=str(name)))
            collector.sample(subject, Word("total_count"), at_s, value)


def _number(cell: object) -> float | None:
    try:
        return float(str(cell))
    except ValueError:
        return None
