"""Fleets by simulation: scenarios A11 and A12, and laws that any fleet obeys."""

from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.plan.sizing import SizingOptions
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.demand import LatencyLimit, Slo
from gpuplan.domain.scenario.terms import Choice
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.prefix import prefix_sensitivity
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.task import SizingContext, task_of
from gpuplan.studies.sizing.workload import size_workload

EXAMPLES = Path(__file__).parents[4] / "examples"
CATALOG = read_catalog()
CHAT = read_scenario(EXAMPLES / "chat.yaml")
AROUND = SizingContext(catalog=CATALOG)
FAST = SizingOptions(n_requests=3000)


def chat(*, rate=None, limits=None, cards=("H100",), profile=()):
    """Scenario A11 with other figures."""
    [workload] = CHAT.workloads
    work = workload.work
    if rate is not None:
        arrivals = replace(work.arrivals, peak_requests_per_s=rate, mean_requests_per_s=rate)
        work = replace(work, arrivals=arrivals)
    if profile:
        work = replace(work, arrivals=replace(work.arrivals, hourly_profile=profile))
    if limits is not None:
        work = replace(work, slo=Slo(limits=limits))
    workload = replace(workload, work=work)
    policy = replace(CHAT.policy, accelerators=Choice(allowed=cards))
    return workload, replace(CHAT, workloads=(workload,), policy=policy)


def tools(workload, scenario, card="h100-sxm", tp=2):
    """The sizer and the runs of one candidate."""
    task = task_of(workload, scenario, replace(AROUND, options=FAST))
    pruned, _ = candidates_of(task)
    candidate = next(
        c
        for c in pruned.accepted
        if c.accelerator == card and c.layout.tp == tp and c.share is None and c.layout.pp == 1
    )
    simulator = task.simulator(candidate)
    return ServingSizer(task, simulator), simulator


@pytest.fixture(scope="module")
def sized():
    workload, scenario = chat()
    return size_workload(workload, scenario, AROUND)


def test_chat_takes_three_pairs_and_says_why(sized):
    """A11: one pair cannot keep 40 ms, two can, and one may fail: six H100."""
    best = sized.sized[0]
    assert sized.demand.peak_requests_per_s == pytest.approx(3.333, rel=1e-3)
    assert (best.candidate.accelerator, best.candidate.layout.tp) == ("h100-sxm", 2)
    assert (best.n_serving, best.reserve.n_spare, best.n_accelerators) == (2, 1, 6)
    [why] = tools(*chat())[0].too_few(best)
    assert why.startswith("1 is not enough")
    assert "not 40 ms" in why
    assert "replica may fail" in best.reserve.why


def test_one_accelerator_does_not_fit_and_the_fix_is_named(sized):
    [alone, *_] = [
        r for r in sized.rejected
        if r.candidate.accelerator == "h100-sxm" and r.candidate.layout.tp == 1
    ]  # fmt: skip
    assert alone.constraint == "memory"
    assert "tp 2 would fit" in alone.relaxation


def test_times_per_token_are_those_of_the_reference():
    """Prompts take 58 % of one pair's time and 29 % of two pairs'; the rest is left for answers.

    By hand that made 58 and 23 ms with steps of 24 and 16 ms. Measured steps of the model on a pair
    of H100 take 28.8 ms at 64 users and 19.7 ms at 16 [InferenceX], which makes 69 and 28 ms.
    """
    workload, scenario = chat()
    _, runs = tools(workload, scenario)
    one_pair_s, two_pairs_s = (runs.run(10 / 3, n).tpot_mean_s for n in (1, 2))
    assert one_pair_s == pytest.approx(0.0288 / (1 - 0.58), rel=0.2)
    assert two_pairs_s == pytest.approx(0.0197 / (1 - 0.29), rel=0.2)
    assert two_pairs_s < 0.040 < one_pair_s


def test_little_closes(sized):
    for each in sized.sized:
        little = each.little
        assert little.n_in_flight == pytest.approx(
            little.requests_per_s * little.residence_s, rel=1e-9
        )
        assert little.n_counted == pytest.approx(little.n_in_flight, rel=0.02)


