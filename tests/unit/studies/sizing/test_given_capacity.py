"""Sizes from the user's own figures: scenarios A2, A6 and A8, and others like them."""

from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import read_catalog
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.task import SizingContext
from gpuplan.studies.sizing.workload import size_workload

EXAMPLES = Path(__file__).parents[4] / "examples"
CATALOG = read_catalog()
# USD per accelerator-hour of the scenario A2.
PRICES = {"l4": 0.80, "l40s": 1.60, "h100-sxm": 2.95}


def price(candidate, n_replicas):
    each = PRICES.get(candidate.accelerator)
    return None if each is None else each * candidate.n_accelerators_for(n_replicas)


AROUND = SizingContext(catalog=CATALOG, price=price)


def offered(tokens_per_s, *, survive="none", rho=0.7):
    """Scenario A2 at another load."""
    scenario = read_scenario(EXAMPLES / "which-gpu.yaml")
    [workload] = scenario.workloads
    rate = tokens_per_s / 300
    arrivals = replace(workload.work.arrivals, peak_requests_per_s=rate, mean_requests_per_s=rate)
    resilience = replace(scenario.policy.resilience, survive=survive, max_utilization_frac=rho)
    workload = replace(workload, work=replace(workload.work, arrivals=arrivals))
    scenario = replace(
        scenario, workloads=(workload,), policy=replace(scenario.policy, resilience=resilience)
    )
    return size_workload(workload, scenario, AROUND)


def counts(sizing):
    return {str(s.candidate.accelerator): s.n_accelerators for s in sizing.sized}


@pytest.mark.parametrize(
    ("tokens_per_s", "survive", "expected"),
    [
        (500, "none", {"l4": 1, "l40s": 1, "h100-sxm": 1}),
        (4_000, "none", {"l4": 7, "l40s": 3, "h100-sxm": 1}),
        (40_000, "none", {"l4": 64, "l40s": 22, "h100-sxm": 7}),
        (500, "gpu", {"l4": 2, "l40s": 2, "h100-sxm": 2}),
        (4_000, "gpu", {"l4": 8, "l40s": 4, "h100-sxm": 2}),
        (40_000, "gpu", {"l4": 65, "l40s": 23, "h100-sxm": 8}),
    ],
)
def test_which_gpu(tokens_per_s, survive, expected):
    assert counts(offered(tokens_per_s, survive=survive)) == expected


@pytest.mark.parametrize(
    ("tokens_per_s", "survive", "winner", "usd_per_h"),
    [
        (500, "none", "l4", 0.80),
        (4_000, "none", "h100-sxm", 2.95),
        (40_000, "none", "h100-sxm", 20.65),
        (500, "gpu", "l4", 1.60),
        (4_000, "gpu", "h100-sxm", 5.90),
    ],
)
def test_the_winner_moves_with_the_load(tokens_per_s, survive, winner, usd_per_h):
    sizing = offered(tokens_per_s, survive=survive)
    costs = {str(s.candidate.accelerator): price(s.candidate, s.n_replicas) for s in sizing.sized}
    assert min(costs, key=lambda card: costs[card]) == winner
    assert costs[winner] == pytest.approx(usd_per_h)


@settings(max_examples=40, deadline=None)
@given(tokens=st.floats(10, 1e6), rho=st.floats(0.2, 1.0))
def test_given_capacities_are_divided_and_rounded_up(tokens, rho):
    found = offered(tokens, rho=rho)
    for sized in found.sized:
        capacity = {"l4": 900, "l40s": 2600, "h100-sxm": 9000}[str(sized.candidate.accelerator)]
        assert sized.n_serving == ceil(tokens / capacity / rho - 1e-6)
        assert sized.method == "given"
        assert sized.capacity_per_s.tier == "given"
        assert sized.utilization.peak_frac <= rho + 1e-9


