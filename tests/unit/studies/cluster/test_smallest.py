"""Least nodes: targets met, and not with one node less; quotas follow the hardware."""

import numpy as np
import yaml

from gpuplan.domain.cluster.answer import ClusterRequest
from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam, NodeGroup, Quota
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.studies.cluster.simulate import answers, rendered
from gpuplan.studies.cluster.smallest import resized, smallest_cluster
from gpuplan.studies.cluster.waits import team_rows


def stream(n=300):
    rng = np.random.default_rng(6)
    return Jobs(
        arrive_s=np.cumsum(rng.exponential(200.0, n)),
        duration_s=rng.exponential(3000.0, n),
        n_accelerators=rng.choice([1, 2, 4, 8], n),
        team=np.zeros(n, np.int64),
        team_names=("a",),
    )


def described(n_nodes=3, target_s=600.0, quota=None):
    group = NodeGroup(
        accelerator="H100", n_nodes=n_nodes, n_accelerators_per_node=8, usd_per_accelerator_h=2.0
    )
    quotas = () if quota is None else (Quota(accelerator="H100", n_accelerators=quota),)
    teams = (ClusterTeam(name="a", wait_p90_s=target_s, quotas=quotas),)
    return Cluster(name="least", groups=(group,), teams=teams)


def wait_s(cluster, n):
    changed = resized(cluster, [n])
    return team_rows(changed.teams, stream(), simulate_cluster(changed, stream()))[0].wait_p90_s


def test_the_target_is_met_and_not_with_one_node_less():
    cluster = described()
    found = smallest_cluster(cluster, stream())
    ((name, now, least, usd_per_h),) = found.groups
    assert (name, now, found.is_met) == ("H100", 3, True)
    assert usd_per_h == least * 16.0
    assert wait_s(cluster, least) <= 600.0 < wait_s(cluster, least - 1)


def test_a_stricter_target_needs_no_fewer_nodes():
    least = [
        smallest_cluster(described(target_s=target), stream()).groups[0][2]
        for target in (60.0, 3600.0, 36_000.0)
    ]
    assert least[0] >= least[1] >= least[2]
    assert least[0] > least[2]


def test_without_targets_nothing_is_sized():
    found = smallest_cluster(described(target_s=None), stream())
    assert not found.has_targets
    assert found.groups[0][1:3] == (3, 3)


def test_quotas_follow_the_hardware():
    changed = resized(described(4, quota=16), [6])
    assert changed.teams[0].quotas[0].n_accelerators == 24.0
    assert changed.n_accelerators == 48


def test_advised_quotas_are_rendered():
    cluster = described(12, target_s=60.0, quota=8)
    found = answers(cluster, stream(), ClusterRequest(advises_quotas=True))
    (advice,) = found.advice.quotas
    text = next(f.content.decode() for f in rendered(found) if f.path == "kueue.yaml")
    queue = next(d for d in yaml.safe_load_all(text) if d["kind"] == "ClusterQueue")
    (flavor,) = queue["spec"]["resourceGroups"][0]["flavors"]
    assert flavor["resources"][0]["nominalQuota"] == advice.n_advised > 8
