"""SLOs: verdicts, targets, Little's law and the fresh replay."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.verification.service import _half_width, _statistic, service_checks


def test_a_verdict_follows_from_its_numbers(document, facts, failed):
    document["plan"]["slo"]["promises"][0]["is_kept"] = False
    found = failed(service_checks(document, facts))
    assert "assistant ttft p95: verdict" in found
    assert "all SLOs: verdict" in found


def test_a_target_is_the_scenarios(document, facts, failed):
    document["plan"]["slo"]["promises"][0]["limit_s"] *= 2
    assert "assistant ttft p95: target" in failed(service_checks(document, facts))


def test_a_target_that_is_left_out_is_found(document, facts, failed):
    del document["plan"]["slo"]["promises"][0]
    assert "assistant ttft p95: target" in failed(service_checks(document, facts))


def test_arrivals_times_residence_are_in_flight(document, facts, failed):
    document["load"][0]["n_in_flight"] *= 1.1
    assert failed(service_checks(document, facts)) == ["assistant: Little's law"]


def test_a_mean_above_its_peak_is_found(document, facts, failed):
    load = document["load"][0]
    load["mean_requests_per_s"] = 2 * load["peak_requests_per_s"]
    assert failed(service_checks(document, facts)) == ["assistant: mean within the peak"]


def test_a_latency_that_the_replay_does_not_find_is_refused(document, facts, failed):
    document["plan"]["slo"]["promises"][0]["reached_s"]["value"] *= 1.5
    assert "assistant ttft p95: fresh replay" in failed(service_checks(document, facts))


def test_two_runs_of_bursts_lie_further_apart(document, facts, failed):
    document["plan"]["slo"]["promises"][0]["reached_s"]["value"] *= 1.25
    assert "assistant ttft p95: fresh replay" in failed(service_checks(document, facts))
    [workload] = facts.scenario.workloads
    arrivals = replace(workload.work.arrivals, burstiness_ratio=2.0)
    bursty = replace(workload, work=replace(workload.work, arrivals=arrivals))
    scenario = replace(facts.scenario, workloads=(bursty,))
    found = failed(service_checks(document, replace(facts, scenario=scenario)))
    assert "assistant ttft p95: fresh replay" not in found


def test_a_fleet_whose_replay_is_late_is_refused(document, facts, failed, replayed):
    late = replace(facts, replay=lambda name: replace(replayed(3.0), n_replicas=1))
    found = failed(service_checks(document, late))
    assert "assistant ttft p95: fresh replay meets the SLO" in found


def test_requests_without_a_response_are_found(document, facts, failed, replayed):
    lost = replayed(0.1)
    lost.is_finished[:10] = 0
    found = failed(service_checks(document, replace(facts, replay=lambda name: lost)))
    assert "assistant replay: requests without a response" in found


def test_what_is_not_simulated_is_not_replayed(document, facts):
    checks = service_checks(document, replace(facts, replay=lambda name: None))
    assert not [check for check in checks if "replay" in check.name]


@pytest.mark.parametrize("seed", range(5))
def test_intervals_hold_what_two_runs_differ_by(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.exponential(size=(2, 20_000))
    gap = abs(_statistic(first, "p95") - _statistic(second, "p95"))
    assert gap < _half_width(first, "p95")
    assert _half_width(first, "p95") < 0.25 * _statistic(first, "p95")


def test_statistics_are_of_the_field():
    values = np.arange(101.0)
    found = [_statistic(values, name) for name in ("mean", "p50", "p95", "p99")]
    assert found == [50.0, 50.0, 95.0, 99.0]
