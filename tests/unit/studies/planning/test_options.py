"""Sized fleets as options: hours in common, discounts, purchase options and MIG geometries."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.fleets import curve, demand, estimate, rate
from gpuplan.domain.columns import floats
from gpuplan.domain.money.rates import Capital, RatePart, RateTerms
from gpuplan.domain.plan.sizing import HourLoads, Periods
from gpuplan.domain.ranges import exactly
from gpuplan.studies.planning.curves import (
    cost_usd_per_month,
    costs_usd_per_month,
    load_crossovers,
    log_sd_ratio,
    winners,
)
from gpuplan.studies.planning.options import aligned_hours, horizon_of, pool_name, terms_of
from gpuplan.units import YEAR

WEEK_H = 168.0


@st.composite
def weeks(draw):
    """A week as blocks of load, in any order."""
    n = draw(st.integers(1, 6))
    loads = draw(st.lists(st.floats(0.05, 1.0), min_size=n, max_size=n))
    widths = np.array(draw(st.lists(st.integers(1, 50), min_size=n, max_size=n)), dtype=float)
    return HourLoads(load_frac=floats(loads), hours_per_week=floats(widths / widths.sum() * WEEK_H))


@given(st.lists(weeks(), min_size=1, max_size=3))
def test_a_common_axis_keeps_every_week_whole(found):
    width, places = aligned_hours(found)
    assert width.sum() == pytest.approx(WEEK_H)
    for hours, place in zip(found, places, strict=True):
        mean = float((hours.load_frac[place] * width).sum() / WEEK_H)
        assert mean == pytest.approx(hours.mean_frac, rel=1e-6)


@given(weeks(), weeks())
def test_peaks_are_taken_to_coincide(first, second):
    _, (a, b) = aligned_hours([first, second])
    if len(first.load_frac) != len(second.load_frac):
        assert first.load_frac[a][0] == first.load_frac.max()
        assert second.load_frac[b][0] == second.load_frac.max()


def test_equal_axes_stay_as_they_are():
    week = HourLoads(load_frac=floats([0.2, 1.0]), hours_per_week=floats([100.0, 68.0]))
    other = HourLoads(load_frac=floats([1.0, 0.5]), hours_per_week=floats([100.0, 68.0]))
    width, places = aligned_hours([week, other])
    assert list(width) == [100.0, 68.0]
    assert [list(place) for place in places] == [[0, 1], [0, 1]]


def periods(n, length_s=YEAR / 4):
    return Periods(
        scenarios=("mid",),
        start_s=floats([length_s * i for i in range(n)]),
        length_s=floats([length_s] * n),
        load_ratio=floats([[1.0] * n]),
    )


def test_running_costs_are_paid_at_the_end_of_each_month():
    scenario = SimpleNamespace(budget=SimpleNamespace(discount_frac_per_year=0.21))
    found = horizon_of(scenario, floats([100.0, 68.0]), periods(4))
    assert found.upfront_discount_frac == pytest.approx(1.21 ** -np.array([0, 0.25, 0.5, 0.75]))
    months = 1.21 ** -(np.array([4, 5, 6]) / 12)
    assert found.running_discount_frac[1] == pytest.approx(months.mean())
    assert found.end_discount_frac == pytest.approx(1 / 1.21)
    assert found.period_s == pytest.approx(YEAR / 4)
    assert list(found.probability_frac) == [1.0]


def test_a_commitment_counts_in_periods_and_a_long_one_to_the_end():
    year = rate("h100", 2.0, purchase="reserved", terms=RateTerms(term_s=YEAR))
    assert terms_of(year, periods(8)).n_term_periods == 4
    assert terms_of(year, periods(4)).n_term_periods is None
    assert terms_of(rate("h100", 2.0), periods(4)).n_term_periods is None


def test_a_bought_node_is_capital_and_what_running_it_costs():
    capital = Capital(
        hardware_usd=exactly(300_000.0),
        outlay_usd=exactly(320_000.0),
        residual_frac=exactly(0.15),
        life_s=4 * YEAR,
        discount_frac_per_year=0.0,
    )
    parts = (
        RatePart(name="capital", usd_per_h=exactly(7.0)),
        RatePart(name="energy", usd_per_h=exactly(3.0)),
    )
    bought = rate("h100", 10.0, purchase="owned", capital=capital)
    found = terms_of(replace(bought, parts=parts), periods(16), lead_s=YEAR / 2)
    assert found.usd_per_node_h == pytest.approx(3.0)
    assert found.upfront_usd == 320_000.0
    assert found.n_lead_periods == 2
    assert found.is_on_site
    # Worth the outlay's hardware at first, and its residual share at the end of its life.
    assert found.residual_usd[-1] == pytest.approx(45_000.0)
    assert np.all(np.diff(found.residual_usd) <= 1e-6)


def test_equal_nodes_are_one_pool_and_cpus_differ_by_size():
    assert pool_name(rate("h100", 2.0, n=8)) == "h100 x8"
    cpu = rate("cpu-xeon-8480", 2.0)
    large, small = (pool_name(replace(cpu, node=replace(cpu.node, n_vcpus=n))) for n in (192, 96))
    assert large != small


# ── curves ───────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.floats(0.5, 20.0), st.floats(0.1, 9.0)), min_size=1, max_size=4))
def test_no_fleet_is_cheaper_than_the_one_that_leads(kinds):
    curves = [curve(f"k{i}", load, usd) for i, (load, usd) in enumerate(kinds)]
    load = demand(10.0)
    found = winners(curves, load)
    names = [step.curve.kind for step in found]
    assert all(a != b for a, b in pairwise(names))
    for step in found:
        factor = step.load / 10.0
        costs = {c.kind: cost_usd_per_month(c, load, factor=factor) for c in curves}
        assert costs[step.curve.kind] <= min(costs.values()) * (1 + 1e-6)


def test_a_crossover_from_cpus_is_said():
    cpu, gpu = curve("cpu-x", 1.0, 1.0), curve("gpu", 100.0, 20.0)
    [row] = load_crossovers([cpu, gpu], demand(10.0), unit="requests/s")
    assert row.then == "gpu is cheaper than cpu-x: an accelerator pays off"


def test_slower_replicas_take_more_of_them():
    fleet, load = curve("a", 5.0, 1.0), demand(10.0)
    slow = costs_usd_per_month(fleet, load, floats([1.0, 2.0]), 0.5)
    assert slow == pytest.approx([4 * 730, 8 * 730])


def test_the_spread_of_a_range_holds_four_of_five():
    found = log_sd_ratio(estimate(1.0, 0.5, 2.0))
    assert np.exp(1.2816 * found) == pytest.approx(2.0)
    assert log_sd_ratio(estimate(1.0, -1.0, 2.0)) == 0.0
    assert log_sd_ratio(estimate(3.0)) == 0.0
