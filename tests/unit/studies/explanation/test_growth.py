"""When to order: trigger, lead time and bridge by hand, and the sentences that say so."""

import re
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.fleets import demand
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.demand import Growth
from gpuplan.pipeline.plan import plan
from gpuplan.studies.explanation.growth import order_reasons, orders_of
from gpuplan.units import DAY, WEEK

GROWTH = Growth(
    per_month_frac=exactly(0.08),
    lead_time_s=exactly(16 * 7 * DAY),
    trigger_utilization_frac=0.85,
    target_utilization_frac=0.80,
)


def owning(n=48, peak=0.70, growth=GROWTH):
    nodes = SimpleNamespace(n_accelerators=n, peak_utilization_frac=peak)
    return SimpleNamespace(owned=(nodes,) if n else (), growth=growth)


def order_at(rate, peak, n=48):
    [order] = orders_of(
        owning(n=n, peak=peak, growth=replace(GROWTH, per_month_frac=exactly(rate))), demand(1.0)
    )
    return order


def test_order_by_hand():
    order = order_at(0.08, 0.70)
    assert order.trigger_in_s / WEEK == pytest.approx(10.93, abs=0.01)
    assert order.use_at_arrival_frac == pytest.approx(0.930, abs=0.001)
    assert order.n_needed_in_a_year == 106
    assert order.bridge_s > 0


@given(st.floats(0.001, 0.5), st.floats(0.05, 0.84))
def test_at_the_trigger_the_peak_is_the_trigger(rate, peak):
    order = order_at(rate, peak)
    grown = peak * (1 + rate) ** (order.trigger_in_s / WEEK / (52 / 12))
    assert grown == pytest.approx(0.85, rel=1e-6)


def test_no_growth_never_orders_and_a_full_pool_orders_at_once():
    idle = order_at(0.0, 0.5)
    assert idle.trigger_in_s is None
    assert idle.bridge_s == 0
    full = order_at(0.0, 0.9)
    assert full.trigger_in_s == 0
    assert full.bridge_s / WEEK == pytest.approx(16)


@given(st.floats(0.001, 0.3), st.floats(0.1, 0.84), st.integers(1, 500))
def test_faster_growth_orders_sooner_and_needs_more(rate, peak, n):
    slow, fast = (order_at(r, peak, n) for r in (rate, 1.5 * rate))
    assert fast.trigger_in_s <= slow.trigger_in_s
    assert fast.bridge_s >= slow.bridge_s
    assert fast.n_needed_in_a_year >= slow.n_needed_in_a_year


@pytest.mark.parametrize("missing", ["lead_time_s", "trigger_utilization_frac"])
def test_without_a_lead_time_or_a_trigger_there_is_nothing_to_say(missing):
    growth = replace(GROWTH, **{missing: None})
    assert orders_of(owning(growth=growth), demand(1.0)) == ()
    assert orders_of(owning(n=0), demand(1.0)) == ()


def test_utilization_comes_from_the_load_where_it_is_not_given():
    busy = demand(1.0, n_accelerators=24.0)
    [given_order] = orders_of(owning(peak=0.5), demand(1.0))
    [from_load] = orders_of(owning(peak=None), busy)
    assert from_load == given_order


def reasons(scenario):
    return order_reasons(scenario, demand(1.0))


def test_a_late_order_is_due_now_and_bridged():
    found = reasons(owning())
    first, order, need = found.why
    assert "peak utilization reaches 85% in 10.9 weeks" in first
    assert "lead time of 16 weeks it would be 93%" in first
    assert order == "order now, and bridge about 5 weeks in the cloud"
    assert need == "in 12 months 106 accelerators are needed"
    [row] = found.crossovers
    assert row.then == "order now, bridge 5.1 weeks; 106 accelerators in 12 months"


def test_an_early_order_says_how_long_it_may_wait():
    growth = replace(GROWTH, lead_time_s=exactly(4 * 7 * DAY))
    found = reasons(owning(growth=growth))
    weeks = float(re.search(r"order within ([\d.]+) weeks", "\n".join(found.why))[1])
    assert weeks == pytest.approx(10.93 - 4, abs=0.06)
    assert found.crossovers[0].then.startswith("there is time to order")


def test_growth_that_never_comes_is_said_and_every_rate_has_its_row():
    still = reasons(owning(growth=replace(GROWTH, per_month_frac=exactly(0.0))))
    assert still.why == ("growth of 0%/month never reaches the utilization trigger",)
    assert still.crossovers[0].at == "never"
    wide = replace(GROWTH, per_month_frac=Range(low=0.02, mid=0.05, high=0.1))
    rows = reasons(owning(growth=wide)).crossovers
    assert [row.what for row in rows] == [f"growth of {x}/month" for x in ("5%", "2%", "10%")]


def tree(**budget):
    """Ten accelerators now, 10 % more every month; nodes of two at $4/h, or bought."""
    offer = {"name": "cloud", "accelerator": "H100", "usd_per_node_h": 4.0}
    return {
        "version": 1,
        "name": "growing",
        "workloads": [{"name": "w", "kind": "generic", "work": {"accelerators": 10}}],
        "growth": {"per_month_frac": {"low": 0.0, "mid": 0.05, "high": 0.1}},
        "budget": {"horizon_months": 12, **budget},
        "policy": {"accelerators": {"allowed": ["H100"]}},
        "prices": {"offers": [{**offer, "accelerators_per_node": 2}]},
    }


def grown(**budget):
    request = PlanRequest(target="tree", tree=tree(**budget), today=date(2026, 11, 1), n_samples=0)
    return plan(request)


@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_the_middle_growth_costs_what_the_plan_costs(rate):
    answer = grown(discount_rate_frac_per_year=rate)
    low, mid, high = answer.explanation.growth
    assert [row.name for row in (low, mid, high)] == ["low", "mid", "high"]
    cost = answer.plan.cost_usd_per_month.value
    assert mid.mean_usd_per_month == pytest.approx(cost, abs=0.01)
    assert mid.mean_usd_per_month * 12 == pytest.approx(answer.plan.total_usd, abs=0.1)
    periods = answer.plan.bill.by_period
    assert mid.first_usd_per_month == pytest.approx(periods[0].usd_per_month, abs=0.01)
    assert mid.last_usd_per_month == pytest.approx(periods[-1].usd_per_month, abs=0.01)
    assert mid.last_fleet == f"{periods[-1].n_accelerators} x h100-sxm"
    assert low.mean_usd_per_month < mid.mean_usd_per_month < high.mean_usd_per_month


def test_without_growth_there_are_no_rows():
    still = {key: value for key, value in tree().items() if key != "growth"}
    request = PlanRequest(target="tree", tree=still, today=date(2026, 11, 1), n_samples=0)
    assert plan(request).explanation.growth == ()
