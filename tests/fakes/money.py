"""The node of the money tables: $300 000, four years, ten percent, one machine of eight."""

from gpuplan.cost.statement import life_statement
from gpuplan.domain.money.rates import (
    NodeKind,
    NodePurchase,
    NodeRate,
    NodeRunning,
    PriceEvidence,
    RatePart,
)
from gpuplan.domain.money.statement import OwnNode, Statement
from gpuplan.domain.ranges import exactly
from gpuplan.units import KWH

N_MONTHS = 48
RATE = 0.10
NODE = NodeKind(name="hgx", accelerator="h100-sxm", n_accelerators=8)
PURCHASE = NodePurchase(hardware_usd=exactly(300_000.0), freight_frac=0.05)
RUNNING = NodeRunning(
    average_w=7_000.0,
    highest_w=7_000.0,
    pue_ratio=1.3,
    electricity_usd_per_j=exactly(0.10 / KWH),
    colocation_usd_per_w_month=1_500.0 / 7_000.0,
    support_frac_per_year=0.05,
)


OWN = OwnNode(
    node=NODE,
    purchase=PURCHASE,
    running=RUNNING,
    life_months=N_MONTHS,
    residual_frac=exactly(0.15),
    evidence=PriceEvidence(source="user"),
)


def rent_rate(usd_per_node_h: float, purchase="on_demand") -> NodeRate:
    price = exactly(usd_per_node_h)
    return NodeRate(
        id=f"cloud/{purchase}",
        node=NODE,
        purchase=purchase,
        price_usd_per_h=price,
        parts=(RatePart(name="rent", usd_per_h=price),),
        evidence=PriceEvidence(source="user"),
    )


def life(own=OWN, n_owned=1, rented_node_h=0.0, *, rent=None, yearly=RATE) -> Statement:
    """Nodes owned, and node-hours rented each month at $20."""
    rate = rent or rent_rate(20.0)
    return life_statement(
        "life", own, n_owned, rent=rate, rented_node_h=rented_node_h, discount_frac_per_year=yearly
    )


def rented(utilization: float) -> Statement:
    """One node rented for a share of the hours."""
    return life(n_owned=0, rented_node_h=730.0 * utilization)
