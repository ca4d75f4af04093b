"""Smaller costs from amounts and the user's prices: egress, storage, carbon, interest."""

from gpuplan.cost.annuity import annuity, monthly_frac
from gpuplan.cost.statement import cents
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.terms import Prices, PurchaseExtras
from gpuplan.errors import InputError, Problem
from gpuplan.units import GB, MONTH

# Data out of a large cloud to the world, list prices of the first tiers. Assumption: bulk and
# private links are cheaper, many small clouds ask nothing.
EGRESS_USD_PER_BYTE = Range(low=0.0, mid=0.05 / GB, high=0.12 / GB)


def egress_usd(n_bytes: float, prices: Prices) -> tuple[Range, tuple[Assumption, ...]]:
    """The price of data that leaves a cloud: the user's, else the range of list prices."""
    if prices.egress_usd_per_byte is not None:
        return exactly(prices.egress_usd_per_byte).times(n_bytes), ()
    usual = EGRESS_USD_PER_BYTE
    note = assume(
        "data out of a cloud",
        f"{usual.low * GB:g} to {usual.high * GB:g} USD per GB",
        "list prices differ by more than ten; yours was not given",
        "prices.egress_usd_per_gb",
    )
    return usual.times(n_bytes), (note,)


def storage_usd_per_month(n_bytes: float, prices: Prices) -> Range | None:
    """The monthly price of stored data; None where the user gave no price."""
    price = prices.storage_usd_per_byte_month
    return None if price is None else exactly(price * n_bytes)


def carbon_usd_per_month(kg_per_month: float, prices: Prices) -> Range | None:
    """Emissions at the user's carbon price; None without one, as nobody then pays it."""
    price = prices.carbon_usd_per_kg
    return None if price is None else exactly(price * kg_per_month)


def loan_interest_usd(outlay_usd: float, extras: PurchaseExtras) -> float | None:
    """The interest of the loan that the user described, over its term; None without a loan.

    Payments are equal, in whole cents; the last one settles what rounding left.
    """
    given = (extras.loan_frac, extras.loan_interest_frac_per_year, extras.loan_s)
    if all(part is None for part in given):
        return None
    share, interest, length_s = given
    if share is None or interest is None or length_s is None:
        what = "a loan needs its share, its interest and its months"
        where = "prices.purchase_extras"
        raise InputError("loan", [Problem(where, what, "give all three, or none")])
    n_months, principal_usd = max(1, round(length_s / MONTH)), outlay_usd * share
    payment = cents(principal_usd / annuity(n_months, interest))
    borrowed = owed = cents(principal_usd)
    for _ in range(n_months - 1):
        owed += round(owed * monthly_frac(interest)) - payment
    last = owed + round(owed * monthly_frac(interest))
    return (payment * (n_months - 1) + last - borrowed) / 100.0
