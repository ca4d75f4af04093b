"""Showback and chargeback: GPU time by team, and its part of idle and shared cost."""

import numpy as np

from gpuplan.domain.cluster.answer import TeamBill
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.outcome import ClusterOutcome
from gpuplan.domain.columns import Floats
from gpuplan.units import HOUR

IN_CLOUD = -2


def team_bills(cluster: Cluster, jobs: Jobs, found: ClusterOutcome) -> tuple[TeamBill, ...]:
    """Bills that sum to the cost of all GPUs until the run's end, and the cloud's on top."""
    prices = np.array([group.usd_per_accelerator_h or 0.0 for group in cluster.groups]) / HOUR
    teams = [team.name for team in cluster.teams]
    group, held = found.jobs.group, found.jobs.held_accelerator_s
    is_here = group >= 0
    used_usd = np.zeros(len(held))
    used_usd[is_here] = held[is_here] * prices[group[is_here]]
    cloud_usd = _cloud(cluster, jobs, found)
    service_usd = _services(cluster, found, teams)
    by_team = _summed(jobs, used_usd, len(teams))
    capacity_usd = sum(
        g.n_accelerators * p * found.end_s for g, p in zip(cluster.groups, prices, strict=True)
    )
    idle_usd = max(0.0, capacity_usd - float(by_team.sum()) - float(service_usd.sum()))
    weights = _weights(cluster, by_team + service_usd)
    held_s = _summed(jobs, held, len(teams))
    lost_s = _summed(jobs, found.jobs.lost_accelerator_s, len(teams))
    in_cloud = _summed(jobs, cloud_usd, len(teams))
    return tuple(
        TeamBill(
            team=name,
            held_accelerator_s=float(held_s[t]),
            lost_accelerator_s=float(lost_s[t]),
            used_usd=float(by_team[t]),
            idle_usd=float(idle_usd * weights[t]),
            service_usd=float(service_usd[t]),
            cloud_usd=float(in_cloud[t]),
        )
        for t, name in enumerate(teams)
    )


def _summed(jobs: Jobs, values: Floats, n_teams: int) -> Floats:
    return np.bincount(jobs.team, values, minlength=n_teams).astype(np.float64)


def _cloud(cluster: Cluster, jobs: Jobs, found: ClusterOutcome) -> Floats:
    """What jobs in the cloud cost there."""
    price = (cluster.burst.usd_per_accelerator_h or 0.0) / HOUR if cluster.burst else 0.0
    lasted = found.jobs.end_s - found.jobs.start_s
    is_away = (found.jobs.group == IN_CLOUD) & np.isfinite(lasted)
    return np.where(is_away, np.nan_to_num(lasted) * jobs.n_accelerators * price, 0.0)


def _services(cluster: Cluster, found: ClusterOutcome, teams: list[str]) -> Floats:
    """What services reserved and got, split among them by what they wanted."""
    wanted = np.zeros(len(teams))
    for service in cluster.services:
        group = next(g for g in cluster.groups if g.accelerator == service.accelerator)
        gpus = service.n_accelerators_per_replica * np.mean(service.replicas_by_hour)
        price = (group.usd_per_accelerator_h or 0.0) / HOUR
        wanted[teams.index(service.team)] += gpus * price
    got_frac = 1.0
    if found.service_accelerator_s:
        got_frac -= found.service_short_accelerator_s / found.service_accelerator_s
    lasts = found.timeline.bin_s * len(found.timeline.batch)
    return wanted * lasts * got_frac


def _weights(cluster: Cluster, used: Floats) -> Floats:
    """Idle cost goes to those for whom it is kept: by quota, by use where there are none."""
    quota = np.array([sum(q.n_accelerators for q in t.quotas) for t in cluster.teams])
    base = quota if quota.sum() > 0 else used
    if base.sum() == 0:
        return np.full(len(cluster.teams), 1.0 / max(1, len(cluster.teams)))
    shares: Floats = base / base.sum()
    return shares
