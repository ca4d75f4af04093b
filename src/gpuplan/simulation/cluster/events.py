"""What comes from outside: failures and repairs, maintenance, and services by the hour."""

import numpy as np

from gpuplan.domain.cluster.cluster import Cluster, ReservingService
from gpuplan.domain.cluster.jobs import ANY
from gpuplan.domain.columns import Floats, Ints
from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.units import HOUR


def outside_events(cluster: Cluster, until_s: float) -> tuple[Floats, Ints]:
    """Times, and kinds with nodes, in order; one stream of draws for each node.

    A node's failures do not depend on the policy: compared policies meet the same ones.
    """
    rows = [*_failures(cluster, until_s), *_maintenance(cluster)]
    rows.sort(key=lambda row: (row[0], row[1] != st.RETURNS, row[2]))
    at = np.array([row[0] for row in rows], dtype=np.float64)
    what = np.array([row[1:] for row in rows], dtype=np.int64).reshape(len(rows), 2)
    return at, what


def _failures(cluster: Cluster, until_s: float) -> list[tuple[float, int, int]]:
    """Alternating times up and down of every node, both exponential."""
    rows: list[tuple[float, int, int]] = []
    failures = cluster.failures
    if failures is None:
        return rows
    n_nodes = sum(group.n_nodes for group in cluster.groups)
    for node, seed in enumerate(np.random.SeedSequence([cluster.seed, 20]).spawn(n_nodes)):
        draws, at = np.random.default_rng(seed), 0.0
        while True:
            at += draws.exponential(failures.mtbf_s)
            if at > until_s:
                break
            rows.append((at, st.FAILS, node))
            at += draws.exponential(failures.mttr_s)
            rows.append((at, st.RETURNS, node))
    return rows


def _maintenance(cluster: Cluster) -> list[tuple[float, int, int]]:
    return [
        row
        for window in cluster.maintenance
        for node in range(window.first_node, window.first_node + window.n_nodes)
        for row in (
            (window.start_s, st.DRAINS, node),
            (window.start_s + window.duration_s, st.RETURNS, node),
        )
    ]


def service_rows(cluster: Cluster, week_s: float, until_s: float) -> tuple[Ints, Floats]:
    """Replicas of services as jobs: one for every stretch of hours in which a replica is wanted."""
    teams = [team.name for team in cluster.teams]
    spans = [
        (service, begin, end)
        for service in cluster.services
        for begin, end in _stretches(service, week_s, until_s)
    ]
    job = np.zeros((len(spans), st.N_JOB), np.int64)
    work = np.zeros((len(spans), st.N_WORK))
    for i, (service, begin, end) in enumerate(spans):
        row = job[i]
        row[[st.GPUS, st.LEAST, st.MOST]] = service.n_accelerators_per_replica
        row[st.TEAM] = teams.index(service.team)
        row[st.POOLS] = sum(
            1 << p for p, g in enumerate(cluster.groups) if g.accelerator == service.accelerator
        )
        row[st.IS_SERVICE] = 1
        work[i, [st.ARRIVE, st.WORK]] = begin, end - begin
    job[:, [st.CURVE, st.PROFILE]] = ANY
    job[:, [st.ENTRY, st.POOL, st.FIRST_NODE]] = -1
    work[:, st.LEFT] = work[:, st.LIMIT] = work[:, st.WORK]
    work[:, [st.FIRST, st.END]] = np.nan
    return job, work


def _stretches(
    service: ReservingService, week_s: float, until_s: float
) -> list[tuple[float, float]]:
    """When each replica is wanted: the lowest replicas are wanted longest."""
    profile, found = service.replicas_by_hour, []
    first = int(week_s // HOUR)
    hours = np.arange(first, first + int(np.ceil((until_s + week_s % HOUR) / HOUR)) + 1)
    wanted = np.array(profile)[hours % len(profile)]
    for replica in range(max(profile)):
        is_on = np.concatenate([[False], wanted > replica, [False]])
        changes = np.flatnonzero(is_on[1:] != is_on[:-1])
        for a, b in zip(changes[::2], changes[1::2], strict=True):
            begin = max(0.0, (first + a) * HOUR - week_s)
            end = min(until_s, (first + b) * HOUR - week_s)
            if end > begin:
                found.append((begin, end))
    return found
