"""Terms of purchase and running with defaults where the user gave none, and what was assumed.

Every default is reported with its range; none has a public price list behind it.
"""

from gpuplan.domain.money.rates import NodePurchase
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.terms import PurchaseExtras
from gpuplan.units import KW

FREIGHT_FRAC = Range(low=0.01, mid=0.02, high=0.05)
TAX_FRAC = Range(low=0.0, mid=0.0, high=0.25)  # most buyers reclaim it
INSTALL_FRAC = Range(low=0.01, mid=0.02, high=0.05)
GEAR_FRAC = Range(low=0.10, mid=0.12, high=0.15)  # 10 to 15 % is the usual claim; no price list
SPARES_FRAC = Range(low=0.0, mid=0.02, high=0.05)
# Asked for 250 to 500 kW in primary markets, without energy: 2024 and 2025 [cbre-colocation].
COLOCATION_USD_PER_W_MONTH = Range(low=120.0 / KW, mid=184.06 / KW, high=195.94 / KW)
SUPPORT_FRAC_PER_YEAR = Range(low=0.03, mid=0.05, high=0.10)


def purchase_of(
    hardware_usd: Range, extras: PurchaseExtras
) -> tuple[NodePurchase, tuple[Assumption, ...]]:
    """The outlay for one node: the user's shares, and reported defaults for the rest."""
    notes: list[Assumption] = []

    def share(given: float | None, default: Range, what: str, name: str) -> float:
        if given is not None:
            return given
        notes.append(_assumed(what, default, f"prices.purchase_extras.{name}"))
        return default.mid

    purchase = NodePurchase(
        hardware_usd=hardware_usd,
        freight_frac=share(extras.freight_frac, FREIGHT_FRAC, "freight", "freight_frac"),
        tax_frac=share(extras.tax_frac, TAX_FRAC, "tax on the purchase", "tax_frac"),
        install_frac=share(extras.install_frac, INSTALL_FRAC, "installation", "installation_frac"),
        gear_frac=share(
            extras.gear_frac, GEAR_FRAC, "racks, switches, cables", "network_gear_frac"
        ),
        spares_frac=share(extras.spares_frac, SPARES_FRAC, "spare parts", "spares_frac"),
    )
    return purchase, tuple(notes)


def support_of(given_frac_per_year: float | None) -> tuple[float, tuple[Assumption, ...]]:
    """Support a year as a share of the hardware price."""
    if given_frac_per_year is not None:
        return given_frac_per_year, ()
    notes = _assumed("support a year", SUPPORT_FRAC_PER_YEAR, "prices.support_frac_per_year")
    return SUPPORT_FRAC_PER_YEAR.mid, (notes,)


def colocation_of(
    given_usd_per_w_month: float | None, *, has_own_site: bool
) -> tuple[float, tuple[Assumption, ...]]:
    """The rent of space by power; nothing at a site of one's own, which is reported too."""
    if given_usd_per_w_month is not None:
        return given_usd_per_w_month, ()
    price = COLOCATION_USD_PER_W_MONTH
    value = f"{price.low * KW:.0f} to {price.high * KW:.0f} USD per kW and month"
    why, used = "asked in primary markets, without energy", price.mid
    if has_own_site:
        value, why, used = "0 USD", "the site is yours; its building is not counted", 0.0
    source = "" if has_own_site else "cbre-colocation"
    notes = assume("space", value, why, "prices.colocation_usd_per_kw_month", source)
    return used, (notes,)


def _assumed(what: str, default: Range, change: str) -> Assumption:
    value = f"{default.mid:.0%} of the hardware, range {default.low:.0%} to {default.high:.0%}"
    return assume(what, value, "no price list is published", change)
