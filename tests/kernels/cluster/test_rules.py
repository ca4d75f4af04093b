"""Small hand-made cases: what one rule does, to the second."""

import numpy as np
import pytest

from gpuplan.domain.cluster.cluster import (
    CloudBurst,
    Cluster,
    ClusterTeam,
    Maintenance,
    NodeGroup,
    ReservingService,
    SchedulingPolicy,
)
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs, JobTerms
from gpuplan.errors import InputError
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.simulation.cluster.slices import N_MASKS, slice_table
from kernels.cluster.cases import A100_SLICES
from kernels.cluster.test_theory import jobs_of, one_group

HOUR = 3600.0


def starts(described, jobs) -> list[float]:
    return simulate_cluster(described, jobs).jobs.start_s.tolist()


def test_strict_waits_and_best_effort_does_not():
    jobs = jobs_of([0, 1, 2], [100, 100, 10], [6, 4, 2])
    assert starts(one_group(1, 8, policy=SchedulingPolicy(blocking="strict")), jobs) == [
        0,
        100,
        100,
    ]
    assert starts(one_group(1, 8, policy=SchedulingPolicy(blocking="skip")), jobs) == [0, 100, 2]


def test_packing_leaves_whole_nodes_and_spreading_does_not():
    jobs = jobs_of([0, 1, 2], [100, 100, 10], [2, 2, 8])
    for placement, third in (("pack", 2), ("spread", 100), ("scatter", 2)):
        policy = SchedulingPolicy(placement=placement, blocking="strict")
        assert starts(one_group(2, 8, policy=policy), jobs)[2] == third


def test_a_gang_stays_in_one_rack():
    group = NodeGroup(accelerator="H100", n_nodes=4, n_accelerators_per_node=8, n_nodes_per_rack=2)
    described = Cluster(name="racks", groups=(group,))
    jobs = jobs_of([0, 0, 1], [100, 50, 10], [8, 8, 16], needs=JobNeeds(level=np.array([0, 0, 1])))
    assert starts(described, jobs)[2] == 1  # the second rack is free
    jobs = jobs_of(
        [0, 0, 0, 1], [100, 50, 70, 10], [8, 16, 1, 16], needs=JobNeeds(level=[0, 0, 0, 1])
    )
    assert starts(described, jobs)[3] == 70  # nodes 2 and 3 of the second rack, once both are free


def test_priority_preempts_and_resumes_from_its_checkpoint():
    terms = JobTerms(
        priority=np.array([0, 5]), checkpoint_s=np.array([30.0, 0]), restart_s=np.array([7.0, 0])
    )
    jobs = jobs_of([0, 100], [200, 50], [8, 8], terms=terms)
    for saves, end in ((True, 150 + 7 + 100), (False, 150 + 7 + 110)):
        policy = SchedulingPolicy(order="priority", preempts=True, saves_on_preemption=saves)
        found = simulate_cluster(one_group(1, 8, policy=policy), jobs).jobs
        assert found.start_s.tolist() == [0, 100]
        assert found.end_s.tolist() == [end, 150]
        assert found.n_preempted.tolist() == [1, 0]


def test_slices_of_every_lawful_state():
    table = slice_table(
        (NodeGroup(accelerator="A100", n_nodes=1, n_accelerators_per_node=1, slices=A100_SLICES),),
        [one.profile for one in A100_SLICES],
    )[0]
    assert table.shape == (4, N_MASKS)
    for p, profile in enumerate(A100_SLICES):
        lawful = {((1 << profile.n_places) - 1) << start for start in profile.starts}
        for used in range(N_MASKS):
            free = {mask for mask in lawful if not mask & used}
            after = int(table[p, used])
            assert (after == -1) == (not free)
            if free:
                assert after & used == used  # nothing moves
                assert after ^ used in free  # the slice lies where it may, on nobody's place


def test_seven_small_slices_and_two_large_ones_share_no_place():
    """Seven 1g or two 3g fit one GPU; a third 3g waits although 8 - 2 x 3 compute remain."""
    group = NodeGroup(accelerator="A100", n_nodes=1, n_accelerators_per_node=1, slices=A100_SLICES)
    described = Cluster(name="mig", groups=(group,))
    names = tuple(one.profile for one in A100_SLICES)
    for profile, n_at_once in ((0, 7), (1, 3), (2, 2), (3, 1)):
        needs = JobNeeds(
            share_frac=np.full(9, A100_SLICES[profile].share_frac),
            profile=np.full(9, profile),
            profile_names=names,
        )
        jobs = jobs_of(np.zeros(9), np.full(9, 10.0), 1, needs=needs)
        assert starts(described, jobs).count(0.0) == n_at_once


