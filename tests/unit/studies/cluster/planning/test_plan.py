"""Planned clusters: held against trying every fleet, and against arithmetic."""

from dataclasses import replace
from datetime import date
from itertools import product
from pathlib import Path

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
)
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs, JobTerms
from gpuplan.domain.cluster.plan import ClusterPlanRequest
from gpuplan.domain.ranges import exactly
from gpuplan.errors import InfeasibleError, InputError
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.studies.cluster.planning.judge import OWN, Fleet, Judge, missed_targets
from gpuplan.studies.cluster.planning.plan import planned
from gpuplan.studies.cluster.planning.prices import Priced, PricedNode
from gpuplan.studies.cluster.planning.quotas import DESCRIBED
from gpuplan.studies.cluster.planning.relaxation import refuse_cluster

REQUEST = ClusterPlanRequest(
    cluster_file=Path("c.yaml"), jobs_file=Path("j.csv"), today=date(2026, 11, 1), n_draws=0
)


def stream(n=250, seed=6, **columns):
    rng = np.random.default_rng(seed)
    return Jobs(
        arrive_s=np.cumsum(rng.exponential(200.0, n)),
        duration_s=rng.exponential(3000.0, n),
        n_accelerators=rng.choice([1, 2, 4, 8], n),
        team=rng.integers(0, 2, n),
        team_names=("a", "b"),
        **columns,
    )


def kind(name, usd, *, size=8, speed=1.0, **bounds):
    group = NodeGroup(
        accelerator=name,
        n_nodes=2 if name == "A" else 0,
        n_accelerators_per_node=size,
        usd_per_accelerator_h=usd,
        speed_ratio=speed,
        bounds=NodeBounds(**bounds),
    )
    return PricedNode(group, exactly(usd * size), "test", None)


def cluster_of(*kinds, target_s=600.0, quotas=(), **parts):
    teams = tuple(
        ClusterTeam(
            name=name,
            wait_p90_s=target_s,
            cohort="all" if quotas else None,
            quotas=(Quota(accelerator="A", n_accelerators=quotas[i]),) if quotas else (),
        )
        for i, name in enumerate("ab")
    )
    return Cluster(name="tried", groups=tuple(k.group for k in kinds), teams=teams, **parts)


def plan_of(*kinds, jobs=None, request=REQUEST, **parts):
    cluster = cluster_of(*kinds, **parts)
    return planned(cluster, jobs or stream(), request, Priced(kinds, ()))


def brute_force_usd(cluster, kinds, jobs, most):
    """The cheapest of all fleets under the described rules."""
    judge = Judge(cluster, kinds, jobs, n_draws=0, seed=0)
    best = np.inf
    for counts in product(range(most + 1), repeat=len(kinds)):
        usd = judge.usd_per_month(counts)
        if usd < best and judge.is_met(Fleet(counts, OWN, DESCRIBED)):
            best = usd
    return best


@pytest.mark.parametrize("target_s", [60.0, 900.0, 7200.0])
@pytest.mark.parametrize("usd", [0.7, 1.3, 2.4])
def test_the_plan_is_as_cheap_as_trying_every_fleet(target_s, usd):
    kinds = (kind("A", 1.0), kind("B", usd, size=4, speed=1.5))
    terms = PlanTerms(policies=("best-effort",), keeps_quotas=True)
    found = plan_of(*kinds, target_s=target_s, plan=terms)
    cluster = cluster_of(*kinds, target_s=target_s, plan=terms)
    least = brute_force_usd(cluster, kinds, stream(), most=20)
    assert found.chosen.usd_per_month <= least + 1e-6
    assert not found.chosen.missed
    if found.chosen.policy == OWN:
        assert found.chosen.usd_per_month == pytest.approx(least)


def test_the_chosen_cluster_meets_its_targets_when_it_is_simulated():
    found = plan_of(kind("A", 1.0), kind("B", 3.0, speed=2.0))
    run = found.simulation
    assert [*missed_targets(run.cluster, run.jobs, run.found)] == []
    assert all(group.n_nodes for group in run.cluster.groups)


def test_one_node_less_misses_a_target():
    found = plan_of(kind("A", 1.0))
    (row,) = found.binding
    assert row.missed
    assert row.missed[0].kind == "wait"


def test_a_looser_target_is_never_dearer():
    costs = [plan_of(kind("A", 1.0), target_s=t).chosen.usd_per_month for t in (60, 3600, 36_000)]
    assert costs[0] >= costs[1] >= costs[2]
    assert costs[0] > costs[2]


