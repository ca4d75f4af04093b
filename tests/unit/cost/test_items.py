"""Smaller causes: egress, storage, tokens, carbon, loans; prices that rise or fall."""

from dataclasses import replace

import pytest

from fakes.money import own_life, rent_life
from gpuplan.cost.items import carbon_price, egress, loan_of, storage, token_service
from gpuplan.cost.statement import statement
from gpuplan.cost.value import cumulative_usd, payback
from gpuplan.domain.money.worth import Tokens
from gpuplan.domain.scenario.terms import Prices, PurchaseExtras, TokenPrice
from gpuplan.errors import InputError
from gpuplan.units import GB, TB


def test_the_users_price_stands_and_a_default_is_told():
    given, told = egress(200 * TB, Prices(egress_usd_per_byte=0.05 / GB))
    assert given.usd_per_month.mid == pytest.approx(10_000.0)
    assert told == ()
    default, told = egress(200 * TB, Prices())
    assert default.usd_per_month.low == 0
    assert told[0].change == "prices.egress_usd_per_gb"
    kept, told = storage(500 * TB, Prices())
    assert kept.usd_per_month.mid == pytest.approx(11_500.0)
    assert "per TB" in told[0].value


def test_tokens_are_an_alternative_with_a_line():
    price = TokenPrice(
        name="api", input_usd_per_token=1e-6, cached_usd_per_token=None, output_usd_per_token=2e-6
    )
    item = token_service(Tokens(n_input=1e9, n_cached=0.0, n_output=5e8), price)
    assert item.category == "tokens"
    assert item.usd_per_month.mid == pytest.approx(2_000.0)


def test_carbon_has_a_price_only_if_asked():
    assert carbon_price(1_000.0, Prices()) is None
    assert carbon_price(1_000.0, Prices(carbon_usd_per_kg=0.08)).usd_per_month.mid == 80.0


def test_a_loan_is_whole_or_none():
    assert loan_of(315_000.0, PurchaseExtras()) is None
    with pytest.raises(InputError, match="all three"):
        loan_of(315_000.0, PurchaseExtras(loan_frac=0.8))
    extras = PurchaseExtras(
        loan_frac=0.8, loan_interest_frac_per_year=0.07, loan_s=36 * 730 * 3600.0
    )
    loan = loan_of(315_000.0, extras)
    assert (loan.principal_usd, loan.n_months) == (252_000.0, 36)


@pytest.mark.parametrize(("growth", "is_dearer"), [(0.2, True), (-0.2, False)])
def test_rents_may_rise_or_fall(growth, is_dearer):
    """Trap 34: prices can rise; a fall delays payback, a rise hastens it."""
    flat = rent_life(0.85)
    moved = replace(flat, rents=(replace(flat.rents[0], growth_frac_per_year=growth),))
    level, shifted = statement(flat), statement(moved)
    assert (shifted.total_cents > level.total_cents) is is_dearer
    own = statement(own_life())
    before, after = payback(own, level).simple_month, payback(own, shifted).simple_month
    assert after is None or (after < before) is is_dearer


def test_cumulative_curves_cross_at_payback():
    own, rent = statement(own_life()), statement(rent_life(0.85))
    month = payback(own, rent).simple_month
    owned, rented = cumulative_usd(own), cumulative_usd(rent)
    assert owned[month] <= rented[month]
    assert owned[month - 1] > rented[month - 1]
    assert owned[-1] == own.total_cents / 100
