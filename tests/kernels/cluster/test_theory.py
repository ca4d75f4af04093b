"""Limits that theory knows: Erlang C, M/D/1 of gangs, Little's law, and Kueue's own examples."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.cluster.cluster import (
    Cluster,
    ClusterTeam,
    NodeFailures,
    NodeGroup,
    Quota,
    SchedulingPolicy,
)
from gpuplan.domain.cluster.jobs import Jobs, JobTerms
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams
from gpuplan.simulation.cluster.stream import ClusterStream
from kernels.cluster.cases import DISTURBED, cluster, full_stream, quota_teams

N_SEEDS = 20
HOUR = 3600.0


def one_group(n_nodes, per_node, **parts):
    group = NodeGroup(accelerator="H100", n_nodes=n_nodes, n_accelerators_per_node=per_node)
    return Cluster(name="theory", groups=(group,), **parts)


def jobs_of(arrive, duration, gpus, team=None, names=("a",), **columns):
    n = len(arrive)
    return Jobs(
        arrive_s=np.asarray(arrive, float),
        duration_s=np.asarray(duration, float),
        n_accelerators=np.broadcast_to(np.asarray(gpus), n).astype(np.int64),
        team=np.zeros(n, np.int64) if team is None else np.asarray(team),
        team_names=names,
        **columns,
    )


def interval(values):
    mean, error = np.mean(values), np.std(values, ddof=1) / math.sqrt(len(values))
    return mean - 3 * error, mean + 3 * error


def erlang_c_wait(load, servers, service):
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last) * service / (servers - load)


def test_single_gpu_jobs_wait_as_erlang_c_says():
    waits = []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        arrive = np.cumsum(rng.exponential(1 / 6.8, 20_000))
        jobs = jobs_of(arrive, rng.exponential(1.0, 20_000), 1)
        found = simulate_cluster(one_group(1, 8), jobs)
        waits.append(float(np.mean((found.jobs.start_s - jobs.arrive_s)[2000:])))
    low, high = interval(waits)
    assert low < erlang_c_wait(6.8, 8, 1.0) < high


def test_gangs_of_the_whole_cluster_are_one_server():
    """M/D/1: the mean wait is rho D / 2(1 - rho)."""
    waits = []
    for seed in range(N_SEEDS):
        arrive = np.cumsum(np.random.default_rng(seed).exponential(1 / 0.7, 20_000))
        jobs = jobs_of(arrive, np.ones(20_000), 16)
        found = simulate_cluster(one_group(2, 8), jobs)
        waits.append(float(np.mean((found.jobs.start_s - jobs.arrive_s)[2000:])))
    low, high = interval(waits)
    assert low < 0.7 / 2 / 0.3 < high


@pytest.mark.parametrize("blocking", ["strict", "skip", "easy", "conservative"])
def test_littles_law_closes(blocking):
    rng = np.random.default_rng(5)
    jobs = jobs_of(np.cumsum(rng.exponential(50, 2000)), rng.exponential(900, 2000), 2)
    found = simulate_cluster(one_group(4, 8, policy=SchedulingPolicy(blocking=blocking)), jobs)
    line = found.timeline
    lasts = np.full(len(line.batch), line.bin_s)
    lasts[-1] = found.end_s - line.bin_s * (len(lasts) - 1)
    waited = float((found.jobs.start_s - jobs.arrive_s).sum())
    assert (line.queued_jobs * lasts).sum() == pytest.approx(waited)
    held = float((jobs.duration_s * jobs.n_accelerators).sum())
    assert (line.batch * lasts).sum() == pytest.approx(held)
    layers = line.batch + line.service + line.down + line.idle
    layers = layers + line.quota_blocked + line.too_few + line.fragmented
    np.testing.assert_allclose(layers, 32.0)


def test_backfill_never_delays_the_first_blocked_job():
    """With exact limits every job at the head starts by its first reservation or sooner."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = 40
        small = jobs_of(np.sort(rng.uniform(1, 4000, n)), rng.uniform(100, 5000, n), 2)
        # 14 of 16 GPUs are busy until 3000 s; a gang of 16 comes at 0.5 s and must start then.
        arrive = np.concatenate([[0.0, 0.0, 0.5], small.arrive_s])
        duration = np.concatenate([[3000.0, 2000.0, 500.0], small.duration_s])
        gpus = np.concatenate([[8, 6, 16], np.full(n, 1 + seed % 2)])
        jobs = jobs_of(arrive, duration, gpus)
        for blocking in ("easy", "conservative"):
            policy = SchedulingPolicy(blocking=blocking)
            found = simulate_cluster(one_group(2, 8, policy=policy), jobs)
            assert found.jobs.start_s[2] == 3000.0
            if blocking == "easy":
                assert (found.jobs.start_s[3:] < 3000.0).any()  # and it does backfill


