"""Own the base, rent the peak: what owning more or less would cost, and what peaks would change.

What the next 10,000 USD a month buy best: more replicas, a commitment, faster code.

Only what the models can price is compared: each way by what one per cent more load costs. Faster
networks between replicas of a service gain nothing that is modelled, so they are not offered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpuplan.cost.rent_or_own import own_or_burst
from gpuplan.domain.columns import floats
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.money.worth import LoadBlock, OwnOrBurst
from gpuplan.domain.plan.answer import Alternative, Crossover, Explanation
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.selection import FleetOption
from gpuplan.domain.plan.sizing import DemandProfile, Sized
from gpuplan.studies.explanation.alternatives import RESERVED
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.curves import cost_usd_per_month
from gpuplan.studies.planning.options import pool_name
from gpuplan.studies.planning.priced import paid_by
from gpuplan.units import HOUR, HOURS_PER_MONTH, MINUTE, MONTHS_PER_YEAR

SUM_USD = 10_000.0
MOST_STEPS = 256
CODE_RATIO = 1.1  # the same work with a tenth more done by every replica


class SpendOption(NamedTuple):
    """One use of money: more load for so much a month."""

    more_frac: float  # of today's peak
    usd_per_month: float
    text: str

    @property
    def usd_per_percent(self) -> float:
        """USD a month of one per cent more load."""
        return self.usd_per_month / (100.0 * self.more_frac)


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
        provisioned = [
            h
            for h in found.selection.provisioned
            if h.pool == option.pool and h.purchase == "owned"
        ]
        n_owned = sum(int(h.n_nodes.max(initial=0)) for h in provisioned)
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


def next_spend(
    sized: Sized,
    curves: Sequence[FleetCurve],
    demand: DemandProfile,
    *,
    others: Sequence[Alternative] = (),
) -> Iterator[str]:
    """Uses of money in rising order of what a per cent costs, then what is worth knowing."""
    tried = (more_replicas(curves[0], demand), faster_code(curves[0], demand))
    options = [option for option in tried if option is not None]
    for option in sorted(options, key=lambda option: option.usd_per_percent):
        yield option.text
    if not options:
        yield f"${SUM_USD:,.0f}/month more does not pay for the next replica"
    yield from _committed(others, demand)
    yield from _precisions(curves, demand)


def _replicas(n: int) -> str:
    return f"{n} more replica{'s' if n != 1 else ''}"


def more_replicas(curve: FleetCurve, demand: DemandProfile) -> SpendOption | None:
    """As many replicas more as the sum pays for."""
    peak = demand.peak_of(0, 0)
    if peak <= 0:
        return None
    base = cost_usd_per_month(curve, demand)
    first = int(curve.n_replicas(floats([peak]))[0]) - curve.n_spare
    best: SpendOption | None = None
    for n in range(max(1, first), first + MOST_STEPS):
        ratio = n * curve.n_load_per_replica / peak * (1 - 1e-12)
        if ratio <= 1 + 1e-9:
            continue
        extra = cost_usd_per_month(curve, demand, factor=ratio) - base
        if extra > SUM_USD:
            break
        what = _replicas(n - first) if n > first else "the capacity already paid for"
        text = (
            f"{what} of {curve.candidate.accelerator} (${extra:,.0f}/month) carry "
            f"{ratio - 1:.0%} more load"
        )
        best = SpendOption(ratio - 1, extra, text)
    return best and best._replace(text=f"{best.text}: ${best.usd_per_percent:,.0f} per 1 %")


def faster_code(curve: FleetCurve, demand: DemandProfile) -> SpendOption | None:
    """A tenth more from every replica: worth what the same load costs in replicas, or saves."""
    base = cost_usd_per_month(curve, demand)
    more = cost_usd_per_month(curve, demand, factor=CODE_RATIO) - base
    faster = replace(curve, n_load_per_replica=CODE_RATIO * curve.n_load_per_replica)
    saved = base - cost_usd_per_month(faster, demand)
    worth = max(more, saved)
    if worth <= 0:
        return None
    text = (
        f"code with {CODE_RATIO - 1:.0%} more throughput per replica is worth ${worth:,.0f}/month "
        f"(${more:,.0f} of replicas not bought, or ${saved:,.0f} released): at most "
        f"${worth / (100 * (CODE_RATIO - 1)):,.0f} per 1 %"
    )
    return SpendOption(CODE_RATIO - 1, worth, text)


def _committed(others: Sequence[Alternative], demand: DemandProfile) -> Iterator[str]:
    for other in others:
        if other.kind == RESERVED and other.remark.startswith(f"{demand.workload}:"):
            yield (
                f"a committed-use discount needs no more nodes and frees "
                f"${-other.extra_usd_per_month:,.0f}/month: {other.remark.split(': ', 1)[1]}"
            )


def _precisions(curves: Sequence[FleetCurve], demand: DemandProfile) -> Iterator[str]:
    """Other precisions that the user allows, on the chosen accelerator."""
    chosen = curves[0]
    now = cost_usd_per_month(chosen, demand)
    shown = {chosen.candidate.precision}
    for curve in curves[1:]:
        precision = curve.candidate.precision
        if curve.kind == chosen.kind and precision not in shown:
            shown.add(precision)
            extra = cost_usd_per_month(curve, demand) - now
            yield f"{precision} instead of {chosen.candidate.precision}: ${extra:+,.0f}/month"
