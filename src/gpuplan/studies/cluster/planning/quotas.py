"""Quotas as shares of the hardware, so that they follow a fleet of another size or kind."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, NodeGroup, Quota
from gpuplan.domain.cluster.jobs import Jobs, column

STEP_FRAC = 1 / 32  # of the hardware: what one move between teams is


class QuotaShares(NamedTuple):
    """A way to divide the hardware among teams with quotas: a share of each GPU type."""

    name: str
    shares: tuple[tuple[str, float], ...] = ()  # by team; empty: the described ones


DESCRIBED = QuotaShares("as described")


def quota_choices(cluster: Cluster, jobs: Jobs) -> tuple[QuotaShares, ...]:
    """The described division, and one by the work that each team submits."""
    own = [team for team in cluster.teams if team.quotas]
    if not own or cluster.plan.keeps_quotas:
        return (DESCRIBED,)
    work = jobs.duration_s * jobs.n_accelerators * column(jobs.needs.share_frac, len(jobs), 1.0)
    by_team = dict(
        zip(jobs.team_names, np.bincount(jobs.team, work, len(jobs.team_names)), strict=True)
    )
    total = sum(by_team.get(team.name, 0.0) for team in own)
    whole = sum(described_shares(cluster).values())
    if total == 0:
        return (DESCRIBED,)
    shares = tuple((team.name, whole * by_team.get(team.name, 0.0) / total) for team in own)
    return (DESCRIBED, QuotaShares("by demand", shares))


def described_shares(cluster: Cluster) -> dict[str, float]:
    """Each team's quota over the GPUs of the types that have quotas."""
    types = {quota.accelerator for team in cluster.teams for quota in team.quotas}
    n_all = sum(g.n_accelerators for g in cluster.groups if g.accelerator in types)
    return {
        team.name: sum(q.n_accelerators for q in team.quotas) / max(1, n_all)
        for team in cluster.teams
        if team.quotas
    }


def moved(cluster: Cluster, shares: QuotaShares, giver: str, taker: str) -> QuotaShares | None:
    """The division with a step more for one team at another's cost; None: that has too little."""
    now = dict(shares.shares) or described_shares(cluster)
    if giver == taker or now.get(giver, 0.0) <= STEP_FRAC or taker not in now:
        return None
    now[giver] -= STEP_FRAC
    now[taker] += STEP_FRAC
    return QuotaShares("moved to those who wait", tuple(now.items()))


def with_shares(
    cluster: Cluster, groups: tuple[NodeGroup, ...], shares: QuotaShares
) -> tuple[ClusterTeam, ...]:
    """The teams with whole quotas on these groups; limits of borrowing, lending in proportion."""
    n_now = _by_type(cluster.groups)
    n_then = {name: n for name, n in _by_type(groups).items() if n}
    overall = dict(shares.shares) or described_shares(cluster)
    requested = {
        team.name: {
            name: _share(team, name, n_now, overall, is_described=not shares.shares) * n
            for name, n in n_then.items()
        }
        for team in cluster.teams
        if team.quotas
    }
    whole = {name: _rounded({t: requested[t][name] for t in requested}) for name in n_then}
    return tuple(
        replace(
            team, quotas=tuple(_quota(team, name, whole[name][team.name], n_now) for name in n_then)
        )
        if team.quotas
        else team
        for team in cluster.teams
    )


def _by_type(groups: tuple[NodeGroup, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in groups:
        found[group.accelerator] = found.get(group.accelerator, 0) + group.n_accelerators
    return found


def _share(
    team: ClusterTeam,
    name: str,
    n_now: Mapping[str, int],
    overall: Mapping[str, float],
    *,
    is_described: bool,
) -> float:
    """The described share of the type; of a type that the cluster has not yet, the overall one."""
    own = next((q for q in team.quotas if q.accelerator == name), None)
    if is_described and own is not None and n_now.get(name):
        return own.n_accelerators / n_now[name]
    if is_described and own is None and n_now.get(name):
        return 0.0
    return overall[team.name]


def _rounded(requested: Mapping[str, float]) -> dict[str, float]:
    """Whole GPUs with the same sum, rounded: the largest remainders are rounded up."""
    floors = {name: float(np.floor(n + 1e-9)) for name, n in requested.items()}
    rest = round(sum(requested.values()) - sum(floors.values()))
    for name in sorted(requested, key=lambda name: floors[name] - requested[name])[:rest]:
        floors[name] += 1.0
    return floors


def _quota(team: ClusterTeam, name: str, n: float, n_now: Mapping[str, int]) -> Quota:
    own = next((q for q in team.quotas if q.accelerator == name), None)
    if own is None:
        return Quota(accelerator=name, n_accelerators=n)
    ratio = n / own.n_accelerators if own.n_accelerators and n_now.get(name) else 1.0
    borrow, lend = (
        None if limit is None else float(round(limit * ratio))
        for limit in (own.n_borrow, own.n_lend)
    )
    return replace(own, n_accelerators=n, n_borrow=borrow, n_lend=lend)
