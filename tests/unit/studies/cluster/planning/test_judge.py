"""The judge: which targets a run misses, which rules may be tried, and bounds of the search."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.cluster.cluster import (
    Cluster,
    ClusterTeam,
    NodeBounds,
    NodeGroup,
    PlanTerms,
    Quota,
    ReservingService,
    SchedulingPolicy,
)
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs, JobTerms
from gpuplan.domain.ranges import exactly
from gpuplan.errors import InputError
from gpuplan.studies.cluster.planning.judge import OWN, Fleet, Judge, policy_choices, policy_of
from gpuplan.studies.cluster.planning.prices import PricedNode
from gpuplan.studies.cluster.planning.quotas import DESCRIBED
from gpuplan.studies.cluster.planning.relaxation import missed_text
from gpuplan.studies.cluster.planning.search import (
    Bounds,
    cheapest_of,
    least_of,
    node_bounds,
    rebalanced,
    within,
)

HOUR = 3600.0


def group(name="A", n_nodes=1, **more):
    return NodeGroup(accelerator=name, n_nodes=n_nodes, n_accelerators_per_node=8, **more)


def jobs(n=6, gpus=8, gap_s=0.0, duration_s=HOUR, **columns):
    return Jobs(
        arrive_s=np.arange(n) * gap_s,
        duration_s=np.full(n, duration_s),
        n_accelerators=np.full(n, gpus),
        team=np.arange(n) % 2,
        team_names=("a", "b"),
        **columns,
    )


def cluster(*groups, target_s=60.0, quotas=(None, None), **parts):
    teams = tuple(
        ClusterTeam(
            name=name,
            wait_p90_s=target_s,
            cohort=None if n is None else "all",
            quotas=() if n is None else (Quota(accelerator="A", n_accelerators=n, n_borrow=0.0),),
        )
        for name, n in zip("ab", quotas, strict=True)
    )
    return Cluster(name="c", groups=groups or (group(),), teams=teams, **parts)


def judge_of(described, stream, usd=1.0, n_draws=0):
    nodes = [PricedNode(one, exactly(8 * usd), "test", None) for one in described.groups]
    return Judge(described, nodes, stream, n_draws=n_draws, seed=0)


def fleet(*counts):
    return Fleet(counts, OWN, DESCRIBED)


def test_six_jobs_at_once_need_a_node_each():
    judge = judge_of(cluster(), jobs())
    assert judge.is_met(fleet(6))
    (late,) = judge.missed(fleet(5))
    # The last of b's three jobs waits an hour: p90 lies 80 % up from its second to its third.
    assert (late.who, late.wait_p90_s) == ("b", pytest.approx(0.8 * HOUR))
    assert "wait p90 of b is 48 min" in missed_text(late)


def test_one_hour_of_waiting_is_reported_as_it_is():
    judge = judge_of(cluster(), jobs(2))
    (missed,) = judge.missed(fleet(1))
    assert (missed.who, missed.wait_p90_s, missed.target_p90_s) == ("b", HOUR, 60.0)


def test_no_nodes_and_gangs_that_fit_nowhere():
    judge = judge_of(cluster(target_s=None), jobs(gpus=16))
    assert judge.missed(fleet(0))[0].n_jobs == 6
    assert judge.missed(fleet(1))[0].kind == "unfit"
    assert "fit on no node" in missed_text(judge.missed(fleet(1))[0])
    assert judge.is_met(fleet(2))


def test_services_that_are_short():
    service = ReservingService(
        name="s",
        team="a",
        accelerator="A",
        n_accelerators_per_replica=8,
        replicas_by_hour=(2,) * 24,
    )
    judge = judge_of(cluster(target_s=None, services=(service,)), jobs(gap_s=HOUR))
    (missed,) = judge.missed(fleet(1))
    assert missed.kind == "service"
    assert missed.short_accelerator_s >= 5 * HOUR * 8
    assert "GPU-hours short" in missed_text(missed)


def test_deadlines_are_counted_as_a_share():
    late = replace(jobs(4), terms=JobTerms(deadline_s=np.full(4, 1.5 * HOUR)))
    judge = judge_of(cluster(target_s=None), late)
    (missed,) = judge.missed(fleet(2))
    assert (missed.kind, missed.met_frac) == ("deadline", 0.5)
    soft = judge_of(cluster(target_s=None, plan=PlanTerms(deadlines_frac=0.5)), late)
    assert soft.is_met(fleet(2))


def test_a_fleet_is_run_once(monkeypatch):
    judge, runs = judge_of(cluster(), jobs()), []
    run = judge._run
    monkeypatch.setattr(judge, "_run", lambda *a: runs.append(a) or run(*a))
    for _ in range(3):
        judge.missed(fleet(2))
    assert len(runs) == 1


def test_draws_stop_when_the_share_cannot_be_reached(monkeypatch):
    judge = judge_of(cluster(), jobs(60, gap_s=HOUR), n_draws=10)
    assert len(judge.draws) == 10
    seen = []
    monkeypatch.setattr(judge, "missed", lambda f, k=-1: seen.append(k) or (1,))
    assert judge.met_frac(fleet(1), 0.8) < 0.8
    assert len(seen) == 3


def test_rules_that_suit_the_file():
    plain = cluster(policy=SchedulingPolicy(placement="spread", depth=7))
    assert policy_choices(plain, jobs()) == (OWN, "fair")  # the described one is EASY already
    assert policy_of(plain, "fair").placement == "spread"
    assert policy_of(plain, "fair").depth == 7
    urgent = replace(jobs(), terms=JobTerms(priority=np.arange(6), deadline_s=np.full(6, 1e5)))
    assert {"edf", "priority"} <= set(policy_choices(plain, urgent))
    with pytest.raises(InputError, match="unknown policy 'best'"):
        policy_choices(cluster(plan=PlanTerms(policies=("best",))), jobs())


def test_bounds_come_from_the_file_and_from_what_is_asked():
    needs = JobNeeds(accelerator=np.full(6, 0), accelerator_names=("B",))
    both = cluster(
        group("A", bounds=NodeBounds(n_min=1, n_max=3)), group("B", n_nodes=0), target_s=None
    )
    bounds = node_bounds(judge_of(both, jobs(gpus=20, needs=needs)))
    assert (bounds.low[0], bounds.high[0]) == (1, 3)
    assert bounds.low[1] == 3  # a gang of 20 GPUs
    free = node_bounds(judge_of(both, jobs(gpus=20, needs=needs)), is_limited=False)
    assert free.high[0] > 3


def test_the_least_number_is_that_of_trying_one_after_the_other():
    judge = judge_of(cluster(target_s=HOUR), jobs(20, gap_s=600.0))
    one_by_one = next(n for n in range(1, 40) if judge.is_met(fleet(n)))
    assert least_of(judge, fleet(0), 0, judge.is_met, most=40) == one_by_one
    assert least_of(judge, fleet(0), 0, judge.is_met, most=one_by_one - 1) is None


def test_two_kinds_where_neither_has_enough():
    both = cluster(
        group("A", bounds=NodeBounds(n_max=2)), group("B", n_nodes=0, bounds=NodeBounds(n_max=5))
    )
    judge = judge_of(both, jobs(4))
    found = cheapest_of(judge, Bounds((0, 0), (2, 3)), (fleet(0, 0),), judge.is_met)
    assert found is not None
    assert sum(found.counts) == 4


def test_quota_moves_to_the_team_that_waits():
    described = cluster(group(n_nodes=8), target_s=60.0, quotas=(48.0, 16.0))
    stream = replace(jobs(5), team=np.array([0, 1, 1, 1, 1]))
    judge = judge_of(described, stream)
    start = fleet(8)
    assert [one.who for one in judge.missed(start)] == ["b"]
    found = rebalanced(judge, start)
    # Two GPUs a move of 1/32: six moves leave b with 28 of the 32 that four jobs need.
    assert found is None
    three = judge_of(described, replace(jobs(4), team=np.array([0, 1, 1, 1])))
    better = rebalanced(three, start)
    assert better is not None
    assert three.is_met(better)
    assert sum(share for _, share in better.quotas.shares) == pytest.approx(1.0)


def test_money_bounds_every_kind():
    judge = judge_of(cluster(group("A"), group("B", n_nodes=0)), jobs())
    bounds = Bounds((0, 0), (9, 9))
    month = 8 * 730.0
    assert [f.counts for f in within(judge, bounds, fleet(0, 0), 3.5 * month)] == [(3, 0), (0, 3)]
