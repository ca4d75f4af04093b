"""Chosen fleets through their day: loads by the hour, replicas by the hour, what users get."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.unit.studies.sizing.test_workload import AROUND, chat, tools

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.sizing import HourLoads, ReplicaNeed
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.studies.day_replay.day import (
    MOST_REQUESTS,
    POOL,
    WHOLE_REQUESTS,
    Day,
    day_of,
    day_stream,
    replay_of,
    trace_day,
    trace_stream,
    violated_hours,
)
from gpuplan.studies.day_replay.replay import replay_chosen
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.sizing.demand import demand_of
from gpuplan.studies.sizing.workload import size_workload
from gpuplan.units import HOUR

PROFILE = (0, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 10, 9, 10, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)


# Single gaps are promised, not their mean: whose share holds a prompt matters.
GAPS = (
    LatencyLimit(metric="ttft", statistic="p95", limit_s=2.0),
    LatencyLimit(metric="itl", statistic="p95", limit_s=0.04),
)


@pytest.fixture(scope="module")
def fleet():
    workload, scenario = chat(profile=PROFILE, limits=GAPS)
    sizer, runs = tools(workload, scenario)
    return demand_of(workload, scenario), sizer, runs


def at(demand, n):
    return day_of(demand, ints(np.full(24, n)), residence_s=10.0)


def test_every_hour_has_its_load(fleet):
    demand, _, runs = fleet
    day = at(demand, 2)
    requests = day_stream(runs, day, draw=2)
    counts = np.bincount((requests.arrive_s // day.run_s).astype(int), minlength=24)
    asked = day.load_per_s * day.run_s
    assert counts[0] == 0  # nobody comes in an hour without load
    assert np.all(np.abs(counts - asked) <= 5 * np.sqrt(asked) + 1)
    assert len(requests) <= 1.05 * WHOLE_REQUESTS


def test_a_short_day_is_run_whole_and_a_long_one_says_what_was_left_out(fleet):
    demand, _, runs = fleet
    calm = replace(demand, peak_requests_per_s=0.5)
    whole = at(calm, 2)
    assert whole.run_s == HOUR
    assert replay_of(runs, whole, day_stream(runs, whole, draw=2), workload="chat").remark == ""
    busy = replace(demand, peak_requests_per_s=6.0)
    part = at(busy, 6)
    assert part.run_s < HOUR
    assert part.n_requests == pytest.approx(MOST_REQUESTS)
    found = replay_of(runs, part, day_stream(runs, part, draw=2), workload="chat")
    assert "minutes of each hour" in found.remark
    full = day_of(busy, ints(np.full(24, 6)), residence_s=10.0, n_whole=10**7)
    assert full.run_s == HOUR


def test_an_hour_with_too_few_replicas_is_the_one_that_breaks(fleet):
    demand, sizer, runs = fleet
    enough = sizer.n_at(demand.peak_of(0, 0)) + 1
    n = np.full(24, enough)
    # Once more the load in one hour, on one replica: it cannot carry that.
    many = replace(demand, peak_requests_per_s=1.5 * runs.full_per_s)
    n[:], n[9] = enough + 3, 1
    good = at(many, enough + 3)
    bad = day_of(many, ints(n), residence_s=10.0)
    kept = replay_of(runs, good, day_stream(runs, good, draw=2), workload="chat")
    broken = replay_of(runs, bad, day_stream(runs, bad, draw=2), workload="chat")
    assert kept.broken_hours == ()
    assert kept.kept_frac > 0.99
    assert (broken.worst_hour, broken.broken_hours) == (9, (9,))
    assert broken.worst_kept_frac < kept.worst_kept_frac
    # As much load elsewhere counts as broken too: replicas follow the load, not the clock.
    asks = demand.hours.load_frac
    assert list(violated_hours(many, broken)) == list(asks >= asks[9])


def test_a_day_agrees_with_a_run_at_its_peak(fleet):
    demand, _, runs = fleet
    flat = replace(demand, hours=replace(demand.hours, load_frac=floats(np.ones(24))))
    day = at(flat, 3)
    found = replay_of(runs, day, day_stream(runs, day, draw=2), workload="chat")
    assert found.mean_use_frac == pytest.approx(demand.peak_of(0, 0) / 3 / runs.full_per_s)
    assert (found.n_replicas_least, found.n_replicas_most) == (3, 3)
    trial = runs.run(demand.peak_of(0, 0), 3, draw=2)
    assert trial.meets_slo == (not found.broken_hours)


def test_a_large_fleet_is_run_as_one_of_its_pools(fleet):
    demand = fleet[0]
    many = replace(demand, peak_requests_per_s=100 * demand.peak_of(0, 0))
    n = ints(np.ceil(130 * many.hours.load_frac))
    day = day_of(many, n, residence_s=10.0)
    assert day.n_replicas.max() == POOL
    assert day.is_part
    asked = many.peak_of(0, 0) * many.hours.load_frac[1:] / n[1:]
    assert day.load_per_s[1:] / day.n_replicas[1:] == pytest.approx(asked)


def test_a_week_too_busy_to_run_gives_way_to_its_busiest_day(fleet):
    demand = fleet[0]
    week = np.tile(np.linspace(0.1, 0.5, 24), 7)
    week[100] = 1.0  # the fifth day
    hours = replace(demand.hours, load_frac=floats(week), hours_per_week=floats(np.ones(168)))
    weekly = replace(demand, hours=hours)
    calm = day_of(replace(weekly, peak_requests_per_s=0.2), ints(np.full(168, 2)), residence_s=10.0)
    busy = day_of(
        replace(weekly, peak_requests_per_s=50.0), ints(np.full(168, 9)), residence_s=10.0
    )
    assert len(calm.load_per_s) == 168
    assert not calm.is_part
    assert (len(busy.load_per_s), busy.first) == (24, 96)
    assert busy.is_part


def test_a_trace_is_run_as_it_was_recorded():
    rng = np.random.default_rng(1)
    arrive = np.sort(rng.uniform(0, 30 * HOUR, 60_000))
    ones = np.ones(len(arrive), dtype=np.int64)
    recorded = requests_of(arrive, 100 * ones, 10 * ones)
    rate = 60_000 / (30 * HOUR)
    day = trace_day(recorded, 2, peak_per_s=rate * 1.1)
    requests = trace_stream(recorded, day, peak_per_s=rate * 1.1, seed=0)
    assert len(requests) == pytest.approx(60_000, rel=0.01)
    assert np.all(np.diff(requests.arrive_s) >= 0)


def test_a_grown_fleet_is_measured_anew(fleet):
    demand, sizer, runs = fleet
    sized = sizer.size()
    more = ReplicaNeed(n_replicas=ints(sized.need.n_replicas + 1))
    grown = sizer.resized(sized, need=more, remark="grown")
    assert grown.n_serving == sized.n_serving + 1
    trial = runs.run(demand.peak_of(0, 0), grown.n_serving)
    assert [k.reached_s.value for k in grown.limits] == [s.value_s for _, s in trial.latencies]
    assert grown.utilization.peak_frac < sized.utilization.peak_frac
    safe = sizer.with_safety(grown).utilization
    assert safe.peak_frac <= safe.safe_frac <= 1.0


def test_no_fleet_does_more_than_one_that_never_runs_out_of_work(fleet):
    _, _, runs = fleet
    assert runs.full_per_s >= runs.capacity_per_s()
    over = runs.run(1.3 * runs.full_per_s, 1)
    assert over.is_overloaded
    assert not over.meets_slo


class _Held:
    """Nodes of one pool, hour by hour."""

    def __init__(self, n):
        self.pool, self.n_nodes = "pool", n


class _Option:
    def __init__(self, name):
        self.workload, self.name, self.pool = "chat", f"{name} on pool", "pool"
        self.first_period = 0


class _Chosen:
    def __init__(self, name, nodes):
        self.chosen, self.provisioned = (_Option(name),), (_Held(nodes),)

    def option_of(self, _):
        return self.chosen[0]


def test_rented_replicas_follow_the_hours_and_held_ones_stay():
    workload, scenario = chat(rate=8.0, profile=PROFILE)
    sizing = size_workload(workload, scenario, AROUND)
    sized = sizing.sized[0]
    need = sized.need.n_replicas
    inputs = PlanInputs(None, scenario, {}, AROUND.catalog, None, AROUND)
    rented, steady = (
        replay_chosen(inputs, [sizing], _Chosen(sized.candidate.name, nodes)).replays[0]
        for nodes in (need, np.full_like(need, need.max()))
    )
    assert rented.n_replicas_least < rented.n_replicas_most == sized.n_serving
    assert steady.n_replicas_least == steady.n_replicas_most == sized.n_serving
    assert rented.mean_use_frac > steady.mean_use_frac
    assert min(rented.kept_frac, steady.kept_frac) > 0.9


def test_gaps_with_prompts_count_only_beyond_chance(fleet):
    """More allowance never judges worse, and without any the share of gaps is taken as it is."""
    _, _, runs = fleet
    requests = runs.streams.at(0.9 * runs.full_per_s, 3000, draw=2)
    outcome = runs.outcome(requests, 1)
    rows = np.arange(500, 2500)
    place = next(i for i, limit in enumerate(runs.limits) if limit.metric == "itl")
    seen = [
        runs.latencies(outcome, rows, n_deviations=n)[place][1].value_s for n in (0.0, 4.0, 1e9)
    ]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > 1.5 * seen[-1]  # full, a prompt stands in more than one gap of twenty


def flat(n, load=1.0):
    return Day(floats(np.full(n, load)), ints(np.full(n, 1)), HOUR)


def test_blocks_of_a_load_duration_curve_keep_their_hours(fleet):
    demand, _, _ = fleet
    blocks = HourLoads(load_frac=floats([1.0, 0.5, 0.1]), hours_per_week=floats([42, 42, 84]))
    found = day_of(
        replace(demand, hours=blocks, peak_requests_per_s=0.01), ints([3, 2, 1]), residence_s=1.0
    )
    assert len(found.load_per_s) == 168
    assert found.load_per_s.mean() / 0.01 == pytest.approx(blocks.mean_frac)
    assert [int((found.n_replicas == n).sum()) for n in (3, 2, 1)] == [42, 42, 84]


def test_only_hours_that_ask_for_as_much_as_a_violated_one_need_more(fleet):
    demand, _, _ = fleet
    hours = SimpleNamespace(broken_hours=(5,))
    found = violated_hours(demand, hours)
    asks = demand.hours.load_frac
    assert list(found) == list(asks >= asks[5])
    assert not violated_hours(demand, SimpleNamespace(broken_hours=())).any()


def test_arrivals_follow_the_load_of_each_hour(fleet):
    _, _, runs = fleet
    load = np.array([0.0, 2.0, 0.5, 4.0])
    day = Day(floats(load), ints(np.ones(4)), 600.0)
    at = day_stream(runs, day, draw=2).arrive_s
    counts = np.bincount((at // 600.0).astype(int), minlength=4)
    assert counts[0] == 0
    assert counts == pytest.approx(load * 600.0, abs=4 * np.sqrt(load.max() * 600.0))
    assert np.all(np.diff(at) >= 0)
    assert flat(3, 2.0).n_requests == pytest.approx(3 * 2.0 * HOUR)
