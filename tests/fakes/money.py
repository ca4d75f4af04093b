"""The node of the money tables: $300 000, four years, ten percent, one machine of eight."""

from gpuplan.domain.money.rates import (
    NodeKind,
    NodePurchase,
    NodeRate,
    NodeRunning,
    PriceEvidence,
    RatePart,
)
from gpuplan.domain.money.statement import PurchasePlan, RentPlan, RunningPlan, WholeLife
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


def own_life(**more) -> WholeLife:
    fields = {
        "name": "own",
        "n_months": N_MONTHS,
        "discount_frac_per_year": RATE,
        "purchases": (
            PurchasePlan(name="hgx", n_nodes=1, purchase=PURCHASE, residual_frac=exactly(0.15)),
        ),
        "running": (
            RunningPlan(
                name="hgx",
                n_nodes=1,
                n_accelerators_per_node=8,
                running=RUNNING,
                hardware_usd=exactly(300_000.0),
            ),
        ),
    }
    return WholeLife(**(fields | more))


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


def rent_life(utilization: float, n_months: int = N_MONTHS) -> WholeLife:
    hours = (0.0, *(730.0 * utilization for _ in range(n_months)))
    rent = RentPlan(rate=rent_rate(20.0), node_hours=hours)
    return WholeLife(name="rent", n_months=n_months, discount_frac_per_year=RATE, rents=(rent,))
