"""Smaller causes of cost, in: amounts and the user's prices; out: items for a statement."""

from gpuplan.cost.per_unit import service_cents
from gpuplan.domain.money.statement import Loan, Recurring
from gpuplan.domain.money.worth import Tokens
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.terms import Prices, PurchaseExtras, TokenPrice
from gpuplan.errors import InputError, Problem
from gpuplan.units import GB, MONTH, TB

# Data out of a large cloud to the world, list prices of the first tiers. Assumption: bulk and
# private links are cheaper, many small clouds ask nothing.
EGRESS_USD_PER_BYTE = Range(low=0.0, mid=0.05 / GB, high=0.12 / GB)
STORAGE_USD_PER_BYTE_MONTH = Range(low=10.0 / TB, mid=23.0 / TB, high=120.0 / TB)


def egress(bytes_per_month: float, prices: Prices) -> tuple[Recurring, tuple[Assumption, ...]]:
    """Data that leaves a cloud."""
    price, told = _price(
        prices.egress_usd_per_byte, EGRESS_USD_PER_BYTE, GB, "data out of a cloud",
        ("USD per GB", "prices.egress_usd_per_gb"),
    )  # fmt: skip
    monthly = price.times(bytes_per_month)
    return Recurring(category="egress", name="data out", usd_per_month=monthly), told


def storage(held_bytes: float, prices: Prices) -> tuple[Recurring, tuple[Assumption, ...]]:
    """Data that is kept."""
    price, told = _price(
        prices.storage_usd_per_byte_month, STORAGE_USD_PER_BYTE_MONTH, TB, "storage",
        ("USD per TB and month", "prices.storage_usd_per_tb_month"),
    )  # fmt: skip
    return Recurring(
        category="storage", name="storage", usd_per_month=price.times(held_bytes)
    ), told


def token_service(tokens_per_month: Tokens, price: TokenPrice) -> Recurring:
    """A bought service in place of machines."""
    usd = service_cents(tokens_per_month, price) / 100.0
    return Recurring(category="tokens", name=price.name, usd_per_month=exactly(usd), source="user")


def carbon_price(kg_per_month: float, prices: Prices) -> Recurring | None:
    """Emissions at the user's price; None without one: the bill holds no price nobody asks."""
    if prices.carbon_usd_per_kg is None:
        return None
    usd = kg_per_month * prices.carbon_usd_per_kg
    return Recurring(category="carbon", name="carbon", usd_per_month=exactly(usd), source="user")


def loan_of(outlay_usd: float, extras: PurchaseExtras) -> Loan | None:
    """The loan that the user described; None where none is."""
    given = (extras.loan_frac, extras.loan_interest_frac_per_year, extras.loan_s)
    if all(part is None for part in given):
        return None
    share, interest, length_s = given
    if share is None or interest is None or length_s is None:
        what = "a loan needs its share, its interest and its months"
        where = "prices.purchase_extras"
        raise InputError("loan", [Problem(where, what, "give all three, or none")])
    return Loan(
        name="loan",
        principal_usd=outlay_usd * share,
        interest_frac_per_year=interest,
        n_months=max(1, round(length_s / MONTH)),
    )


def _price(
    given: float | None, default: Range, scale: float, what: str, key: tuple[str, str]
) -> tuple[Range, tuple[Assumption, ...]]:
    if given is not None:
        return exactly(given), ()
    unit, change = key
    told = Assumption(
        what=what,
        value=f"{default.low * scale:g} to {default.high * scale:g} {unit}",
        why="list prices differ by more than ten; yours was not given",
        change=change,
    )
    return default, (told,)
