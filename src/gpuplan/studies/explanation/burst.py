"""Own the base, rent the peak: what owning more or less would cost, and what peaks would change."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from gpuplan.cost.rent_or_own import own_or_burst
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.worth import LoadBlock, OwnOrBurst
from gpuplan.domain.plan.answer import Alternative, Crossover, Explanation
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.options import pool_name
from gpuplan.studies.planning.priced import paid_by
from gpuplan.units import HOUR, HOURS_PER_MONTH, MINUTE, MONTHS_PER_YEAR


class BurstPool(NamedTuple):
    """One pool that can be owned and rented."""

    option: FleetOption
    own: NodeRate
    cloud: NodeRate
    blocks: tuple[LoadBlock, ...]

    @property
    def n_hours(self) -> float:
        """Hours that the blocks stand for."""
        return sum(block.n_hours for block in self.blocks)

    @property
    def best(self) -> OwnOrBurst:
        """How many nodes to own, and the cost of every number of them."""
        return own_or_burst(
            self.blocks,
            own_usd_per_node_h=self.own.price_usd_per_h.mid,
            cloud_usd_per_node_h=self.cloud.price_usd_per_h.mid,
        )


def burst_pool(choice: Choice, option: FleetOption) -> BurstPool | None:
    """The cheapest owned and rented nodes of a pool that one workload has to itself."""
    rates = [rate for rate in choice.table.rates.values() if pool_name(rate) == option.pool]
    cheapest = {
        purchase: min(
            (rate for rate in rates if rate.purchase == purchase),
            key=lambda rate: rate.price_usd_per_h.mid,
            default=None,
        )
        for purchase in ("owned", "on_demand")
    }
    own, cloud = cheapest["owned"], cheapest["on_demand"]
    horizon = choice.table.problem.horizon
    sharers = [o.workload for o in choice.selection.chosen if o.pool == option.pool]
    if own is None or cloud is None or horizon.shape[1] > 1 or len(sharers) > 1:
        return None
    pool = choice.pool(option.pool)
    blocks = tuple(
        LoadBlock(n_nodes=pool.nodes_for(int(need + option.n_reserve)), n_hours=float(s) / HOUR)
        for need, s in zip(option.need[0, 0], horizon.hour_s, strict=True)
    )
    return BurstPool(option, own, cloud, blocks)


def burst_alternatives(choice: Choice, option: FleetOption) -> Iterator[Alternative]:
    """The pool owned as a whole, and rented as a whole, each with the bill of that choice."""
    for kind, is_owned in (("own everything", True), ("rent everything", False)):
        terms = [
            given
            for given in choice.table.problem.terms
            if given.pool != option.pool or (given.purchase == "owned") == is_owned
        ]
        found = paid_by(choice, terms)
        if found is None or found.selection.worth_cents <= choice.selection.worth_cents:
            continue
        held = [h for h in found.selection.held if h.pool == option.pool and h.purchase == "owned"]
        n_owned = sum(int(h.n_nodes.max(initial=0)) for h in held)
        usd = found.usd_per_month
        yield Alternative(
            kind=kind,
            fleet=f"{n_owned} nodes owned",
            usd_per_month=usd,
            extra_usd_per_month=usd - choice.usd_per_month,
            remark=f"{option.workload}: ${usd * MONTHS_PER_YEAR:,.0f}/year",
        )


def burst_reasons(pool: BurstPool) -> Explanation:
    """How much to own, and when to rent."""
    return Explanation(why=tuple(_lines(pool)), crossovers=tuple(_crossovers(pool)))


def _crossovers(pool: BurstPool) -> Iterator[Crossover]:
    """From which utilization on owning pays, and for the next node at which price."""
    best, own, cloud = pool.best, pool.own.price_usd_per_h.mid, pool.cloud.price_usd_per_h.mid
    yield Crossover(
        what=f"utilization of a node of {pool.option.pool}",
        at=f"{best.break_even_frac:.1%} of hours",
        then=f"owning (${own:,.2f}/h) is cheaper than on-demand (${cloud:,.2f}/h)",
    )
    used = sum(b.n_hours for b in pool.blocks if b.n_nodes > best.n_owned) / pool.n_hours
    if used > 0:
        yield Crossover(
            what=f"the next node after the {best.n_owned} owned",
            at=f"needed in {used:.1%} of hours",
            then=f"owning it pays off below ${used * cloud:,.2f}/h, or where on-demand costs "
            f"more than ${own / used:,.2f}/h",
        )


def _lines(pool: BurstPool) -> Iterator[str]:
    """How the base was found, what peaks would change, and what renting at peaks asks for."""
    best, name = pool.best, pool.option.workload
    yield (
        f"{name}: own {best.n_owned} nodes, which are needed in more than "
        f"{best.break_even_frac:.0%} of hours, and rent the rest on demand"
    )
    yield f"{name}: {_doubled(pool)}"
    start = pool.cloud.terms.cold_start_s
    if start is not None:
        yield (
            f"{name}: on-demand nodes serve {start.low / MINUTE:.0f} … {start.high / MINUTE:.0f} "
            "minutes after they are requested: scale up before the peak, or keep some warm; check "
            "quotas and where the data is"
        )


def _doubled(pool: BurstPool) -> str:
    """Peaks twice as high, the base as it is."""
    base = min(block.n_nodes for block in pool.blocks)
    peaks = tuple(
        block if block.n_nodes == base else replace(block, n_nodes=2 * block.n_nodes)
        for block in pool.blocks
    )
    now, found = pool.best.n_owned, pool._replace(blocks=peaks).best
    totals, years = found.usd_by_owned, pool.n_hours / HOURS_PER_MONTH / MONTHS_PER_YEAR
    peak = max(block.n_nodes for block in pool.blocks)
    regret, all_owned = (
        (totals[min(n, len(totals) - 1)] - min(totals)) / years for n in (now, peak)
    )
    return (
        f"if peaks double, {found.n_owned} owned nodes would be best; the regret of owning {now} "
        f"is ${regret:,.0f}/year, of owning today's peak ${all_owned:,.0f}/year"
    )
