"""Fleets as likely as asked for: against simulation of every sample, and laws that hold for any."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from gpuplan.candidates.risk import DEVIATIONS, Z_80, FleetRisk, error_ratio, risk_samples
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.columns import floats
from gpuplan.domain.plan.sizing import CarriedLoad, ReplicaNeed, Sized, SizingOptions
from gpuplan.domain.scenario.demand import LatencyLimit, Slo
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.carried import RANGED, LatencyProfile, best_odds_frac
from gpuplan.studies.sizing.language import _Row, language_sizes, row_sizes
from gpuplan.studies.sizing.likely import (
    fewest,
    is_likely,
    most_worth,
    probability_of,
    saturation_text,
)
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.task import SizingContext, task_of

CHAT = read_scenario(Path(__file__).parents[4] / "examples" / "chat.yaml")
AROUND = SizingContext(catalog=read_catalog(), options=SizingOptions(n_requests=3000))
N_BRUTE = 120


def sizer(level, *, tp=2, rate=None, limits=None, survive="none"):
    [workload] = CHAT.workloads
    work = workload.work
    if rate is not None:
        arrivals = replace(work.arrivals, peak_requests_per_s=rate, mean_requests_per_s=rate)
        work = replace(work, arrivals=arrivals)
    if limits is not None:
        work = replace(work, slo=Slo(limits=limits))
    workload = replace(workload, work=work)
    resilience = replace(CHAT.policy.resilience, survive=survive)
    scenario = replace(
        CHAT, workloads=(workload,), policy=replace(CHAT.policy, resilience=resilience)
    )
    options = replace(AROUND.options, min_probability_frac=level)
    task = task_of(workload, scenario, replace(AROUND, options=options, simulators={}))
    pruned, _ = candidates_of(task)
    [candidate] = [c for c in pruned.accepted if c.layout.tp == tp and c.precision == "fp8"]
    return ServingSizer(task, task.simulator(candidate))


def brute_force(found: ServingSizer, n: int) -> float:
    """Every sample simulated by itself: its demand, its failures, its slowness, its latencies."""
    samples = risk_samples(3, N_BRUTE)
    runs, ranged = found.simulator, found.simulator.ranged()
    down_frac = found.task.down_frac(runs.candidate)
    rng = np.random.default_rng(5)
    met = []
    for z, demand in zip(samples.n_deviations, samples.demand_ratio, strict=True):
        n_up = n - rng.binomial(n, down_frac)
        load, at = found.task.peak_per_s * demand, floats([z])
        slow = float(error_ratio(ranged.step_time(), at)[0])
        plain = runs.run(load, n_up, most_longer=1)
        slowed = runs.run(load, n_up, slowness_ratio=max(1.0, slow), most_longer=1)
        is_met = not plain.is_overloaded and not slowed.is_overloaded
        for limit, each in plain.latencies:
            error = float(error_ratio(ranged.estimate(RANGED[limit.metric], 1.0), at)[0])
            is_met = is_met and each.value_s * error <= limit.limit_s
        is_met = is_met and all(each.value_s <= limit.limit_s for limit, each in slowed.latencies)
        met.append(is_met)
    return float(np.mean(met))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_probability_is_that_of_samples_simulated_one_by_one(n):
    found = sizer(None)
    sized = found._measured(n, need=replace_need(found.size(), n), remarks=())
    assert probability_of(found.task, sized) == pytest.approx(brute_force(found, n), abs=0.08)


def replace_need(sized, n):
    return replace(sized.need, n_replicas=np.full_like(sized.need.n_replicas, n))


@pytest.mark.parametrize("level", [0.5, 0.7, 0.75])
def test_a_fleet_reaches_its_level_and_is_never_smaller_than_predicted(level):
    plain, likely = sizer(None).size(), (asked := sizer(level)).size()
    assert is_likely(asked.task, likely)
    assert likely.n_serving >= plain.n_serving
    if likely.n_serving > plain.n_serving:
        assert "more than the predicted speed needs" in likely.remarks[-1]
        assert likely.remarks[-1].count("%") == 1  # odds of fewer replicas are those of their run


def test_a_higher_level_never_takes_fewer_and_a_spare_counts():
    counts = [sizer(level).size().n_serving for level in (0.4, 0.6, 0.75)]
    assert counts == sorted(counts)
    spared = sizer(0.6, survive="replica").size()
    assert spared.n_serving < counts[1] + 1
    assert spared.n_replicas >= counts[1]


def test_a_range_that_crosses_its_limit_and_near_certainty_never_meet():
    """At the planned load, without spares: over nine in ten means that both ends are within."""
    for n in (2, 3, 6):
        found = sizer(None)
        sized = found._measured(n, need=replace_need(found.size(), n), remarks=())
        only = risk_samples(0).only("n_deviations")
        carried = np.interp(only.n_deviations, sized.carried.n_deviations, sized.carried.load_per_s)
        p = float(np.mean(carried >= found.task.peak_per_s / n * (1 - 1e-9)))
        is_within = all(x.reached_s.high <= x.limit_s for x in sized.limits)
        # What is carried is told at errors a quarter of a deviation apart: half of that is open.
        half = float(DEVIATIONS[1] - DEVIATIONS[0]) / 2
        assert (p >= NormalDist().cdf(Z_80 + half)) <= is_within
        assert is_within <= (p >= NormalDist().cdf(Z_80 - half))


def test_what_is_late_when_idle_keeps_its_predicted_size():
    tight = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.026),)
    found = sizer(0.95, rate=1.0, limits=tight)
    sized = found.size()
    assert not is_likely(found.task, sized)
    assert sized.n_serving == sizer(None, rate=1.0, limits=tight).size().n_serving


def test_what_no_number_can_reach_is_not_simulated_beside_likely_ones(monkeypatch):
    tight = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.026),)
    found = sizer(0.95, rate=1.0, limits=tight)
    monkeypatch.setattr(found.simulator, "_once", None)
    assert found.size(n_most=50) is None


@pytest.mark.parametrize("n", [2, 4, 16])
def test_no_fleet_is_surer_than_its_idle_replicas(n):
    """And more replicas are never less sure: profiles reach as far as errors bring the load."""
    found = sizer(None, rate=3.0)
    need = found.size()
    odds = [
        probability_of(found.task, found._measured(k, need=replace_need(need, k), remarks=()))
        for k in (n, 2 * n)
    ]
    assert odds[0] <= odds[1] + 0.01
    assert odds[1] <= best_odds_frac(found.simulator, AROUND.options.seed) + 1e-9


def test_a_slower_model_carries_less_and_latencies_rise_with_the_error():
    found = sizer(None)
    profile = LatencyProfile(found.simulator, n_replicas=2)
    carried = profile.carried(0.0)
    assert list(carried.load_per_s) == sorted(carried.load_per_s, reverse=True)
    each = floats([found.task.peak_per_s / 2])
    slow, plain, fast = profile.latencies_s(each, floats([Z_80, 0.0, -Z_80]))[:, 0, :]
    assert np.all(slow > plain)
    assert np.all(plain > fast)


def test_too_many_for_their_worth_are_given_up():
    found = sizer(0.8)
    n = found.size().n_serving
    assert found.size(n_most=n - 1) is None
    assert found.size(n_most=n).n_serving == n


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_what_a_run_shows_to_be_unlikely_is_so_by_the_whole_profile(n):
    found = sizer(None)
    profile, peak = LatencyProfile(found.simulator, n_replicas=n), found.task.peak_per_s
    odds = FleetRisk(profile.carried(0.0), risk_samples(0)).probability(n, peak)
    for level in np.linspace(0.02, 1.0, 50):
        if profile.is_unlikely(peak / n, risk_samples(0), float(level)):
            assert odds < level + 0.01


@pytest.mark.parametrize(("level", "rate"), [(0.5, 0.7), (0.8, 4.0), (0.8, 21.0), (0.7, 60.0)])
def test_the_number_does_not_depend_on_where_the_search_begins(level, rate):
    found = sizer(level, rate=rate)
    task, samples = found.task, risk_samples(found.task.context.options.seed)

    def wanted(n):
        n_peak = FleetRisk(found._carried(n), samples).fewest(rate, level, most=1000)
        return ReplicaNeed(n_replicas=np.array([[[n_peak]]]))

    n = found._sure_need(None).n_peak
    assert task.reserve(found.simulator.candidate, n).n_spare == 0
    for start in (1, max(1, n // 3), n, n + 1, 2 * n + 3):
        assert fewest(start, wanted, None).n_peak == n
        assert fewest(start, wanted, n + 2).n_peak == n
        assert fewest(start, wanted, n - 1).n_peak > n - 1


def test_the_number_rises_with_the_load_and_never_jumps_back():
    """Small changes of the load move it by small steps."""
    rates = np.geomspace(4.0, 12.0, 12)
    counts = [sizer(0.8, rate=float(rate))._sure_need(None).n_peak for rate in rates]
    assert counts == sorted(counts)
    for (rate, n), (more, m) in pairwise(zip(rates, counts, strict=True)):
        assert m <= n * more / rate + 1 + 0.05 * n


def test_the_odds_alone_find_what_the_predicted_speed_and_the_odds_find():
    """From below by way of the predicted speed, and from a guess: the same number, or one off."""
    found, level = sizer(0.8), 0.8
    assert found.task.context.options.min_probability_frac == level
    by_speed, by_odds = found._size_predicted(None), sizer(0.8).size()
    assert abs(by_speed.n_serving - by_odds.n_serving) <= 1
    assert is_likely(found.task, by_odds)


def test_a_need_is_scaled_in_whole_replicas_and_joined_hour_by_hour():
    need = ReplicaNeed(n_replicas=np.array([[[0, 3, 7]]]))
    assert need.scaled(0.5).n_replicas.tolist() == [[[0, 2, 4]]]
    other = ReplicaNeed(n_replicas=np.array([[[1, 2, 9]]]))
    assert need.at_least(other).n_replicas.tolist() == [[[1, 3, 9]]]


def test_bursts_at_the_end_of_a_run_are_looked_at_for_longer(monkeypatch):
    found = sizer(None)
    peak, asked = found.task.peak_per_s, []
    whole = found.simulator.run(peak, 8)

    def once(load, n_replicas, n):
        asked.append(n)
        return replace(whole, is_overloaded=len(asked) == 1, meets_slo=len(asked) > 1)

    monkeypatch.setattr(found.simulator, "_once", once)
    assert found.simulator.run(peak, 8, most_longer=1).meets_slo
    assert asked == [asked[0], 4 * asked[0]]


# ── rows: the best layout of each accelerator and precision ─────────────────────────────────────


@pytest.fixture(scope="module")
def chat():
    [workload] = CHAT.workloads
    options = replace(AROUND.options, min_probability_frac=0.8)
    task = task_of(workload, CHAT, replace(AROUND, options=options, simulators={}))
    return task, language_sizes(task)


def test_what_was_asked_for_may_be_chosen_and_other_precisions_are_shown(chat):
    task, found = chat
    assert {each.candidate.precision for each in found.sized} == {"fp8"}
    assert {each.candidate.precision for each in found.compared} == {"bf16", "int4"}
    assert all(is_likely(task, each) for each in found.sized)


def test_no_fleet_of_a_row_costs_as_much_and_is_less_sure(chat):
    task, found = chat
    fleets = [(each.n_accelerators, probability_of(task, each)) for each in found.sized]
    for n, odds in fleets:
        assert not any(m <= n and other > odds for m, other in fleets)


def test_a_slower_network_at_the_same_price_is_not_simulated(chat):
    task, found = chat
    candidate = found.sized[0].candidate
    slow, fast = (
        replace(candidate, layout=replace(candidate.layout, network_bytes_per_s=rate))
        for rate in (3e9, 50e9)
    )
    first, second = _Row(task).sizes([slow, fast])
    assert isinstance(first, Sized)
    assert first.candidate == fast
    assert "faster network" in second.why


def test_a_row_is_sized_anew_for_another_level(chat):
    task, found = chat
    options = replace(task.context.options, min_probability_frac=0.85)
    surer = replace(task, context=replace(task.context, options=options))
    again = row_sizes(surer, found.sized[0].candidate)
    assert again
    assert all(probability_of(surer, each) >= 0.85 for each in again)
    least = min(each.n_accelerators for each in again)
    assert least >= min(each.n_accelerators for each in found.sized)


def test_a_probability_that_was_asked_for_and_is_out_of_reach_leaves_no_fleet():
    tight = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.026),)
    task = sizer(0.95, rate=1.0, limits=tight).task
    options = replace(task.context.options, is_probability_requested=True)
    found = language_sizes(replace(task, context=replace(task.context, options=options)))
    unsure = [each for each in found.rejected if "probability" in each.reason]
    if any(is_likely(task, each) for each in found.sized):
        assert all(is_likely(task, each) for each in found.sized)
    else:
        assert not found.sized
        assert unsure
        assert "min_probability_frac" in unsure[0].relaxation


def test_a_fleet_that_is_not_likely_enough_says_what_twice_as_many_would_reach():
    sized = sizer(0.8)
    found = sized.size()
    few = found.carried.load_per_s[len(found.carried.load_per_s) // 2]
    late = tuple(
        min(x, few) * (z < 0.5) for x, z in zip(found.carried.load_per_s, DEVIATIONS, strict=True)
    )
    stuck = replace(found, carried=replace(found.carried, load_per_s=late))
    risk, n, peak = (
        FleetRisk(stuck.carried, risk_samples(0)),
        found.n_replicas,
        sized.task.peak_per_s,
    )
    told = saturation_text(sized.task, stuck)
    assert f"{risk.probability(n, peak):.0%}, and {risk.probability(2 * n, peak):.0%}" in told
    assert risk.probability(100 * n, peak) < 0.8


def _risk(load_of):
    """Odds of fleets whose replicas carry so much at every error of the model."""
    loads = tuple(float(load_of(z)) for z in DEVIATIONS)
    carried = CarriedLoad(n_deviations=tuple(DEVIATIONS), load_per_s=loads, down_frac=0.0)
    return FleetRisk(carried, risk_samples(0))


def test_replicas_that_buy_throughput_are_worth_their_price():
    risk = _risk(lambda z: 10.0 * np.exp(-0.2 * z))
    for level in (0.6, 0.8, 0.95):
        n = risk.fewest(200.0, level, most=200)
        assert most_worth(risk, 200.0, n, n_predicted=20) == n


def test_replicas_that_only_empty_a_fleet_are_not():
    """Beyond an error of 0.85 deviations (80 %) a lone request is late: more replicas mend nothing.

    Below it, what is carried falls towards nothing.
    """
    risk = _risk(lambda z: 10.0 * np.clip((0.9 - z) / 0.9, 0.0, 1.0) ** 2)
    n = risk.fewest(200.0, 0.8, most=10_000)
    found = most_worth(risk, 200.0, n, n_predicted=20)
    assert found < 0.5 * n
    before, after = (1 - risk.probability(k, 200.0) for k in (found, n))
    assert after > before * found / n  # the rest buys less than its share
    assert (
        most_worth(risk, 200.0, n, n_predicted=n) == n
    )  # what the predicted speed needs is bought
