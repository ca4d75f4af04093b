"""Own the base, rent the peak: what owning more or less would cost, and what peaks would change."""

from collections.abc import Iterator
from typing import NamedTuple

from gpuplan.cost.rent_or_own import own_or_burst
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.worth import LoadBlock, OwnOrBurst
from gpuplan.domain.plan.answer import Alternative, Crossover
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.studies.planning.chosen import Choice, batch_shares
from gpuplan.studies.planning.options import pool_name
from gpuplan.units import HOUR, HOURS_PER_MONTH


class Burst(NamedTuple):
    """One pool that can be owned and rented."""

    option: FleetOption
    own: NodeRate
    cloud: NodeRate
    blocks: tuple[LoadBlock, ...]
    best: OwnOrBurst


def burst_of(choice: Choice, option: FleetOption) -> Burst | None:
    """The cheapest owned and rented way of a pool that one workload has to itself."""
    rates = [rate for rate in choice.rows.rates.values() if pool_name(rate) == option.pool]
    own = [rate for rate in rates if rate.purchase == "owned"]
    cloud = [rate for rate in rates if rate.purchase == "on_demand"]
    horizon = choice.rows.problem.horizon
    sharers = [o.workload for o in choice.selection.chosen if o.pool == option.pool]
    sharers += [share.workload for share in batch_shares(choice) if share.pool == option.pool]
    if not own or not cloud or horizon.shape[1] > 1 or len(sharers) > 1:
        return None
    mine = min(own, key=lambda rate: rate.price_usd_per_h.mid)
    rent = min(cloud, key=lambda rate: rate.price_usd_per_h.mid)
    per_node = choice.pool(option.pool).n_accelerators_per_node
    blocks = tuple(
        LoadBlock(n_nodes=-(-int(need + option.n_reserve) // per_node), n_hours=float(s) / HOUR)
        for need, s in zip(option.need[0, 0], horizon.hour_s, strict=True)
    )
    return Burst(option, mine, rent, blocks, _best(blocks, mine, rent))


def _best(blocks: tuple[LoadBlock, ...], own: NodeRate, cloud: NodeRate) -> OwnOrBurst:
    return own_or_burst(
        blocks,
        own_usd_per_node_h=own.price_usd_per_h.mid,
        cloud_usd_per_node_h=cloud.price_usd_per_h.mid,
    )


def burst_alternatives(burst: Burst) -> Iterator[Alternative]:
    """All owned, and all rented."""
    months = sum(block.n_hours for block in burst.blocks) / HOURS_PER_MONTH
    totals = burst.best.usd_by_owned
    best = min(totals)
    for kind, n_owned in (("own everything", len(totals) - 1), ("rent everything", 0)):
        usd = totals[n_owned]
        if usd > best:
            yield Alternative(
                kind=kind,
                fleet=f"{n_owned} nodes owned",
                usd_per_month=usd / months,
                extra_usd_per_month=(usd - best) / months,
                power_w=0.0,
                remark=f"{burst.option.workload}: ${usd / months * 12:,.0f} a year",
            )


def burst_crossovers(burst: Burst) -> Iterator[Crossover]:
    """From which use on owning pays, and for the next node at which price."""
    best, own, cloud = burst.best, burst.own.price_usd_per_h.mid, burst.cloud.price_usd_per_h.mid
    yield Crossover(
        what=f"use of a node of {burst.option.pool}",
        at=f"{best.break_even_frac:.1%} of the hours",
        then=f"owning (${own:,.2f}) is cheaper than renting (${cloud:,.2f}) by the hour",
    )
    hours = sum(block.n_hours for block in burst.blocks)
    used = sum(b.n_hours for b in burst.blocks if b.n_nodes > best.n_owned) / hours
    if used > 0:
        yield Crossover(
            what=f"the node after the {best.n_owned} owned ones",
            at=f"used {used:.1%} of the hours",
            then=f"owning it pays below ${used * cloud:,.2f} an hour, or above "
            f"${own / used:,.2f} in the cloud",
        )


def burst_lines(burst: Burst) -> Iterator[str]:
    """How the base was found, what peaks would change, and what renting at peaks asks for."""
    best, name = burst.best, burst.option.workload
    yield (
        f"{name}: own {best.n_owned} nodes, which are used more than {best.break_even_frac:.0%} of "
        "the hours, and rent the rest when it is needed"
    )
    yield f"{name}: {_doubled(burst)}"
    start = burst.cloud.terms.cold_start_s
    if start is not None:
        yield (
            f"{name}: rented nodes serve {start.low / 60:.0f} … {start.high / 60:.0f} minutes "
            "after they are asked for: ask before the peak, or keep some warm; check the quota, "
            "and where the data lies"
        )


def _doubled(burst: Burst) -> str:
    """Peaks twice as high, the base as it is."""
    base = min(block.n_nodes for block in burst.blocks)
    peaks = tuple(
        LoadBlock(
            n_nodes=block.n_nodes if block.n_nodes == base else 2 * block.n_nodes,
            n_hours=block.n_hours,
        )
        for block in burst.blocks
    )
    found = _best(peaks, burst.own, burst.cloud)
    years = sum(block.n_hours for block in peaks) / HOURS_PER_MONTH / 12
    kept = found.usd_by_owned[min(burst.best.n_owned, len(found.usd_by_owned) - 1)]
    regret = kept - min(found.usd_by_owned)
    top = min(max(b.n_nodes for b in burst.blocks), len(found.usd_by_owned) - 1)
    all_owned = found.usd_by_owned[top] - min(found.usd_by_owned)
    return (
        f"if peaks double, {found.n_owned} owned would be best; owning {burst.best.n_owned} is "
        f"regretted by ${regret / years:,.0f} a year, owning today's peak by "
        f"${all_owned / years:,.0f}"
    )
