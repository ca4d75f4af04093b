"""Random clusters and streams in which every rule has something to do."""

import numpy as np

from gpuplan.domain.cluster.cluster import (
    CloudBurst,
    Cluster,
    ClusterTeam,
    JobDefaults,
    Maintenance,
    NodeFailures,
    NodeGroup,
    Quota,
    ReservingService,
    SchedulingPolicy,
    SlicePlaces,
)
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs, JobTerms

TEAMS = ("ads", "search", "vision")
A100_SLICES = (
    SlicePlaces(profile="1g.5gb", starts=(0, 1, 2, 3, 4, 5, 6), n_places=1, share_frac=1 / 7),
    SlicePlaces(profile="2g.10gb", starts=(0, 2, 4), n_places=2, share_frac=2 / 7),
    SlicePlaces(profile="3g.20gb", starts=(0, 4), n_places=4, share_frac=3 / 7),
    SlicePlaces(profile="7g.40gb", starts=(0,), n_places=8, share_frac=1.0),
)


def stream(seed: int, n: int = 120, *, load_s: float = 100.0, **columns) -> Jobs:
    """Jobs of 1 to 16 GPUs that come faster than a small cluster takes them now and then."""
    rng = np.random.default_rng(seed)
    return Jobs(
        arrive_s=np.round(np.cumsum(rng.exponential(load_s, n))),
        duration_s=np.round(rng.exponential(2000.0, n)) + 1.0,
        n_accelerators=rng.choice([1, 2, 3, 4, 8, 16], n, p=[0.35, 0.2, 0.1, 0.15, 0.15, 0.05]),
        team=rng.integers(0, len(TEAMS), n),
        team_names=TEAMS,
        needs=columns.get("needs", JobNeeds()),
        terms=columns.get("terms", JobTerms()),
    )


def needs(seed: int, n: int = 120, *, is_shared: bool = False) -> JobNeeds:
    rng = np.random.default_rng(seed + 1000)
    if not is_shared:
        return JobNeeds(
            accelerator=rng.choice([-1, 0, 1], n, p=[0.6, 0.3, 0.1]),
            accelerator_names=("A100", "L40S"),
            n_cpus=rng.integers(0, 8, n).astype(float),
            level=rng.choice([0, 1, 2], n),
        )
    kind = rng.integers(0, 3, n)  # whole, a share, a slice
    profile = rng.integers(0, 3, n)
    frac = np.array([one.share_frac for one in A100_SLICES])[profile]
    share = np.where(kind == 1, rng.choice([0.25, 0.3, 0.5], n), np.where(kind == 2, frac, 1.0))
    return JobNeeds(
        share_frac=share,
        profile=np.where(kind == 2, profile, -1),
        profile_names=tuple(one.profile for one in A100_SLICES),
        n_cpus=rng.integers(0, 6, n).astype(float),
    )


def terms(seed: int, jobs_s: np.ndarray, *, is_elastic: bool = False) -> JobTerms:
    rng = np.random.default_rng(seed + 2000)
    n = len(jobs_s)
    curve = np.array([0.0, *(k**0.8 for k in range(1, 33))])
    return JobTerms(
        priority=rng.integers(0, 4, n),
        deadline_s=np.cumsum(rng.exponential(100.0, n)) + rng.exponential(8000.0, n),
        limit_s=jobs_s * rng.choice([0.8, 1.0, 2.0, 4.0], n),
        checkpoint_s=rng.choice([0.0, 300.0], n),
        restart_s=rng.choice([0.0, 60.0], n),
        curve=rng.choice([-1, 0], n) if is_elastic else np.full(n, -1),
        curves=(curve,) if is_elastic else (),
        n_least=np.ones(n, np.int64),
        n_most=np.full(n, 12),
        is_fixed=(rng.random(n) < 0.1).astype(np.int64),
    )


def full_stream(seed: int, *, is_shared: bool = False, is_elastic: bool = False, **how) -> Jobs:
    """A stream with every column."""
    plain = stream(seed, **how)
    jobs = stream(
        seed,
        needs=needs(seed, len(plain), is_shared=is_shared),
        terms=terms(seed, plain.duration_s, is_elastic=is_elastic),
        **how,
    )
    if not is_shared:
        return jobs
    from dataclasses import replace  # noqa: PLC0415

    is_part = (jobs.needs.share_frac < 1) | (jobs.needs.profile >= 0)
    return replace(jobs, n_accelerators=np.where(is_part, 1, jobs.n_accelerators))


def cluster(policy: SchedulingPolicy, **parts) -> Cluster:
    """Four A100 nodes of 8 in two racks, three slower L40S nodes of 4."""
    groups = (
        NodeGroup(
            accelerator="A100",
            n_nodes=4,
            n_accelerators_per_node=8,
            n_cpus=64.0,
            n_nodes_per_rack=2,
            slices=A100_SLICES,
        ),
        NodeGroup(
            accelerator="L40S", n_nodes=3, n_accelerators_per_node=4, n_cpus=32.0, speed_ratio=0.75
        ),
    )
    teams = parts.pop("teams", tuple(ClusterTeam(name=name) for name in TEAMS))
    return Cluster(name="test", groups=groups, teams=teams, policy=policy, **parts)


def quota_teams(cohort: str | None = "all") -> tuple[ClusterTeam, ...]:
    quotas = {"ads": (16, None, None), "search": (8, 8.0, None), "vision": (8, None, 4.0)}
    return tuple(
        ClusterTeam(
            name=name,
            cohort=cohort,
            share_ratio=1.0 + i,
            quotas=(
                Quota(accelerator="A100", n_accelerators=n, n_borrow=borrow, n_lend=lend),
                Quota(accelerator="L40S", n_accelerators=4),
            ),
        )
        for i, (name, (n, borrow, lend)) in enumerate(quotas.items())
    )


SERVICE = ReservingService(
    name="chat",
    team="search",
    accelerator="A100",
    n_accelerators_per_replica=4,
    replicas_by_hour=(1, 1, 0, 2, 3, 1),
)
DISTURBED = {
    "services": (SERVICE,),
    "failures": NodeFailures(mtbf_s=9000.0, mttr_s=1500.0),
    "maintenance": (Maintenance(start_s=4000.0, duration_s=2000.0, first_node=1, n_nodes=2),),
    "defaults": JobDefaults(checkpoint_s=600.0, restart_s=30.0),
}
BURST = CloudBurst(above_queued_accelerators=20, n_accelerators=24, start_s=120.0, speed_ratio=0.9)
