"""The compiled scheduler agrees with the slow one, job by job, for every policy."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.cluster.cluster import SchedulingPolicy
from gpuplan.domain.cluster.jobs import JobNeeds
from gpuplan.simulation.cluster.events import outside_events
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams
from gpuplan.units import DAY
from kernels.cluster.cases import BURST, DISTURBED, cluster, full_stream, quota_teams, stream
from kernels.cluster.simpy_clock import SimPyScheduler
from kernels.cluster.slow_passes import Scheduler, conserved

KINDS = ("fails", "returns", "drains")
POLICIES = {
    "fifo strict": SchedulingPolicy(blocking="strict"),
    "fifo best effort": SchedulingPolicy(blocking="skip", depth=20),
    "fifo spread": SchedulingPolicy(blocking="skip", placement="spread"),
    "fifo scatter": SchedulingPolicy(blocking="strict", placement="scatter"),
    "easy": SchedulingPolicy(blocking="easy"),
    "easy scatter": SchedulingPolicy(blocking="easy", placement="scatter"),
    "conservative": SchedulingPolicy(blocking="conservative", depth=15),
    "priority": SchedulingPolicy(order="priority", blocking="strict", preempts=True),
    "priority lossy": SchedulingPolicy(
        order="priority", blocking="easy", preempts=True, saves_on_preemption=False
    ),
    "shortest remaining": SchedulingPolicy(order="shortest", blocking="skip", preempts=True),
    "edf": SchedulingPolicy(order="edf", blocking="strict", preempts=True),
    "edf backfill": SchedulingPolicy(order="edf", blocking="easy"),
    "fair": SchedulingPolicy(order="fair", blocking="strict", half_life_s=3000.0),
    "fair best effort": SchedulingPolicy(order="fair", blocking="skip", depth=5),
    "drf": SchedulingPolicy(order="drf", blocking="skip"),
    "kueue strict": SchedulingPolicy(order="kueue", blocking="strict", preempts=True),
    "kueue best effort": SchedulingPolicy(
        order="kueue", blocking="skip", preempts=True, within="lower_or_newer_equal"
    ),
    "kueue by priority": SchedulingPolicy(
        order="kueue", blocking="skip", preempts=True, reclaim="lower_priority", within="never"
    ),
}


def slow_run(described, jobs, events, until_s, clock):
    """Services go on until the last job has ended."""
    for _ in range(13):
        slow = clock(described, jobs, list(events), until_s, conserved).run()
        last = max(j.finished for j in slow.jobs if j.finished == j.finished)
        if not described.services or last <= until_s:
            break
        until_s = last
    return slow


def agree(described, jobs, clock=Scheduler) -> None:
    found = simulate_cluster(described, jobs, n_segments=10_000)
    end = float(jobs.arrive_s[-1])
    at, what = outside_events(described, 2 * end + 30 * DAY)
    events = [(t, KINDS[kind], int(node)) for t, (kind, node) in zip(at, what, strict=True)]
    slow = slow_run(with_all_teams(described, jobs), jobs, events, end, clock)
    assert found.n_unfit == slow.n_unfit
    columns = {
        "start_s": [j.first for j in slow.jobs],
        "end_s": [j.finished for j in slow.jobs],
        "n_preempted": [j.preempted for j in slow.jobs],
        "n_failed": [j.failed for j in slow.jobs],
        "held_accelerator_s": [j.held_time for j in slow.jobs],
        "lost_accelerator_s": [j.lost for j in slow.jobs],
    }
    for name, theirs in columns.items():
        mine = getattr(found.jobs, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_every_policy_agrees_job_by_job(name, seed):
    agree(cluster(POLICIES[name], teams=quota_teams()), full_stream(seed, n=60))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_agrees_with_simpy_job_by_job(name):
    agree(cluster(POLICIES[name], **DISTURBED), full_stream(13, n=60), SimPyScheduler)
    agree(cluster(POLICIES[name], teams=quota_teams(None)), full_stream(5, n=60), SimPyScheduler)


def test_simpy_follows_elastic_jobs_and_the_cloud():
    jobs = full_stream(21, n=60, is_elastic=True)
    jobs = replace(jobs, needs=replace(jobs.needs, level=np.zeros(60, np.int64)))
    agree(cluster(POLICIES["easy"]), jobs, SimPyScheduler)
    agree(cluster(POLICIES["easy"], burst=BURST), stream(5, n=80, load_s=40.0), SimPyScheduler)


@pytest.mark.parametrize("name", POLICIES)
def test_with_services_failures_and_maintenance(name):
    jobs = full_stream(7, n=60)
    agree(cluster(POLICIES[name], **DISTURBED), jobs)


@pytest.mark.parametrize("name", POLICIES)
def test_with_shares_and_slices(name):
    if POLICIES[name].placement == "scatter":
        pytest.skip("shares do not depend on how gangs are cut")
    agree(cluster(POLICIES[name], teams=quota_teams(None)), full_stream(3, n=60, is_shared=True))


@pytest.mark.parametrize("name", ["fifo strict", "fifo best effort", "easy", "priority", "edf"])
@pytest.mark.parametrize("seed", range(2))
def test_elastic_jobs(name, seed):
    jobs = full_stream(seed + 20, n=60, is_elastic=True)
    jobs = replace(jobs, needs=replace(jobs.needs, level=np.zeros(60, np.int64)))
    agree(cluster(POLICIES[name]), jobs)


@pytest.mark.parametrize("name", ["fifo strict", "easy", "fair", "kueue best effort"])
def test_burst_to_the_cloud(name):
    agree(cluster(POLICIES[name], burst=BURST), stream(5, n=80, load_s=40.0))


@pytest.mark.parametrize("name", ["fifo strict", "easy", "kueue best effort"])
def test_hard_quotas(name):
    jobs = replace(stream(11, n=80), needs=JobNeeds())
    agree(cluster(POLICIES[name], teams=quota_teams(None)), jobs)
