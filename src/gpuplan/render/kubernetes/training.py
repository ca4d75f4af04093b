"""Training runs: a JobSet with one pod a server, the pods find each other by name."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.plan.deployed import DeployedPool
from gpuplan.render.commands.training import Rendezvous, n_nodes, notes_of, run_command
from gpuplan.render.kubernetes.devices import resources_of
from gpuplan.render.kubernetes.pods import labels_of, pod
from gpuplan.render.text import yaml_text

PORT = 29500
IMAGE = "nvcr.io/nvidia/pytorch:25.10-py3"


def run_documents(one: DeployedPool, notes: list[str]) -> Iterator[str]:
    """The JobSet of a run."""
    yield yaml_text(_job_set(one), [*notes, *notes_of(one)])


def _job_set(one: DeployedPool) -> dict[str, Any]:
    n = n_nodes(one)
    job = {
        "completionMode": "Indexed",
        "parallelism": n,
        "completions": n,
        "backoffLimit": 0,
        "template": {"metadata": {"labels": labels_of(one)}, "spec": _pod(one)},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": one.name, "labels": labels_of(one)},
        "spec": {
            "network": {"enableDNSHostnames": True},
            # A failed server restarts the whole run from its last checkpoint.
            "failurePolicy": {"maxRestarts": 100},
            "replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": job}}],
        },
    }


def _pod(one: DeployedPool) -> dict[str, Any]:
    at = Rendezvous(rank="$JOB_COMPLETION_INDEX", address=f"{one.name}-node-0-0.{one.name}")
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "models", "mountPath": "/models"}]
    container = {
        "name": "trainer",
        "image": IMAGE,
        "command": ["bash", "-c", run_command(one, at)],
        "ports": [{"containerPort": PORT}],
        "resources": resources_of(one),
        "volumeMounts": mounts,
    }
    return {**pod(one, container), "restartPolicy": "Never"}
