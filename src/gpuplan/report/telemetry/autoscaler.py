"""Manifests of autoscalers that follow gpuplan's own metrics, not GPU utilization.

Reserved and idle GPUs as patches that a person may apply: annotations on pods, never a kill.
"""

from typing import Any

import yaml

from gpuplan.domain.telemetry.diagnosis import Diagnosis, Reclaim
from gpuplan.errors import InputError, one
from gpuplan.units import GB, HOUR

HEAD = """# Pods that hold accelerators and do nothing with them. Nothing here stops a pod.
# Look, ask the owner, then try:
#   kubectl patch pod NAME -n NAMESPACE --dry-run=server --patch-file FILE
"""


QUERY = "max(gpuplan_recommended_replicas)"


def autoscaler_manifest(kind: str, *, target: str, server: str) -> str:
    """A KEDA ScaledObject or a HorizontalPodAutoscaler, as YAML."""
    if kind not in ("keda", "hpa"):
        raise one(InputError, "watch", "--manifest", f"got {kind!r}", "use keda or hpa")
    document = _keda(target, server) if kind == "keda" else _hpa(target)
    return yaml.safe_dump(document, sort_keys=False)


def _keda(target: str, server: str) -> dict[str, Any]:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": f"{target}-gpuplan"},
        "spec": {
            "scaleTargetRef": {"name": target},
            "minReplicaCount": 1,
            "maxReplicaCount": 64,
            "pollingInterval": 60,
            # A model takes minutes to load: do not take back what was just started.
            "cooldownPeriod": 900,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behavior()}},
            "triggers": [
                {
                    "type": "prometheus",
                    "metadata": {
                        "serverAddress": server,
                        "query": QUERY,
                        # One unit of the metric for each replica: the metric is the number itself.
                        "threshold": "1",
                        "ignoreNullValues": "false",
                    },
                }
            ],
        },
    }


def _hpa(target: str) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"{target}-gpuplan"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": 1,
            "maxReplicas": 64,
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "gpuplan_recommended_replicas"},
                        "target": {"type": "AverageValue", "averageValue": "1"},
                    },
                }
            ],
            "behavior": _behavior(),
        },
    }


def _behavior() -> dict[str, Any]:
    return {
        "scaleUp": {"stabilizationWindowSeconds": 0},
        "scaleDown": {
            "stabilizationWindowSeconds": 900,
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}],
        },
    }


def reclaim_patches(found: Diagnosis) -> str:
    """One document for each pod: what to mark it with, and the command that only tries it."""
    pods: dict[tuple[str, str], list[Reclaim]] = {}
    for each in found.reclaims:
        pods.setdefault((each.team, each.job), []).append(each)
    documents = [_patch(retained) for (_, job), retained in pods.items() if job]
    rest = [one.subject for one in found.reclaims if not one.job]
    text = HEAD + yaml.safe_dump_all(documents, sort_keys=False) if documents else HEAD
    if rest:
        text += "# allocated to no pod that telemetry names: " + ", ".join(rest[:50]) + "\n"
    return text


def _patch(retained: list[Reclaim]) -> dict[str, Any]:
    """The marks of one pod: every accelerator that it holds and does nothing with."""
    observed = [f"{one.subject} for {(one.end_s - one.begin_s) / HOUR:.1f} h" for one in retained]
    marks = {
        "gpuplan.io/reclaim": "proposed",
        "gpuplan.io/evidence": f"no kernel on {', '.join(observed)}",
        "gpuplan.io/memory-held-gb": f"{sum(one.memory_held_bytes for one in retained) / GB:.1f}",
    }
    prices = [one.usd_per_month for one in retained if one.usd_per_month is not None]
    if prices:
        marks["gpuplan.io/usd-per-month"] = f"{sum(prices):.0f}"
    name, space = retained[0].job, retained[0].team or "default"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space, "annotations": marks},
    }
