"""Kubernetes lists as rows of jobs: pods, gathered into gangs, and Kueue Workloads."""

from collections.abc import Iterator
from typing import Any

GPU_KEYS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "google.com/tpu")
MIG = "nvidia.com/mig-"
GANG_LABELS = (
    "kueue.x-k8s.io/pod-group-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "training.kubeflow.org/job-name",
)
PRODUCT = "nvidia.com/gpu.product"
UNITS = {"m": 1e-3, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "k": 1e3, "G": 1e9}
COLUMNS = ("submit", "start", "end", "gpus", "team", "type", "profile", "cpus", "memory_mib")
Row = dict[str, Any]


def kubernetes_rows(document: Any) -> list[Row]:
    """Rows with one name for each thing; ValueError where the document is no list of either."""
    items = document if isinstance(document, list) else document.get("items")
    if not isinstance(items, list):
        raise ValueError("no items in it")
    kinds = {str(item.get("kind", "Pod")) for item in items}
    if not kinds <= {"Pod", "Workload"}:
        raise ValueError(f"items of kind {', '.join(sorted(kinds - {'Pod', 'Workload'}))}")
    rows = [*_gangs([i for i in items if i.get("kind", "Pod") == "Pod"])]
    rows += [_workload(item) for item in items if item.get("kind") == "Workload"]
    if not rows:
        raise ValueError("no pods or Workloads in it")
    return [{**dict.fromkeys((*COLUMNS, "priority", "state")), **row} for row in rows]


def _amount(text: Any) -> float:
    """A quantity as Kubernetes writes it: 500m, 64Gi, 8."""
    value = str(text)
    for unit, factor in sorted(UNITS.items(), key=lambda pair: -len(pair[0])):
        if value.endswith(unit):
            return float(value.removesuffix(unit)) * factor
    return float(value)


def _resources(spec: Row) -> Row:
    """What the containers of one pod ask for, together."""
    total: Row = {"gpus": 0.0, "cpus": 0.0, "memory_mib": 0.0, "profile": None}
    for container in spec.get("containers", ()):
        resources = container.get("resources", {})
        requested = {**resources.get("limits", {}), **resources.get("requests", {})}
        for key, amount in requested.items():
            if key in GPU_KEYS:
                total["gpus"] += _amount(amount)
            elif key.startswith(MIG):
                total["gpus"] += _amount(amount)
                total["profile"] = key.removeprefix(MIG)
        total["cpus"] += _amount(requested.get("cpu", 0))
        total["memory_mib"] += _amount(requested.get("memory", 0)) / 2**20
    total["type"] = spec.get("nodeSelector", {}).get(PRODUCT)
    return total


def _pod_end(status: Row) -> str | None:
    ends = [
        one.get("state", {}).get("terminated", {}).get("finishedAt")
        for one in status.get("containerStatuses", ())
    ]
    return max(ends) if ends and all(ends) else None


def _pod(item: Row) -> Row:
    meta, spec, status = item["metadata"], item["spec"], item.get("status", {})
    return {
        **_resources(spec),
        "submit": meta["creationTimestamp"],
        "start": status.get("startTime"),
        "end": _pod_end(status),
        "team": meta.get("labels", {}).get("kueue.x-k8s.io/queue-name", meta.get("namespace")),
        "priority": spec.get("priority"),
        "state": status.get("phase"),
    }


def _gangs(pods: list[Row]) -> Iterator[Row]:
    """Pods of one job are one gang: it starts with its last pod, and ends with it."""
    groups: dict[Any, list[Row]] = {}
    for number, item in enumerate(pods):
        labels = item["metadata"].get("labels", {})
        name = next((labels[key] for key in GANG_LABELS if key in labels), number)
        groups.setdefault((item["metadata"].get("namespace"), name), []).append(_pod(item))
    for rows in groups.values():
        starts, ends = ([row[key] for row in rows] for key in ("start", "end"))
        yield {
            **rows[0],
            **{key: sum(row[key] for row in rows) for key in ("gpus", "cpus", "memory_mib")},
            "submit": min(row["submit"] for row in rows),
            "start": max(starts) if all(starts) else None,
            "end": max(ends) if all(ends) else None,
        }


def _workload(item: Row) -> Row:
    """A Workload: all its pod sets, from its creation to its admission and its end."""
    meta, spec = item["metadata"], item["spec"]
    sets = [(_resources(s["template"]["spec"]), int(s.get("count", 1))) for s in spec["podSets"]]
    when = {
        one["type"]: one["lastTransitionTime"]
        for one in item.get("status", {}).get("conditions", ())
        if one.get("status") == "True"
    }
    return {
        **sets[0][0],
        **{key: sum(s[key] * n for s, n in sets) for key in ("gpus", "cpus", "memory_mib")},
        "submit": meta["creationTimestamp"],
        "start": when.get("Admitted", when.get("QuotaReserved")),
        "end": when.get("Finished"),
        "team": spec.get("queueName"),
        "priority": spec.get("priority"),
        "state": next(iter(reversed(when)), None),
    }
