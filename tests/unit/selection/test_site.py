"""Staff of a site: paid once where any node is one's own, and weighed against renting alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.selection import draw, horizon
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    Conflict,
    FleetOption,
    NamedLimit,
    NodePool,
    NodeTerms,
    Selection,
    SelectionProblem,
)
from gpuplan.selection.choose import select

HOURS = 1000.0


def problem(n_nodes: int = 2, *, staff: float = 0.0, existing: int = 0, **rest):
    """A node costs $400 to own over 1,000 hours, $1,000 to rent."""
    pool = NodePool(
        name="p", accelerator="a", n_accelerators_per_node=1, n_nodes_existing=existing,
        existing_usd_per_node_h=0.1,
    )  # fmt: skip
    own = NodeTerms(
        name="own", pool="p", purchase="owned", usd_per_node_h=0.1, upfront_usd=400.0,
        residual_usd=floats([200.0, 100.0]), is_on_site=True,
    )  # fmt: skip
    rent = NodeTerms(name="rent", pool="p", purchase="on_demand", usd_per_node_h=1.0)
    option = FleetOption(workload="w", name="o", pool="p", need=ints([[[n_nodes]]]))
    return SelectionProblem(
        horizon=horizon(hours=(HOURS,)), pools=(pool,), terms=(own, rent), options=(option,),
        site_usd_per_h=staff, **rest,
    )  # fmt: skip


def staff_usd(found: Selection) -> float:
    return sum(line.nominal_cents for line in found.bill if line.kind == "staff") / 100


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_staff_is_paid_once_however_many_nodes_there_are(n):
    found = select(problem(n, staff=0.5))
    assert staff_usd(found) == pytest.approx(0.5 * HOURS)
    assert found.worth_usd == pytest.approx(n * 400.0 + 500.0)
    assert found.proof.value == pytest.approx(found.worth_usd)


def test_staff_that_costs_more_than_owning_saves_makes_one_rent():
    """Two nodes save $1,200 by being owned."""
    assert {o.terms for o in select(problem(staff=1.1)).orders} == {"own"}
    rented = select(problem(staff=1.3))
    assert not rented.orders
    assert staff_usd(rented) == 0.0
    assert rented.worth_usd == pytest.approx(2000.0)


def test_nodes_that_exist_keep_their_staff():
    found = select(problem(staff=9.0, existing=2))
    assert staff_usd(found) == pytest.approx(9.0 * HOURS)
    assert found.worth_usd == pytest.approx(2 * 100.0 + 9000.0)


def test_a_limit_of_spending_counts_staff():
    """Owning both takes 2 x 500 and 500 of staff before the resale, renting 2,000."""
    limit = NamedLimit(name="budget", kind="spend", most=1600.0)
    assert select(problem(staff=0.5, limits=(limit,))).worth_usd == pytest.approx(1300.0)
    tight = replace(limit, most=1400.0)
    assert isinstance(select(problem(staff=0.5, limits=(tight,))), Conflict)


@given(st.integers(0, 10_000), st.floats(0.01, 3.0))
def test_more_staff_never_makes_a_choice_cheaper(seed, staff):
    given_problem = draw(seed)
    free = select(replace(given_problem, limits=()))
    paid = select(replace(given_problem, limits=(), site_usd_per_h=staff))
    if isinstance(free, Selection):
        assert paid.worth_cents >= free.worth_cents
        assert paid.worth_cents == sum(line.worth_cents for line in paid.bill)