def test_same_seed_same_bytes():
    jobs = full_stream(2, n=100)
    described = cluster(SchedulingPolicy(order="priority", preempts=True), **DISTURBED)
    first, again = (simulate_cluster(described, jobs, n_segments=999) for _ in range(2))
    for name in ("start_s", "end_s", "held_accelerator_s", "lost_accelerator_s", "node"):
        assert getattr(first.jobs, name).tobytes() == getattr(again.jobs, name).tobytes()
    assert first.timeline.batch.tobytes() == again.timeline.batch.tobytes()


RUN_CASES = {
    "kueue": ({"order": "kueue", "blocking": "skip"}, {"teams": quota_teams()}, {}),
    "scattered": ({"placement": "scatter"}, {}, {}),
    "elastic": ({}, {}, {"is_elastic": True}),
    "disturbed": ({"order": "priority", "preempts": True}, DISTURBED, {}),
}


@pytest.mark.parametrize("name", RUN_CASES)
def test_runs_hold_every_node_within_its_gpus_and_add_up(name):
    policy, parts, kind = RUN_CASES[name]
    jobs, described = full_stream(4, n=100, **kind), cluster(SchedulingPolicy(**policy), **parts)
    found = simulate_cluster(described, jobs, n_segments=9999)
    runs = found.runs
    assert runs.n_total == len(runs.start_s)
    assert (runs.end_s >= runs.start_s).all()
    size = np.repeat(
        [g.n_accelerators_per_node for g in described.groups],
        [g.n_nodes for g in described.groups],
    )
    is_whole = np.isclose(runs.n_accelerators % 1, 0)  # of a shared GPU, the rest may be idle
    for node in np.unique(runs.node[is_whole]):
        mine = is_whole & (runs.node == node)
        times = np.concatenate([runs.end_s[mine], runs.start_s[mine]])
        change = np.concatenate([-runs.n_accelerators[mine], runs.n_accelerators[mine]])
        assert np.cumsum(change[np.lexsort([change, times])]).max() <= size[node]
    mine = runs.job < len(jobs)
    held = np.bincount(
        runs.job[mine], ((runs.end_s - runs.start_s) * runs.n_accelerators)[mine], len(jobs)
    )
    np.testing.assert_allclose(held, found.jobs.held_accelerator_s, rtol=1e-9, atol=1e-6)


def test_a_gang_is_logged_on_all_its_nodes():
    jobs = jobs_of(np.zeros(2), np.full(2, HOUR), np.array([20, 4]))
    runs = simulate_cluster(one_group(3, 8), jobs, n_segments=99).runs
    gang = runs.job == 0
    by_node = dict(zip(runs.node[gang], runs.n_accelerators[gang], strict=True))
    assert sorted(by_node.values()) == [4.0, 8.0, 8.0]
    assert len(by_node) == 3


TEAMS = ("team-a", "team-b")


def kueue(quotas, **how):
    """Two teams in one cohort on 21 GPUs, as in the documentation of ClusterQueue."""
    teams = tuple(
        ClusterTeam(name=name, cohort="team-ab", quotas=(Quota(accelerator="H100", **quota),))
        for name, quota in quotas.items()
    )
    policy = SchedulingPolicy(order="kueue", blocking="skip", preempts=True, **how)
    return one_group(21, 1, teams=teams, policy=policy)


def admitted(described, jobs, at):
    found = simulate_cluster(described, jobs, n_segments=999).runs
    is_on = (found.start_s <= at) & (found.end_s > at)
    return np.bincount(jobs.team[found.job[is_on]], minlength=2).tolist()


