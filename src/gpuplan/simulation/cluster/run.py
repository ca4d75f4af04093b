"""Jobs and a cluster in, what became of every job out."""

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.outcome import (
    ClusterOutcome,
    ClusterTimeline,
    JobOutcomes,
    JobRuns,
)
from gpuplan.domain.columns import Ints
from gpuplan.errors import InputError, Problem
from gpuplan.simulation.cluster.arrays import RunExtras, cluster_state
from gpuplan.simulation.cluster.events import outside_events, service_rows
from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.loop import run
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.units import DAY

N_BINS = 336
ROUNDS = 12  # in which services are extended until the last job has ended
MOST_TIMES = 32  # the first span of failures: work that never ends between them stops somewhere
PREEMPTING = ("priority", "shortest", "edf", "kueue")


def simulate_cluster(
    cluster: Cluster,
    jobs: Jobs,
    *,
    n_segments: int = 0,
    n_bins: int = N_BINS,
    until_s: float | None = None,
) -> ClusterOutcome:
    """Replay the jobs; same cluster, jobs and seed, same bytes.

    `until_s` stops the clock early: jobs not started or ended by then have NaN.
    """
    cluster = with_all_teams(cluster, jobs)
    check_cluster(cluster)
    horizon_s = float(jobs.arrive_s[-1]) if len(jobs) else 0.0
    horizon_s = max(horizon_s, 1.0) if until_s is None else until_s

    def replayed(services_s: float) -> ClusterOutcome:
        services = service_rows(cluster, jobs.week_s, services_s)
        events = outside_events(cluster, failing_s(horizon_s))
        extras = RunExtras(*services, *events, n_segments, n_bins, horizon_s / n_bins)
        sim, rows = cluster_state(cluster, jobs, extras)
        began = perf_counter()
        sim = run_until(sim, cluster, horizon_s, until_s)
        return _outcome(sim, rows, jobs, wall_s=perf_counter() - began)

    found, services_s = replayed(horizon_s), horizon_s
    for _ in range(ROUNDS if cluster.services and until_s is None else 0):
        last_s = float(np.max(found.jobs.end_s, initial=0.0, where=np.isfinite(found.jobs.end_s)))
        if last_s <= services_s:
            break
        found, services_s = replayed(last_s), last_s
    return found


def failing_s(horizon_s: float) -> float:
    """How long failures are drawn for at first, where the last job comes then."""
    return 2 * horizon_s + 30 * DAY


def run_until(sim: Sim, cluster: Cluster, horizon_s: float, until_s: float | None) -> Sim:
    """The run until then, or until its last job has ended: failures are drawn until it has.

    Draws of a node's failures are one stream: a longer one begins with the shorter.
    """
    failures_s = failing_s(horizon_s)
    most_s = failures_s * (MOST_TIMES if cluster.failures and until_s is None else 1)
    while failures_s < most_s:
        run(sim, failures_s)
        c = sim.counter
        if c[st.N_HEAP] == 0 and (c[st.N_QUEUED] == 0 or c[st.GPUS_DOWN] == 0):
            break  # nothing runs, and what waits does not wait for a repair
        failures_s = min(2 * failures_s, most_s)
        event_at, event = outside_events(cluster, failures_s)
        sim = sim._replace(event_at=event_at, event=event)
    run(sim, st.NEVER / 2 if until_s is None else until_s)
    return sim


def with_all_teams(cluster: Cluster, jobs: Jobs) -> Cluster:
    """The cluster with a team for every one of the stream, in the stream's order."""
    known = {team.name: team for team in cluster.teams}
    named = tuple(known.get(name, ClusterTeam(name=name)) for name in jobs.team_names)
    rest = tuple(team for team in cluster.teams if team.name not in jobs.team_names)
    return replace(cluster, teams=(*named, *rest))


