"""A shared cluster's quotas and policy as configuration of Kueue and of Slurm."""

from collections.abc import Iterator
from typing import Any

from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, Quota
from gpuplan.domain.plan.deployed import RenderedFile
from gpuplan.render.kubernetes.devices import PRODUCTS
from gpuplan.render.text import kube_name, text_file, without_none, yaml_file, yaml_text

API = "kueue.x-k8s.io/v1beta1"
RESOURCE = "nvidia.com/gpu"
RECLAIM = {"never": "Never", "lower_priority": "LowerPriority", "any": "Any"}
WITHIN = {
    "never": "Never",
    "lower_priority": "LowerPriority",
    "lower_or_newer_equal": "LowerOrNewerEqualPriority",
}
STRATEGY = {"strict": "StrictFIFO"}  # every other blocking lets others pass


def cluster_files(cluster: Cluster) -> Iterator[RenderedFile]:
    """kueue.yaml for Kubernetes; accounts and slurm.conf lines for Slurm."""
    documents = [yaml_text(_flavor(name)) for name in cluster.accelerators]
    for team in cluster.teams:
        documents += [yaml_text(_queue(cluster, team)), yaml_text(_local(team))]
    yield yaml_file("kueue.yaml", *documents)
    yield text_file("slurm-accounts.sh", _accounts(cluster))
    yield text_file("slurm.conf.part", _slurm(cluster))


def _flavor(accelerator: str) -> dict[str, Any]:
    product = PRODUCTS.get(kube_name(accelerator), accelerator)
    return {
        "apiVersion": API,
        "kind": "ResourceFlavor",
        "metadata": {"name": kube_name(accelerator)},
        "spec": {"nodeLabels": {"nvidia.com/gpu.product": product}},
    }


def _amount(n: float | None) -> int | None:
    return None if n is None else int(n)


def _quota(accelerator: str, quota: Quota | None, n_all: int) -> dict[str, Any]:
    """Nominal quota of a GPU type; a team without quotas may have all of it."""
    resource = without_none(
        {
            "name": RESOURCE,
            "nominalQuota": n_all if quota is None else int(quota.n_accelerators),
            "borrowingLimit": None if quota is None else _amount(quota.n_borrow),
            "lendingLimit": None if quota is None else _amount(quota.n_lend),
        }
    )
    return {"name": kube_name(accelerator), "resources": [resource]}


def _queue(cluster: Cluster, team: ClusterTeam) -> dict[str, Any]:
    own = {quota.accelerator: quota for quota in team.quotas}
    names = [name for name in cluster.accelerators if name in own or not own]
    totals = dict.fromkeys(names, 0)
    for group in cluster.groups:
        if group.accelerator in totals:
            totals[group.accelerator] += group.n_accelerators
    policy = cluster.policy
    preemption = {
        "reclaimWithinCohort": RECLAIM[policy.reclaim] if policy.preempts else "Never",
        "withinClusterQueue": WITHIN[policy.within] if policy.preempts else "Never",
    }
    flavors = [_quota(name, own.get(name), totals[name]) for name in names]
    spec = {
        "namespaceSelector": {},
        "cohort": None if team.cohort is None else kube_name(team.cohort),
        "queueingStrategy": STRATEGY.get(policy.blocking, "BestEffortFIFO"),
        "preemption": preemption,
        "resourceGroups": [{"coveredResources": [RESOURCE], "flavors": flavors}],
    }
    head = {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": kube_name(team.name)}}
    return {**head, "spec": without_none(spec)}


def _local(team: ClusterTeam) -> dict[str, Any]:
    name = kube_name(team.name)
    return {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": name},
        "spec": {"clusterQueue": name},
    }


def _accounts(cluster: Cluster) -> str:
    """Accounts with their limits and shares; Slurm has hard limits and no borrowing."""
    lines = ["#!/usr/bin/env bash", "set -eu"]
    if any(team.cohort for team in cluster.teams):
        lines.append(
            "# Slurm's limits do not lend: teams of a cohort are limited to quota + borrow."
        )
    for team in cluster.teams:
        limits = ",".join(
            f"gres/gpu:{kube_name(q.accelerator)}={int(q.n_accelerators + _lent(cluster, team, q))}"
            for q in team.quotas
        )
        limit = f" GrpTRES={limits}" if limits else ""
        share = f"Fairshare={max(1, round(team.share_ratio * 100))}"
        lines.append(f"sacctmgr -i add account {kube_name(team.name)} {share}{limit}")
    return "\n".join(lines) + "\n"


def _lent(cluster: Cluster, team: ClusterTeam, quota: Quota) -> float:
    """What the team may borrow at most: its limit, or all that its cohort lends."""
    if team.cohort is None:
        return 0.0
    others = sum(
        one.n_accelerators if one.n_lend is None else min(one.n_lend, one.n_accelerators)
        for other in cluster.teams
        if other.cohort == team.cohort and other.name != team.name
        for one in other.quotas
        if one.accelerator == quota.accelerator
    )
    return others if quota.n_borrow is None else min(quota.n_borrow, others)


def _slurm(cluster: Cluster) -> str:
    policy = cluster.policy
    is_backfill = policy.blocking in ("easy", "conservative", "skip")
    half_life = f"{round(policy.half_life_s / 86400)}-0" if policy.order == "fair" else "0"
    lines = [
        f"SchedulerType=sched/{'backfill' if is_backfill else 'builtin'}",
        f"SchedulerParameters=bf_max_job_test={policy.depth}",
        "PriorityType=priority/multifactor",
        f"PriorityDecayHalfLife={half_life}",
        f"PriorityWeightFairshare={100_000 if policy.order in ('fair', 'drf') else 0}",
        f"PriorityWeightAge={1000 if policy.order == 'fifo' else 100}",
        f"PreemptType=preempt/{'partition_prio' if policy.preempts else 'none'}",
        f"PreemptMode={'REQUEUE' if policy.preempts else 'OFF'}",
        "AccountingStorageEnforce=limits",
        "SelectType=select/cons_tres",
    ]
    return "\n".join(lines) + "\n"
