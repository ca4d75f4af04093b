"""Day and night, and six teams: what sharing does, by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuplan.domain.cluster.answer import ClusterRequest
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.inputs.cluster import read_cluster
from gpuplan.inputs.jobs.read import read_jobs
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.studies.cluster.compare import with_quota
from gpuplan.studies.cluster.simulate import answers
from gpuplan.studies.cluster.waits import team_rows
from gpuplan.units import HOUR

CLUSTERS = Path(__file__).parents[4] / "examples" / "clusters"
A100 = "A100-SXM-80GB"


def one_job(gpus, hours, at_h=0.0):
    return Jobs(
        arrive_s=np.array([at_h * HOUR]),
        duration_s=np.array([hours * HOUR]),
        n_accelerators=np.array([gpus]),
        team=np.array([1]),
        team_names=("chat", "training"),
    )


@pytest.mark.parametrize(
    ("gpus", "hours", "at_h", "end_h"),
    [
        (16, 8, 0, 8),  # the night is enough
        (16, 20, 0, 32),  # 8 h, a day of waiting, 12 h of the next night from 20 o'clock
        (16, 24, 0, 48),  # 8 h, 12 h from 20 to 32 h, and 4 h from 44 h on
        (4, 20, 0, 20),  # four GPUs are free by day too
        (16, 4, 9, 24),  # submitted by day: waits until 20 o'clock
    ],
)
def test_jobs_take_the_valleys_and_services_are_never_short(gpus, hours, at_h, end_h):
    cluster = read_cluster(CLUSTERS / "day-night.yaml")
    found = simulate_cluster(cluster, one_job(gpus, hours, at_h))
    assert found.jobs.end_s[0] / HOUR == pytest.approx(end_h)
    assert found.service_short_accelerator_s == 0.0


def test_apart_the_same_work_needs_28_gpus():
    # 12 GPUs for the service at noon and 16 for the job; shared, 16 are enough for both.
    cluster = read_cluster(CLUSTERS / "day-night.yaml")
    service = cluster.services[0]
    apart = service.n_accelerators_per_replica * max(service.replicas_by_hour) + 16
    assert (apart, cluster.n_accelerators) == (28, 16)


def six_teams():
    jobs = read_jobs(CLUSTERS / "six-teams.csv")
    return read_cluster(CLUSTERS / "six-teams.yaml"), jobs


def waits(cluster, jobs):
    rows = team_rows(cluster.teams, jobs, simulate_cluster(cluster, jobs))
    return {row.name: row.wait_p90_s for row in rows}


def test_a_larger_quota_shortens_the_wait_of_its_team():
    cluster, jobs = six_teams()
    before = waits(cluster, jobs)
    after = waits(with_quota(cluster, "speech", A100, 64.0), jobs)
    assert after["speech"] < before["speech"]
    assert after != before


def test_without_borrowing_teams_wait_longer():
    cluster, jobs = six_teams()
    alone = replace(cluster, teams=tuple(replace(t, cohort=None) for t in cluster.teams))
    shared, own = waits(cluster, jobs), waits(alone, jobs)
    assert sum(own.values()) > sum(shared.values())
    assert own["research"] > shared["research"]


def test_quota_bills_follow_the_quota():
    cluster, jobs = six_teams()
    more = with_quota(cluster, "ads", A100, 48.0)
    bill, then = (
        {one.team: one.idle_usd for one in answers(c, jobs, ClusterRequest()).bills}
        for c in (cluster, more)
    )
    assert then["ads"] / bill["ads"] == pytest.approx((48 / 160) / (16 / 128), rel=0.1)
