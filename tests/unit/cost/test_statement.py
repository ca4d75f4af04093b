"""Statements in cents add up; present value, payback and break-even agree with closed forms."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.money import N_MONTHS, NODE, OWN, PURCHASE, RATE, RUNNING, life, rent_rate, rented
from gpuplan.catalog.load import read_catalog
from gpuplan.cost.annuity import annuity, monthly_capital
from gpuplan.cost.owned import (
    capital_usd_per_h,
    hardware_price,
    owned_rate,
    running_parts,
    standing_rate,
)
from gpuplan.cost.statement import (
    book_years,
    break_even,
    equal_monthly_usd,
    npv_range_usd,
    npv_usd,
    payback,
    shares_of,
)
from gpuplan.domain.hardware.catalog import StreetPrice
from gpuplan.domain.money.rates import NodePurchase, NodeRunning, Ownership, PriceEvidence
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.terms import HardwarePrice
from gpuplan.errors import InputError
from gpuplan.units import HOURS_PER_MONTH, MONTH

IDLE = NodeRunning(average_w=0.0, highest_w=0.0, pue_ratio=1.0, electricity_usd_per_j=exactly(0.0))
OWNERSHIP = Ownership(
    life_s=N_MONTHS * MONTH, residual_frac=exactly(0.15), discount_frac_per_year=RATE
)


def test_present_value_of_owning_and_renting():
    assert npv_usd(life()) == pytest.approx(419_989.01, abs=0.2)
    assert npv_usd(rented(0.85)) == pytest.approx(493_320.01, abs=0.2)
    assert npv_usd(rented(0.60)) == pytest.approx(348_225.89, abs=0.2)


def test_equal_monthly_cost_and_break_even_use():
    own = life()
    assert equal_monthly_usd(own) == pytest.approx(10_565.28, abs=0.01)
    found = break_even(own, rent_usd_per_accelerator_h=2.50, n_accelerators=8)
    assert found.utilization_ratio == pytest.approx(0.7236, abs=5e-5)
    assert found.is_reachable
    at_break_even = rented(found.utilization_ratio)
    assert npv_usd(own) == pytest.approx(npv_usd(at_break_even), abs=1.0)


def test_payback_is_no_present_value():
    """Trap 34: simple and discounted payback differ, and 60 % never pays back."""
    own = life()
    busy = payback(own, rented(0.85))
    assert (busy.simple_month, busy.discounted_month) == (36, 42)
    assert busy.npv_gain_usd == pytest.approx(73_331, abs=1)
    idle = payback(own, rented(0.60))
    assert (idle.simple_month, idle.discounted_month) == (None, None)
    assert idle.npv_gain_usd == pytest.approx(-71_763, abs=1)


@pytest.mark.parametrize(("usd", "is_earlier"), [(24.0, True), (18.0, False)])
def test_rents_may_rise_or_fall(usd, is_earlier):
    """Trap 34: a higher rent hastens payback, a lower one delays it."""
    level = payback(life(), rented(0.85)).simple_month
    moved = life(n_owned=0, rented_node_h=0.85 * 730, rent=rent_rate(usd))
    found = payback(life(), moved).simple_month
    assert (found is not None and found < level) is is_earlier


def test_only_equal_times_are_compared():
    with pytest.raises(InputError, match="same time"):
        payback(life(), life(replace(OWN, life_months=24), n_owned=0, rented_node_h=100.0))


def test_capital_is_not_counted_twice():
    """Trap 34: with depreciation beside the purchase owning would never pay (110.9 %)."""
    own = life()
    right = break_even(own, rent_usd_per_accelerator_h=2.50, n_accelerators=8)
    assert right.utilization_ratio < 0.73
    doubled_usd = equal_monthly_usd(own) + (315_000 - 45_000) / 48
    assert doubled_usd / (2.50 * 8 * HOURS_PER_MONTH) == pytest.approx(1.109, abs=0.002)
    hardware = [line for line in own.lines if line.category == "hardware"]
    assert [line.total_cents for line in hardware] == [300_000_00]


def test_without_cost_of_capital_owning_looks_better():
    free = life(yearly=0.0)
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
    board = StreetPrice(usd=street, source="street-prices")
    whole, assumed = hardware_price(h100, 8, street=board)
    assert whole.low == pytest.approx(8 * 22e3 * 1.2)
    assert whole.high == pytest.approx(8 * 40e3 * 1.6)
    assert [a.source for a in assumed] == ["street-prices", ""]
    assert hardware_price(h100, 8) == (None, ())
    server = board._replace(usd=exactly(285_000.0), is_server=True)
    whole, (told,) = hardware_price(h100, 8, street=server)
    assert whole == exactly(285_000.0)
    assert told.source == "street-prices"


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
    idle = replace(OWN, purchase=buy, residual_frac=exactly(0.0), running=IDLE)
    assert life(idle, n_owned=3).total_cents == pytest.approx(3 * 100 * buy.outlay_usd.mid, abs=1)


def test_energy_is_average_and_demand_is_highest():
    """Trap 37: a demand charge is a line of its own, on the highest draw with PUE."""
    run = replace(RUNNING, average_w=6_000.0, highest_w=10_200.0, demand_usd_per_w_month=15.0 / 1e3)
    sums = life(replace(OWN, running=run), n_owned=4).cents_by_category
    assert sums["demand charge"] == pytest.approx(48 * 4 * 10.2 * 1.3 * 15 * 100, abs=48)
    assert sums["energy"] == pytest.approx(48 * 4 * 6.0 * 730 * 0.10 * 100, abs=48)
    assert sums["cooling"] == pytest.approx(0.3 * sums["energy"], abs=48)


def test_every_hidden_cost_has_a_line():
    """Trap 37: support, licences, staff, spares, tax, demand."""
    running = replace(
        RUNNING,
        licence_usd_per_accelerator_year=4_500.0,
        demand_usd_per_w_month=0.015,
    )
    buy = replace(PURCHASE, tax_frac=0.08, install_frac=0.02, gear_frac=0.12, spares_frac=0.03)
    own = replace(OWN, purchase=buy, running=running, staff_usd_per_year=20_000.0)
    account = life(own, rented_node_h=10.0)
    assert set(account.cents_by_category) == {
        *("hardware", "freight", "tax", "installation", "network", "spares", "residual"),
        *("energy", "cooling", "demand charge", "space", "support", "licences", "staff", "rent"),
    }
    assert account.cents_by_category["licences"] == 8 * 4_500_00 * 4
    assert account.cents_by_category["staff"] == pytest.approx(20_000_00 * 4, abs=48)
    assert life(own, n_owned=4).cents_by_category["staff"] == account.cents_by_category["staff"]


def test_parts_sum_to_totals_to_the_cent():
    account = life(rented_node_h=0.37 * 730)
    assert sum(account.cents_by_month) == account.total_cents
    assert sum(account.cents_by_category.values()) == account.total_cents
    assert account.low_cents <= account.total_cents <= account.high_cents


def test_reservation_is_paid_whether_used_or_not():
    """Trap 39: the statement bills all hours of a reserved node."""
    account = life(n_owned=0, rented_node_h=2 * 730.0, rent=rent_rate(12.0, "reserved"))
    assert account.cents_by_category == {"reservation": 2 * 12_00 * 730 * 48}


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
    own = life()
    books = book_years(own)
    assert len(books) == 4
    assert sum(row.depreciation_cents for row in books) == 315_000_00 - 45_000_00
    assert [row.book_value_cents for row in books] == [
        round(315_000_00 - 270_000_00 * year / 4) for year in (1, 2, 3, 4)
    ]
    # Over the whole life the books and the cash come to the same.
    assert sum(row.expense_cents + row.depreciation_cents for row in books) == own.total_cents
    running = sum(line.total_cents for line in own.lines if line.category in ("energy", "space"))
    assert sum(row.expense_cents for row in books) > running


def test_a_life_that_ends_within_a_year_is_written_off_then():
    books = book_years(life(replace(OWN, life_months=18)))
    assert [row.year for row in books] == [1, 2]
    assert [row.depreciation_cents for row in books] == [180_000_00, 90_000_00]
    assert books[0].expense_cents == pytest.approx(2 * books[1].expense_cents, abs=2)


@given(factor=st.floats(0.01, 100.0))
def test_resizing_the_dollar_resizes_the_statement(factor):
    run = replace(
        RUNNING,
        electricity_usd_per_j=RUNNING.electricity_usd_per_j.times(factor),
        colocation_usd_per_w_month=RUNNING.colocation_usd_per_w_month * factor,
    )
    buy = replace(PURCHASE, hardware_usd=PURCHASE.hardware_usd.times(factor))
    scaled = life(replace(OWN, purchase=buy, running=run))
    assert npv_usd(scaled) == pytest.approx(factor * npv_usd(life()), abs=2.0 * factor + 2.0)


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
    resized = life(replace(OWN, running=run))
    assert resized.total_cents == pytest.approx(life().total_cents, abs=100)


def test_the_range_of_the_net_present_cost_holds_its_middle():
    ranged = replace(PURCHASE, hardware_usd=Range(low=250e3, mid=300e3, high=400e3))
    account = life(replace(OWN, purchase=ranged, running=IDLE, residual_frac=exactly(0.0)))
    found = npv_range_usd(account)
    assert (found.low, found.mid, found.high) == pytest.approx((262_500, 315_000, 420_000))
