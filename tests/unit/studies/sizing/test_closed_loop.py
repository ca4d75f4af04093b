"""Closed loops are sized by their own equilibrium: N = X (R + Z), whatever the fleet."""

from dataclasses import replace

import pytest
from tests.unit.studies.sizing.test_workload import AROUND, CHAT, FAST, tools

from gpuplan.domain.scenario.demand import LatencyLimit, Slo
from gpuplan.domain.scenario.terms import Choice
from gpuplan.studies.inference.closed_loop import closed_outcome
from gpuplan.studies.replay.closed_loop import users_loop, users_of
from gpuplan.studies.sizing.task import task_of
from gpuplan.studies.sizing.workload import size_workload

TPOT = LatencyLimit(metric="tpot", statistic="p95", limit_s=0.05)
TTFT = LatencyLimit(metric="ttft", statistic="p95", limit_s=2.0)


def closed(n_users, *, think_s=0.0, limits=(TTFT, TPOT)):
    [workload] = CHAT.workloads
    work = workload.work
    arrivals = replace(
        work.arrivals, peak_requests_per_s=None, mean_requests_per_s=None, n_users=None,
        n_concurrent=n_users,
    )  # fmt: skip
    work = replace(
        work, arrivals=arrivals, slo=Slo(limits=limits),
        request=replace(work.request, think_s=think_s),
    )  # fmt: skip
    workload = replace(workload, work=work)
    policy = replace(CHAT.policy, accelerators=Choice(allowed=("H100",)))
    return workload, replace(CHAT, workloads=(workload,), policy=policy)


def sized(n_users, **changes):
    found = size_workload(*closed(n_users, **changes), replace(AROUND, options=FAST))
    return found.sized[0]


@pytest.mark.parametrize("think_s", [0.0, 20.0])
def test_users_are_rate_times_response_and_think_time(think_s):
    sizer, runs = tools(*closed(400, think_s=think_s))
    for n in (4, 8):
        little = runs.run(sizer.task.peak_per_s, n).little
        cycle_s = little.residence_s + think_s
        assert little.requests_per_s * cycle_s == pytest.approx(400, rel=0.04)
        assert little.n_in_flight == pytest.approx(little.n_counted, rel=0.03)


def test_more_replicas_answer_sooner_and_more():
    sizer, runs = tools(*closed(400))
    few, many = (runs.run(sizer.task.peak_per_s, n).little for n in (4, 16))
    assert many.residence_s < few.residence_s
    assert many.requests_per_s > few.requests_per_s


def test_more_users_never_take_fewer_replicas():
    counts = [sized(n).n_serving for n in (8, 64, 512, 4096)]
    assert counts == sorted(counts)
    # Eight times the users take about eight times the replicas, once there are many.
    assert counts[-1] == pytest.approx(8 * counts[-2], rel=0.15)


def test_users_who_think_take_fewer_replicas():
    assert sized(512, think_s=30.0).n_serving < sized(512).n_serving


def test_a_looser_slo_never_takes_more():
    slow = replace(TPOT, limit_s=0.1)
    assert sized(512, limits=(TTFT, slow)).n_serving <= sized(512).n_serving


def test_every_fleet_is_simulated_and_meets_its_slos():
    best = sized(512)
    assert best.method == "simulated"
    assert all(margin.is_kept for margin in best.limits)


def test_without_a_limit_of_waits_all_that_is_in_flight_runs():
    best = sized(4096, limits=(replace(TPOT, limit_s=10.0),))
    task = task_of(*closed(4096), replace(AROUND, options=FAST))
    each = task.evaluator.prepared(best.candidate).most_running
    assert best.n_serving * each >= 4096


def test_slower_steps_take_more_replicas():
    sizer, _ = tools(*closed(512, think_s=10.0))
    peak = sizer.task.peak_per_s
    assert sizer.n_at(peak, slowness_ratio=1.3) > sizer.n_at(peak)


def test_clients_do_not_fall_into_step():
    """Responses of equal length would end together, and be asked for together, ever more."""
    _, runs = tools(*closed(400, think_s=10.0))
    loop = users_loop(users_of(closed(400, think_s=10.0)[0].work), 400, 60, seed=1)
    outcome = closed_outcome(loop, runs.prepared.fleet(6), bin_s=60.0)
    n = len(outcome.requests)
    ttft_s = outcome.times.ttft_s
    early, late = ttft_s[n // 6 : n // 3].mean(), ttft_s[n // 2 : 2 * n // 3].mean()
    assert late == pytest.approx(early, rel=0.08)
    outputs = loop.output_tokens
    assert (outputs.min(), outputs.max()) == (315, 385)  # a tenth around 350


def test_as_many_users_of_each_replica_are_run_once():
    """Twice the users on twice the replicas: the same latencies, twice the rate."""
    sizer, runs = tools(*closed(400, think_s=20.0))
    peak = sizer.task.peak_per_s
    one, two = runs.run(peak, 4), runs.run(2.0 * peak, 8)
    assert one.latencies == two.latencies
    assert two.little.requests_per_s == pytest.approx(2.0 * one.little.requests_per_s)
    assert runs._part.cache_info().hits > 0
