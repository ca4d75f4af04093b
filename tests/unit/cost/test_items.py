"""Smaller costs: egress, storage, carbon, interest; the user's price stands, a default is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.cost.annuity import annuity, discount
from gpuplan.cost.items import (
    carbon_usd_per_month,
    egress_usd,
    loan_interest_usd,
    storage_usd_per_month,
)
from gpuplan.domain.scenario.terms import Prices, PurchaseExtras
from gpuplan.errors import InputError
from gpuplan.units import GB, TB

MONTH = 730 * 3600.0


def test_the_users_price_stands_and_a_default_is_reported():
    given_usd, told = egress_usd(200 * TB, Prices(egress_usd_per_byte=0.05 / GB))
    assert given_usd.mid == pytest.approx(10_000.0)
    assert told == ()
    default, told = egress_usd(200 * TB, Prices())
    assert (default.low, default.high) == pytest.approx((0.0, 24_000.0))
    assert told[0].change == "prices.egress_usd_per_gb"


def test_storage_and_carbon_are_billed_only_at_a_price_of_the_user():
    assert storage_usd_per_month(500 * TB, Prices()) is None
    stored = storage_usd_per_month(500 * TB, Prices(storage_usd_per_byte_month=23.0 / TB))
    assert stored.mid == pytest.approx(11_500.0)
    assert carbon_usd_per_month(1_000.0, Prices()) is None
    assert carbon_usd_per_month(1_000.0, Prices(carbon_usd_per_kg=0.08)).mid == 80.0


def loan(share=0.8, yearly=0.07, n_months=36):
    return PurchaseExtras(
        loan_frac=share, loan_interest_frac_per_year=yearly, loan_s=n_months * MONTH
    )


def test_a_loan_is_whole_or_none():
    assert loan_interest_usd(315_000.0, PurchaseExtras()) is None
    with pytest.raises(InputError, match="all three"):
        loan_interest_usd(315_000.0, PurchaseExtras(loan_frac=0.8))


@given(share=st.floats(0.05, 1.0), yearly=st.floats(0.001, 0.3), n_months=st.integers(1, 120))
def test_interest_is_payments_less_principal(share, yearly, n_months):
    """Oracle: the annuity formula without rounding, n equal payments worth the principal."""
    found = loan_interest_usd(315_000.0, loan(share, yearly, n_months))
    payment = 315_000.0 * share / annuity(n_months, yearly)
    assert found == pytest.approx(n_months * payment - 315_000.0 * share, abs=0.02 * n_months)
    worth = sum(payment * discount(month, yearly) for month in range(1, n_months + 1))
    assert worth == pytest.approx(315_000.0 * share)


def test_a_loan_without_interest_costs_nothing():
    assert loan_interest_usd(300_000.0, loan(yearly=0.0)) == 0.0