def test_promises_carry_ranges_and_are_kept(sized):
    best = sized.sized[0]
    assert {limit.metric for limit in best.limits} == {"ttft", "tpot"}
    for limit in best.limits:
        assert limit.is_kept
        assert limit.reached_s.low < limit.reached_s.value < limit.reached_s.high
        assert limit.reached_s.tier == "simulated"
    assert best.power_w.value > 2 * 200
    assert best.cold_start_s.value > 30


def test_the_safe_load_is_that_of_this_pool():
    workload, scenario = chat()
    sizer, _ = tools(workload, scenario)
    fleet = sizer.with_safety(sizer.size())
    use = fleet.utilization
    assert use.peak_frac <= use.safe_frac < 1.0
    assert "replicas" in use.band


def test_what_is_kept_is_sized_rejected_or_skipped(sized):
    everything = [
        *(s.candidate for s in sized.sized),
        *(r.candidate for r in sized.rejected),
        *(s.candidate for s in sized.skipped),
    ]
    assert len(everything) == len(set(everything))
    cards = {str(c.accelerator) for c in everything}
    assert cards == {str(card) for card in CATALOG.accelerators}


def test_skipped_candidates_could_not_have_won():
    """Every skipped candidate, sized after all, costs no less than its bound and than the best."""
    workload, scenario = chat(cards=("H100", "H200", "MI300X", "L40S"))
    lazy = size_workload(workload, scenario, AROUND)
    around = replace(AROUND, options=SizingOptions(is_exhaustive=True))
    full = size_workload(workload, scenario, around)
    costs = {s.candidate: s.n_accelerators for s in full.sized}
    best = min(costs.values())
    assert lazy.sized[0].n_accelerators == best
    assert lazy.skipped
    for skipped in lazy.skipped:
        cost = costs.get(skipped.candidate)
        assert skipped.cost_least_usd_per_h > lazy.sized[0].n_accelerators
        if cost is not None:
            assert skipped.cost_least_usd_per_h <= cost
            assert cost >= best


@pytest.mark.parametrize(("rate", "card", "tp"), [(3.33, "h100-sxm", 2), (9.0, "h100-sxm", 4),
                                                   (20.0, "b200-sxm", 1)])  # fmt: skip
def test_bisection_equals_a_scan(rate, card, tp):
    limits = (
        LatencyLimit(metric="ttft", statistic="p95", limit_s=2.0),
        LatencyLimit(metric="tpot", statistic="p95", limit_s=0.040),
    )
    workload, scenario = chat(rate=rate, limits=limits, cards=("H100", "B200"))
    sizer, runs = tools(workload, scenario, card, tp)
    scan = next(n for n in range(1, 40) if runs.run(rate, n).meets_slo)
    assert sizer.n_at(rate) == scan
    assert sizer.least() <= scan


def test_more_load_never_takes_fewer_and_looser_promises_never_more():
    limits = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.035),)
    loose = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.050),)
    tight_n, loose_n = [], []
    for rate in (0.5, 2.0, 5.0, 11.0, 24.0):
        for asked, found in ((limits, tight_n), (loose, loose_n)):
            workload, scenario = chat(rate=rate, limits=asked)
            sizer, _ = tools(workload, scenario)
            found.append(sizer.n_at(rate))
    assert tight_n == sorted(tight_n)
    assert loose_n == sorted(loose_n)
    assert all(a >= b for a, b in zip(tight_n, loose_n, strict=True))


@pytest.mark.parametrize("slowness", [1.1, 1.3])
def test_a_slower_machine_never_takes_fewer(slowness):
    limits = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.060),)
    for rate in (3.0, 8.0):
        workload, scenario = chat(rate=rate, limits=limits)
        sizer, _ = tools(workload, scenario)
        slow = sizer.n_at(rate, slowness_ratio=slowness)
        assert slow is not None
        assert slow >= sizer.n_at(rate)


