"""Queues, quotas and nodes: Kueue, KEDA, Karpenter, KServe."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile, ServedModel
from gpuplan.render.commands.engine import kind_of, precision_notes
from gpuplan.render.kubernetes.devices import INSTANCE, resource_of, selector_of
from gpuplan.render.kubernetes.pods import labels_of, served_pod
from gpuplan.render.kubernetes.serving import running_target
from gpuplan.render.reasons import head, reasons
from gpuplan.render.text import yaml_file, yaml_text

KUEUE = "kueue.x-k8s.io/v1beta1"


def kueue_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """A flavour for each kind of accelerator, a queue with its quota for each pool."""
    cards = [one for one in deployed.pools if not one.card.is_cpu]
    if not cards:
        return
    flavors = {one.pool.accelerator: one for one in cards}
    documents = [yaml_text(_flavor(one), head(deployed)) for one in flavors.values()]
    for one in cards:
        documents += [yaml_text(_cluster_queue(deployed, one), reasons(one))]
        documents += [yaml_text(_local_queue(one))]
    yield yaml_file("kueue.yaml", *documents)


def _flavor(one: DeployedPool) -> dict[str, Any]:
    labels = selector_of(one)
    spec = {"nodeLabels": labels} if labels else {}
    return {
        "apiVersion": KUEUE,
        "kind": "ResourceFlavor",
        "metadata": {"name": one.pool.accelerator},
        "spec": spec,
    }


def _cluster_queue(deployed: Deployed, one: DeployedPool) -> dict[str, Any]:
    resource = resource_of(one)
    amount = one.pool.n_replicas if one.pool.layout.share else one.pool.n_accelerators
    quota = {"name": resource, "nominalQuota": amount}
    flavor = {"name": one.pool.accelerator, "resources": [quota]}
    return {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": one.name},
        "spec": {
            "cohort": deployed.name,
            "namespaceSelector": {},
            "preemption": {
                "reclaimWithinCohort": "Any",
                "withinClusterQueue": "LowerPriority",
            },
            "resourceGroups": [{"coveredResources": [resource], "flavors": [flavor]}],
        },
    }


def _local_queue(one: DeployedPool) -> dict[str, Any]:
    return {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": one.name, "namespace": "default"},
        "spec": {"clusterQueue": one.name},
    }


def keda_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """Scaling by requests in flight, between the plan's bounds."""
    for one in deployed.pools:
        served = one.served
        if served is None or not kind_of(served).running:
            continue
        notes = [*head(deployed), *reasons(one)]
        yield yaml_file(f"keda-{one.name}.yaml", yaml_text(_scaled(one, served), notes))


def _scaled(one: DeployedPool, served: ServedModel) -> dict[str, Any]:
    kind = kind_of(served)
    match = f'{{app_kubernetes_io_name="{one.name}"}}'
    query = f"sum({kind.running}{match}) + sum({kind.waiting}{match})"
    trigger = {
        "type": "prometheus",
        "metadata": {
            "serverAddress": "http://prometheus-server.monitoring.svc:9090",
            "query": query,
            "threshold": str(running_target(served)),
        },
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": one.name, "labels": labels_of(one)},
        "spec": {
            "scaleTargetRef": {"name": one.name},
            "minReplicaCount": one.n_replicas_least,
            "maxReplicaCount": one.pool.n_replicas,
            "cooldownPeriod": 600,
            "triggers": [trigger],
        },
    }


def karpenter_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """A node pool for each rented machine of a cloud whose nodes Karpenter starts."""
    documents = [
        yaml_text(_node_pool(one), [*head(deployed), *reasons(one)])
        for one in deployed.pools
        if one.node.cloud in ("aws", "azure")
    ]
    if documents:
        yield yaml_file("karpenter.yaml", *documents)


def _node_pool(one: DeployedPool) -> dict[str, Any]:
    is_aws = one.node.cloud == "aws"
    group, kind = (
        ("karpenter.k8s.aws", "EC2NodeClass") if is_aws else ("karpenter.azure.com", "AKSNodeClass")
    )
    bought = "spot" if one.node.is_spot else "on-demand"
    requirements = [
        {"key": INSTANCE, "operator": "In", "values": [one.node.name]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [bought]},
    ]
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": one.name},
        "spec": {
            "template": {
                "spec": {
                    "requirements": requirements,
                    "taints": [taint],
                    "nodeClassRef": {"group": group, "kind": kind, "name": "default"},
                    "expireAfter": "Never",
                }
            },
            "limits": {resource_of(one): one.node.n_nodes * one.node.n_accelerators},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m"},
        },
    }


def kserve_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """An InferenceService for each served pool whose replica is one server."""
    for one in deployed.pools:
        if one.served is None or one.pool.layout.n_servers_per_replica > 1:
            continue
        notes = [*head(deployed), *reasons(one), *precision_notes(one, one.served)]
        document = yaml_text(_inference_service(one, one.served), notes)
        yield yaml_file(f"kserve-{one.name}.yaml", document)


def _inference_service(one: DeployedPool, served: ServedModel) -> dict[str, Any]:
    spec = served_pod(one, served)
    predictor = {
        "minReplicas": one.n_replicas_least,
        "maxReplicas": one.pool.n_replicas,
        "scaleMetric": "concurrency",
        "scaleTarget": running_target(served),
        **{key: value for key, value in spec.items() if key != "terminationGracePeriodSeconds"},
    }
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": one.name,
            "labels": labels_of(one),
            "annotations": {"serving.kserve.io/deploymentMode": "RawDeployment"},
        },
        "spec": {"predictor": predictor},
    }
