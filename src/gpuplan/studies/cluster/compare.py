"""The same jobs under other policies, on more or fewer nodes, with other quotas."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gpuplan.domain.cluster.answer import PolicyRow, QuotaAdvice, WaitRow
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, SchedulingPolicy
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.outcome import ClusterOutcome
from gpuplan.errors import InputError, one
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.studies.cluster.waits import cluster_use, team_rows

N_BLOCKS = 20  # stretches of the stream: waits within one depend on each other
T_90 = 1.729  # Student's t, 19 degrees of freedom, two-sided 90 %
USEFUL_FRAC = 0.01  # of the mean wait: a node that saves less is past the last useful one
NAMED: dict[str, SchedulingPolicy] = {
    "fifo": SchedulingPolicy(order="fifo", blocking="strict"),
    "best-effort": SchedulingPolicy(order="fifo", blocking="skip"),
    "easy": SchedulingPolicy(order="fifo", blocking="easy"),
    "conservative": SchedulingPolicy(order="fifo", blocking="conservative"),
    "priority": SchedulingPolicy(order="priority", blocking="easy", preempts=True),
    "shortest": SchedulingPolicy(order="shortest", blocking="easy"),
    "edf": SchedulingPolicy(order="edf", blocking="easy"),
    "fair": SchedulingPolicy(order="fair", blocking="skip"),
    "drf": SchedulingPolicy(order="drf", blocking="skip"),
    "kueue": SchedulingPolicy(order="kueue", blocking="skip", preempts=True),
}


def named_policy(name: str) -> SchedulingPolicy:
    """The policy of this name; raises InputError for others."""
    if name not in NAMED:
        fix = f"use one of {', '.join(NAMED)}"
        raise one(InputError, "simulate", "--compare", f"unknown policy {name!r}", fix)
    return NAMED[name]


def compared(name: str, cluster: Cluster, jobs: Jobs, base: ClusterOutcome) -> PolicyRow:
    """A run of the changed cluster beside the base run, job by job.

    Both have the same jobs and the same failures, so that the difference has a small error.
    """
    found = simulate_cluster(cluster, jobs)
    wait, before = (run.jobs.start_s - jobs.arrive_s for run in (found, base))
    both = np.isfinite(wait) & np.isfinite(before)
    low, mean, high = _interval((before - wait)[both])
    use = cluster_use(cluster, jobs, found)
    rows = team_rows(cluster.teams, jobs, found)
    started = wait[np.isfinite(wait)]
    return PolicyRow(
        name=name,
        wait_mean_s=float(started.mean()) if len(started) else 0.0,
        wait_p90_s=float(np.percentile(started, 90)) if len(started) else 0.0,
        saved_mean_s=mean,
        saved_low_s=low,
        saved_high_s=high,
        utilization_frac=use.batch_frac + use.service_frac,
        goodput_frac=use.goodput_frac,
        n_preempted=int(found.jobs.n_preempted.sum()),
        n_violated=sum(row.is_violated for row in rows),
    )


def _interval(saved: Any) -> tuple[float, float, float]:
    """Mean with its 90 % interval from means of consecutive stretches."""
    if len(saved) < N_BLOCKS:
        mean = float(saved.mean()) if len(saved) else 0.0
        return -np.inf, mean, np.inf
    means = np.array([block.mean() for block in np.array_split(saved, N_BLOCKS)])
    error = T_90 * float(means.std(ddof=1)) / np.sqrt(N_BLOCKS)
    mean = float(saved.mean())
    return mean - error, mean, mean + error


def policy_rows(
    names: tuple[str, ...], cluster: Cluster, jobs: Jobs, base: ClusterOutcome
) -> tuple[PolicyRow, ...]:
    """Other policies on the same cluster."""
    return tuple(
        compared(name, replace(cluster, policy=named_policy(name)), jobs, base) for name in names
    )


def _resized(cluster: Cluster, g: int, n_more: int) -> Cluster | None:
    """The cluster with so many nodes more or fewer of one group."""
    group = cluster.groups[g]
    n_nodes = group.n_nodes + n_more
    if n_nodes < 0 or (n_nodes == 0 and len(cluster.groups) == 1):
        return None
    groups = [*cluster.groups[:g], replace(group, n_nodes=n_nodes), *cluster.groups[g + 1 :]]
    return replace(cluster, groups=tuple(groups), maintenance=())


def change_rows(
    n_changes: int, cluster: Cluster, jobs: Jobs, base: ClusterOutcome
) -> Iterator[PolicyRow]:
    """Each group of nodes smaller and larger by 1, 2, 4 … nodes, up to the number asked for."""
    steps = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= n_changes]
    for g, group in enumerate(cluster.groups):
        for k in [*(-k for k in reversed(steps)), *steps]:
            changed = _resized(cluster, g, k)
            if changed is not None:
                added = k * group.n_accelerators_per_node
                name = f"{added:+d} {group.accelerator}"
                yield compared(name, changed, jobs, base)


def last_useful(cluster: Cluster, jobs: Jobs, base: ClusterOutcome) -> tuple[tuple[str, int], ...]:
    """By group: the last GPU without which jobs would wait longer, by bisection over nodes.

    Beyond it a node saves less than 1 % of the mean wait that one node less would have.
    """
    found = []
    for g, group in enumerate(cluster.groups):
        wait = _mean_wait(jobs, base)

        def waits(n_nodes: int, g: int = g, group: NodeGroup = group) -> float:
            changed = _resized(cluster, g, n_nodes - group.n_nodes)
            return np.inf if changed is None else _mean_wait(jobs, simulate_cluster(changed, jobs))

        most_s = wait * (1 + USEFUL_FRAC) + 1.0
        n = bisect_left(range(group.n_nodes), True, key=lambda n: waits(n) <= most_s)
        found.append((group.accelerator, n * group.n_accelerators_per_node))
    return tuple(found)


def _mean_wait(jobs: Jobs, found: ClusterOutcome) -> float:
    wait = found.jobs.start_s - jobs.arrive_s
    return float(wait.mean()) if np.isfinite(wait).all() else np.inf


def quota_advice(cluster: Cluster, jobs: Jobs, base: ClusterOutcome) -> tuple[QuotaAdvice, ...]:
    """For every team out of its wait target: the smallest quota that meets it."""
    return tuple(
        _advice(cluster, jobs, row)
        for row in team_rows(cluster.teams, jobs, base)
        if row.is_violated and any(t.name == row.name and t.quotas for t in cluster.teams)
    )


def quota_notes(cluster: Cluster, jobs: Jobs, base: ClusterOutcome) -> Iterator[str]:
    """Why no quota is advised: no target, all met, or a team without a quota of its own."""
    rows = team_rows(cluster.teams, jobs, base)
    with_quotas = {team.name for team in cluster.teams if team.quotas}
    if not any(team.wait_p90_s is not None for team in cluster.teams):
        slow = max(rows, key=lambda row: row.wait_p90_s)
        yield (
            "quotas: no team states a wait target, so none is out of it; add "
            f"teams[].wait_p90_min, first to {slow.name}, which waits longest"
        )
    elif not any(row.is_violated for row in rows):
        yield "quotas: every wait target is met, so no quota needs to change"
    for row in rows:
        if row.is_violated and row.name not in with_quotas:
            yield (
                f"quotas: {row.name} is out of its target and has no quota; more GPUs "
                "(--change-nodes) or another policy (--compare) may help, or give it teams[].quotas"
            )


def _advice(cluster: Cluster, jobs: Jobs, row: WaitRow) -> QuotaAdvice:
    team = next(t for t in cluster.teams if t.name == row.name)
    quota = max(team.quotas, key=lambda q: q.n_accelerators)
    groups = [g for g in cluster.groups if g.accelerator == quota.accelerator]
    step = groups[0].n_accelerators_per_node
    n_steps = int(max(0, sum(g.n_accelerators for g in groups) - quota.n_accelerators) // step)

    def row_with(k: int) -> WaitRow:
        changed = with_quota(cluster, row.name, quota.accelerator, quota.n_accelerators + k * step)
        rows = team_rows(changed.teams, jobs, simulate_cluster(changed, jobs))
        return next(one for one in rows if one.name == row.name)

    then, n_advised = row_with(n_steps), None
    if not then.is_violated:
        k = bisect_left(range(n_steps), True, key=lambda k: not row_with(k).is_violated)
        n_advised, then = quota.n_accelerators + k * step, row_with(k)
    return QuotaAdvice(
        team=row.name,
        accelerator=quota.accelerator,
        n_now=quota.n_accelerators,
        n_advised=n_advised,
        wait_now_s=row.wait_p90_s,
        wait_then_s=then.wait_p90_s,
        target_s=team.wait_p90_s or 0.0,
    )


def with_quota(cluster: Cluster, team: str, accelerator: str, n: float) -> Cluster:
    """The cluster with another quota of one team."""
    teams = tuple(
        t
        if t.name != team
        else replace(
            t,
            quotas=tuple(
                replace(q, n_accelerators=n) if q.accelerator == accelerator else q
                for q in t.quotas
            ),
        )
        for t in cluster.teams
    )
    return replace(cluster, teams=teams)
