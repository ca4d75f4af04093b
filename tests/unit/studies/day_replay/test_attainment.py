"""SLO attainment of a day: of the SLO with least to spare, and met only if its percentile is."""

import pytest
from tests.unit.studies.sizing.test_closed_loop import closed
from tests.unit.studies.sizing.test_workload import chat, tools

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.studies.day_replay.day import Day, HourResult, loop_replay, replay_from
from gpuplan.studies.day_replay.fresh import _replayed
from gpuplan.studies.sizing.demand import demand_of
from gpuplan.units import HOUR

TTFT = LatencyLimit(metric="ttft", statistic="p95", limit_s=2.0)
TPOT = LatencyLimit(metric="tpot", statistic="p50", limit_s=0.04)
MEAN = LatencyLimit(metric="tpot", statistic="mean", limit_s=0.04)


def whole(hours, limits=(TTFT, TPOT)):
    _, runs = tools(*chat(limits=limits))
    day = Day(floats([1.0] * len(hours)), ints([2] * len(hours)), HOUR)
    found = [HourResult(i, 1000, ints(met), False) for i, met in enumerate(hours)]
    return replay_from(found, runs, day, workload="chat")


def test_each_slo_has_its_own_share_of_requests():
    # 960 of 1,000 are 1 % above a p95, 600 are 10 % above a median: the p95 has least to spare.
    found = whole([(960, 600), (960, 600)])
    assert found.kept_frac == pytest.approx(0.96)
    assert found.broken_hours == ()


def test_two_slos_that_are_met_each_are_met():
    """Other requests may miss the one than the other: nobody promised both at once."""
    found = whole([(951, 951)], (TTFT, LatencyLimit(metric="e2e", statistic="p95", limit_s=9.0)))
    assert found.kept_frac == pytest.approx(0.951)
    assert found.broken_hours == ()


def test_a_day_below_its_percentile_is_out_of_slo_in_the_hours_that_are():
    found = whole([(990, 900), (900, 900), (940, 900)])
    assert found.kept_frac == pytest.approx(2830 / 3000)
    assert found.broken_hours == (1, 2)
    assert (found.worst_hour, found.worst_kept_frac) == (1, pytest.approx(0.9))


def test_an_hour_below_it_by_chance_does_not_count_where_the_day_is_not():
    assert whole([(990, 900), (948, 900)]).broken_hours == ()


def test_a_limit_of_a_mean_asks_of_a_request_only_to_be_served():
    found = whole([(1000,)], (MEAN,))
    assert found.kept_frac == 1.0


def test_without_slos_all_that_is_served_counts():
    assert whole([(1000,), (998,)], ()).kept_frac == pytest.approx(0.999)


def test_the_day_of_a_loop_is_its_hours_in_equilibrium():
    workload, scenario = closed(400)
    sizer, runs = tools(workload, scenario)
    best = sizer.size()
    found = loop_replay(runs, demand_of(workload, scenario), best.need.n_replicas[0, 0], draw=2)
    assert found.broken_hours == ()
    assert found.kept_frac >= 0.95
    assert found.n_hours == 24


def test_the_day_of_a_short_loop_is_out_of_slo():
    workload, scenario = closed(400)
    sizer, runs = tools(workload, scenario)
    few = sizer.size().need.n_replicas[0, 0] // 2
    found = loop_replay(runs, demand_of(workload, scenario), few, draw=2)
    assert len(found.broken_hours) == 24
    assert found.kept_frac < 0.95


def test_a_checker_sees_the_clients_of_a_closed_loop_while_all_ask():
    workload, scenario = closed(400)
    sizer, runs = tools(workload, scenario)
    n = sizer.size().n_serving
    seen = _replayed(runs, sizer.task.peak_per_s, n)
    assert seen.n_replicas == n
    assert seen.is_finished.all()
    # One replica was run, with its share of the clients: N = X R, nobody thinks.
    span_s = seen.arrive_s[-1] - seen.arrive_s[0]
    in_flight = (len(seen.arrive_s) - 1) / span_s * seen.e2e_s.mean()
    assert in_flight == pytest.approx(400 / n, rel=0.05)
