"""A plan's bill by cause: every cent of the planner's bill stands once."""

import numpy as np
import pytest

from fakes.money import NODE, PURCHASE, RUNNING, rent_rate
from fakes.selection import draw
from gpuplan.cost.bill import cents_by_cause
from gpuplan.cost.owned import owned_rate
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.money.rates import Ownership, PriceEvidence
from gpuplan.domain.plan.selection import (
    BillLine,
    FleetOption,
    Horizon,
    NodePool,
    NodeTerms,
    Selection,
    SelectionProblem,
)
from gpuplan.domain.ranges import exactly
from gpuplan.errors import InputError
from gpuplan.selection.choose import select
from gpuplan.units import HOUR, MONTH

MONTHS_PER_QUARTER, N_QUARTERS, YEARLY = 3, 4, 0.10
QUARTER_S = MONTHS_PER_QUARTER * MONTH
OWN = owned_rate(
    NODE,
    PURCHASE,
    ownership=Ownership(
        life_s=48 * MONTH, residual_frac=exactly(0.15), discount_frac_per_year=YEARLY
    ),
    running=RUNNING,
    evidence=PriceEvidence(source="user"),
)
RENT = rent_rate(24.0)


def own_terms() -> NodeTerms:
    capital = next(p.usd_per_h.mid for p in OWN.parts if p.name == "capital")
    return NodeTerms(
        name=OWN.id,
        pool="h100 x8",
        purchase="owned",
        usd_per_node_h=OWN.price_usd_per_h.mid - capital,
        upfront_usd=OWN.capital.outlay_usd.mid,
        residual_usd=floats([315_000.0, 280_000.0, 245_000.0, 215_000.0, 190_000.0]),
    )


def problem() -> SelectionProblem:
    quarter = np.arange(N_QUARTERS)
    year = QUARTER_S / MONTH / 12
    time = Horizon(
        hour_s=floats([0.7 * QUARTER_S, 0.3 * QUARTER_S]),
        upfront_discount_frac=floats((1 + YEARLY) ** (-quarter * year)),
        running_discount_frac=floats((1 + YEARLY) ** (-(quarter + 0.5) * year)),
        end_discount_frac=(1 + YEARLY) ** (-N_QUARTERS * year),
        probability_frac=floats([1.0]),
    )
    need = np.array([[[8 * (2 + q), 8 * (4 + q)] for q in range(N_QUARTERS)]])
    return SelectionProblem(
        horizon=time,
        pools=(NodePool(name="h100 x8", accelerator="h100-sxm", n_accelerators_per_node=8),),
        terms=(
            own_terms(),
            NodeTerms(name=RENT.id, pool="h100 x8", purchase="on_demand", usd_per_node_h=24.0),
        ),
        options=(
            FleetOption(
                workload="chat", name="tp8", pool="h100 x8", need=ints(need), once_usd=1234.56
            ),
        ),
    )


@pytest.fixture(scope="module")
def chosen() -> Selection:
    found = select(problem())
    assert isinstance(found, Selection)
    return found


def causes_of(chosen: Selection):
    return cents_by_cause(chosen.bill, {OWN.id: OWN, RENT.id: RENT})


def test_every_cent_of_the_bill_stands_once(chosen):
    causes = causes_of(chosen)
    assert sum(causes.values()) == sum(line.nominal_cents for line in chosen.bill)
    assert {"hardware", "rent", "energy", "support", "space", "porting", "residual"} <= set(causes)
    assert causes["porting"] == 1234_56
    assert causes["residual"] < 0


def test_the_objective_is_the_statement_discounted(chosen):
    """An account of one's own, from orders and held nodes alone, comes to the objective."""
    given = problem()
    time = given.horizon
    usd = 1234.56
    for order in chosen.orders:
        usd += order.n_nodes * 315_000.0 * float(time.upfront_discount_frac[order.period])
        kept = N_QUARTERS - order.period
        usd -= order.n_nodes * float(own_terms().residual_usd[kept]) * time.end_discount_frac
    prices = {OWN.id: own_terms().usd_per_node_h, RENT.id: 24.0}
    for nodes in chosen.provisioned:
        hours = (nodes.n_nodes[0] * time.hour_s / HOUR).sum(axis=1)
        usd += float((hours * time.running_discount_frac).sum()) * prices[nodes.terms]
    assert chosen.worth_usd == pytest.approx(usd, abs=0.02)
    assert chosen.proof.value == pytest.approx(usd, rel=1e-6)


def test_capital_is_cash_once_and_no_hour_holds_it(chosen):
    """Trap 34."""
    n_bought = sum(order.n_nodes for order in chosen.orders)
    assert n_bought > 0
    causes = causes_of(chosen)
    assert causes["hardware"] == n_bought * 300_000_00
    assert causes["freight"] == n_bought * 15_000_00


def test_running_costs_are_shared_out_by_their_causes_alone(chosen):
    causes = causes_of(chosen)
    parts = {p.name: p.usd_per_h.mid for p in OWN.parts}
    assert "other" not in causes
    assert causes["energy"] / causes["support"] == pytest.approx(
        parts["energy"] / parts["support"], rel=1e-4
    )


def test_random_plans_keep_their_cents():
    n_tried = 0
    for given in map(draw, range(16)):
        found = select(given)
        if not isinstance(found, Selection):
            continue
        for scenario in range(given.horizon.shape[0]):
            n_tried += 1
            lines = [line for line in found.bill if line.scenario in (None, scenario)]
            causes = cents_by_cause(lines, {})
            assert sum(causes.values()) == sum(line.nominal_cents for line in lines)
    assert n_tried >= 8


def test_scenarios_are_not_added():
    lines = [
        BillLine(
            kind="burst",
            pool="p",
            terms="t",
            period=0,
            scenario=s,
            nominal_cents=100,
            worth_cents=50,
        )
        for s in (0, 1)
    ]
    with pytest.raises(InputError, match="scenarios 0, 1"):
        cents_by_cause(lines, {})
