"""Showback and chargeback: GPU time by team, and its part of idle and shared cost."""

import numpy as np

from gpuplan.domain.cluster.answer import TeamBill
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.outcome import ClusterOutcome, JobOutcomes
from gpuplan.domain.columns import Floats
from gpuplan.units import HOUR

IN_CLOUD = -2


def team_bills(cluster: Cluster, jobs: Jobs, found: ClusterOutcome) -> tuple[TeamBill, ...]:
    """Bills that sum to the cost of all GPUs until the run's end, and the cloud's on top."""
    teams = [team.name for team in cluster.teams]
    sums = team_sums(cluster, jobs, found.jobs)
    return bills_of(cluster, sums, _services(cluster, found, teams), found.end_s)


def team_sums(cluster: Cluster, jobs: Jobs, found: JobOutcomes) -> Floats:
    """By team: dollars of GPUs used here, GPU time held, lost, dollars in the cloud."""
    prices = np.array([group.usd_per_accelerator_h or 0.0 for group in cluster.groups]) / HOUR
    group, allocated = found.group, found.held_accelerator_s
    used_usd = np.where(group >= 0, allocated * prices[np.maximum(group, 0)], 0.0)
    n = len(cluster.teams)
    columns = (used_usd, allocated, found.lost_accelerator_s, _cloud(cluster, jobs, found))
    return np.array([np.bincount(jobs.team, values, minlength=n) for values in columns])


def bills_of(
    cluster: Cluster, sums: Floats, service_usd: Floats, end_s: float
) -> tuple[TeamBill, ...]:
    """The bills of such sums; what nobody used is split."""
    used_usd, held_s, lost_s, cloud_usd = sums
    prices = [(g.usd_per_accelerator_h or 0.0) / HOUR for g in cluster.groups]
    capacity_usd = sum(
        g.n_accelerators * p * end_s for g, p in zip(cluster.groups, prices, strict=True)
    )
    idle_usd = max(0.0, capacity_usd - float(used_usd.sum()) - float(service_usd.sum()))
    weights = _weights(cluster, used_usd + service_usd)
    return tuple(
        TeamBill(
            team=team.name,
            held_accelerator_s=float(held_s[t]),
            lost_accelerator_s=float(lost_s[t]),
            used_usd=float(used_usd[t]),
            idle_usd=float(idle_usd * weights[t]),
            service_usd=float(service_usd[t]),
            cloud_usd=float(cloud_usd[t]),
        )
        for t, team in enumerate(cluster.teams)
    )


def _cloud(cluster: Cluster, jobs: Jobs, found: JobOutcomes) -> Floats:
    """What jobs in the cloud cost there."""
    price = (cluster.burst.usd_per_accelerator_h or 0.0) / HOUR if cluster.burst else 0.0
    lasted = found.end_s - found.start_s
    is_away = (found.group == IN_CLOUD) & np.isfinite(lasted)
    return np.where(is_away, np.nan_to_num(lasted) * jobs.n_accelerators * price, 0.0)


def _services(cluster: Cluster, found: ClusterOutcome, teams: list[str]) -> Floats:
    """What services reserved and got in the whole run, split among them by what they wanted."""
    bill = np.zeros(len(teams))
    got_s = found.service_accelerator_s - found.service_short_accelerator_s
    wanted = [
        one.n_accelerators_per_replica * float(np.mean(one.replicas_by_hour))
        for one in cluster.services
    ]
    for service, gpus in zip(cluster.services, wanted, strict=True):
        group = next(g for g in cluster.groups if g.accelerator == service.accelerator)
        price = (group.usd_per_accelerator_h or 0.0) / HOUR
        bill[teams.index(service.team)] += got_s * gpus / (sum(wanted) or 1.0) * price
    return bill


def _weights(cluster: Cluster, used: Floats) -> Floats:
    """Idle cost goes to those for whom it is kept: by quota, by use where there are none."""
    quota = np.array([sum(q.n_accelerators for q in t.quotas) for t in cluster.teams])
    base = quota if quota.sum() > 0 else used
    if base.sum() == 0:
        return np.full(len(cluster.teams), 1.0 / max(1, len(cluster.teams)))
    shares: Floats = base / base.sum()
    return shares