@pytest.mark.parametrize(
    ("a", "b", "most"),
    [
        ({}, {}, 21),  # all of team b's unused quota can be borrowed
        ({"n_borrow": 1}, {}, 10),  # borrowingLimit: 9 + 1
        ({}, {"n_lend": 1}, 10),  # lendingLimit: 9 + 1
    ],
)
def test_kueue_borrowing_and_lending_limits(a, b, most):
    quotas = {"team-a": {"n_accelerators": 9, **a}, "team-b": {"n_accelerators": 12, **b}}
    jobs = jobs_of(np.zeros(30), np.full(30, HOUR), 1, names=TEAMS)
    assert admitted(kueue(quotas), jobs, 10.0) == [most, 0]


@pytest.mark.parametrize(
    ("reclaim", "priority", "expected"),
    [
        ("any", 0, [9, 12]),
        ("never", 0, [21, 0]),
        ("lower_priority", 0, [21, 0]),
        ("lower_priority", 1, [9, 12]),
    ],
)
def test_kueue_reclaims_what_was_borrowed(reclaim, priority, expected):
    """Team a borrows all; team b's jobs within its own quota preempt the borrowers."""
    quotas = {"team-a": {"n_accelerators": 9}, "team-b": {"n_accelerators": 12}}
    jobs = jobs_of(
        np.repeat([0.0, 100.0], [21, 15]),
        np.full(36, HOUR),
        1,
        team=np.repeat([0, 1], [21, 15]),
        names=TEAMS,
        terms=JobTerms(priority=np.repeat([0, priority], [21, 15])),
    )
    assert admitted(kueue(quotas, reclaim=reclaim), jobs, 200.0) == expected


def test_kueue_prefers_those_within_their_quota_to_those_who_borrow():
    quotas = {"team-a": {"n_accelerators": 9}, "team-b": {"n_accelerators": 12}}
    # Two jobs come while all is taken; the earlier would borrow, the later would not.
    jobs = jobs_of(
        [*np.zeros(9), *np.zeros(12), 10.0, 20.0],
        [*np.full(9, 5000.0), 100.0, *np.full(11, 5000.0), 50.0, 50.0],
        1,
        team=[*np.zeros(9, int), *np.ones(12, int), 0, 1],
        names=TEAMS,
    )
    found = simulate_cluster(kueue(quotas, reclaim="never"), jobs)
    assert found.jobs.start_s[22] == 100.0  # team b's
    assert found.jobs.start_s[21] == 150.0


def test_kueue_limits_bind_the_team_that_has_them_alone():
    """borrowingLimit of one team leaves the other 12 + 9; lendingLimit 1 holds 11 of 12 back."""
    quotas = {"team-a": {"n_accelerators": 9, "n_borrow": 1}, "team-b": {"n_accelerators": 12}}
    jobs = jobs_of(np.zeros(30), np.full(30, HOUR), 1, team=np.ones(30, int), names=TEAMS)
    assert admitted(kueue(quotas), jobs, 10.0) == [0, 21]
    quotas = {"team-a": {"n_accelerators": 9}, "team-b": {"n_accelerators": 12, "n_lend": 1}}
    for n_b, expected in ((11, [10, 11]), (12, [9, 12])):
        team = np.repeat([1, 0], [n_b, 30])
        jobs = jobs_of(
            np.repeat([0.0, 5.0], [n_b, 30]), np.full(n_b + 30, HOUR), 1, team=team, names=TEAMS
        )
        assert admitted(kueue(quotas), jobs, 10.0) == expected


@pytest.mark.parametrize(
    ("within", "priorities", "stopped"),
    [
        ("never", (0, 1), []),
        ("lower_priority", (0, 0), []),
        ("lower_priority", (0, 1), [0]),
        ("lower_or_newer_equal", (0, 0), []),  # the one that runs is the older
        ("lower_or_newer_equal", (0, 1), [0]),
    ],
)
def test_kueue_preempts_within_its_own_queue_as_configured(within, priorities, stopped):
    quotas = {"team-a": {"n_accelerators": 21}, "team-b": {"n_accelerators": 0}}
    jobs = jobs_of(
        [0.0, 100.0], [HOUR, HOUR], 21, names=TEAMS, terms=JobTerms(priority=np.array(priorities))
    )
    found = simulate_cluster(kueue(quotas, within=within), jobs)
    assert np.flatnonzero(found.jobs.n_preempted).tolist() == stopped


