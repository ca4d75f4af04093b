"""Start times: exact where nothing is unknown, and ranges that hold what they say."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.cluster.answer import EtaRequest
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs
from gpuplan.errors import InputError
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams
from gpuplan.studies.cluster.eta import (
    Kinds,
    allocated_at,
    estimated,
    eta,
    met_queue,
    must_wait,
    record,
    record_size,
    start_estimate,
)
from gpuplan.studies.cluster.start_range import (
    Record,
    adapted_tails,
    calibrated,
    n_alone,
    score,
    stretch,
)
from gpuplan.units import DAY
from shared_data import ROOT

EXAMPLES = ROOT / "examples" / "clusters"


def steady(n=1500, seed=3, per_h=2.0):
    rng = np.random.default_rng(seed)
    return Jobs(
        arrive_s=np.cumsum(rng.exponential(3600 / per_h, n)),
        duration_s=rng.lognormal(9.0, 0.6, n),
        n_accelerators=rng.choice([1, 2, 4, 8], n),
        team=rng.integers(0, 2, n),
        team_names=("a", "b"),
    )


def small(jobs, n_nodes=4):
    group = NodeGroup(accelerator="H100", n_nodes=n_nodes, n_accelerators_per_node=8)
    return with_all_teams(Cluster(name="eta", groups=(group,)), jobs)


def test_an_idle_cluster_starts_at_once():
    jobs = steady(200)
    found = start_estimate(small(jobs, 100), jobs, EtaRequest(n_accelerators=8, duration_s=60.0))
    assert (found.wait_p50_s, found.wait_low_s, found.wait_high_s) == (0.0, 0.0, 0.0)
    assert found.n_queued == 0


def test_jobs_of_one_length_leave_nothing_to_guess():
    """One node, all jobs last an hour: the job starts when the running one and the queue end."""
    jobs = Jobs(
        arrive_s=np.array([0.0, 10_000.0, 10_600.0]),
        duration_s=np.full(3, 3600.0),
        n_accelerators=np.full(3, 8),
        team=np.zeros(3, np.int64),
        team_names=("a",),
    )
    request = EtaRequest(n_accelerators=8, duration_s=60.0, at_s=11_000.0, n_record=2)
    found = start_estimate(small(jobs, 1), jobs, request)
    assert (found.n_running, found.n_queued) == (1, 1)
    assert found.wait_p50_s == pytest.approx(13_600 + 3600 - 11_000, abs=2.0)


def test_the_future_is_not_looked_at():
    jobs = steady(400)
    at = float(jobs.arrive_s[200])
    request = EtaRequest(n_accelerators=4, duration_s=600.0, at_s=at, n_record=5)
    whole = start_estimate(small(jobs), jobs, request)
    cut = Jobs(
        arrive_s=jobs.arrive_s[:201],
        duration_s=jobs.duration_s[:201],
        n_accelerators=jobs.n_accelerators[:201],
        team=jobs.team[:201],
        team_names=jobs.team_names,
    )
    assert start_estimate(small(cut), cut, request).wait_p50_s == whole.wait_p50_s


def test_a_larger_job_waits_no_less():
    jobs = steady(400)
    waits = [
        start_estimate(
            small(jobs), jobs, EtaRequest(n_accelerators=n, duration_s=600.0, n_record=2)
        ).wait_p50_s
        for n in (1, 32)
    ]
    assert waits[0] <= waits[1]


def test_ranges_are_quantiles_of_earlier_scores():
    scores = score(np.array([120.0, 60.0, 0.0]), np.array([60.0, 60.0, 60.0]))
    assert scores[1] == 0.0
    mixed = np.random.default_rng(5).permutation(np.log(np.linspace(0.5, 2.0, 200)))
    low, high = calibrated(60.0, all_started(mixed), 2e7)
    assert low < 60.0 < high <= 2 * 120.0 - 60.0 + 1e-9
    assert calibrated(60.0, all_started(np.empty(0)), 0.0)[0] == 0.0  # nothing is known


def all_started(scores):
    """A record whose jobs start as soon as they are submitted."""
    at = np.arange(len(scores), dtype=float) * 1e5
    return Record(np.asarray(scores), at, at)


def test_jobs_that_wait_together_are_few_misses():
    """Twelve days hold three stretches of two waits; t of a table for what that widens."""
    arrive = np.linspace(0.0, 10 * DAY, 80)
    together = Record(np.zeros(80), arrive, arrive + 2 * DAY)
    assert n_alone(together, 12 * DAY) == pytest.approx(3.0)
    assert n_alone(Record(np.zeros(80), arrive, arrive + 60.0), 10 * DAY) == 80
    for n, t in ((3, 1.886), (5, 1.533), (10, 1.383), (30, 1.311)):
        assert stretch(n) == pytest.approx(t * np.sqrt(1 + 1 / n) / 1.2816, rel=0.025)
    scores = np.random.default_rng(3).normal(0.0, 0.5, 80)
    wide, narrow = (
        float(np.subtract(*np.log(calibrated(1e9, together._replace(scores=scores), now))))
        for now in (12 * DAY, 1200 * DAY)
    )
    assert wide < 1.2 * narrow < 0


def test_open_waits_count_once_they_exceed_the_range():
    begun = np.random.default_rng(4).normal(0.0, 0.3, 60)
    at = np.arange(60.0) * 1e5
    short = Record(np.r_[begun, np.full(20, -3.0)], np.r_[at, at[-20:]], np.r_[at, [np.inf] * 20])
    long = short._replace(scores=np.r_[begun, np.full(20, 2.0)])
    now_s = 61e5
    alone = calibrated(1e6, Record(begun, at, at), now_s)
    assert calibrated(1e6, short, now_s) == pytest.approx(alone, rel=0.02)  # too early to tell
    assert calibrated(1e6, long, now_s)[1] > 3 * alone[1]


def test_a_record_that_drifts_widens_its_side():
    steady_scores = np.random.default_rng(1).normal(0.0, 1.0, 100)
    same = adapted_tails(all_started(steady_scores))
    rising = adapted_tails(all_started(steady_scores + np.linspace(0.0, 4.0, 100)))
    assert same == pytest.approx((0.1, 0.1), abs=0.15)
    assert rising[1] < same[1]
    assert rising[0] > same[0]
    drifting = all_started(steady_scores + np.linspace(0.0, 4.0, 100))
    assert calibrated(600.0, drifting, 1e7)[1] > 600.0


def test_adapted_ranges_hold_80_percent_of_a_drifting_stream():
    rng, held = np.random.default_rng(2), []
    scores = rng.normal(0.0, 1.0, 600) + np.sin(np.arange(600) / 40.0) * 1.5
    for k in range(100, 600):
        before = all_started(scores[k - 100 : k])
        low, high = calibrated(1e9, before, 1e7)
        held.append(np.log(low / 1e9) <= scores[k] <= np.log(high / 1e9))
    assert 0.76 <= np.mean(held) <= 0.88


def test_jobs_that_still_wait_are_no_evidence_of_a_short_wait():
    scores = np.zeros(60)
    waiting = Record(scores, np.arange(60.0), np.full(60, np.inf))
    assert adapted_tails(waiting) == pytest.approx((0.1, 0.1))


def test_ranges_hold_on_later_jobs_of_a_steady_stream():
    """Scores of the first half, tried on the second, of jobs that cannot start at once."""
    jobs = steady(900, per_h=2.6)
    cluster = small(jobs)
    history = simulate_cluster(cluster, jobs)
    request = EtaRequest(n_accelerators=1, duration_s=1.0, n_draws=3)
    wait = history.jobs.start_s - jobs.arrive_s
    tried = np.arange(200, 900, 4)
    told = np.array([estimated(cluster, jobs, history, int(i), request) for i in tried])
    off, blocked = score(wait[tried], told), must_wait(told)
    # Who can start at once is known at submission, but for reservations of backfill.
    assert (wait[tried][~blocked] == 0).mean() > 0.9
    assert (wait[tried][blocked] > 0).mean() > 0.8
    first = tried < 550
    low, high = np.quantile(off[first & blocked], [0.1, 0.9])
    later = off[~first & blocked]
    assert len(later) > 20
    assert 0.62 <= np.mean((later >= low) & (later <= high)) <= 0.97


def test_the_record_is_of_recent_jobs_of_its_kind():
    jobs = steady(300, per_h=2.6)
    cluster = small(jobs)
    history = simulate_cluster(cluster, jobs, until_s=float(jobs.arrive_s[-1]))
    request = EtaRequest(n_accelerators=1, duration_s=1.0, n_record=9)
    found = {w: record(cluster, jobs, history, request, waits=w) for w in (False, True)}
    for one in found.values():
        assert 2 <= np.isfinite(one.start_s).sum() <= 9
        assert len(one.scores) <= 9 + 9 // 2
        assert np.isfinite(one.scores).all()
    waited = {w: (one.start_s > one.arrive_s).mean() for w, one in found.items()}
    assert waited[False] < 0.2
    assert waited[True] > 0.7


def test_a_job_meets_a_queue_or_starts_before_everybody():
    """Job 1 waits for job 0; job 2 comes meanwhile; job 3 finds nobody."""
    jobs = replace(
        steady(4),
        arrive_s=np.array([0.0, 10.0, 20.0, 500.0]),
        duration_s=np.full(4, 100.0),
        n_accelerators=np.array([32, 32, 1, 1]),
    )
    start_s = np.array([0.0, 100.0, 200.0, 500.0])
    assert met_queue(jobs, start_s).tolist() == [False, True, True, False]
    assert met_queue(jobs, np.array([0.0, np.inf, 20.0, 500.0])).tolist() == [
        False,
        True,
        True,
        True,
    ]


def test_few_that_waited_lately_are_joined_by_earlier_ones():
    """On a light cluster nobody waited in the last weeks: the record goes further back."""
    jobs = steady(300, per_h=2.6)
    late = np.where(np.arange(300) < 280, jobs.arrive_s, jobs.arrive_s + 20 * DAY)
    jobs = replace(jobs, arrive_s=late)
    cluster = small(jobs)
    history = simulate_cluster(cluster, jobs, until_s=float(late[-1]))
    request = EtaRequest(n_accelerators=1, duration_s=1.0, n_record=40)
    found = record(cluster, jobs, history, request, waits=True)
    assert (found.start_s > found.arrive_s).sum() > 10


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"team": "nobody"}, "no team 'nobody'"),
        ({"accelerator": "TPU"}, "no TPU in the cluster"),
        ({"n_accelerators": 99}, "99 GPUs, and the largest group has 32"),
        ({"at_s": -5.0}, "no job was submitted by then"),
    ],
)
def test_what_cannot_be_answered_is_refused(asked, what):
    jobs = steady(50)
    request = EtaRequest(**{"n_accelerators": 1, "duration_s": 60.0, **asked})
    with pytest.raises(InputError, match=what):
        start_estimate(small(jobs), jobs, request)


def test_a_long_queue_leaves_time_for_fewer_estimates(monkeypatch):
    assert [record_size(100, n) for n in (0, 447, 1000, 10**6)] == [100, 100, 20, 2]
    jobs = steady(300, per_h=200.0)
    asked = EtaRequest(n_accelerators=1, duration_s=3600.0)
    monkeypatch.setattr("gpuplan.studies.cluster.eta.MOST_WORK", 4)
    found = start_estimate(small(jobs), jobs, asked)
    assert found.n_queued > 0
    assert found.n_record <= 3
    assert "jobs wait" in found.assumptions[-1].why


def test_files_in_an_estimate_out():
    request = EtaRequest(n_accelerators=16, duration_s=3600.0, team="speech", n_record=5)
    found = eta(EXAMPLES / "six-teams.yaml", EXAMPLES / "six-teams.csv", request)
    assert found.wait_low_s <= found.wait_high_s
    assert 1 <= found.n_record <= 5 + 5 // 2


def test_what_runs_goes_on_at_least_as_long_as_it_has():
    """Draws are conditional: a job that has run for long is one of the long ones."""
    jobs = steady(400)
    history = simulate_cluster(small(jobs), jobs)
    now_s = float(history.jobs.end_s[300])
    kinds = Kinds(jobs, history, now_s)
    which = np.arange(50)
    gone = np.linspace(0.0, 60_000.0, 50)
    drawn = kinds.draw(np.random.default_rng(1), jobs, which, gone)
    assert (drawn >= gone).all()
    fresh = kinds.draw(np.random.default_rng(1), jobs, which, np.zeros(50))
    assert drawn.mean() > fresh.mean()
    assert set(fresh) <= set(jobs.duration_s[history.jobs.end_s <= now_s])


def test_the_state_at_an_instant_is_read_off_the_history():
    jobs = Jobs(
        arrive_s=np.array([0.0, 10.0, 20.0, 5000.0]),
        duration_s=np.array([100.0, 100.0, 100.0, 1.0]),
        n_accelerators=np.full(4, 32),
        team=np.zeros(4, np.int64),
        team_names=("a",),
    )
    history = simulate_cluster(small(jobs), jobs)
    for at, running, queued in ((15.0, [0], [1]), (50.0, [0], [1, 2]), (150.0, [1], [2])):
        found = allocated_at(jobs, history, at)
        assert (found[0].tolist(), found[1].tolist()) == (running, queued)
    assert allocated_at(jobs, history, 400.0)[0].tolist() == []


def test_a_named_gpu_type_waits_for_that_type():
    jobs = steady(60)
    jobs = replace(
        jobs,
        arrive_s=np.linspace(0.0, 600.0, 60),
        needs=JobNeeds(accelerator=np.zeros(60, np.int64), accelerator_names=("H100",)),
    )
    groups = tuple(
        NodeGroup(accelerator=name, n_nodes=1, n_accelerators_per_node=8) for name in ("H100", "L4")
    )
    described = with_all_teams(Cluster(name="two", groups=groups), jobs)
    waits = {}
    for name in ("H100", "L4"):
        request = EtaRequest(n_accelerators=8, duration_s=60.0, accelerator=name, n_record=2)
        waits[name] = start_estimate(described, jobs, request).wait_p50_s
    assert waits["L4"] == 0.0 < waits["H100"]