def test_shares_fill_one_gpu_before_the_next():
    needs = JobNeeds(share_frac=np.array([0.5, 0.3, 0.2, 0.4]))
    jobs = jobs_of(np.zeros(4), [100, 50, 50, 10], 1, needs=needs)
    found = simulate_cluster(one_group(2, 1), jobs)
    assert found.jobs.start_s.tolist() == [0, 0, 0, 0]
    assert found.jobs.node.tolist() == [0, 0, 0, 1]
    assert found.jobs.held_accelerator_s == pytest.approx([50, 15, 10, 4])


def test_services_take_the_day_and_jobs_the_night():
    """12 GPUs of 16 serve from 8 to 20; a 16-GPU job has 12 h of night and 4 GPUs are too few."""
    service = ReservingService(
        name="chat",
        team="a",
        accelerator="H100",
        n_accelerators_per_replica=4,
        replicas_by_hour=tuple(3 if 8 <= hour < 20 else 0 for hour in range(24)),
    )
    described = one_group(2, 8, services=(service,), teams=(ClusterTeam(name="a"),))
    jobs = jobs_of([0, 48 * HOUR], [20 * HOUR, 1], [16, 1])
    found = simulate_cluster(described, jobs)
    # 8 h before the day, preempted with its state saved, 12 h after 20:00.
    assert found.jobs.end_s[0] == 32 * HOUR
    assert found.jobs.n_preempted[0] == 1
    assert found.service_short_accelerator_s == 0
    assert found.service_accelerator_s == pytest.approx(2 * 12 * 12 * HOUR)


def test_maintenance_drains_and_returns():
    window = Maintenance(start_s=100.0, duration_s=50.0, first_node=0, n_nodes=1)
    found = simulate_cluster(one_group(1, 8, maintenance=(window,)), jobs_of([0], [200], 8))
    assert found.jobs.end_s[0] == 250.0
    assert found.timeline.down.max() > 0


def test_burst_sends_what_is_over_the_threshold():
    burst = CloudBurst(above_queued_accelerators=8, n_accelerators=8, start_s=60.0)
    jobs = jobs_of([0, 1, 2, 3], [1000, 100, 100, 100], 8)
    found = simulate_cluster(one_group(1, 8, burst=burst), jobs).jobs
    assert found.start_s.tolist() == [0, 1000, 62, 1100]  # the third goes, the cloud is full then
    assert found.group.tolist() == [0, 0, -2, 0]


def test_an_elastic_job_shrinks_to_let_others_in_and_grows_again():
    curve = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8])
    terms = JobTerms(
        curve=np.array([0, -1]),
        curves=(curve,),
        n_least=np.array([2, 1]),
        n_most=np.array([8, 1]),
    )
    jobs = jobs_of([0, 100], [400, 50], [4, 6], terms=terms)
    found = simulate_cluster(one_group(1, 8), jobs).jobs
    # 100 s at twice the speed, 50 s at half, the rest at twice again: 200 + 25 + 175 = 400.
    assert found.start_s.tolist() == [0, 100]
    assert found.end_s[0] == pytest.approx(150 + 175 / 2)


def test_what_can_never_fit_is_counted_and_left():
    found = simulate_cluster(one_group(1, 8), jobs_of([0, 1], [10, 10], [16, 8]))
    assert found.n_unfit == 1
    assert np.isnan(found.jobs.start_s[0])
    assert found.jobs.start_s[1] == 1.0


@pytest.mark.parametrize(
    ("policy", "what"),
    [
        (SchedulingPolicy(preempts=True), "fifo does not preempt"),
        (SchedulingPolicy(order="fair", blocking="easy"), "easy backfill needs one queue"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(policy, what):
    with pytest.raises(InputError, match=what):
        simulate_cluster(one_group(1, 8, policy=policy), jobs_of([0], [1], 1))


def test_an_empty_stream_is_an_empty_answer():
    empty = Jobs(
        arrive_s=np.empty(0),
        duration_s=np.empty(0),
        n_accelerators=np.empty(0, np.int64),
        team=np.empty(0, np.int64),
        team_names=(),
    )
    assert len(simulate_cluster(one_group(1, 8), empty).jobs.start_s) == 0
