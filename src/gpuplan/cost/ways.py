"""Rent, buy or both over life, in: a load, a node to own, a rate to rent; out: three statements."""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.cost.crossover import own_or_burst
from gpuplan.cost.owned import owned_rate
from gpuplan.cost.statement import statement
from gpuplan.cost.value import npv_usd, payback
from gpuplan.domain.money.rates import NodeRate, Ownership, PriceRefusal
from gpuplan.domain.money.statement import PurchasePlan, RentPlan, RunningPlan, WholeLife
from gpuplan.domain.money.worth import LoadBlock, OwnNode, WayCost
from gpuplan.errors import CatalogError, one
from gpuplan.units import HOURS_PER_MONTH, MONTH


def compare_ways(
    blocks: Sequence[LoadBlock], own: OwnNode, rent: NodeRate, *, discount_frac_per_year: float
) -> tuple[WayCost, ...]:
    """All rented, all owned, and the best of both, over the life of the owned node.

    Blocks share out every month alike; rented nodes are paid while needed, owned ones always.
    """
    most = max(block.n_nodes for block in blocks)
    best = _best_owned(blocks, own, rent, discount_frac_per_year)
    ways = (("all rented", 0), ("own and rent", best), ("all owned", most))
    first = _way(ways[0], blocks, own, rent=rent, yearly_frac=discount_frac_per_year)
    return (
        first,
        *(
            _against(first, _way(way, blocks, own, rent=rent, yearly_frac=discount_frac_per_year))
            for way in ways[1:]
        ),
    )


def npv_over_scale(
    blocks: Sequence[LoadBlock],
    own: OwnNode,
    rent: NodeRate,
    *,
    shares: Sequence[float],
    discount_frac_per_year: float,
) -> dict[str, tuple[float, ...]]:
    """Present cost of each way when the busy hours shrink or grow: the lines of a chart.

    A share of 0.5 leaves every node needed for half of its hours.
    """
    lines: dict[str, list[float]] = {}
    for share in shares:
        thinned = [replace(block, n_hours=block.n_hours * share) for block in blocks]
        idle = sum(block.n_hours for block in blocks) * (1 - share)
        whole = [*thinned, LoadBlock(n_nodes=0, n_hours=max(0.0, idle))]
        found = compare_ways(whole, own, rent, discount_frac_per_year=discount_frac_per_year)
        for way in found:
            lines.setdefault(way.name, []).append(way.npv_usd)
    return {name: tuple(values) for name, values in lines.items()}


def _best_owned(
    blocks: Sequence[LoadBlock], own: OwnNode, rent: NodeRate, yearly_frac: float
) -> int:
    rate = owned_rate(
        own.node,
        own.purchase,
        ownership=Ownership(
            life_s=own.life_months * MONTH,
            residual_frac=own.residual_frac,
            discount_frac_per_year=yearly_frac,
        ),
        running=own.running,
        evidence=own.evidence,
    )
    if isinstance(rate, PriceRefusal):
        raise one(CatalogError, "ways", rate.id, rate.what, rate.fix)
    found = own_or_burst(
        blocks,
        own_usd_per_node_h=rate.price_usd_per_h.mid,
        cloud_usd_per_node_h=rent.price_usd_per_h.mid,
    )
    return found.n_owned


def _way(
    way: tuple[str, int],
    blocks: Sequence[LoadBlock],
    own: OwnNode,
    *,
    rent: NodeRate,
    yearly_frac: float,
) -> WayCost:
    name, n_owned = way
    hours = sum(block.n_hours for block in blocks)
    rented = sum(max(0, block.n_nodes - n_owned) * block.n_hours for block in blocks)
    monthly = rented / hours * HOURS_PER_MONTH
    n = own.life_months
    life = WholeLife(
        name=name,
        n_months=n,
        discount_frac_per_year=yearly_frac,
        purchases=_purchases(own, n_owned),
        running=_running(own, n_owned),
        rents=(RentPlan(rate=rent, node_hours=(0.0, *[monthly] * n)),) if rented else (),
    )
    account = statement(life)
    return WayCost(
        name=name, n_owned=n_owned, statement=account, npv_usd=npv_usd(account), payback=None
    )


def _purchases(own: OwnNode, n_owned: int) -> tuple[PurchasePlan, ...]:
    if not n_owned:
        return ()
    return (
        PurchasePlan(
            name=own.node.name,
            n_nodes=n_owned,
            purchase=own.purchase,
            residual_frac=own.residual_frac,
            source=own.evidence.source,
        ),
    )


def _running(own: OwnNode, n_owned: int) -> tuple[RunningPlan, ...]:
    if not n_owned:
        return ()
    return (
        RunningPlan(
            name=own.node.name,
            n_nodes=n_owned,
            n_accelerators_per_node=own.node.n_accelerators,
            running=own.running,
            hardware_usd=own.purchase.hardware_usd,
            source=own.evidence.source,
        ),
    )


def _against(rented: WayCost, way: WayCost) -> WayCost:
    if not way.n_owned:
        return way
    return replace(way, payback=payback(way.statement, rented.statement))
