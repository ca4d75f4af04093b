"""A cluster's quotas as Kueue and Slurm have them."""

import pytest
import yaml

from gpuplan.domain.cluster.cluster import (
    Cluster,
    ClusterTeam,
    NodeGroup,
    Quota,
    SchedulingPolicy,
)
from gpuplan.render.schedulers.shared import cluster_files

GROUP = NodeGroup(accelerator="A100 SXM", n_nodes=4, n_accelerators_per_node=8)


def files(**parts):
    policy = parts.pop("policy", SchedulingPolicy(order="kueue", blocking="skip", preempts=True))
    described = Cluster(name="x", groups=(GROUP,), policy=policy, **parts)
    return {one.path: one.content.decode() for one in cluster_files(described)}


def team(name, n, **limits):
    quota = Quota(accelerator="A100 SXM", n_accelerators=n, **limits)
    return ClusterTeam(name=name, cohort="all", quotas=(quota,))


def test_queues_have_the_quotas_of_the_file():
    made = files(teams=(team("Search & Ads", 16, n_borrow=8.0), team("b", 16, n_lend=4.0)))
    documents = list(yaml.safe_load_all(made["kueue.yaml"]))
    kinds = [one["kind"] for one in documents]
    assert kinds == ["ResourceFlavor", *["ClusterQueue", "LocalQueue"] * 2]
    first, second = (one["spec"] for one in documents if one["kind"] == "ClusterQueue")
    assert first["cohort"] == "all"
    assert first["queueingStrategy"] == "BestEffortFIFO"
    assert first["preemption"]["reclaimWithinCohort"] == "Any"
    (flavor,) = first["resourceGroups"][0]["flavors"]
    assert flavor["name"] == documents[0]["metadata"]["name"] == "a100-sxm"
    assert flavor["resources"] == [
        {"name": "nvidia.com/gpu", "nominalQuota": 16, "borrowingLimit": 8}
    ]
    assert second["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] == 4
    assert documents[1]["metadata"]["name"] == "search---ads"
    assert documents[2]["spec"]["clusterQueue"] == "search---ads"


@pytest.mark.parametrize(
    ("accelerator", "product"),
    [
        ("A100-SXM-80GB", "NVIDIA-A100-SXM4-80GB"),  # as GPU feature discovery labels nodes
        ("h100-sxm", "NVIDIA-H100-80GB-HBM3"),
        ("our-gold-gpu", "our-gold-gpu"),
    ],
)
def test_flavors_have_the_label_that_nodes_carry(accelerator, product):
    group = NodeGroup(accelerator=accelerator, n_nodes=4, n_accelerators_per_node=8)
    made = next(cluster_files(Cluster(name="x", groups=(group,))))
    flavor = next(yaml.safe_load_all(made.content.decode()))
    assert flavor["spec"]["nodeLabels"] == {"nvidia.com/gpu.product": product}


def test_a_team_without_quotas_may_have_all():
    made = files(teams=(ClusterTeam(name="a"),), policy=SchedulingPolicy(blocking="strict"))
    queue = list(yaml.safe_load_all(made["kueue.yaml"]))[1]["spec"]
    assert queue["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == 32
    assert queue["queueingStrategy"] == "StrictFIFO"
    assert queue["preemption"]["withinClusterQueue"] == "Never"
    assert "cohort" not in queue


def test_slurm_accounts_are_held_to_quota_and_what_they_may_borrow():
    made = files(teams=(team("a", 16, n_borrow=8.0), team("b", 16, n_lend=4.0), team("c", 0)))
    script = made["slurm-accounts.sh"]
    assert "add account a Fairshare=100 GrpTRES=gres/gpu:a100-sxm=20" in script  # 16 + 4 lent
    assert "add account b Fairshare=100 GrpTRES=gres/gpu:a100-sxm=32" in script
    assert "do not lend" in script


@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        (SchedulingPolicy(blocking="strict"), ["SchedulerType=sched/builtin", "PreemptMode=OFF"]),
        (
            SchedulingPolicy(order="fair", blocking="skip", half_life_s=7 * 86400.0),
            ["SchedulerType=sched/backfill", "PriorityDecayHalfLife=7-0"],
        ),
        (SchedulingPolicy(order="priority", preempts=True), ["PreemptMode=REQUEUE"]),
    ],
)
def test_slurm_conf_follows_the_policy(policy, lines):
    made = files(teams=(ClusterTeam(name="a"),), policy=policy)["slurm.conf.part"]
    for line in lines:
        assert line in made.splitlines()
