"""Manifests of autoscalers that follow gpuplan's own metrics, not GPU utilization."""

from typing import Any

import yaml

from gpuplan.errors import InputError, one

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
