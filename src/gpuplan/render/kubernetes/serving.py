"""Served pools: Deployment or LeaderWorkerSet, Service, disruption budget, autoscaling.

Training runs: a JobSet with one pod a server, the pods find each other by name.
"""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile, ServedModel
from gpuplan.render.commands.engine import command_of, kind_of, precision_notes, role_notes
from gpuplan.render.commands.training import Rendezvous, n_nodes, notes_of, run_command
from gpuplan.render.kubernetes.devices import resources_of, share_notes
from gpuplan.render.kubernetes.pods import labels_of, pod, served_pod
from gpuplan.render.reasons import head, reasons
from gpuplan.render.text import yaml_file, yaml_text

PORT = 29500
IMAGE = "nvcr.io/nvidia/pytorch:25.10-py3"


RAY_PORT = 6379
LEADER = "$(LWS_LEADER_ADDRESS)"


def kubernetes_files(deployed: Deployed, *, dra: bool = False) -> Iterator[RenderedFile]:
    """A file for each pool that is a model behind an engine, or a run."""
    for one in deployed.pools:
        notes = [*head(deployed), *reasons(one), *share_notes(one)]
        if one.served is not None:
            notes += [*precision_notes(one, one.served), *role_notes(one)]
            documents = served_documents(one, one.served, notes, dra=dra)
            yield yaml_file(f"{one.name}.yaml", *documents)
        elif one.run is not None:
            yield yaml_file(f"{one.name}.yaml", *run_documents(one, notes))


def served_documents(
    one: DeployedPool, served: ServedModel, notes: list[str], *, dra: bool
) -> Iterator[str]:
    """Workload, service, budget and, where the engine tells its load, the autoscaler."""
    is_wide = one.pool.layout.n_servers_per_replica > 1
    workload = _leader_worker(one, served) if is_wide else _deployment(one, served, dra=dra)
    if dra:
        yield yaml_text(_claim(one), notes)
    yield yaml_text(workload, [] if dra else notes)
    yield yaml_text(_service(one, served))
    yield yaml_text(_budget(one), [f"{_needed(one)} replicas carry the peak."])
    # Both roles of a disaggregated fleet move together: that is their router's work.
    is_alone = not is_wide and not one.pool.layout.role
    if is_alone and one.n_replicas_least < one.pool.n_replicas and kind_of(served).running:
        yield yaml_text(_autoscaler(one, served), _scaling_notes(one, served))


def _meta(one: DeployedPool) -> dict[str, Any]:
    return {"name": one.name, "labels": labels_of(one)}


def _match(one: DeployedPool) -> dict[str, Any]:
    return {"matchLabels": {"app.kubernetes.io/name": one.name}}


def _needed(one: DeployedPool) -> int:
    return max(1, one.pool.n_replicas - one.pool.n_spare_replicas)


def _deployment(one: DeployedPool, served: ServedModel, *, dra: bool) -> dict[str, Any]:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": _match(one),
    }
    template = {**served_pod(one, served, dra=dra), "topologySpreadConstraints": [spread]}
    # Accelerators for a surge are not paid for: a roll-out replaces one replica after the other.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(one),
        "spec": {
            "replicas": one.pool.n_replicas,
            "selector": _match(one),
            "strategy": strategy,
            "template": {"metadata": {"labels": labels_of(one)}, "spec": template},
        },
    }


def _leader_worker(one: DeployedPool, served: ServedModel) -> dict[str, Any]:
    """A replica over several servers: the first one leads, the others join it."""
    lead, join = _wide_commands(one, served)
    labelled = {"metadata": {"labels": labels_of(one)}}
    leader = {**labelled, "spec": served_pod(one, served, command=lead)}
    follower = served_pod(one, served, command=join)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        follower["containers"][0].pop(probe)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _meta(one),
        "spec": {
            "replicas": one.pool.n_replicas,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": one.pool.layout.n_servers_per_replica,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": leader,
                "workerTemplate": {**labelled, "spec": follower},
            },
        },
    }


