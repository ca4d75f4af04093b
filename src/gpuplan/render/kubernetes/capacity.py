"""Queues, quotas and nodes: Kueue, KEDA, Karpenter, KServe."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.plan.deployed import Deployed, DeployedPool, RenderedFile, ServedModel
from gpuplan.domain.scenario.terms import Team
from gpuplan.render.commands.engine import kind_of, precision_notes, role_notes
from gpuplan.render.kubernetes.devices import INSTANCE, resource_of, selector_of
from gpuplan.render.kubernetes.pods import labels_of, served_pod
from gpuplan.render.kubernetes.serving import running_target
from gpuplan.render.reasons import head, reasons
from gpuplan.render.text import kube_name, yaml_file, yaml_text

KUEUE = "kueue.x-k8s.io/v1beta1"


def kueue_files(deployed: Deployed) -> Iterator[RenderedFile]:
    """A flavour for each kind of accelerator; a queue with its quota for each team or pool."""
    cards = [one for one in deployed.pools if not one.card.is_cpu]
    if not cards:
        return
    flavors = {one.pool.accelerator: one for one in cards}
    documents = [yaml_text(_flavor(one), head(deployed)) for one in flavors.values()]
    teams = {team.name: team for team in deployed.with_quota}
    documents += [yaml_text(_team_queue(deployed, team, flavors)) for team in teams.values()]
    for one in cards:
        if one.team not in teams:
            documents += [yaml_text(_cluster_queue(deployed, one), reasons(one))]
        queue = kube_name(one.team) if one.team in teams else one.name
        documents += [yaml_text(_local_queue(one, queue))]
    yield yaml_file("kueue.yaml", *documents)


def _team_queue(deployed: Deployed, team: Team, flavors: dict[str, DeployedPool]) -> dict[str, Any]:
    """The queue of a team: its quota, first of what its own pools run on, lent while idle."""
    mine = [one for one in deployed.pools if one.team == team.name]
    left, quotas = team.n_accelerators_quota or 0, []
    used = {
        name: sum(p.pool.n_accelerators for p in mine if p.pool.accelerator == name)
        for name in flavors
    }
    order = sorted(flavors, key=lambda name: -used[name])
    for place, name in enumerate(order):
        amount = left if place == len(order) - 1 else min(left, used[name] or left)
        left -= amount
        resource: dict[str, Any] = {"name": resource_of(flavors[name]), "nominalQuota": amount}
        quotas.append({"name": name, "resources": [resource]})
    covered = list(dict.fromkeys(resource_of(flavors[name]) for name in order))
    spec = _queue_spec(deployed, covered, quotas)
    if team.share_ratio != 1.0:
        spec["fairSharing"] = {"weight": f"{team.share_ratio:g}"}
    return {**_queue_head(kube_name(team.name)), "spec": spec}


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
    return {**_queue_head(one.name), "spec": _queue_spec(deployed, [resource], [flavor])}


def _queue_head(name: str) -> dict[str, Any]:
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}}


def _queue_spec(
    deployed: Deployed, covered: list[str], flavors: list[dict[str, Any]]
) -> dict[str, Any]:
    """All queues are one cohort: what one leaves idle others borrow until it is reclaimed."""
    return {
        "cohort": deployed.name,
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
    }


def _local_queue(one: DeployedPool, queue: str) -> dict[str, Any]:
    return {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": one.name, "namespace": "default"},
        "spec": {"clusterQueue": queue},
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
        notes += role_notes(one)
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
