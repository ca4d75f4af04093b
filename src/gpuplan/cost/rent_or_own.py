"""Rent, own or both: how many nodes to own for a load, and what each option costs over life."""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.cost.owned import owned_rate
from gpuplan.cost.statement import life_statement, npv_usd, payback
from gpuplan.domain.money.rates import NodeRate, Ownership, PriceRefusal
from gpuplan.domain.money.statement import OwnNode
from gpuplan.domain.money.worth import LoadBlock, OwnershipCost, OwnOrBurst
from gpuplan.errors import CatalogError, InputError, one
from gpuplan.units import HOURS_PER_MONTH, MONTH


def own_or_burst(
    blocks: Sequence[LoadBlock], *, own_usd_per_node_h: float, cloud_usd_per_node_h: float
) -> OwnOrBurst:
    """The number of nodes to own: those needed for a larger share of hours than own/cloud price.

    Owned nodes are paid for all hours, rented ones for the hours in which they are needed.
    """
    hours = sum(block.n_hours for block in blocks)
    if hours <= 0 or cloud_usd_per_node_h <= 0 or own_usd_per_node_h <= 0:
        fix = "give hours and prices above 0"
        raise one(InputError, "own or burst", "blocks", f"{hours} hours", fix)
    most = max(block.n_nodes for block in blocks)

    def burst_usd(owned: int) -> float:
        return _rented_node_h(blocks, owned) * cloud_usd_per_node_h

    def needed_frac(node: int) -> float:
        return sum(block.n_hours for block in blocks if block.n_nodes >= node) / hours

    owning = own_usd_per_node_h * hours
    threshold = own_usd_per_node_h / cloud_usd_per_node_h
    best = sum(needed_frac(node) > threshold for node in range(1, most + 1))
    return OwnOrBurst(
        n_owned=best,
        own_usd=best * owning,
        burst_usd=burst_usd(best),
        break_even_frac=threshold,
        usd_by_owned=tuple(owned * owning + burst_usd(owned) for owned in range(most + 1)),
    )


def _rented_node_h(blocks: Sequence[LoadBlock], n_owned: int) -> float:
    return sum(max(0, block.n_nodes - n_owned) * block.n_hours for block in blocks)


def rent_or_own(
    blocks: Sequence[LoadBlock], own: OwnNode, rent: NodeRate, *, discount_frac_per_year: float
) -> tuple[OwnershipCost, ...]:
    """All rented, the best mix, and all owned, over the life of an owned node.

    Every month has the hours of the blocks; rented nodes are paid while needed, owned ones always.
    """
    best = _best_owned(blocks, own, rent, discount_frac_per_year)
    names = {
        "all rented": 0,
        "own and rent": best,
        "all owned": max(block.n_nodes for block in blocks),
    }
    hours = sum(block.n_hours for block in blocks)
    found: list[OwnershipCost] = []
    for name, n_owned in names.items():
        account = life_statement(
            name,
            own,
            n_owned,
            rent=rent,
            rented_node_h=_rented_node_h(blocks, n_owned) / hours * HOURS_PER_MONTH,
            discount_frac_per_year=discount_frac_per_year,
        )
        back = payback(account, found[0].statement) if n_owned else None
        usd = npv_usd(account)
        found.append(
            OwnershipCost(name=name, n_owned=n_owned, statement=account, npv_usd=usd, payback=back)
        )
    return tuple(found)


def npv_by_utilization(
    blocks: Sequence[LoadBlock],
    own: OwnNode,
    rent: NodeRate,
    *,
    utilizations: Sequence[float],
    discount_frac_per_year: float,
) -> dict[str, tuple[float, ...]]:
    """The net present cost of each option when the hours of the load shrink to these shares."""
    lines: dict[str, list[float]] = {}
    for share in utilizations:
        thinned = [replace(block, n_hours=block.n_hours * share) for block in blocks]
        idle = sum(block.n_hours for block in blocks) * (1 - share)
        whole = [*thinned, LoadBlock(n_nodes=0, n_hours=max(0.0, idle))]
        for cost in rent_or_own(whole, own, rent, discount_frac_per_year=discount_frac_per_year):
            lines.setdefault(cost.name, []).append(cost.npv_usd)
    return {name: tuple(values) for name, values in lines.items()}


def _best_owned(
    blocks: Sequence[LoadBlock], own: OwnNode, rent: NodeRate, yearly_frac: float
) -> int:
    ownership = Ownership(
        life_s=own.life_months * MONTH,
        residual_frac=own.residual_frac,
        discount_frac_per_year=yearly_frac,
    )
    rate = owned_rate(
        own.node, own.purchase, ownership=ownership, running=own.running, evidence=own.evidence
    )
    if isinstance(rate, PriceRefusal):
        raise one(CatalogError, "rent or own", rate.id, rate.what, rate.fix)
    return own_or_burst(
        blocks,
        own_usd_per_node_h=rate.price_usd_per_h.mid,
        cloud_usd_per_node_h=rent.price_usd_per_h.mid,
    ).n_owned
