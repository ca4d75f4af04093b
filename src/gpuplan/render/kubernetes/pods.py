"""The pod of one replica: image, command, probes, accelerators, shared memory."""

from math import ceil
from typing import Any

from gpuplan.domain.plan.deployed import DeployedPool, ServedModel
from gpuplan.render.commands.engine import command_of, image_of, kind_of
from gpuplan.render.kubernetes.devices import (
    SHM_BYTES,
    resource_of,
    resources_of,
    selector_of,
    tolerations_of,
)
from gpuplan.render.text import without_none
from gpuplan.units import GIB

PROBE_S = 10
LIVE_FAILURES = 6
CACHE = "/models"
SIDE_PORT = 5600  # of vLLM's NIXL connector


def labels_of(one: DeployedPool) -> dict[str, str]:
    """Labels that everything of a pool carries."""
    return {
        "app.kubernetes.io/name": one.name,
        "app.kubernetes.io/part-of": "gpuplan",
        "app.kubernetes.io/component": "training" if one.run is not None else "inference",
    }


def served_pod(
    one: DeployedPool, served: ServedModel, *, dra: bool = False, command: list[str] | None = None
) -> dict[str, Any]:
    """The pod specification of a replica, or of the first server of a wide one."""
    port = kind_of(served).port
    container = {
        "name": "engine",
        "image": image_of(one, served),
        "command": command or command_of(one.shape, served),
        "ports": [{"name": "http", "containerPort": port}, *_side_ports(one)],
        "env": [*_environment(), *side_channel(one)],
        "startupProbe": _probe(port, _startup_failures(served)),
        "readinessProbe": _probe(port, 3),
        "livenessProbe": _probe(port, LIVE_FAILURES),
        "resources": _resources(one, dra=dra),
        "volumeMounts": _mounts(),
    }
    return pod(one, container, dra=dra)


def pod(one: DeployedPool, container: dict[str, Any], *, dra: bool = False) -> dict[str, Any]:
    """A pod of the pool around one container."""
    claims = [{"name": "accelerators", "resourceClaimTemplateName": one.name}]
    return without_none(
        {
            "terminationGracePeriodSeconds": 120,
            "nodeSelector": selector_of(one) or None,
            "tolerations": tolerations_of(one) or None,
            "resourceClaims": claims if dra else None,
            "containers": [without_none(container)],
            "volumes": [
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _shm(one)}},
                {"name": "models", "emptyDir": {}},
            ],
        }
    )


def _environment() -> list[dict[str, Any]]:
    token = {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}
    return [{"name": "HF_HOME", "value": CACHE}, {"name": "HF_TOKEN", "valueFrom": token}]


def side_channel(one: DeployedPool) -> list[dict[str, Any]]:
    """Where the engines of the other role ask for KV caches; nothing without roles."""
    if not one.pool.layout.role:
        return []
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [
        {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": address},
        {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": str(SIDE_PORT)},
    ]


def _side_ports(one: DeployedPool) -> list[dict[str, Any]]:
    return [{"name": "kv-transfer", "containerPort": SIDE_PORT}] if one.pool.layout.role else []


def _mounts() -> list[dict[str, str]]:
    return [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "models", "mountPath": CACHE}]


def _shm(one: DeployedPool) -> str:
    return f"{int(SHM_BYTES * one.n_per_pod / GIB)}Gi"


def _resources(one: DeployedPool, *, dra: bool) -> dict[str, Any]:
    found = resources_of(one)
    if not dra:
        return found
    retained = {
        kind: {name: value for name, value in amounts.items() if name != resource_of(one)}
        for kind, amounts in found.items()
    }
    return {**retained, "claims": [{"name": "accelerators"}]}


def _startup_failures(served: ServedModel) -> int:
    """Twice the longest start that is predicted: a download may come before it."""
    return max(LIVE_FAILURES, ceil(2 * served.startup_s / PROBE_S))


def _probe(port: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": "/health", "port": port},
        "periodSeconds": PROBE_S,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
