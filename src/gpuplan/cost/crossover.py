"""Rent, buy or both, in: prices and a load; out: how many of what, and where the winner changes."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from gpuplan.domain.money.worth import FleetCost, LoadBlock, NodeOffer, OwnOrBurst
from gpuplan.errors import InputError, one
from gpuplan.units import HOUR

ROUNDING = 1e-9  # 0.7 × 900 must serve 630


def fleet_for(
    offer: NodeOffer, tokens_per_s: float, *, max_load_frac: float, n_spare: int = 0
) -> FleetCost:
    """Whole nodes for the offered load with room to spare; tokens are those really offered."""
    if offer.n_tokens_per_s <= 0 or offer.usd_per_node_h <= 0 or tokens_per_s <= 0:
        what = f"price {offer.usd_per_node_h}, capacity {offer.n_tokens_per_s}, load {tokens_per_s}"
        raise one(InputError, "fleet", offer.name, what, "all three must be above 0")
    needed = tokens_per_s / (offer.n_tokens_per_s * max_load_frac)
    n = ceil(needed * (1 - ROUNDING)) + n_spare
    usd = n * offer.usd_per_node_h
    return FleetCost(
        name=offer.name,
        n_nodes=n,
        usd_per_h=usd,
        usd_per_m_tokens=usd / (tokens_per_s * HOUR) * 1e6,
        load_frac=tokens_per_s / (n * offer.n_tokens_per_s),
    )


def cheapest_fleet(
    offers: Sequence[NodeOffer], tokens_per_s: float, *, max_load_frac: float, n_spare: int = 0
) -> FleetCost:
    """The cheapest of one kind; of equals the one with fewer nodes."""
    found = [
        fleet_for(offer, tokens_per_s, max_load_frac=max_load_frac, n_spare=n_spare)
        for offer in offers
    ]
    return min(found, key=lambda fleet: (fleet.usd_per_h, fleet.n_nodes))


def crossovers(
    offers: Sequence[NodeOffer], loads: Sequence[float], *, max_load_frac: float, n_spare: int = 0
) -> tuple[tuple[float, str], ...]:
    """Loads of the grid at which another offer takes over, with its name; the first load too.

    At equal price the one that led so far stays.
    """
    changes: list[tuple[float, str]] = []
    for load in loads:
        usd = {
            offer.name: fleet_for(
                offer, load, max_load_frac=max_load_frac, n_spare=n_spare
            ).usd_per_h
            for offer in offers
        }
        best = min(usd, key=lambda name: usd[name])
        if not changes or usd[best] < usd[changes[-1][1]] * (1 - ROUNDING):
            changes.append((load, best))
    return tuple(changes)


def own_or_burst(
    blocks: Sequence[LoadBlock],
    *,
    own_usd_per_node_h: float,
    cloud_usd_per_node_h: float,
    n_owned_max: int | None = None,
) -> OwnOrBurst:
    """How many nodes to own: as many as are used for a larger share than own over cloud price.

    Owned nodes are paid for all hours, rented ones for the hours in which they are needed.
    """
    hours = sum(block.n_hours for block in blocks)
    if hours <= 0 or cloud_usd_per_node_h <= 0 or own_usd_per_node_h <= 0:
        fix = "give hours and prices above 0"
        raise one(InputError, "own or burst", "blocks", f"{hours} hours", fix)
    most = max(block.n_nodes for block in blocks)
    most = most if n_owned_max is None else min(most, n_owned_max)

    def burst_usd(owned: int) -> float:
        node_h = sum(max(0, block.n_nodes - owned) * block.n_hours for block in blocks)
        return node_h * cloud_usd_per_node_h

    owning = own_usd_per_node_h * hours
    totals = tuple(owned * owning + burst_usd(owned) for owned in range(most + 1))
    threshold = own_usd_per_node_h / cloud_usd_per_node_h
    best = sum(_use_frac(blocks, k, hours) > threshold for k in range(1, most + 1))
    return OwnOrBurst(
        n_owned=best,
        own_usd=best * owning,
        burst_usd=burst_usd(best),
        break_even_frac=threshold,
        usd_by_owned=totals,
    )


def _use_frac(blocks: Sequence[LoadBlock], k: int, hours: float) -> float:
    """Share of hours in which the k-th node is needed."""
    return sum(block.n_hours for block in blocks if block.n_nodes >= k) / hours


def regret_usd(plan_usd: float, best_usd: float) -> float:
    """What a decision costs more than the best one would have, now that one knows."""
    return plan_usd - best_usd


def use_curve(
    utilizations: Sequence[float], *, own_usd_per_available_h: float, ways: Mapping[str, float]
) -> dict[str, tuple[float, ...]]:
    """Cost of an hour that is used, over utilization: owning falls with use, renting is level.

    Ways map a name to a price by the used hour; the chart's crossing is the break-even.
    """
    lines: dict[str, tuple[float, ...]] = {
        "own": tuple(own_usd_per_available_h / share for share in utilizations)
    }
    for name, usd in ways.items():
        lines[name] = tuple(usd for _ in utilizations)
    return lines


def flip_point(
    first_usd: Callable[[float], float],
    second_usd: Callable[[float], float],
    loads: Sequence[float],
) -> float | None:
    """The first load of the grid from which the second way is never dearer again; or None."""
    since: float | None = None
    for load in loads:
        is_cheaper = second_usd(load) <= first_usd(load)
        since = (load if since is None else since) if is_cheaper else None
    return since