def check_cluster(cluster: Cluster) -> None:
    """InputError where the cluster cannot be simulated; all that is wrong at once."""
    policy, problems = cluster.policy, []
    if not cluster.groups or cluster.n_accelerators < 1:
        problems.append(Problem("nodes", "no GPUs", "give at least one group of nodes"))
    if policy.preempts and policy.order not in PREEMPTING:
        fix = f"use one of {', '.join(PREEMPTING)}, or remove preempts"
        problems.append(Problem("policy.order", f"{policy.order} does not preempt", fix))
    if policy.order in ("fair", "drf", "kueue") and policy.blocking not in ("strict", "skip"):
        what = f"{policy.blocking} backfill needs one queue for all; {policy.order} has one a team"
        problems.append(Problem("policy.blocking", what, "use strict or skip"))
    names = [team.name for team in cluster.teams]
    types = cluster.accelerators
    for team in cluster.teams:
        for quota in team.quotas:
            if quota.accelerator not in types:
                where, fix = f"teams: {team.name}", f"use one of {', '.join(types)}"
                problems.append(Problem(where, f"no {quota.accelerator} in the cluster", fix))
    for service in cluster.services:
        if service.accelerator not in types or service.team not in names:
            where, fix = f"services: {service.name}", "name a team and a GPU type of the cluster"
            what = f"team {service.team} on {service.accelerator}"
            problems.append(Problem(where, what, fix))
    if problems:
        raise InputError("cluster", problems)


def _outcome(sim: Sim, rows: Ints, jobs: Jobs, *, wall_s: float) -> ClusterOutcome:
    n = len(jobs)
    is_service = rows >= n
    wanted = sim.work[is_service, st.WORK] * sim.job[is_service, st.GPUS]
    given = sim.work[is_service, st.HELD_TIME]
    return ClusterOutcome(
        jobs=job_outcomes(sim, rows, n),
        timeline=timeline(sim),
        runs=job_runs(sim, rows),
        service_short_accelerator_s=float((wanted - given).clip(min=0).sum()),
        service_accelerator_s=float(wanted.sum()),
        end_s=float(sim.clock[st.NOW]),
        n_unfit=n - int((~is_service).sum()),
        wall_s=wall_s,
    )


def job_outcomes(sim: Sim, rows: Ints, n: int) -> JobOutcomes:
    """Columns in the order of the stream; jobs that never fit stay empty."""
    own = rows < n
    at = rows[own]

    def spread(values: Any, empty: float) -> Any:
        column = np.full(n, empty, dtype=values.dtype)
        column[at] = values[own]
        return column

    status, group = sim.job[:, st.STATUS], sim.job[:, st.POOL].copy()
    group[(status == st.IN_CLOUD) | ((group < 0) & (sim.job[:, st.N_STARTS] > 0))] = -2
    return JobOutcomes(
        start_s=spread(sim.work[:, st.FIRST], np.nan),
        end_s=spread(np.where(status == st.DONE, sim.work[:, st.END], np.nan), np.nan),
        n_preempted=spread(sim.job[:, st.N_PREEMPTED], 0),
        n_failed=spread(sim.job[:, st.N_FAILED], 0),
        held_accelerator_s=spread(sim.work[:, st.HELD_TIME], 0.0),
        lost_accelerator_s=spread(sim.work[:, st.LOST], 0.0),
        group=spread(group, -1),
        node=spread(sim.job[:, st.FIRST_NODE], -1),
    )


def timeline(sim: Sim) -> ClusterTimeline:
    """Means over bins; the last bin also holds what came after the last submission."""
    bin_s = float(sim.real[st.BIN])
    lasts = np.full(len(sim.bins), bin_s)
    last_begin = bin_s * (len(lasts) - 1)
    lasts[-1] = max(sim.clock[st.NOW] - last_begin, 1e-9)
    mean = sim.bins / lasts[:, None]
    return ClusterTimeline(
        bin_s=bin_s,
        batch=mean[:, st.L_BATCH],
        service=mean[:, st.L_SERVICE],
        down=mean[:, st.L_DOWN],
        idle=mean[:, st.L_IDLE],
        quota_blocked=mean[:, st.L_QUOTA],
        too_few=mean[:, st.L_SHORT],
        fragmented=mean[:, st.L_FRAGMENTED],
        queued_jobs=mean[:, st.L_QUEUED],
        queued_accelerators=mean[:, st.L_QUEUED_GPUS],
        cloud=mean[:, st.L_CLOUD],
    )


def job_runs(sim: Sim, rows: Ints) -> JobRuns:
    """Runs of jobs that were noted, by their place in the stream."""
    n = min(int(sim.counter[st.N_SEGMENTS]), len(sim.segment))
    found = sim.segment[:n]
    return JobRuns(
        start_s=found[:, 0],
        end_s=found[:, 1],
        job=rows[found[:, 2].astype(np.int64)],
        node=found[:, 3].astype(np.int64),
        n_accelerators=found[:, 4],
        ending=found[:, 5].astype(np.int64),
        n_total=int(sim.counter[st.N_SEGMENTS]),
    )
