"""Who holds which accelerators: lists of Slurm and Kubernetes."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpuplan.domain.telemetry.observation import Allocation, Subject
from gpuplan.observe.clock import seconds
from gpuplan.observe.collect import Collector
from gpuplan.observe.names import Word

_GPUS = re.compile(r"gres/gpu(?::[\w.-]+)?[=:](\d+)")
_GRES = re.compile(r"gpu(?::[\w.-]+)?:(\d+)")
_SACCT_NEEDS = {"JobID", "State"}
_K8S_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "google.com/tpu")
_STATES = {"R": "running", "PD": "pending", "CD": "completed", "F": "failed", "CA": "cancelled"}


def is_sacct(header: str) -> bool:
    """Whether a line is the heading of `sacct --parsable2`."""
    return set(header.strip().split("|")) >= _SACCT_NEEDS


def take_sacct(collector: Collector, lines: Iterable[str]) -> None:
    """Jobs of Slurm's accounting; steps of a job are parts of it and are not counted again."""
    rows = iter(lines)
    columns = next(rows).strip().split("|")
    n_steps = 0
    for number, line in enumerate(rows, start=2):
        cells = line.rstrip("\n").split("|")
        if len(cells) < len(columns):
            collector.quirk("a torn or empty row", f"line {number}", "excluded")
            continue
        row = dict(zip(columns, cells, strict=False))
        if "." in row["JobID"]:
            n_steps += 1
            continue
        collector.allocation(_sacct_job(collector, row))
    if n_steps:
        collector.quirk("steps of a job", "", "part of their job", n_cases=n_steps)


def _sacct_job(collector: Collector, row: Mapping[str, str]) -> Allocation:
    tres = row.get("AllocTRES") or row.get("ReqTRES") or row.get("AllocGRES") or ""
    return Allocation(
        job=row["JobID"],
        team=row.get("Account", ""),
        n_accelerators=n_gpus(tres),
        state=row["State"].split(" ")[0].lower(),
        submit_s=seconds(row.get("Submit", ""), collector),
        begin_s=seconds(row.get("Start", ""), collector),
        end_s=seconds(row.get("End", ""), collector),
        nodes=tuple(node for node in (row.get("NodeList", ""),) if node),
    )


def n_gpus(text: str) -> float:
    """Accelerators that a list of resources names."""
    found = _GPUS.findall(text) or _GRES.findall(text)
    return max(map(float, found), default=0.0)


def is_sinfo(line: str) -> bool:
    """Whether a line lists a node with its accelerators, and how many are in use."""
    return line.count("|") >= 5 and len(_GRES.findall(line)) >= 2


def take_sinfo(collector: Collector, lines: Iterable[str]) -> None:
    """Accelerators of each node, and those in use."""
    for line in lines:
        cells = [cell.strip() for cell in line.split("|")]
        gpus = [cell for cell in cells if cell.startswith("gpu:")]
        if len(gpus) < 2:
            continue
        total, used = (sum(map(float, _GRES.findall(cell))) for cell in gpus[:2])
        name = (
            cells[0]
            if cells[0] and not cells[0].endswith("*") and cells[1].startswith("gpu")
            else cells[2]
        )
        subject = collector.subject(Subject(node=name))
        collector.sample(subject, Word("total_count"), 0.0, float(total))
        collector.sample(subject, Word("allocated_count"), 0.0, float(used))


def is_squeue(line: str) -> bool:
    """Whether a line is a job in Slurm's queue."""
    cells = line.strip().split("|")
    return len(cells) >= 8 and any(cell in ("RUNNING", "PENDING") for cell in cells)


def take_squeue(collector: Collector, lines: Iterable[str]) -> None:
    """Jobs that run or wait, with what they ask for."""
    for line in lines:
        cells = line.strip().split("|")
        state = next((cell for cell in cells if cell in ("RUNNING", "PENDING")), "")
        if not state:
            collector.quirk("a torn or empty row", line[:40], "excluded")
            continue
        collector.allocation(
            Allocation(
                job=cells[0],
                team=cells[1],
                n_accelerators=n_gpus(line),
                state=state.lower(),
            )
        )


def is_kubernetes(document: object) -> bool:
    """Whether this is what `kubectl get … -o json` prints."""
    return (
        isinstance(document, Mapping)
        and "apiVersion" in document
        and ("items" in document or document.get("kind") in ("Pod", "Node"))
    )


def take_kubernetes(collector: Collector, document: Mapping[str, Any]) -> None:
    """Pods as allocations, nodes with what they can hand out; extended resources have limits."""
    for item in document.get("items", [document]):
        kind = item.get("kind") or str(document.get("kind", "")).removesuffix("List")
        if kind == "Pod":
            _take_pod(collector, item)
        elif kind == "Node":
            _take_node(collector, item)
        else:
            collector.quirk("another kind of object", kind, "excluded")


def _take_pod(collector: Collector, pod: Mapping[str, Any]) -> None:
    meta, spec, status = pod["metadata"], pod.get("spec", {}), pod.get("status", {})
    n_gpus = sum(
        _k8s_gpus(c.get("resources", {}).get("limits", {})) for c in spec.get("containers", ())
    )
    if n_gpus == 0:
        collector.quirk("pods without accelerators", meta.get("name", ""), "excluded")
        return
    collector.allocation(
        Allocation(
            job=meta.get("name", ""),
            team=meta.get("namespace", ""),
            n_accelerators=n_gpus,
            state=str(status.get("phase", "unknown")).lower(),
            submit_s=seconds(str(meta.get("creationTimestamp", "")), collector),
            begin_s=seconds(str(status.get("startTime", "")), collector),
            nodes=tuple(node for node in (spec.get("nodeName", ""),) if node),
        )
    )


def _take_node(collector: Collector, node: Mapping[str, Any]) -> None:
    allocatable = node.get("status", {}).get("allocatable", {})
    labels = node["metadata"].get("labels", {})
    model = labels.get("nvidia.com/gpu.product", "")
    about = Subject(node=node["metadata"].get("name", ""), model=model)
    collector.sample(collector.subject(about), Word("total_count"), 0.0, _k8s_gpus(allocatable))


def _k8s_gpus(resources: Mapping[str, Any]) -> float:
    whole = sum(float(resources.get(name, 0)) for name in _K8S_GPUS)
    slices = sum(float(n) for name, n in resources.items() if name.startswith("nvidia.com/mig-"))
    return whole + slices
