"""A plan's bill: every cent once, at its time, for the workload that uses what it pays for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.selection import draw, horizon
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    FleetOption,
    NodePool,
    NodeTerms,
    Selection,
    SelectionProblem,
)
from gpuplan.selection.choose import only, select
from gpuplan.studies.planning.bill import plan_bill
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.options import FleetTable
from gpuplan.units import MONTH


def choice_of(problem):
    found = select(problem)
    table = FleetTable(problem=problem, by_name={}, rates={})
    return Choice(table, found) if isinstance(found, Selection) else None


@given(st.integers(0, 10_000))
def test_all_totals_are_sums_of_the_selections_cents(seed):
    choice = choice_of(only(draw(seed), 0))
    if choice is None:
        return
    bill = plan_bill(choice)
    cents = sum(line.nominal_cents for line in choice.selection.bill)
    assert round(bill.total_usd * 100) == cents
    assert sum(round(line.usd * 100) for line in bill.cash_flow) == cents
    months = choice.n_months
    assert sum(x.usd_per_month for x in bill.cost_lines) * months == pytest.approx(cents / 100)
    mean = sum(p.usd_per_month for p in bill.by_period) / len(bill.by_period)
    assert mean * months == pytest.approx(cents / 100)
    works = {option.workload for option in choice.selection.chosen}
    each = sum(sum(x.usd for x in bill.cash_flow if x.workload == name) for name in works)
    assert each == pytest.approx(cents / 100)


@given(st.integers(0, 10_000))
def test_without_a_discount_the_present_value_is_the_total(seed):
    problem = only(draw(seed), 0)
    even = floats([1.0] * problem.horizon.shape[1])
    time = replace(
        problem.horizon,
        upfront_discount_frac=even,
        running_discount_frac=even,
        end_discount_frac=1.0,
    )
    choice = choice_of(replace(problem, horizon=time))
    if choice is not None:
        bill = plan_bill(choice)
        assert bill.present_value_usd == pytest.approx(bill.total_usd, abs=0.02)


def staged():
    """One node is enough in the first two quarters, two in the last two; owning is cheap."""
    pool = NodePool(name="h100 x1", accelerator="h100", n_accelerators_per_node=1)
    own = NodeTerms(
        name="own", pool="h100 x1", purchase="owned", usd_per_node_h=0.1, upfront_usd=1000.0,
        residual_usd=floats([900.0, 800.0, 700.0, 600.0, 500.0]),
    )  # fmt: skip
    need = ints([[[1], [1], [2], [2]]])
    options = (FleetOption(workload="w", name="o", pool="h100 x1", need=need),)
    time = horizon(n_periods=4, hours=(3 * 730.0,), discount=0.99)
    return SelectionProblem(horizon=time, pools=(pool,), terms=(own,), options=options)


def test_staged_purchases_are_paid_when_they_are_ordered():
    bill = plan_bill(choice_of(staged()))
    bought = {line.start_s / MONTH: line.usd for line in bill.cash_flow if line.what == "hardware"}
    assert bought == {0.0: 1000.0, 6.0: 1000.0}
    [back] = {line.start_s / MONTH for line in bill.cash_flow if line.what == "residual"}
    assert back == 12.0
    assert [period.n_accelerators for period in bill.by_period] == [1, 1, 2, 2]


def test_sharers_of_a_node_pay_by_use():
    pool = NodePool(name="h100 x8", accelerator="h100", n_accelerators_per_node=8)
    rent = NodeTerms(name="rent", pool="h100 x8", purchase="on_demand", usd_per_node_h=8.0)
    options = tuple(
        FleetOption(workload=name, name=name, pool="h100 x8", need=ints([[[n]]]))
        for name, n in (("large", 5), ("small", 1))
    )
    time = horizon(hours=(730.0,))
    problem = SelectionProblem(horizon=time, pools=(pool,), terms=(rent,), options=options)
    bill = plan_bill(choice_of(problem))
    assert bill.total_usd == 8.0 * 730
    paid = {line.workload: line.usd for line in bill.cash_flow}
    assert paid == {
        "large": pytest.approx(8.0 * 730 * 5 / 6, abs=0.01),
        "small": pytest.approx(8.0 * 730 / 6, abs=0.01),
    }
