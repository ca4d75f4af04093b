"""A cluster as the file that describes it: `gpuplan simulate` and `gpuplan plan` read it again."""

from typing import Any

import yaml

from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, NodeGroup, Quota
from gpuplan.units import GIB, HOUR, MINUTE

HEAD = "# Written by gpuplan plan. Next: gpuplan simulate THIS --jobs TRACE --render-to FOLDER\n"


def cluster_text(cluster: Cluster) -> str:
    """cluster.yaml of a cluster; what stands at its default is left out."""
    tree = {
        "version": 1,
        "name": cluster.name,
        "nodes": [_group(group) for group in cluster.groups],
        "teams": [_team(team) for team in cluster.teams],
        "policy": _policy(cluster),
        "services": [
            {
                "name": one.name,
                "team": one.team,
                "accelerator": one.accelerator,
                "accelerators_per_replica": one.n_accelerators_per_replica,
                "replicas_by_hour": list(one.replicas_by_hour),
            }
            for one in cluster.services
        ],
        "jobs": _given(
            checkpoint_min=cluster.defaults.checkpoint_s / MINUTE,
            restart_min=cluster.defaults.restart_s / MINUTE,
            limit_ratio=cluster.defaults.limit_ratio,
        ),
        **_disturbances(cluster),
    }
    retained = {key: value for key, value in tree.items() if value or key in ("version", "name")}
    return HEAD + yaml.safe_dump(retained, sort_keys=False, allow_unicode=True, width=120)


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _group(group: NodeGroup) -> dict[str, Any]:
    return _given(
        accelerator=group.accelerator,
        nodes=group.n_nodes,
        accelerators_per_node=group.n_accelerators_per_node,
        cpus=group.n_cpus,
        ram_gib=None if group.ram_bytes is None else group.ram_bytes / GIB,
        nodes_per_rack=group.n_nodes_per_rack,
        racks_per_zone=group.n_racks_per_zone,
        usd_per_accelerator_h=group.usd_per_accelerator_h,
        speed_ratio=group.speed_ratio,
        min_nodes=group.bounds.n_min or None,
        max_nodes=group.bounds.n_max,
    )


def _team(team: ClusterTeam) -> dict[str, Any]:
    return _given(
        name=team.name,
        cohort=team.cohort,
        share=None if team.share_ratio == 1 else team.share_ratio,
        wait_p90_min=None if team.wait_p90_s is None else team.wait_p90_s / MINUTE,
        quotas=[_quota(quota) for quota in team.quotas] or None,
    )


def _quota(quota: Quota) -> dict[str, Any]:
    return _given(
        accelerator=quota.accelerator,
        accelerators=quota.n_accelerators,
        borrow=quota.n_borrow,
        lend=quota.n_lend,
    )


def _policy(cluster: Cluster) -> dict[str, Any]:
    policy = cluster.policy
    names = ("order", "blocking", "placement", "preempts", "saves_on_preemption", "depth")
    own = {name: getattr(policy, name) for name in (*names, "reclaim", "within")}
    return {**own, "half_life_h": policy.half_life_s / HOUR}


def _disturbances(cluster: Cluster) -> dict[str, Any]:
    failures, burst = cluster.failures, cluster.burst
    return {
        "failures": failures
        and {"mtbf_h": failures.mtbf_s / HOUR, "mttr_h": failures.mttr_s / HOUR},
        "burst": burst
        and _given(
            above_queued_accelerators=burst.above_queued_accelerators,
            accelerators=burst.n_accelerators,
            start_min=burst.start_s / MINUTE,
            speed_ratio=burst.speed_ratio,
            usd_per_accelerator_h=burst.usd_per_accelerator_h,
        ),
        "maintenance": [
            {
                "start_h": one.start_s / HOUR,
                "duration_h": one.duration_s / HOUR,
                "first_node": one.first_node,
                "nodes": one.n_nodes,
            }
            for one in cluster.maintenance
        ],
    }