def test_kueue_preempts_the_lowest_priority_then_the_newest_and_as_few_as_will_do():
    """Team a has 21 of 9: team b's jobs take from it in the documented order of candidates."""
    quotas = {"team-a": {"n_accelerators": 9}, "team-b": {"n_accelerators": 12}}
    for sizes, priority, needs, stopped in (
        ([7, 7, 7], [1, 0, 1], 7, [1]),  # lowest priority
        ([7, 7, 7], [0, 0, 0], 7, [2]),  # admitted most recently
        ([9, 4, 6, 2], [0, 0, 0, 0], 6, [2]),  # the newest, of 2, would be one too many
    ):
        n = len(sizes)
        jobs = jobs_of(
            [*range(n), 100.0],
            np.full(n + 1, HOUR),
            [*sizes, needs],
            team=[*np.zeros(n, int), 1],
            names=TEAMS,
            terms=JobTerms(priority=np.array([*priority, 0])),
        )
        found = simulate_cluster(kueue(quotas), jobs)
        assert np.flatnonzero(found.jobs.n_preempted).tolist() == stopped
        assert found.jobs.start_s[n] == 100.0


def test_goodput_falls_as_failures_say():
    """One node, work without checkpoints of length D: the mean time to finish [Young1974]."""
    mtbf, work = 10_000.0, 5000.0
    expected = (math.exp(work / mtbf) - 1) * mtbf  # each failure begins the job anew
    times = []
    for seed in range(200):
        described = one_group(1, 8, failures=NodeFailures(mtbf_s=mtbf, mttr_s=1e-6), seed=seed)
        found = simulate_cluster(described, jobs_of([0.0], [work], 8))
        times.append(found.jobs.end_s[0])
    low, high = interval(times)
    assert low < expected < high


def test_checkpoints_bound_what_a_failure_costs():
    described = one_group(1, 8, failures=NodeFailures(mtbf_s=2000.0, mttr_s=100.0), seed=3)
    terms = JobTerms(checkpoint_s=np.array([100.0]), restart_s=np.array([10.0]))
    jobs = jobs_of([0.0], [20_000.0], 8)
    found = simulate_cluster(described, replace(jobs, terms=terms)).jobs
    n = int(found.n_failed[0])
    assert n > 3
    assert 0 < found.lost_accelerator_s[0] <= 8 * n * 110.0 + 1e-6
    assert found.held_accelerator_s[0] - found.lost_accelerator_s[0] == pytest.approx(160_000.0)


def test_failures_go_on_until_the_last_job_has_ended():
    """A run of many months after the only submission meets failures all along: D / MTBF of them."""
    day, found = 24 * HOUR, []
    for seed in range(N_SEEDS):
        failures = NodeFailures(mtbf_s=5 * day, mttr_s=60.0)
        described = one_group(1, 8, failures=failures, seed=seed)
        terms = JobTerms(checkpoint_s=np.full(1, HOUR))
        run = jobs_of([0.0], [200 * day], 8, terms=terms)
        found.append(int(simulate_cluster(described, run).jobs.n_failed[0]))
        streamed = ClusterStream(with_all_teams(described, run), run.team_names, 0.0)
        ended = streamed.feed(run, None)[0].outcomes
        assert int(ended.n_failed[0]) == found[-1]
    assert abs(np.mean(found) - 40) < 3 * math.sqrt(40 / N_SEEDS) + 1


def test_failures_end_where_nothing_can_end_any_more():
    """Work that never reaches a checkpoint between failures: it stops somewhere."""
    failures = NodeFailures(mtbf_s=HOUR, mttr_s=60.0)
    endless = simulate_cluster(one_group(1, 8, failures=failures), jobs_of([0.0], [1e6], 8))
    assert 30 * 24 < int(endless.jobs.n_failed[0]) < 2 * 32 * 30 * 24
