"""Process groups over scale-up domains: which ranks share one, and what that makes of traffic."""

import pytest

from fakes.training import fabric
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.performance.training import process_groups as groups

FABRIC = fabric()
N = FABRIC.n_domain


@pytest.mark.parametrize(
    ("name", "layout", "expected"),
    [
        ("tp", {"tp": 8}, (1, 8)),
        ("tp", {"tp": 16}, (2, 8)),
        ("dp", {"tp": 2, "dp": 16}, (4, 4)),
        ("dp", {"tp": 8, "dp": 4}, (4, 1)),
        ("ep", {"dp": 16, "ep": 16}, (2, 8)),
        ("expert_dp", {"dp": 16, "ep": 8}, (2, 1)),
        ("shard", {"dp": 16, "sharding": "zero3", "n_shard": 8}, (1, 8)),
        ("replica", {"dp": 16, "sharding": "zero3", "n_shard": 8}, (2, 1)),
    ],
)
def test_groups_of_a_node_of_eight(name, layout, expected):
    assert N == 8
    found = groups.process_group(name, ParallelLayout(**layout), FABRIC)
    assert (found.n_islands, found.n_inside) == expected


@pytest.mark.parametrize("name", sorted(groups.GROUPS))
@pytest.mark.parametrize("dp", [1, 2, 3, 8, 24, 64])
def test_ranks_inside_and_domains_make_the_group(name, dp):
    layout = ParallelLayout(tp=2, dp=dp)
    n_ranks, _ = groups.GROUPS[name](layout)
    found = groups.process_group(name, layout, FABRIC)
    assert found.n_ranks == n_ranks
    assert 1 <= found.n_inside <= N


def test_a_group_that_leaves_its_domain_is_slower():
    inside = groups.process_group("dp", ParallelLayout(dp=8), FABRIC)
    outside = groups.process_group("dp", ParallelLayout(dp=16), FABRIC)
    for time_s in (groups.gather_s, groups.all_reduce_s):
        assert time_s(1e9, outside, FABRIC) > time_s(1e9, inside, FABRIC)


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    inside = groups.process_group("dp", ParallelLayout(dp=8), FABRIC)
    both = 2 * groups.gather_s(8e9, inside, FABRIC)
    assert groups.all_reduce_s(8e9, inside, FABRIC) == pytest.approx(both, rel=0.05)


def test_one_stage_hands_nothing_over():
    assert groups.p2p_s(1e6, ParallelLayout(), FABRIC) == 0.0
    assert groups.p2p_s(1e6, ParallelLayout(pp=2, dp=8), FABRIC) > 0.0
