"""A cluster and a job trace in, the answers out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.domain.cluster.answer import ClusterAdvice, ClusterRequest, ClusterSimulation
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs, column
from gpuplan.domain.plan.deployed import RenderedFile
from gpuplan.domain.provenance import Assumption
from gpuplan.render.schedulers.shared import cluster_files
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams
from gpuplan.studies.cluster.bills import team_bills
from gpuplan.studies.cluster.compare import (
    change_rows,
    last_useful,
    policy_rows,
    quota_advice,
    quota_notes,
    with_quota,
)
from gpuplan.studies.cluster.fractions import fraction_advice, fraction_notes
from gpuplan.studies.cluster.waits import (
    cluster_use,
    size_rows,
    team_rows,
    wait_row,
    wait_shares,
)

N_RUNS = 20_000  # runs of jobs that are kept for the Gantt chart


def answers(cluster: Cluster, jobs: Jobs, request: ClusterRequest) -> ClusterSimulation:
    """What the replay says, and what was asked beside it."""
    cluster = replace(with_all_teams(cluster, jobs), seed=request.seed)
    found = simulate_cluster(cluster, jobs, n_segments=N_RUNS)
    advice = ClusterAdvice(
        policies=policy_rows(request.policies, cluster, jobs, found),
        changes=tuple(change_rows(request.n_changes, cluster, jobs, found)),
        last_useful=last_useful(cluster, jobs, found) if request.n_changes else (),
        quotas=quota_advice(cluster, jobs, found) if request.advises_quotas else (),
        fractions=fraction_advice(cluster, jobs) if request.advises_fractions else (),
        notes=(
            *(quota_notes(cluster, jobs, found) if request.advises_quotas else ()),
            *(fraction_notes(cluster, jobs) if request.advises_fractions else ()),
        ),
    )
    return ClusterSimulation(
        cluster=cluster,
        jobs=jobs,
        found=found,
        by_team=team_rows(cluster.teams, jobs, found),
        by_size=size_rows(jobs, found),
        all_jobs=wait_row("all", jobs, found, slice(None)),
        use=cluster_use(cluster, jobs, found),
        bills=team_bills(cluster, jobs, found),
        shares=wait_shares(jobs, found),
        advice=advice,
        assumptions=tuple(assumptions(cluster, jobs)),
    )


def assumptions(cluster: Cluster, jobs: Jobs) -> Iterator[Assumption]:
    """What the trace and the file do not say."""
    defaults = cluster.defaults
    if not len(jobs.terms.limit_s) and defaults.limit_ratio is None:
        why = "the trace has no time limits; backfill with exact ones is at its best"
        value, change = "equal to the durations", "jobs.limit_ratio"
        yield Assumption(what="time limits of jobs", value=value, why=why, change=change)
    is_stopped = cluster.policy.preempts or cluster.failures or cluster.services
    if is_stopped and defaults.checkpoint_s == 0 and not len(jobs.terms.checkpoint_s):
        why = "no interval was given: a job that a failure stops begins anew"
        yield Assumption(what="checkpoints", value="none", why=why, change="jobs.checkpoint_min")
    if (column(jobs.needs.share_frac, len(jobs), 1.0) < 1).any():
        why = "the trace has shares of compute only"
        value, change = "in proportion to their share of compute", "mig_profile of the jobs"
        yield Assumption(what="GPU memory of fractional jobs", value=value, why=why, change=change)
    yield from _types(cluster, jobs.needs.accelerator_names)


def _types(cluster: Cluster, names: Sequence[str]) -> Iterator[Assumption]:
    unknown = [name for name in names if name not in cluster.accelerators]
    if unknown:
        yield Assumption(
            what="GPU types that the cluster lacks",
            value=", ".join(unknown),
            why="jobs that ask for them can never start",
            change="nodes.accelerator",
        )


def advised(found: ClusterSimulation) -> Cluster:
    """The cluster with the quotas that were advised."""
    cluster = found.cluster
    for one in found.advice.quotas:
        if one.n_advised is not None:
            cluster = with_quota(cluster, one.team, one.accelerator, one.n_advised)
    return cluster


def rendered(found: ClusterSimulation) -> tuple[RenderedFile, ...]:
    """Kueue's and Slurm's configuration of the cluster, with advised quotas."""
    return tuple(cluster_files(advised(found)))
