"""The price of an hour of an owned node by cause: capital, support, energy, space, licences."""

from math import isfinite

from gpuplan.cost.annuity import monthly_capital
from gpuplan.domain.hardware.catalog import StreetPrice
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.money.rates import (
    Capital,
    NodeKind,
    NodePurchase,
    NodeRate,
    NodeRunning,
    Ownership,
    PriceEvidence,
    PriceRefusal,
    RatePart,
    RefusalCode,
)
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly, total
from gpuplan.domain.scenario.terms import HardwarePrice
from gpuplan.units import HOUR, HOURS_PER_MONTH, HOURS_PER_YEAR, MONTH

# Server around the accelerators over their own price. Assumption: published prices of whole
# eight-way servers lie 20 to 60 % above the street prices of eight boards [street-prices].
HOST_FRAC = Range(low=0.2, mid=0.35, high=0.6)


def owned_rate(
    node: NodeKind,
    purchase: NodePurchase,
    *,
    ownership: Ownership,
    running: NodeRunning,
    evidence: PriceEvidence,
    assumptions: tuple[Assumption, ...] = (),
) -> NodeRate | PriceRefusal:
    """Capital as an annuity plus running costs; depreciation is never counted besides."""
    fault = _purchase_fault(purchase.hardware_usd)
    if fault is not None:
        code, what = fault
        return PriceRefusal(
            id=_id(node),
            node=node,
            purchase="owned",
            code=code,
            what=what,
            fix=f"give prices.hardware for {node.accelerator or node.name}",
        )
    capital = Capital(
        hardware_usd=purchase.hardware_usd,
        outlay_usd=purchase.outlay_usd,
        residual_frac=ownership.residual_frac,
        life_s=ownership.life_s,
        discount_frac_per_year=ownership.discount_frac_per_year,
        purchase=purchase,
    )
    support = purchase.hardware_usd.times(running.support_frac_per_year / HOURS_PER_YEAR)
    parts = (
        RatePart(name="capital", usd_per_h=capital_usd_per_h(capital)),
        RatePart(name="support", usd_per_h=support),
        *running_parts(node, running),
    )
    return _rate(node, parts, capital=capital, evidence=evidence, assumptions=assumptions)


def standing_rate(node: NodeKind, running: NodeRunning, *, evidence: PriceEvidence) -> NodeRate:
    """The running costs of a node that exists already: its purchase is past."""
    nothing = exactly(0.0)
    sunk = Capital(
        hardware_usd=nothing,
        outlay_usd=nothing,
        residual_frac=nothing,
        life_s=MONTH,
        discount_frac_per_year=0.0,
    )
    parts = running_parts(node, running)
    return _rate(node, parts, capital=sunk, evidence=evidence, assumptions=())


def running_parts(node: NodeKind, running: NodeRunning) -> tuple[RatePart, ...]:
    """Energy by average draw, demand and space by highest draw, licences; zero parts too."""
    facility_w = running.highest_w * running.pue_ratio
    hourly = {
        "demand charge": facility_w * running.demand_usd_per_w_month / HOURS_PER_MONTH,
        "space": running.highest_w * running.colocation_usd_per_w_month / HOURS_PER_MONTH,
        "licences": running.licence_usd_per_accelerator_year * node.n_accelerators / HOURS_PER_YEAR,
    }
    energy_j = running.average_w * running.pue_ratio * HOUR
    energy = RatePart(name="energy", usd_per_h=running.electricity_usd_per_j.times(energy_j))
    rest = (RatePart(name=name, usd_per_h=exactly(usd)) for name, usd in hourly.items())
    return (energy, *rest)


def capital_usd_per_h(capital: Capital) -> Range:
    """The annuity of outlay less residual, spread over all hours of life."""
    n_months = capital.life_s / MONTH
    rate = capital.discount_frac_per_year

    def hourly(outlay_usd: float, residual_usd: float) -> float:
        paid = monthly_capital(outlay_usd, residual_usd, n_months=n_months, yearly_frac=rate)
        return paid / HOURS_PER_MONTH

    low, mid, high = capital.residuals_usd
    outlay = capital.outlay_usd
    return Range(
        low=hourly(outlay.low, low), mid=hourly(outlay.mid, mid), high=hourly(outlay.high, high)
    )


def hardware_price(
    accelerator: Accelerator,
    n_accelerators: int,
    *,
    given: HardwarePrice | None = None,
    street: StreetPrice | None = None,
) -> tuple[Range | None, tuple[Assumption, ...]]:
    """The price of one node: the user's, a server's, its accelerators and a host share, or None."""
    if given is not None and given.node_usd is not None:
        return given.node_usd, ()
    if given is not None and given.accelerator_usd is not None:
        street = StreetPrice(usd=given.accelerator_usd, source="")
    if street is None:
        return None, ()
    change = f"prices.hardware[accelerator={accelerator.id}].usd_per_node"
    if street.is_server:
        what = f"a server with {n_accelerators} {accelerator.name}"
        return street.usd, (_street_assumption(what, street, change),)
    board = _street_assumption(accelerator.name, street, change)
    host = assume(
        f"server around {accelerator.name}",
        f"{HOST_FRAC.low:.0%} to {HOST_FRAC.high:.0%} of its accelerators' price",
        "no price of such a server is known",
        change,
    )
    whole = _with_host(street.usd, n_accelerators)
    return whole, (board, host) if street.source else (host,)


def _with_host(one_usd: Range, n: int) -> Range:
    """What a node with n accelerators costs, its host as a share of them."""
    return Range(
        low=one_usd.low * (1 + HOST_FRAC.low) * n,
        mid=one_usd.mid * (1 + HOST_FRAC.mid) * n,
        high=one_usd.high * (1 + HOST_FRAC.high) * n,
    )


def _street_assumption(what: str, street: StreetPrice, change: str) -> Assumption:
    return assume(
        f"purchase price of {what}",
        f"{street.usd.low:,.0f} to {street.usd.high:,.0f} USD",
        "no list price is published; street prices of resellers, weak evidence",
        change,
        street.source,
    )


def _rate(
    node: NodeKind,
    parts: tuple[RatePart, ...],
    *,
    capital: Capital,
    evidence: PriceEvidence,
    assumptions: tuple[Assumption, ...],
) -> NodeRate:
    return NodeRate(
        id=_id(node),
        node=node,
        purchase="owned",
        price_usd_per_h=total(part.usd_per_h for part in parts),
        parts=parts,
        evidence=evidence,
        capital=capital,
        assumptions=assumptions,
    )


def _id(node: NodeKind) -> str:
    return "/".join(("owned", node.region or "site", node.name))


def _purchase_fault(price: Range) -> tuple[RefusalCode, str] | None:
    for usd in (price.low, price.mid, price.high):
        if not isfinite(usd):
            return "not-finite", f"purchase price is {usd}"
        if usd <= 0:
            return "zero", f"purchase price is ${usd:g}"
    return None
