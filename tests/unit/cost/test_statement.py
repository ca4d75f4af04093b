"""Statements in cents add up; present value, payback and break-even agree with closed forms."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.money import N_MONTHS, NODE, PURCHASE, RATE, RUNNING, own_life, rent_life, rent_rate
from gpuplan.catalog.load import read_catalog
from gpuplan.cost.annuity import annuity, discount, monthly_capital
from gpuplan.cost.owned import (
    capital_usd_per_h,
    hardware_price,
    owned_rate,
    running_parts,
    standing_rate,
)
from gpuplan.cost.statement import shares_of, statement, steady_hours
from gpuplan.cost.value import (
    book_view,
    break_even,
    equal_monthly_usd,
    npv_usd,
    payback,
    without_capital,
)
from gpuplan.domain.money.rates import NodePurchase, Ownership, PriceEvidence
from gpuplan.domain.money.statement import Loan, Once, PurchasePlan, Recurring, RentPlan
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.terms import HardwarePrice
from gpuplan.errors import InputError
from gpuplan.units import HOURS_PER_MONTH, KWH, MONTH

OWNERSHIP = Ownership(
    life_s=N_MONTHS * MONTH, residual_frac=exactly(0.15), discount_frac_per_year=RATE
)


def test_present_value_of_owning_and_renting():
    assert npv_usd(statement(own_life())) == pytest.approx(419_989.01, abs=0.2)
    assert npv_usd(statement(rent_life(0.85))) == pytest.approx(493_320.01, abs=0.2)
    assert npv_usd(statement(rent_life(0.60))) == pytest.approx(348_225.89, abs=0.2)


def test_equal_monthly_cost_and_break_even_use():
    own = statement(own_life())
    assert equal_monthly_usd(own) == pytest.approx(10_565.28, abs=0.01)
    found = break_even(own, rent_usd_per_accelerator_h=2.50, n_accelerators=8)
    assert found.utilization_ratio == pytest.approx(0.7236, abs=5e-5)
    assert found.own_usd_per_used_h(0.60) == pytest.approx(3.02, abs=0.005)
    assert found.is_reachable
    at_break_even = statement(rent_life(found.utilization_ratio))
    assert npv_usd(own) == pytest.approx(npv_usd(at_break_even), abs=1.0)


def test_payback_is_no_present_value():
    """Trap 34: simple and discounted payback differ, and 60 % never pays back."""
    own = statement(own_life())
    busy = payback(own, statement(rent_life(0.85)))
    assert (busy.simple_month, busy.discounted_month) == (36, 42)
    assert busy.npv_gain_usd == pytest.approx(73_331, abs=1)
    idle = payback(own, statement(rent_life(0.60)))
    assert (idle.simple_month, idle.discounted_month) == (None, None)
    assert idle.npv_gain_usd == pytest.approx(-71_763, abs=1)


def test_only_equal_times_are_compared():
    with pytest.raises(InputError, match="same time"):
        payback(statement(own_life()), statement(rent_life(0.85, n_months=24)))


def test_capital_is_not_counted_twice():
    """Trap 34: with depreciation beside the purchase owning would never pay (110.9 %)."""
    own = statement(own_life())
    depreciation = Recurring(
        category="other", name="depreciation", usd_per_month=exactly((315_000 - 45_000) / 48)
    )
    doubled = statement(own_life(recurring=(depreciation,)))
    wrong = break_even(doubled, rent_usd_per_accelerator_h=2.50, n_accelerators=8)
    assert wrong.utilization_ratio == pytest.approx(1.109, abs=0.002)
    right = break_even(own, rent_usd_per_accelerator_h=2.50, n_accelerators=8)
    assert right.utilization_ratio < 0.73
    hardware = [line for line in own.lines if line.category == "hardware"]
    assert [line.total_cents for line in hardware] == [300_000_00]


def test_without_cost_of_capital_owning_looks_better():
    free = statement(own_life(discount_frac_per_year=0.0))
    found = break_even(free, rent_usd_per_accelerator_h=2.50, n_accelerators=8)
    assert found.utilization_ratio == pytest.approx(0.619, abs=0.001)


def test_the_hourly_rate_is_the_statement_of_one_node():
    """What selection pays by the hour and what the bill says over life are one number."""
    rate = owned_rate(
        NODE, PURCHASE, ownership=OWNERSHIP, running=RUNNING, evidence=PriceEvidence(source="user")
    )
    monthly = rate.price_usd_per_h.mid * HOURS_PER_MONTH
    assert monthly * annuity(N_MONTHS, RATE) == pytest.approx(419_989.01, abs=0.2)
    assert sum(part.usd_per_h.mid for part in rate.parts) == pytest.approx(rate.price_usd_per_h.mid)


def test_months_of_728_hours_differ():
    assert pytest.approx(HOURS_PER_MONTH * 0.99726, rel=1e-4) == 8736 / 12


def test_range_of_owning_pairs_dear_purchase_with_little_left():
    ranged = replace(PURCHASE, hardware_usd=Range(low=250e3, mid=300e3, high=400e3))
    owned = replace(OWNERSHIP, residual_frac=Range(low=0.05, mid=0.15, high=0.3))
    rate = owned_rate(
        NODE, ranged, ownership=owned, running=RUNNING, evidence=PriceEvidence(source="user")
    )
    capital = capital_usd_per_h(rate.capital)
    dear = monthly_capital(400e3 * 1.05, 400e3 * 0.05, n_months=N_MONTHS, yearly_frac=RATE)
    cheap = monthly_capital(250e3 * 1.05, 250e3 * 0.3, n_months=N_MONTHS, yearly_frac=RATE)
    assert capital.high * HOURS_PER_MONTH == pytest.approx(dear)
    assert capital.low * HOURS_PER_MONTH == pytest.approx(cheap)
    assert rate.price_usd_per_h.low < rate.price_usd_per_h.mid < rate.price_usd_per_h.high


def test_a_node_that_stands_costs_only_its_running():
    rate = standing_rate(NODE, RUNNING, evidence=PriceEvidence(source="user"))
    assert rate.capital.is_sunk
    energy = 7.0 * 1.3 * 0.10
    space = 1_500 / 730
    assert rate.price_usd_per_h.mid == pytest.approx(energy + space)


def test_the_hour_holds_the_demand_charge_of_the_whole_place():
    run = replace(RUNNING, highest_w=10_200.0, demand_usd_per_w_month=15.0 / 1e3)
    parts = {p.name: p.usd_per_h.mid for p in running_parts(NODE, run)}
    assert parts["demand charge"] == pytest.approx(10.2 * 1.3 * 15 / 730)
    assert parts["space"] == pytest.approx(10_200 * 1_500 / 7_000 / 730)


def test_no_purchase_price_is_a_refusal():
    refused = owned_rate(
        NODE,
        NodePurchase(hardware_usd=exactly(0.0)),
        ownership=OWNERSHIP,
        running=RUNNING,
        evidence=PriceEvidence(source="user"),
    )
    assert refused.code == "zero"


def test_hardware_price_prefers_the_users_and_says_what_it_assumed():
    h100 = read_catalog().accelerators["h100-sxm"]
    given_node = HardwarePrice(accelerator="h100-sxm", node_usd=exactly(250_000.0))
    assert hardware_price(h100, 8, given=given_node) == (exactly(250_000.0), ())
    street = Range(low=22e3, mid=30e3, high=40e3)
    whole, assumed = hardware_price(h100, 8, published_usd=street, source="street-prices")
    assert whole.low == pytest.approx(8 * 22e3 * 1.2)
    assert whole.high == pytest.approx(8 * 40e3 * 1.6)
    assert [a.source for a in assumed] == ["street-prices", ""]
    assert hardware_price(h100, 8) == (None, ())


def test_tax_lies_on_goods_and_installation_on_hardware():
    buy = NodePurchase(
        hardware_usd=exactly(100.0),
        freight_frac=0.05,
        tax_frac=0.10,
        install_frac=0.02,
        gear_frac=0.12,
        spares_frac=0.03,
    )
    assert buy.outlay_usd.mid == pytest.approx(100 * (1.20 * 1.10 + 0.02))
    plan = PurchasePlan(name="n", n_nodes=3, purchase=buy, residual_frac=exactly(0.0))
    account = statement(own_life(purchases=(plan,), running=()))
    assert account.total_cents == pytest.approx(3 * 100 * buy.outlay_usd.mid, abs=1)


def test_energy_is_average_and_demand_is_highest():
    """Trap 37: a demand charge is a line of its own, on the highest draw with PUE."""
    run = replace(RUNNING, average_w=6_000.0, highest_w=10_200.0, demand_usd_per_w_month=15.0 / 1e3)
    plan = replace(own_life().running[0], running=run, n_nodes=4)
    sums = statement(own_life(purchases=(), running=(plan,))).cents_by_category
    assert sums["demand charge"] == pytest.approx(48 * 4 * 10.2 * 1.3 * 15 * 100, abs=48)
    assert sums["energy"] == pytest.approx(48 * 4 * 6.0 * 730 * 0.10 * 100, abs=48)
    assert sums["cooling"] == pytest.approx(0.3 * sums["energy"], abs=48)


def test_every_hidden_cost_has_a_line():
    """Trap 37: egress, storage, support, licences, staff, spares, tax, demand."""
    running = replace(
        RUNNING,
        licence_usd_per_accelerator_year=4_500.0,
        staff_usd_per_year=20_000.0,
        demand_usd_per_w_month=0.015,
    )
    plan = replace(own_life().running[0], running=running)
    buy = replace(PURCHASE, tax_frac=0.08, install_frac=0.02, gear_frac=0.12, spares_frac=0.03)
    bought = PurchasePlan(name="n", n_nodes=1, purchase=buy, residual_frac=exactly(0.15))
    extra = tuple(
        Recurring(category=category, name=category, usd_per_month=exactly(100.0))
        for category in ("egress", "storage", "tokens", "carbon")
    )
    porting = Once(category="porting", name="port", usd=exactly(50_000.0))
    account = statement(
        own_life(purchases=(bought,), running=(plan,), recurring=extra, once=(porting,))
    )
    assert {
        "hardware", "freight", "tax", "installation", "network", "spares", "residual", "energy",
        "cooling", "demand charge", "space", "support", "licences", "staff", "egress", "storage",
        "tokens", "carbon", "porting",
    } == set(account.cents_by_category)  # fmt: skip
    assert account.cents_by_category["licences"] == 8 * 4_500_00 * 4


def test_parts_sum_to_totals_to_the_cent():
    account = statement(own_life(rents=rent_life(0.37).rents))
    assert sum(account.cents_by_month) == account.total_cents
    assert sum(account.cents_by_category.values()) == account.total_cents
    assert account.low_cents <= account.total_cents <= account.high_cents


def test_a_loan_moves_cash_and_buys_nothing():
    loan = Loan(name="bank", principal_usd=315_000.0, interest_frac_per_year=RATE, n_months=36)
    plain, financed = statement(own_life()), statement(own_life(loans=(loan,)))
    assert financed.cents_by_month[0] == 0
    # Borrowing at the discount rate is worth nothing either way.
    assert npv_usd(financed) == pytest.approx(npv_usd(plain), abs=1.0)
    interest = financed.total_cents - plain.total_cents
    assert interest == financed.cents_by_category["financing"]
    assert interest > 0


def test_a_loan_longer_than_the_statement_is_settled():
    loan = Loan(name="bank", principal_usd=100_000.0, interest_frac_per_year=0.08, n_months=60)
    account = statement(own_life(purchases=(), running=(), loans=(loan,)))
    worth = sum(value * discount(month, 0.08) for month, value in enumerate(account.cents_by_month))
    assert worth == pytest.approx(0, abs=100)


def test_reservation_is_paid_whether_used_or_not():
    """Trap 39: the statement bills all hours of a reserved node."""
    rate = rent_rate(12.0, "reserved")
    rent = RentPlan(rate=rate, node_hours=steady_hours(2, N_MONTHS))
    account = statement(own_life(purchases=(), running=(), rents=(rent,)))
    assert account.cents_by_category == {"reservation": 2 * 12_00 * 730 * 48}


def test_lost_spot_hours_are_paid():
    rate = rent_rate(5.0, "spot")
    rent = RentPlan(rate=rate, node_hours=(0.0, 90.0), lost_frac=0.1)
    account = statement(own_life(n_months=1, purchases=(), running=(), rents=(rent,)))
    assert account.total_cents == 100 * 5_00


def test_hours_must_cover_every_month():
    rent = RentPlan(rate=rent_rate(5.0), node_hours=(1.0,))
    with pytest.raises(InputError, match="one figure for each month"):
        statement(own_life(rents=(rent,)))


def test_electricity_may_grow():
    plan = replace(own_life().running[0], price_growth_frac_per_year=0.05)
    months = next(
        line for line in statement(own_life(running=(plan,))).lines if line.category == "energy"
    ).cents
    assert months[13] == pytest.approx(months[12] * 1.05, abs=1)
    assert months[1] == months[12]


@given(
    total=st.integers(-(10**9), 10**9),
    weights=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=12).filter(lambda w: sum(w) > 0),
)
def test_shares_add_up(total, weights):
    shares = shares_of(total, weights)
    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - total * weight / sum(weights)) <= 1.001


def test_books_spread_what_cash_pays_at_once():
    own = statement(own_life())
    books = book_view(own, life_months=48, residual_cents=45_000_00)
    assert sum(row.depreciation_cents for row in books) == 315_000_00 - 45_000_00
    assert books[-1].book_value_cents == 45_000_00
    # Over the whole life the books and the cash come to the same.
    in_books = sum(row.expense_cents + row.depreciation_cents for row in books)
    assert in_books == own.total_cents
    assert "hardware" not in without_capital(own).cents_by_category


@given(factor=st.floats(0.01, 100.0))
def test_resizing_the_dollar_resizes_the_statement(factor):
    base = replace(own_life(), name="x")
    plan = base.purchases[0]
    buy = replace(PURCHASE, hardware_usd=PURCHASE.hardware_usd.times(factor))
    run = replace(
        RUNNING,
        electricity_usd_per_j=RUNNING.electricity_usd_per_j.times(factor),
        colocation_usd_per_w_month=RUNNING.colocation_usd_per_w_month * factor,
    )
    scaled = replace(
        base,
        purchases=(replace(plan, purchase=buy),),
        running=(replace(base.running[0], running=run, hardware_usd=exactly(300_000.0 * factor)),),
    )
    assert npv_usd(statement(scaled)) == pytest.approx(
        factor * npv_usd(statement(base)), abs=2.0 * factor + 2.0
    )


@given(watt=st.floats(0.1, 10.0))
def test_resizing_the_watt_leaves_the_bill(watt):
    """Dollars do not hang on the size of the watt: draw and price per draw cancel."""
    run = replace(
        RUNNING,
        average_w=RUNNING.average_w * watt,
        highest_w=RUNNING.highest_w * watt,
        electricity_usd_per_j=RUNNING.electricity_usd_per_j.times(1 / watt),
        colocation_usd_per_w_month=RUNNING.colocation_usd_per_w_month / watt,
    )
    plan = replace(own_life().running[0], running=run)
    resized = statement(own_life(running=(plan,)))
    assert resized.total_cents == pytest.approx(statement(own_life()).total_cents, abs=100)


def test_kwh_and_joule_agree():
    assert RUNNING.electricity_usd_per_j.mid * KWH == pytest.approx(0.10)