def test_pools_of_many_replicas_need_in_proportion():
    limits = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.050),)
    workload, scenario = chat(rate=400.0, limits=limits)
    sizer, runs = tools(workload, scenario, tp=4)
    n = sizer.n_at(400.0)
    twice = sizer.n_at(800.0)
    assert 32 < n < 400
    assert twice == pytest.approx(2 * n, abs=2)
    assert n * runs.capacity_per_s() > 400.0


def test_hours_follow_the_profile():
    profile = (*[0.1] * 8, *[1.0] * 8, *[0.5] * 8)
    limits = (LatencyLimit(metric="tpot", statistic="p95", limit_s=0.040),)
    workload, scenario = chat(rate=20.0, limits=limits, profile=profile)
    found = size_workload(workload, scenario, replace(AROUND, options=FAST))
    best = found.sized[0]
    need = best.need.n_replicas[0, 0]
    assert need.shape == (24,)
    assert need[10] == best.n_serving
    assert need[0] < need[20] < need[10]


def test_without_promises_the_usual_ceiling_holds():
    workload, scenario = chat(rate=30.0, limits=())
    sizer, runs = tools(workload, scenario)
    n = sizer.n_at(30.0)
    assert 0.7 * n * runs.capacity_per_s() >= 30.0
    assert 0.7 * (n - 1) * runs.capacity_per_s() < 30.0


def test_same_seed_same_sizes():
    workload, scenario = chat()
    assert size_workload(workload, scenario, AROUND) == size_workload(workload, scenario, AROUND)


@pytest.fixture(scope="module")
def agents():
    scenario = read_scenario(EXAMPLES / "coding-agents.yaml")
    [workload] = scenario.workloads
    policy = replace(scenario.policy, accelerators=Choice(allowed=("MI355X", "B300")))
    scenario = replace(scenario, policy=policy)
    sizing = size_workload(workload, scenario, replace(AROUND, options=FAST))
    best = next(s for s in sizing.sized if s.method == "simulated")
    points = prefix_sensitivity(workload, scenario, replace(AROUND, options=FAST), best.candidate)
    return best, points


def test_hits_discount_prefill_only(agents):
    """A12: 24 turns/s of 60 k tokens; at 95 % hits 72 k tokens/s are left of 1.44 M."""
    _, points = agents
    by_hit = {round(p.hit_frac, 2): p for p in points}
    assert by_hit[0.95].prefill_tokens_per_s == pytest.approx(72_000)
    assert by_hit[0.80].prefill_tokens_per_s == pytest.approx(288_000)
    assert by_hit[0.98].prefill_tokens_per_s == pytest.approx(28_800)
    # What is in flight holds its whole context, however much of it was found in the cache.
    for point in points:
        assert point.cache_tokens > 24.0 * 60_000


def test_fewer_hits_never_take_fewer_replicas(agents):
    _, points = agents
    n = [p.n_replicas if p.n_replicas is not None else 10**9 for p in points]
    assert n == sorted(n, reverse=True)


def test_cached_context_is_held_and_read(agents):
    best, _ = agents
    held = best.little.cache_tokens / best.little.n_counted
    assert held == pytest.approx(60_000 + 250, rel=0.02)


def test_a_cached_prefix_costs_what_a_longer_context_costs():
    """Decoding over a cached context takes as long as over one that was read."""
    scenario = read_scenario(EXAMPLES / "coding-agents.yaml")
    [workload] = scenario.workloads
    shape = workload.work.request
    limits = (LatencyLimit(metric="tpot", statistic="p50", limit_s=9.0),)
    rates = []
    for hit in (0.0, 0.95):
        work = replace(
            workload.work, slo=Slo(limits=limits),
            request=replace(shape, prefix_hit_frac=exactly(hit)),
        )  # fmt: skip
        changed = replace(workload, work=work)
        _, runs = tools(changed, scenario, "b300-sxm", 8)
        # So few requests that hardly any meets another: the median answer runs alone.
        [(_, seen)] = runs.run(0.002, 1).latencies
        rates.append(seen.value_s)
    assert rates[1] == pytest.approx(rates[0], rel=0.05)


