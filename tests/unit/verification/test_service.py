"""SLOs: verdicts, targets, Little's law and the fresh replay."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.verification.service import (
    BURST_RATIO,
    N_DEVIATIONS,
    _error,
    _rank_tolerance,
    _statistic,
    service_checks,
)


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
    name, claim = "assistant ttft p95: fresh replay", document["plan"]["slo"]["promises"][0]
    [check] = [each for each in service_checks(document, facts) if each.name == name]
    more = (1 + BURST_RATIO) / 2 * check.tolerance_frac * check.found
    claim["bound_s"] += check.found + more - claim["reached_s"]["value"]
    claim["reached_s"]["value"] = check.found + more
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
    error = np.hypot(_error(first, "p95"), _error(second, "p95"))
    assert gap < N_DEVIATIONS * error
    # Of 20,000 draws the 95th percentile, 3.0, is known to 0.031: sqrt(0.95 / 0.05 / n).
    assert _error(first, "p95") == pytest.approx(0.031, rel=0.7)


def test_a_bias_beyond_the_errors_of_both_runs_is_found_and_less_is_not(document, facts, failed):
    """The surer both runs are, the less they may lie apart."""
    name, claim = "assistant ttft p95: fresh replay", document["plan"]["slo"]["promises"][0]
    value = claim["reached_s"]["value"]
    claim["bound_s"] = value  # the planner's run has no error: that of the replay is left
    [check] = [each for each in service_checks(document, facts) if each.name == name]
    assert check.ok
    assert check.tolerance_frac < 0.15
    for bias, is_found in ((0.8, False), (1.2, True)):
        claim["reached_s"]["value"] = check.found * (1 + bias * check.tolerance_frac)
        claim["bound_s"] = claim["reached_s"]["value"]
        assert (name in failed(service_checks(document, facts))) == is_found
    claim["bound_s"] += 0.1 * value  # a planner's run that knows less
    assert name not in failed(service_checks(document, facts))


def test_statistics_are_of_the_field():
    values = np.arange(101.0)
    found = [_statistic(values, name) for name in ("mean", "p50", "p95", "p99")]
    assert found == [50.0, 50.0, 95.0, 99.0]


def test_latencies_that_jump_at_a_percentile_may_be_found_on_either_side():
    """Those who meet another request wait for its prompt: here 4.9 % of them, p95 lies before."""
    values = np.where(np.arange(12_000) % 1000 < 951, 0.030, 0.050)
    assert np.quantile(values, 0.95) == 0.030
    assert _rank_tolerance(values, "p95", 0.030) == pytest.approx(0.020 / 0.030)
    assert _rank_tolerance(values, "p50", 0.030) == 0.0
    assert _rank_tolerance(values, "mean", 0.030) == 0.0
