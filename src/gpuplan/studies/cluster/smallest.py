"""The least nodes with which every team meets its wait target: how many of what, at what cost."""

from dataclasses import replace

from gpuplan.domain.cluster.answer import ClusterSize
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.studies.cluster.waits import team_rows

MOST_TIMES = 8  # the described cluster: beyond it, targets are not met by hardware


def smallest_cluster(cluster: Cluster, jobs: Jobs) -> ClusterSize:
    """First the factor on all groups, then each group alone, the dearest first, by bisection.

    Quotas grow and shrink with the hardware, so that shares among teams stay. Waits fall with
    hardware but for anomalies of packing: the answer meets the targets, and one node less of any
    group does not.
    """
    counts = [group.n_nodes for group in cluster.groups]
    if not any(team.wait_p90_s is not None for team in cluster.teams):
        return ClusterSize(groups=_sized(cluster, counts), is_met=False, has_targets=False)
    tries = [*range(1, 4 * MOST_TIMES + 1)]
    scaled = [[-(-n * k // 4) for n in counts] for k in tries]
    low, high = 0, len(scaled)
    while low < high:
        mid = (low + high) // 2
        if _is_met(cluster, scaled[mid], jobs):
            high = mid
        else:
            low = mid + 1
    if low == len(scaled):
        return ClusterSize(groups=_sized(cluster, scaled[-1]), is_met=False)
    best = _trimmed(cluster, scaled[low], jobs)
    return ClusterSize(groups=_sized(cluster, best), is_met=True)


def _trimmed(cluster: Cluster, counts: list[int], jobs: Jobs) -> list[int]:
    """Fewer nodes of each group for as long as the targets are met."""
    prices = [g.n_accelerators_per_node * (g.usd_per_accelerator_h or 1.0) for g in cluster.groups]
    for g in sorted(range(len(counts)), key=lambda g: -prices[g]):
        while counts[g] > 0:
            fewer = [*counts[:g], counts[g] - 1, *counts[g + 1 :]]
            if not sum(fewer) or not _is_met(cluster, fewer, jobs):
                break
            counts = fewer
    return counts


def resized(cluster: Cluster, counts: list[int]) -> Cluster:
    """The cluster with these nodes; quotas in proportion to the GPUs of their type."""
    groups = tuple(replace(g, n_nodes=n) for g, n in zip(cluster.groups, counts, strict=True))
    ratio = {
        name: sum(g.n_accelerators for g in groups if g.accelerator == name)
        / max(1, sum(g.n_accelerators for g in cluster.groups if g.accelerator == name))
        for name in cluster.accelerators
    }
    teams = tuple(
        replace(
            team,
            quotas=tuple(
                replace(q, n_accelerators=q.n_accelerators * ratio[q.accelerator])
                for q in team.quotas
            ),
        )
        for team in cluster.teams
    )
    return replace(cluster, groups=groups, teams=teams, maintenance=())


def _is_met(cluster: Cluster, counts: list[int], jobs: Jobs) -> bool:
    changed = resized(cluster, counts)
    rows = team_rows(changed.teams, jobs, simulate_cluster(changed, jobs))
    return not any(
        row.target_p90_s is not None and (row.is_violated or row.n_never) for row in rows
    )


def _sized(cluster: Cluster, counts: list[int]) -> tuple[tuple[str, int, int, float], ...]:
    return tuple(
        (
            group.accelerator,
            group.n_nodes,
            n,
            n * group.n_accelerators_per_node * (group.usd_per_accelerator_h or 0.0),
        )
        for group, n in zip(cluster.groups, counts, strict=True)
    )
