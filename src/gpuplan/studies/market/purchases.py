"""Fleets of a comparison under purchase options that the plan may not use: spot, indicative …"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.plan.comparison import ComparisonRow
from gpuplan.domain.plan.packing import whole_nodes
from gpuplan.studies.market.offers import Market
from gpuplan.units import HOURS_PER_MONTH

SPOT_NOTE = "spot nodes are reclaimed at short notice: plans use them for deferrable work only"
INDICATIVE = "indicative price"
QUOTE = "ask for a quote and enter it under prices.offers"


class OtherPurchase(NamedTuple):
    """The fleet of a row, every hour of the month paid at another price."""

    workload: str
    accelerator: str
    precision: str
    purchase: str
    source: str  # cloud, node and region
    usd_per_month: float
    note: str


def other_purchases(market: Market, rows: Sequence[ComparisonRow]) -> Iterator[OtherPurchase]:
    """The cheapest published price of each such option for every fleet of whole accelerators."""
    for row in rows:
        if row.layout is None or row.layout.share or row.evidence.run is not None:
            continue
        best: dict[str, tuple[float, NodeRate]] = {}
        for rate in market.shown:
            usd = _usd_per_month(row, rate)
            purchase = _purchase(rate)
            if usd is not None and purchase and usd < best.get(purchase, (float("inf"),))[0]:
                best[purchase] = usd, rate
        for purchase, (usd, rate) in best.items():
            node = rate.node
            where = " ".join(filter(None, (node.cloud, node.name, node.region)))
            note = SPOT_NOTE if purchase == "spot" else "; ".join((rate.evidence.note, QUOTE))
            named = row.workload, row.accelerator, row.precision
            yield OtherPurchase(*named, purchase, where, usd, note.removeprefix("; "))


def _purchase(rate: NodeRate) -> str:
    """How the price is to be had; empty: an advertised discount, which is no price."""
    if rate.purchase == "reserved" and rate.evidence.is_weak:
        return ""
    return INDICATIVE if rate.purchase == "on_demand" else rate.purchase


def _usd_per_month(row: ComparisonRow, rate: NodeRate) -> float | None:
    if row.layout is None or rate.node.accelerator != row.accelerator:
        return None
    size = row.layout.spread.n_accelerators
    return all_hours_usd(rate, whole_nodes(row.n_replicas, size, rate.node.n_accelerators))


def all_hours_usd(rate: NodeRate, n_nodes: int | None) -> float | None:
    """So many nodes for every hour of a month; None: replicas do not fit, or there are fewer."""
    limit = rate.terms.n_nodes_max
    if n_nodes is None or (limit is not None and n_nodes > limit):
        return None
    return n_nodes * rate.price_usd_per_h.mid * HOURS_PER_MONTH
