"""A stream of any length in bounded memory: a part of it at a time, ended jobs passed on.

Between parts the rows of jobs that ended make room for those to come; what waits and runs is
carried over, renumbered in the same order, so that every start is that of one whole run.
"""

from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs, at_places
from gpuplan.domain.cluster.outcome import ClusterOutcome, JobOutcomes
from gpuplan.domain.columns import Ints
from gpuplan.errors import InputError, one
from gpuplan.simulation.cluster.arrays import RunExtras, cluster_state, job_rows, state_of
from gpuplan.simulation.cluster.events import outside_events
from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.cluster.run import (
    N_BINS,
    check_cluster,
    failing_s,
    job_outcomes,
    job_runs,
    run_until,
    timeline,
)

LIVING = (st.QUEUED, st.RUNNING, st.IN_CLOUD)
SAME = ("node", "pool", "bits", "at", "team", "usage", "quota", "counter", "clock", "bins")


class EndedJobs(NamedTuple):
    """Jobs that ended (or can never start) since the last part, and what became of them."""

    jobs: Jobs
    outcomes: JobOutcomes


class ClusterStream:
    """One run that is fed part by part."""

    def __init__(self, cluster: Cluster, team_names: tuple[str, ...], horizon_s: float) -> None:
        """The cluster with every team of the stream, and when the last job is submitted."""
        check_cluster(cluster)
        if cluster.services:
            fix = "replay a shorter trace whole, or reserve the GPUs as jobs"
            raise one(InputError, "stream", "services", "a stream has none", fix)
        self.cluster, self.team_names, self.horizon_s = cluster, team_names, horizon_s
        events = outside_events(cluster, failing_s(horizon_s))
        none = np.zeros((0, st.N_JOB), np.int64), np.zeros((0, st.N_WORK))
        self.extras = RunExtras(*none, *events, 0, N_BINS, max(horizon_s, 1.0) / N_BINS)
        self.sim: Sim | None = None
        self.wall_s, self.n_unfit = 0.0, 0

    def feed(self, jobs: Jobs, before_s: float | None) -> list[EndedJobs]:
        """Replay up to the first submission of the next part (None: to the end)."""
        _, _, rows = job_rows(self.cluster, jobs, self.extras)
        if self.sim is None:
            self.sim, _ = cluster_state(self.cluster, jobs, self.extras)
        else:
            self.sim = carried(self.sim, self.cluster, jobs, self.extras)
        began = perf_counter()
        until_s = None if before_s is None else float(np.nextafter(before_s, -np.inf))
        self.sim = run_until(self.sim, self.cluster, self.horizon_s, until_s)
        self.wall_s += perf_counter() - began
        unfit = np.setdiff1d(np.arange(len(jobs)), rows)
        self.n_unfit += len(unfit)
        return [self._ended(is_last=before_s is None), self._never(jobs, unfit)]

    def _ended(self, *, is_last: bool) -> EndedJobs:
        sim = self._state()
        status = sim.job[:, st.STATUS]
        gone = np.flatnonzero(~np.isin(status, LIVING) | is_last)
        job, work = sim.job[gone], sim.work[gone]
        share = np.where(job[:, st.SHARE] > 0, job[:, st.SHARE] / st.MILLI, 1.0)
        jobs = Jobs(
            arrive_s=work[:, st.ARRIVE],
            duration_s=work[:, st.WORK],
            n_accelerators=job[:, st.GPUS],
            team=job[:, st.TEAM],
            team_names=self.team_names,
            needs=JobNeeds(share_frac=share),
        )
        part = sim._replace(job=job, work=work)
        return EndedJobs(jobs, job_outcomes(part, np.arange(len(gone)), len(gone)))

    def _never(self, jobs: Jobs, which: Ints) -> EndedJobs:
        """Jobs that no group of nodes could ever hold."""
        own = replace(at_places(jobs, which), needs=at_places(jobs.needs, which))
        sim, none = self._state(), which[:0]
        part = sim._replace(job=sim.job[none], work=sim.work[none])
        return EndedJobs(own, job_outcomes(part, none, len(which)))

    def _state(self) -> Sim:
        if self.sim is None:
            raise one(InputError, "stream", "jobs", "no job was fed", "give a trace with jobs")
        return self.sim

    def outcome(self, jobs: Jobs) -> ClusterOutcome:
        """The run so far, with what became of no job but of `jobs`, which ended nowhere."""
        sim = self._state()
        return ClusterOutcome(
            jobs=self._never(jobs, np.arange(len(jobs))).outcomes,
            timeline=timeline(sim),
            runs=job_runs(sim, np.empty(0, np.int64)),
            service_short_accelerator_s=0.0,
            service_accelerator_s=0.0,
            end_s=float(sim.clock[st.NOW]),
            n_unfit=self.n_unfit,
            wall_s=self.wall_s,
        )


def carried(old: Sim, cluster: Cluster, jobs: Jobs, extras: RunExtras) -> Sim:
    """The run with the rows of jobs that live, in their order, and those to come after them."""
    retained = np.flatnonzero(np.isin(old.job[:, st.STATUS], LIVING))
    place = np.full(len(old.job) + 1, -1)
    place[retained] = np.arange(len(retained))
    job, work, _ = job_rows(cluster, jobs, extras)
    job, work = np.concatenate([old.job[retained], job]), np.concatenate([old.work[retained], work])
    new = state_of(cluster, jobs, extras, job, work)
    for name in SAME:
        getattr(new, name)[...] = getattr(old, name)
    c = new.counter
    c[st.NEXT_JOB], c[st.HAS_PROFILE] = len(retained), 0
    c[st.BLOCKED_HEAD] = place[c[st.BLOCKED_HEAD]]
    new.heap[: c[st.N_HEAP]] = place[old.heap[: c[st.N_HEAP]]]
    _carry_lists(old, new, place)
    n_slots = min(len(old.slot), len(new.slot))
    new.slot[:n_slots] = old.slot[:n_slots]  # without shares to come or running, all are closed
    c[st.N_SLOTS] = c[st.N_SLOTS] if len(new.slot) > 1 else 0
    _carry_entries(old, new, len(retained))
    return new


def _carry_lists(old: Sim, new: Sim, place: Ints) -> None:
    for before, now in zip(old.list_of, new.list_of, strict=True):
        n = before[st.COUNT]
        head = now[st.LOW] + (now[st.CAP] - n) // 2
        source = slice(before[st.HEAD], before[st.HEAD] + n)
        new.list_item[head : head + n] = place[old.list_item[source]]
        new.list_key[head : head + n] = old.list_key[source]
        now[st.HEAD], now[st.COUNT] = head, n


def _carry_entries(old: Sim, new: Sim, n_kept: int) -> None:
    """Allocations of what runs stand first in the store, chained as before."""
    n = 0
    for row in new.job[:n_kept]:
        e, row[st.ENTRY] = row[st.ENTRY], -1 if row[st.ENTRY] < 0 else n
        while e >= 0:
            after = old.entry[e, st.NEXT]
            new.entry[n] = *old.entry[e, : st.NEXT], -1 if after < 0 else n + 1
            e, n = after, n + 1
    new.counter[st.FREE_ENTRY] = n