def _wide_commands(one: DeployedPool, served: ServedModel) -> tuple[list[str], list[str]]:
    words = command_of(one.shape, served)
    n = one.pool.layout.n_servers_per_replica
    if served.engine.name == "sglang":
        both = [*words, "--nnodes", str(n), "--node-rank", "$(LWS_WORKER_INDEX)"]
        both += ["--dist-init-addr", f"{LEADER}:20000"]
        return both, both
    if one.pool.layout.dp > 1:
        return _data_parallel(one, words)
    lead = f"ray start --head --port={RAY_PORT} && exec "
    joined = " ".join([*words, "--distributed-executor-backend", "ray"])
    # A worker that gives up before the leader is there would have the whole group made anew.
    wait = f"until ray health-check --address {LEADER}:{RAY_PORT}; do sleep 5; done; "
    join = f"exec ray start --address={LEADER}:{RAY_PORT} --block"
    return ["bash", "-c", lead + joined], ["bash", "-c", wait + join]


def _data_parallel(one: DeployedPool, words: list[str]) -> tuple[list[str], list[str]]:
    """vLLM's ranks of data parallelism over servers: each starts its own, the first one answers."""
    local = one.pool.layout.dp // one.pool.layout.n_servers_per_replica
    address = ["--data-parallel-address", LEADER, "--data-parallel-rpc-port", "13345"]
    both = [*words, "--data-parallel-size-local", str(local), *address]
    start = f"$(( LWS_WORKER_INDEX * {local} ))"
    joined = " ".join([*both, "--headless", "--data-parallel-start-rank", start])
    joined = joined.replace(LEADER, "$LWS_LEADER_ADDRESS")
    return both, ["bash", "-c", f"exec {joined}"]


def _service(one: DeployedPool, served: ServedModel) -> dict[str, Any]:
    selector = {"app.kubernetes.io/name": one.name}
    if one.pool.layout.n_servers_per_replica > 1:
        selector["leaderworkerset.sigs.k8s.io/worker-index"] = "0"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(one),
        "spec": {
            "selector": selector,
            "ports": [{"name": "http", "port": 80, "targetPort": kind_of(served).port}],
        },
    }


def _budget(one: DeployedPool) -> dict[str, Any]:
    needed = _needed(one) * one.pool.layout.n_servers_per_replica
    total = one.pool.n_replicas * one.pool.layout.n_servers_per_replica
    # A budget that allows nothing would block every drain of a node for ever.
    bound = {"minAvailable": needed} if needed < total else {"maxUnavailable": 1}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _meta(one),
        "spec": {**bound, "selector": _match(one)},
    }


def _autoscaler(one: DeployedPool, served: ServedModel) -> dict[str, Any]:
    metric = {
        "type": "Pods",
        "pods": {
            "metric": {"name": kind_of(served).running.replace(":", "_")},
            "target": {"type": "AverageValue", "averageValue": str(running_target(served))},
        },
    }
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _meta(one),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": one.name},
            "minReplicas": one.n_replicas_least,
            "maxReplicas": one.pool.n_replicas,
            "metrics": [metric],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}},
        },
    }


def running_target(served: ServedModel) -> int:
    """Requests in flight on one replica at the planned peak."""
    return max(1, round(served.n_running or 1))


def _scaling_notes(one: DeployedPool, served: ServedModel) -> list[str]:
    return [
        f"{one.n_replicas_least} replicas carry the quietest hour, {one.pool.n_replicas} the peak; "
        f"at the planned peak a replica has {running_target(served)} requests in flight.",
        "Needs prometheus-adapter to publish the engine's metric, with _ in place of the colon.",
    ]


def _claim(one: DeployedPool) -> dict[str, Any]:
    vendor = one.card.vendor.lower()
    device = {"gaudi": "gaudi.intel.com"}.get(one.card.family.lower(), f"gpu.{vendor}.com")
    share = one.pool.layout.share
    is_mig = "g." in share
    exactly: dict[str, Any] = {
        "deviceClassName": "mig.nvidia.com" if is_mig else device,
        "allocationMode": "ExactCount",
        "count": one.n_per_pod,
    }
    if is_mig:
        profile = f"device.attributes['gpu.nvidia.com'].profile == '{share}'"
        exactly["selectors"] = [{"cel": {"expression": profile}}]
    request = {"name": "accelerators", "exactly": exactly}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": _meta(one),
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


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
