"""Quotas as shares of the hardware: whole numbers, the same sum, other kinds of nodes."""

import numpy as np
import pytest

from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, NodeGroup, PlanTerms, Quota
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.studies.cluster.planning.quotas import (
    DESCRIBED,
    STEP_FRAC,
    QuotaShares,
    described_shares,
    moved,
    quota_choices,
    with_shares,
)


def group(name, n_nodes):
    return NodeGroup(accelerator=name, n_nodes=n_nodes, n_accelerators_per_node=8)


def team(name, *quotas):
    return ClusterTeam(name=name, cohort="all", quotas=quotas)


def quota(n, name="A", **limits):
    return Quota(accelerator=name, n_accelerators=n, **limits)


def cluster(*teams, groups=(), **terms):
    groups = groups or (group("A", 4), group("B", 0))
    return Cluster(name="c", groups=groups, teams=teams, plan=PlanTerms(**terms))


def numbers(teams, name="A"):
    return [q.n_accelerators for t in teams for q in t.quotas if q.accelerator == name]


def jobs(gpus=(1, 3), team_names=("x", "y")):
    n = len(gpus)
    return Jobs(
        arrive_s=np.arange(n, dtype=float),
        duration_s=np.full(n, 100.0),
        n_accelerators=np.array(gpus),
        team=np.arange(n),
        team_names=team_names,
    )


def test_twice_the_hardware_is_twice_the_quota():
    described = cluster(team("x", quota(24.0)), team("y", quota(8.0)))
    assert numbers(with_shares(described, (group("A", 8),), DESCRIBED)) == [48, 16]


@pytest.mark.parametrize("n_nodes", [1, 3, 5, 7, 11])
def test_whole_quotas_fill_the_hardware(n_nodes):
    described = cluster(team("x", quota(11.0)), team("y", quota(11.0)), team("z", quota(10.0)))
    found = numbers(with_shares(described, (group("A", n_nodes),), DESCRIBED))
    assert sum(found) == 8 * n_nodes
    assert all(n == int(n) for n in found)
    assert max(found) - min(found) <= 1 + n_nodes / 3


def test_a_kind_that_is_new_is_shared_as_the_rest():
    described = cluster(team("x", quota(24.0)), team("y", quota(8.0)))
    teams = with_shares(described, (group("A", 0), group("B", 2)), DESCRIBED)
    assert numbers(teams, "B") == [12, 4]
    assert numbers(teams, "A") == []


def test_a_kind_that_a_team_has_no_quota_of_stays_closed_to_it():
    both = (group("A", 2), group("B", 2))
    described = cluster(
        team("x", quota(16.0), quota(16.0, "B")), team("y", quota(0.0)), groups=both
    )
    assert numbers(with_shares(described, both, DESCRIBED), "B") == [16, 0]


def test_limits_of_borrowing_and_lending_follow():
    described = cluster(team("x", quota(16.0, n_borrow=8.0, n_lend=4.0)), team("y", quota(16.0)))
    (x, _) = with_shares(described, (group("A", 8),), DESCRIBED)
    assert (x.quotas[0].n_borrow, x.quotas[0].n_lend) == (16.0, 8.0)


def test_teams_without_quotas_stay_free():
    described = cluster(team("x", quota(32.0)), ClusterTeam(name="free"))
    assert with_shares(described, (group("A", 1),), DESCRIBED)[1].quotas == ()


def test_by_demand_is_in_proportion_to_the_work():
    described = cluster(team("x", quota(16.0)), team("y", quota(16.0)))
    own, by_demand = quota_choices(described, jobs())
    assert own == DESCRIBED
    assert dict(by_demand.shares) == pytest.approx({"x": 0.25, "y": 0.75})
    assert numbers(with_shares(described, (group("A", 4),), by_demand)) == [8, 24]


def test_quotas_that_are_kept_have_one_division():
    described = cluster(team("x", quota(16.0)), team("y", quota(16.0)), keeps_quotas=True)
    assert quota_choices(described, jobs()) == (DESCRIBED,)
    assert quota_choices(cluster(ClusterTeam(name="x")), jobs()) == (DESCRIBED,)


def test_a_move_takes_from_one_and_gives_to_the_other():
    described = cluster(team("x", quota(16.0)), team("y", quota(16.0)))
    before, after = described_shares(described), moved(described, DESCRIBED, "x", "y")
    assert after is not None
    then = dict(after.shares)
    assert then["x"] == pytest.approx(before["x"] - STEP_FRAC)
    assert then["y"] == pytest.approx(before["y"] + STEP_FRAC)
    assert sum(then.values()) == pytest.approx(sum(before.values()))


def test_nobody_gives_what_it_has_not():
    poor = QuotaShares("poor", (("x", STEP_FRAC / 2), ("y", 0.9)))
    described = cluster(team("x", quota(16.0)), team("y", quota(16.0)))
    assert moved(described, poor, "x", "y") is None
    assert moved(described, poor, "y", "y") is None
    assert moved(described, poor, "y", "nobody") is None
