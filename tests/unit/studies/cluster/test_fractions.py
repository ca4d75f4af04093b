"""MIG partitions: lawful geometries only, as few GPUs as trying all; busy levels by hand."""

from itertools import product

import numpy as np
import pytest

from gpuplan.domain.cluster.answer import ClusterRequest
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs
from gpuplan.selection.slices import SliceRule, maximal_geometries
from gpuplan.studies.cluster.described import with_slices
from gpuplan.studies.cluster.fractions import busy_level, partition
from gpuplan.studies.cluster.simulate import answers


@pytest.fixture(scope="module")
def a100():
    group = NodeGroup(
        accelerator="A100-SXM-80GB", n_nodes=2, n_accelerators_per_node=8, usd_per_accelerator_h=1.0
    )
    return with_slices(Cluster(name="c", groups=(group,)))


def profiles(cluster):
    return sorted(cluster.groups[0].slices, key=lambda one: (one.share_frac, one.n_places))


def lawful(found):
    rules = [SliceRule(kind=p.profile, starts=p.starts, n_places=p.n_places) for p in found]
    return {g.name: dict(g.counts) for g in maximal_geometries(rules, pool="")}


def jobs(shares, duration_s=100.0):
    n = len(shares)
    return Jobs(
        arrive_s=np.arange(n) * 1.0,
        duration_s=np.full(n, duration_s) - np.arange(n),
        n_accelerators=np.ones(n, np.int64),
        team=np.zeros(n, np.int64),
        team_names=("a",),
        needs=JobNeeds(share_frac=np.array(shares)),
    )


def test_seven_small_slices_lie_on_one_gpu_and_eight_on_two(a100):
    small = profiles(a100)[0]
    assert small.profile.startswith("1g")
    ones = [7 if p is small else 0 for p in profiles(a100)]
    assert sum(n for _, n in partition(profiles(a100), ones)) == 1
    ones[0] = 8
    assert sum(n for _, n in partition(profiles(a100), ones)) == 2


def test_three_halves_do_not_fit_on_one_gpu(a100):
    # Two of 3g lie on a GPU; 3/7 + 3/7 + 1/7 adds up to one, and the last 1g has no memory slice.
    names = [p.profile for p in profiles(a100)]
    k = next(i for i, name in enumerate(names) if name.startswith("3g"))
    wanted = [0] * len(names)
    wanted[k] = 3
    assert sum(n for _, n in partition(profiles(a100), wanted)) == 2


@pytest.mark.parametrize("seed", range(6))
def test_partitions_are_lawful_and_as_few_as_trying_all(a100, seed):
    rng = np.random.default_rng(seed)
    found, known = profiles(a100), lawful(profiles(a100))
    wanted = [int(rng.integers(0, 3)) for _ in found]
    cut = partition(found, wanted)
    assert all(name in known for name, _ in cut)
    n = sum(k for _, k in cut)

    def is_enough(chosen):
        for k in range(len(found)):
            have = sum(known[g].get(p.profile, 0) for g in chosen for p in found[k:])
            if have < sum(wanted[k:]):
                return False
        return True

    assert is_enough([name for name, k in cut for _ in range(k)])
    if 0 < n <= 3:
        assert not any(is_enough(few) for few in product(known, repeat=n - 1))


def test_the_level_of_99_percent_of_the_time():
    # Two at once for 1 s of 100 s, else one.
    begin, end = np.array([0.0, 50.0]), np.array([100.0, 50.9])
    assert busy_level(begin, end, np.ones(2)) == 1.0
    assert busy_level(begin, np.array([100.0, 60.0]), np.ones(2)) == 2.0
    assert busy_level(np.empty(0), np.empty(0), np.empty(0)) == 0.0


def test_ways_to_share_are_counted_and_warned_about(a100):
    stream = jobs([0.1] * 10 + [0.4] * 2)
    found = answers(a100, stream, ClusterRequest(advises_fractions=True))
    (advice,) = found.advice.fractions
    by_way = {one.way: one for one in advice.options}
    assert by_way["whole GPUs"].n_accelerators == 12
    assert by_way["MPS"].n_accelerators == 2  # 10 × 0.1 + 2 × 0.4 = 1.8
    assert by_way["whole GPUs"].n_accelerators > by_way["MIG"].n_accelerators >= 2
    assert by_way["MIG"].usd_per_month == by_way["MIG"].n_accelerators * 730.0
    assert "no memory limit" in by_way["time-slicing"].isolation
    assert any("memory of fractional jobs" in one.what for one in found.assumptions)


def test_whole_gpus_need_no_advice(a100):
    found = answers(a100, jobs([1.0, 1.0]), ClusterRequest(advises_fractions=True))
    assert found.advice.fractions == ()
