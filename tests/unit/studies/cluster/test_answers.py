"""What a replay says: waits, layers, bills that sum up, and comparisons that are fair."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuplan.domain.cluster.answer import ClusterRequest
from gpuplan.domain.cluster.cluster import (
    CloudBurst,
    Cluster,
    ClusterTeam,
    NodeGroup,
    Quota,
    ReservingService,
    SchedulingPolicy,
)
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs
from gpuplan.errors import InputError
from gpuplan.report.cluster.sheet import cluster_sheet
from gpuplan.studies.cluster.compare import NAMED, named_policy, with_quota
from gpuplan.studies.cluster.described import as_named, with_slices
from gpuplan.studies.cluster.simulate import answers
from gpuplan.studies.cluster.stream import simulate_jobs
from shared_data import ROOT

EXAMPLES = ROOT / "examples" / "clusters"
HOUR = 3600.0


def jobs_of(rows, names=("a", "b")):
    arrive, duration, gpus, team = map(np.array, zip(*rows, strict=True))
    return Jobs(
        arrive_s=arrive.astype(float),
        duration_s=duration.astype(float),
        n_accelerators=gpus.astype(np.int64),
        team=team.astype(np.int64),
        team_names=names,
    )


def cluster_of(n_nodes=1, per_node=8, **parts):
    group = NodeGroup(
        accelerator="H100",
        n_nodes=n_nodes,
        n_accelerators_per_node=per_node,
        usd_per_accelerator_h=2.0,
    )
    return Cluster(name="test", groups=(group,), **parts)


def poisson(n=400, seed=1, gap_s=300.0):
    rng = np.random.default_rng(seed)
    return Jobs(
        arrive_s=np.cumsum(rng.exponential(gap_s, n)),
        duration_s=rng.exponential(3000.0, n),
        n_accelerators=rng.choice([1, 2, 4, 8], n),
        team=rng.integers(0, 2, n),
        team_names=("a", "b"),
    )


def test_waits_by_hand():
    """8 GPUs: b's job waits 100 s for a's; its slowdown is (100 + 50) / 50."""
    found = answers(cluster_of(), jobs_of([(0, 100, 8, 0), (0, 50, 8, 1)]), ClusterRequest())
    a, b = found.by_team
    assert (a.wait_p90_s, b.wait_p90_s) == (0.0, 100.0)
    assert b.slowdown_p50_ratio == 3.0
    assert found.all_jobs.wait_mean_s == 50.0
    assert [row.name for row in found.by_size] == ["5–8 GPUs"]


def test_who_waits_for_whom():
    found = answers(cluster_of(), jobs_of([(0, 100, 8, 0), (0, 50, 8, 1)]), ClusterRequest())
    (share,) = found.shares
    assert (share.team, share.holder) == ("b", "a")
    assert share.wait_frac == pytest.approx(1.0, abs=0.02)


def test_layers_sum_to_one_and_fragmentation_is_told_apart():
    # Two nodes each half full: 8 GPUs are free, and a job of 8 finds none together.
    rows = [(0, 1000, 5, 0), (0, 1000, 5, 0), (1, 100, 6, 0), (2000, 1, 1, 0)]
    found = answers(cluster_of(2), jobs_of(rows, ("a",)), ClusterRequest())
    use = found.use
    layers = (
        use.batch_frac + use.service_frac + use.down_frac + use.idle_frac + use.quota_blocked_frac
        + use.too_few_frac + use.fragmented_frac
    )  # fmt: skip
    assert layers == pytest.approx(1.0)
    assert use.fragmented_frac == pytest.approx(6 * 1000 / 16 / 2000, rel=0.02)
    assert use.too_few_frac == 0.0


def test_bills_sum_to_the_cost_of_the_cluster():
    teams = (
        ClusterTeam(name="a", quotas=(Quota(accelerator="H100", n_accelerators=6),)),
        ClusterTeam(name="b", quotas=(Quota(accelerator="H100", n_accelerators=2),)),
    )
    jobs = jobs_of([(0, HOUR, 4, 0), (0, HOUR, 2, 1), (2 * HOUR, HOUR, 1, 1)])
    found = answers(cluster_of(teams=teams), jobs, ClusterRequest())
    a, b = found.bills
    assert a.used_usd == pytest.approx(8.0)
    assert b.used_usd == pytest.approx(6.0)
    assert a.idle_usd == pytest.approx(3 * b.idle_usd)  # by quota
    assert a.total_usd + b.total_usd == pytest.approx(8 * 3 * 2.0)


def test_services_and_clouds_are_billed_to_their_teams():
    service = ReservingService(
        name="chat",
        team="a",
        accelerator="H100",
        n_accelerators_per_replica=4,
        replicas_by_hour=(1,) * 24,
    )
    burst = CloudBurst(above_queued_accelerators=0, n_accelerators=8, usd_per_accelerator_h=5.0)
    teams = (ClusterTeam(name="a"), ClusterTeam(name="b"))
    described = cluster_of(teams=teams, services=(service,), burst=burst)
    jobs = jobs_of([(0, 10, 1, 1), (HOUR, HOUR, 8, 1), (3 * HOUR, 10, 1, 1)])
    found = answers(described, jobs, ClusterRequest())
    a, b = found.bills
    assert b.cloud_usd == pytest.approx(8 * 5.0)
    assert a.service_usd == pytest.approx(4 * 3 * 2.0, rel=0.01)


def test_targets_recall_and_violations():
    teams = (ClusterTeam(name="a", wait_p90_s=10.0), ClusterTeam(name="b", wait_p90_s=10.0))
    jobs = jobs_of([(0, 100, 8, 0), (0, 100, 8, 1)])
    found = answers(cluster_of(teams=teams), jobs, ClusterRequest())
    assert [row.is_violated for row in found.by_team] == [False, True]
    assert found.use.recall_frac == 0.5


def test_policies_are_compared_on_the_same_jobs():
    request = ClusterRequest(policies=("fifo", "easy", "shortest"))
    policy = SchedulingPolicy(order="fifo", blocking="strict")
    found = answers(cluster_of(policy=policy), poisson(), request)
    fifo, easy, shortest = found.advice.policies
    assert fifo.saved_mean_s == 0.0  # it is the described one
    assert (fifo.saved_low_s, fifo.saved_high_s) == (0.0, 0.0)
    assert easy.saved_mean_s > 0
    assert easy.saved_low_s < easy.saved_mean_s < easy.saved_high_s
    assert shortest.wait_mean_s < easy.wait_mean_s < fifo.wait_mean_s
    saved = found.all_jobs.wait_mean_s - easy.wait_mean_s
    assert easy.saved_mean_s == pytest.approx(saved)


def test_every_named_policy_runs():
    found = answers(cluster_of(2), poisson(60), ClusterRequest(policies=tuple(NAMED)))
    assert [row.name for row in found.advice.policies] == list(NAMED)


def test_an_unknown_policy_is_refused():
    with pytest.raises(InputError, match="unknown policy 'best'"):
        named_policy("best")


def test_more_nodes_shorten_waits_and_the_last_useful_one_is_found():
    found = answers(cluster_of(3), poisson(), ClusterRequest(n_changes=2))
    fewer, less, more, most = found.advice.changes
    names = [row.name.split()[0] for row in (fewer, less, more, most)]
    assert names == ["-16", "-8", "+8", "+16"]
    assert fewer.wait_mean_s > less.wait_mean_s > found.all_jobs.wait_mean_s
    assert more.wait_mean_s <= found.all_jobs.wait_mean_s
    assert found.advice.last_useful == (("H100", 24),)
    idle = answers(cluster_of(40), poisson(), ClusterRequest(n_changes=1))
    ((_, n),) = idle.advice.last_useful
    assert 24 < n < 320  # the rest never made anyone wait less


def test_a_quota_that_meets_the_target_is_found():
    teams = (
        ClusterTeam(
            name="a", wait_p90_s=60.0, quotas=(Quota(accelerator="H100", n_accelerators=8),)
        ),
        ClusterTeam(name="b", quotas=(Quota(accelerator="H100", n_accelerators=64),)),
    )
    described = cluster_of(12, teams=teams)
    found = answers(described, poisson(gap_s=200.0), ClusterRequest(advises_quotas=True))
    (advice,) = found.advice.quotas
    assert advice.wait_now_s > 60.0 >= advice.wait_then_s
    assert advice.n_advised is not None
    # It moves the answer, and one step less does not do it.
    for n, is_met in ((advice.n_advised, True), (advice.n_advised - 8, False)):
        again = answers(
            with_quota(described, "a", "H100", n), poisson(gap_s=200.0), ClusterRequest()
        )
        assert (again.by_team[0].wait_p90_s <= 60.0) == is_met


def test_no_quota_helps_a_cluster_that_is_too_small():
    teams = (
        ClusterTeam(
            name="a", wait_p90_s=1.0, quotas=(Quota(accelerator="H100", n_accelerators=8),)
        ),
    )
    found = answers(cluster_of(1, teams=teams), poisson(), ClusterRequest(advises_quotas=True))
    assert found.advice.quotas[0].n_advised is None


def test_advice_that_has_nothing_to_say_says_why():
    def notes(*teams, jobs=None):
        asked = ClusterRequest(advises_quotas=True, advises_fractions=True)
        return " ".join(answers(cluster_of(1, teams=teams), jobs or poisson(), asked).advice.notes)

    assert "no team states a wait target" in notes(ClusterTeam(name="a"))
    assert "every wait target is met" in notes(ClusterTeam(name="a", wait_p90_s=1e9))
    assert "a is out of its target and has no quota" in notes(ClusterTeam(name="a", wait_p90_s=1.0))
    assert "MIG: H100 cannot be cut" in notes(ClusterTeam(name="a"))


def test_slices_count_as_their_share():
    jobs = replace(
        jobs_of([(0, 70, 1, 0)], ("a",)),
        needs=JobNeeds(profile=np.array([0]), profile_names=("1g.10gb",)),
    )
    described = Cluster(
        name="mig",
        groups=(NodeGroup(accelerator="A100-SXM-80GB", n_nodes=1, n_accelerators_per_node=1),),
    )
    cluster = with_slices(described)
    found = answers(cluster, as_named(cluster, jobs), ClusterRequest())
    assert found.found.jobs.held_accelerator_s[0] == pytest.approx(10.0, rel=0.01)


@pytest.mark.parametrize(
    ("asked", "known", "meant"),
    [
        ("a100", ("A100-SXM-80GB", "H100"), "A100-SXM-80GB"),  # as Slurm's gres
        ("NVIDIA-A100-SXM4-80GB", ("A100-SXM-80GB",), "A100-SXM-80GB"),  # as the device plugin
        ("v100", ("V100-SXM2-32GB", "T4"), "V100-SXM2-32GB"),
        ("gold", ("Gold-2024", "Golden"), "Gold-2024"),  # words of the user's own
        ("L4", ("L40S",), "L4"),
        ("a100", ("A100-X", "A100-Y"), "a100"),  # either could be meant
    ],
)
def test_gpu_types_of_traces_are_found_under_the_clusters_names(asked, known, meant):
    groups = (NodeGroup(accelerator=k, n_nodes=1, n_accelerators_per_node=8) for k in known)
    cluster = Cluster(name="named", groups=tuple(groups))
    jobs = jobs_of([(0, 70, 1, 0)], ("a",))
    jobs = replace(jobs, needs=JobNeeds(accelerator=np.array([0]), accelerator_names=(asked,)))
    named = as_named(cluster, jobs)
    assert named.needs.accelerator_names == (meant,)
    assert (len(named.remarks) > 0) == (meant != asked)
    found = answers(cluster, named, ClusterRequest())
    assert found.all_jobs.n_never == (meant == asked)


def test_jobs_that_can_never_start_are_said_first_and_violate_their_target():
    team = ClusterTeam(name="a", wait_p90_s=60.0)
    group = NodeGroup(accelerator="H100", n_nodes=1, n_accelerators_per_node=8)
    cluster = Cluster(name="small", groups=(group,), teams=(team,))
    found = answers(cluster, jobs_of([(0, 70, 16, 0), (0, 70, 8, 0)], ("a",)), ClusterRequest())
    assert found.by_team[0].is_violated
    head = cluster_sheet(found).head
    assert "1 can never start, of the others 90 % or more start at once" in head
    assert "out of target: a" in head
    assert ">never start" not in head
    assert [t.rows[0][2] for t in cluster_sheet(found).tables[:1]] == ["1"]
    none = answers(cluster, jobs_of([(0, 70, 16, 0)], ("a",)), ClusterRequest())
    assert "1 can never start; 0 % of GPU time used" in cluster_sheet(none).head


def test_gpu_types_that_are_not_there_are_reported():
    jobs = jobs_of([(0, 70, 1, 0)], ("a",))
    jobs = replace(jobs, needs=JobNeeds(accelerator=np.array([0]), accelerator_names=("TPU",)))
    found = answers(cluster_of(), jobs, ClusterRequest())
    assert found.found.n_unfit == 1
    assert any(a.value == "TPU" for a in found.assumptions)


def test_the_day_and_night_example_is_its_hand_arithmetic():
    found = simulate_jobs(EXAMPLES / "day-night.yaml", EXAMPLES / "day-night.csv")
    assert found.found.jobs.end_s[0] == 32 * HOUR
    assert found.found.jobs.n_preempted[0] == 1
    assert found.found.service_short_accelerator_s == 0.0
    assert found.use.service_frac == pytest.approx(12 * 12 / (16 * 24), abs=0.01)


def test_six_teams_quotas_move_the_answer():
    found = simulate_jobs(EXAMPLES / "six-teams.yaml", EXAMPLES / "six-teams.csv")
    speech = next(row for row in found.by_team if row.name == "speech")
    assert speech.is_violated
    changed = with_quota(found.cluster, "speech", "A100-SXM-80GB", 64.0)
    again = answers(changed, found.jobs, ClusterRequest())
    better = next(row for row in again.by_team if row.name == "speech")
    assert better.wait_p90_s < 0.7 * speech.wait_p90_s


def test_files_that_are_wrong_are_refused(tmp_path):
    with pytest.raises(InputError):
        simulate_jobs(Path(tmp_path / "none.yaml"), EXAMPLES / "day-night.csv")