def test_a_range_of_capacity_tells_its_slow_end():
    scenario = read_scenario(EXAMPLES / "which-gpu.yaml")
    [workload] = scenario.workloads
    wide = [
        replace(c, rate_per_s=replace(c.rate_per_s, low=c.rate_per_s.mid / 2))
        for c in workload.capacities
    ]
    sizing = size_workload(replace(workload, capacities=tuple(wide)), scenario, AROUND)
    by_card = {str(s.candidate.accelerator): s for s in sizing.sized}
    assert by_card["l4"].n_serving == 7
    # The slow end of its range is half of the capacity, at which 80 % is not reserved.
    carried = by_card["l4"].carried
    low, mid = np.interp([1.2816, 0.0], carried.n_deviations, carried.load_per_s)
    assert low == pytest.approx(mid / 2, rel=1e-3)


def test_what_is_not_allowed_is_told():
    sizing = offered(500)
    assert {r.constraint for r in sizing.rejected} == {"policy"}
    assert len(sizing.rejected) + len(sizing.sized) == len(CATALOG.accelerators)


def test_one_processor_node_is_enough_for_embeddings():
    """A6: 23 documents a second at the peak against 60 x 0.7 of one node."""
    scenario = read_scenario(EXAMPLES / "cpu-is-enough.yaml")
    [workload] = scenario.workloads
    sizing = size_workload(workload, scenario, SizingContext(catalog=CATALOG, price=price))
    assert sizing.demand.mean_requests_per_s == pytest.approx(2.3148, rel=1e-3)
    assert sizing.demand.peak_requests_per_s == pytest.approx(23.148, rel=1e-3)
    [own] = [s for s in sizing.sized if s.candidate.offer == "cpu-16"]
    assert own.candidate.is_node
    assert own.n_replicas == 1
    assert own.capacity_per_s.value == pytest.approx(42.0)
    # Two nodes carry 84 documents a second: the third is where the flip comes.
    assert 2 * own.capacity_per_s.value == pytest.approx(84.0)
    [l4] = [s for s in sizing.sized if s.candidate.accelerator == "l4"]
    assert l4.method == "analytic"
    assert l4.n_replicas == 1
    assert all(limit.is_kept for limit in l4.limits)
    # The other processor is estimated; the given one is not estimated as well.
    both = (*sizing.sized, *sizing.compared)
    processors = [s for s in both if CATALOG.accelerators[s.candidate.accelerator].is_cpu]
    assert {s.method for s in processors} == {"given", "analytic"}


@pytest.mark.parametrize(("per_day", "nodes"), [(400_000, 2), (725_000, 2), (727_000, 3)])
def test_more_documents_take_more_nodes(per_day, nodes):
    scenario = read_scenario(EXAMPLES / "cpu-is-enough.yaml")
    [workload] = scenario.workloads
    rate = per_day / 86400 * 10
    arrivals = replace(workload.work.arrivals, peak_requests_per_s=rate)
    workload = replace(workload, work=replace(workload.work, arrivals=arrivals))
    sizing = size_workload(workload, scenario, AROUND)
    [own] = [s for s in sizing.sized if s.candidate.offer == "cpu-16"]
    assert own.n_replicas == nodes


def test_counted_accelerators_follow_the_load_duration():
    """A8: 60 for 20 hours of the week, 40 for 30 more, 16 for the rest."""
    scenario = read_scenario(EXAMPLES / "burst-to-cloud.yaml")
    [workload] = scenario.workloads
    sizing = size_workload(workload, scenario, AROUND)
    [sized] = sizing.sized
    assert sized.method == "given"
    assert sized.need.n_replicas[0, 0].tolist() == [60, 40, 16]
    assert sizing.demand.hours.hours_per_week.tolist() == pytest.approx([20, 30, 118])
    used = (sized.need.n_replicas[0, 0] * sizing.demand.hours.hours_per_week).sum()
    assert used == pytest.approx(60 * 20 + 40 * 30 + 16 * 118)


def test_growth_is_sized_for_its_target():
    """A9: 33.6 busy of 48, 8 % a month, 80 % wanted: 49 in the third month, 98 in the twelfth."""
    scenario = read_scenario(EXAMPLES / "growth.yaml")
    [workload] = scenario.workloads
    [sized] = size_workload(workload, scenario, AROUND).sized
    mid = sized.need.n_replicas[0, :, 0].tolist()
    assert mid == [ceil(33.6 * 1.08**m / 0.8 - 1e-9) for m in (2, 5, 8, 11)]
