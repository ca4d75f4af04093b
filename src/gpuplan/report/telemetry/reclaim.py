"""Reserved and idle GPUs as patches that a person may apply: annotations on pods, never a kill."""

from typing import Any

import yaml

from gpuplan.domain.telemetry.diagnosis import Diagnosis, Reclaim
from gpuplan.units import GB, HOUR

HEAD = """# Pods that hold accelerators and do nothing with them. Nothing here stops a pod.
# Look, ask the owner, then try:
#   kubectl patch pod NAME -n NAMESPACE --dry-run=server --patch-file FILE
"""


def reclaim_patches(found: Diagnosis) -> str:
    """One document for each pod: what to mark it with, and the command that only tries it."""
    documents = [_patch(one) for one in found.reclaims if one.job]
    rest = [one.subject for one in found.reclaims if not one.job]
    text = HEAD + yaml.safe_dump_all(documents, sort_keys=False) if documents else HEAD
    if rest:
        text += "# held by no pod that telemetry names: " + ", ".join(rest[:50]) + "\n"
    return text


def _patch(one: Reclaim) -> dict[str, Any]:
    hours = (one.end_s - one.begin_s) / HOUR
    marks = {
        "gpuplan.io/reclaim": "proposed",
        "gpuplan.io/evidence": f"no kernel on {one.subject} for {hours:.1f} h",
        "gpuplan.io/memory-held-gb": f"{one.memory_held_bytes / GB:.1f}",
    }
    if one.usd_per_month is not None:
        marks["gpuplan.io/usd-per-month"] = f"{one.usd_per_month:.0f}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": one.job, "namespace": one.team or "default", "annotations": marks},
    }