def test_a_promise_at_the_idle_time_is_refused_in_words():
    """One request alone takes 0.25 s to its first token: 2 % more leaves no room for any other."""
    workload, scenario = chat(rate=20.0)
    sizer, runs = tools(workload, scenario)
    floor_s = sizer.simulator.evaluator.idle_times(runs.candidate).ttft_s
    limits = (LatencyLimit(metric="ttft", statistic="p99", limit_s=1.02 * floor_s),)
    workload, scenario = chat(rate=20.0, limits=limits)
    sizer, runs = tools(workload, scenario)
    found = sizer.size()
    assert found.constraint == "slo"
    assert "faster than they are served" not in found.reason
    assert found.relaxation


def test_a_search_ends_where_no_more_replicas_are_worth_it():
    """With room for one fewer than hold the search gives up; with room for all it finds them."""
    workload, scenario = chat()
    sizer, _ = tools(workload, scenario)
    found = sizer.size()
    assert sizer.size(n_most=found.n_serving - 1) is None
    assert sizer.size(n_most=found.n_serving) == found


def test_slow_ends_beyond_any_fleet_are_seen_without_a_run():
    """If one token alone is late, no number helps: the short way agrees with the long one."""
    limits = (LatencyLimit(metric="itl", statistic="p95", limit_s=0.022),)
    workload, scenario = chat(limits=limits)
    sizer, runs = tools(workload, scenario)
    candidate = runs.candidate
    slowness = sizer.simulator.evaluator.ranged(candidate).estimate("tpot_mean_ms", 1.0).high
    assert slowness * sizer.simulator.evaluator.idle_times(candidate).tpot_s > limits[0].limit_s
    assert sizer.n_at(10 / 3, slowness_ratio=slowness) is None


@pytest.mark.parametrize("rate", [2.0, 12.0])
def test_what_is_cut_short_is_dearer_than_what_is_sized(rate):
    """Candidates that were given up have a fleet, sized in full, that costs no less."""
    workload, scenario = chat(rate=rate, cards=("H100", "L40S", "B200"))
    lazy = size_workload(workload, scenario, replace(AROUND, options=FAST))
    full = replace(AROUND, options=replace(FAST, is_exhaustive=True))
    every = {s.candidate: s for s in size_workload(workload, scenario, full).sized}
    best = min(s.n_accelerators for s in lazy.sized)
    assert best == min(s.n_accelerators for s in every.values())
    cut = [s for s in lazy.skipped if "violate an SLO" in s.why]
    for each in cut:
        if each.candidate in every:
            assert every[each.candidate].n_serving >= each.n_replicas_least
            assert every[each.candidate].n_accelerators >= best


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_a_replica_with_little_to_do_is_not_full(rate):
    """What one replica carries does not depend on how little comes today; it keeps its promises."""
    workload, scenario = chat(rate=rate)
    sizer, runs = tools(workload, scenario)
    sized = sizer.size()
    carried = sized.capacity_per_s.value
    assert sized.n_serving == 1
    assert carried > 1.05 * rate
    assert runs.run(carried, 1).meets_slo
    assert not runs.run(1.3 * carried, 1).meets_slo


def test_what_a_replica_carries_agrees_with_how_many_are_needed(sized):
    """Load over what one carries, rounded up, is the number that was found by simulation."""
    peak = sized.demand.peak_of(0, 0)
    for each in sized.sized:
        assert ceil(peak / each.capacity_per_s.value - 1e-9) == each.n_serving


def test_one_replica_is_the_same_behind_any_router():
    workload, scenario = chat(rate=1.0)
    _, runs = tools(workload, scenario)
    requests = runs.streams.at(1.0, 2000)
    alone = simulate_serving(requests, runs.prepared.fleet(1, router="round_robin"))
    assert runs.outcome(requests, 1).times.e2e_s.tolist() == alone.times.e2e_s.tolist()