def test_a_fast_kind_wins_where_it_is_worth_its_price():
    cheap = plan_of(kind("A", 1.0), kind("B", 1.5, speed=3.0)).nodes
    dear = plan_of(kind("A", 1.0), kind("B", 9.0, speed=3.0)).nodes
    assert cheap[1].n_nodes > 0
    assert dear[1].n_nodes == 0


def test_services_and_kinds_that_jobs_ask_for_are_there():
    service = ReservingService(
        name="chat",
        team="a",
        accelerator="B",
        n_accelerators_per_replica=4,
        replicas_by_hour=(3,) * 24,
    )
    found = plan_of(kind("A", 1.0), kind("B", 5.0), services=(service,))
    assert found.nodes[1].n_nodes >= 2  # 12 GPUs are two nodes of eight
    needs = JobNeeds(accelerator=np.zeros(250, np.int64), accelerator_names=("B",))
    found = plan_of(kind("A", 1.0), kind("B", 5.0), jobs=stream(needs=needs))
    assert (found.nodes[0].n_nodes, found.nodes[1].n_nodes > 0) == (0, True)


def test_deadlines_are_targets():
    jobs = stream()
    late = replace(jobs, terms=JobTerms(deadline_s=jobs.arrive_s + jobs.duration_s + 120.0))
    with_deadlines = plan_of(kind("A", 1.0), jobs=late, target_s=36_000.0)
    without = plan_of(kind("A", 1.0), target_s=36_000.0)
    assert with_deadlines.chosen.usd_per_month > without.chosen.usd_per_month
    run = with_deadlines.simulation
    assert (run.found.jobs.end_s <= late.terms.deadline_s).all()


def test_without_a_plan_the_changes_that_help_really_help():
    kinds = (kind("A", 1.0, n_max=3),)
    found = plan_of(*kinds, target_s=60.0)
    with pytest.raises(InfeasibleError, match="max_nodes of A"):
        refuse_cluster(found)
    text = next(one for one in found.relaxations if "max_nodes" in one)
    n = int(text.split(" to ")[1].split(" ")[0])
    assert plan_of(kind("A", 1.0, n_max=n), target_s=60.0).chosen is not None
    assert plan_of(kind("A", 1.0, n_max=n - 1), target_s=60.0).chosen is None


def test_a_budget_that_is_too_small_says_which_is_enough():
    free = plan_of(kind("A", 1.0))
    usd = free.chosen.usd_per_month
    low = plan_of(kind("A", 1.0), request=replace(REQUEST, budget_usd_per_month=usd - 1))
    assert low.chosen is None
    assert any(f"to ${usd:,.0f} a month" in one for one in low.relaxations)
    enough = plan_of(kind("A", 1.0), request=replace(REQUEST, budget_usd_per_month=usd))
    assert enough.chosen.usd_per_month == usd


def test_streams_like_the_trace_ask_for_more_than_the_trace():
    jobs = stream(900)
    sure = replace(REQUEST, n_draws=10, min_probability_frac=1.0)
    found = plan_of(kind("A", 1.0), jobs=jobs, request=sure)
    alone = plan_of(kind("A", 1.0), jobs=jobs)
    assert found.odds.met_frac == 1.0
    assert found.chosen.usd_per_month >= alone.chosen.usd_per_month
    again = plan_of(kind("A", 1.0), jobs=jobs, request=sure)
    assert again.chosen == found.chosen


def test_quotas_follow_the_hardware_and_move_where_that_saves_a_node():
    found = plan_of(kind("A", 1.0), quotas=(15.0, 1.0))
    run = found.simulation
    total = sum(q.n_accelerators for t in run.cluster.teams for q in t.quotas)
    assert total == run.cluster.n_accelerators
    kept = plan_of(kind("A", 1.0), quotas=(15.0, 1.0), plan=PlanTerms(keeps_quotas=True))
    assert found.chosen.usd_per_month <= kept.chosen.usd_per_month


def test_a_cluster_without_targets_is_refused():
    cluster = cluster_of(kind("A", 1.0), target_s=None)
    with pytest.raises(InputError, match="no target"):
        planned(cluster, stream(), REQUEST, Priced((kind("A", 1.0),), ()))


def test_speed_shortens_jobs():
    jobs = stream(5)
    cluster = cluster_of(kind("A", 1.0, speed=2.0))
    found = simulate_cluster(cluster, jobs)
    assert np.allclose(found.jobs.end_s - found.jobs.start_s, jobs.duration_s / 2)
