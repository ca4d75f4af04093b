"""A Selection as the plan that people read, in: rows, choice, limits; out: ChosenPlan."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from math import ceil
from typing import NamedTuple

from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.plan.answer import (
    ChosenPlan,
    PlannedPool,
    PoolUse,
    PurchaseLine,
    SloResult,
    SloResults,
)
from gpuplan.domain.plan.bill import PlanBill
from gpuplan.domain.plan.candidate import Candidate, PoolLayout, RunSteps
from gpuplan.domain.plan.selection import (
    BillLine,
    FleetOption,
    NodePool,
    ProvisionedNodes,
    Selection,
)
from gpuplan.domain.plan.sizing import Sized
from gpuplan.domain.provenance import Assumption, Estimate, Tier
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.studies.planning.options import FleetTable
from gpuplan.studies.planning.rows import FleetRow
from gpuplan.studies.power.carbon import emitted_kg
from gpuplan.units import HOURS_PER_MONTH, MONTH


class Choice(NamedTuple):
    """What was chosen, with everything that it was chosen from."""

    table: FleetTable
    selection: Selection
    is_jobs: bool = False  # runs with an end, not services
    host: str = ""  # pool of services in whose idle hours the runs work; empty: nodes of their own
    repeats: bool = False  # runs of a schedule, over the whole horizon

    @property
    def span_s(self) -> float:
        """The horizon of services and schedules; of other runs, until the last one ends."""
        horizon = self.table.problem.horizon
        if self.is_jobs and not self.repeats:
            busy = sum(option.need[0, 0] for option in self.selection.chosen) > 0
            return float(horizon.hour_s[busy].sum())
        return horizon.shape[1] * horizon.period_s

    @property
    def n_months(self) -> float:
        """Months that the bill is spread over; a run of days is billed in its one month."""
        return max(self.span_s / MONTH, 1.0 if self.is_jobs else 0.0)

    @property
    def bill(self) -> tuple[BillLine, ...]:
        """The bill of the middle growth, where several were weighed."""
        return tuple(line for line in self.selection.bill if line.scenario in (None, 0))

    @property
    def usd(self) -> float:
        """The whole bill, in the money of its day."""
        return sum(line.nominal_cents for line in self.bill) / 100.0

    @property
    def usd_per_month(self) -> float:
        """The whole bill spread evenly over the months of the span, in the money of its day."""
        return self.usd / self.n_months

    def pool(self, name: str) -> NodePool:
        """The pool of this name."""
        return self.table.problem.pool(name)


def chosen_plan(choice: Choice, bill: PlanBill) -> ChosenPlan:
    """Pools, bill, power and SLOs of the choice; limits are counted for all groups together."""
    pools = tuple(_pools(choice))
    results = tuple(r for option in choice.selection.chosen for r in _slo_results(choice, option))
    return ChosenPlan(
        pools=pools,
        cost_usd_per_month=_ranged(choice),
        power_w=_power(choice),
        slo=SloResults(is_kept=all(r.is_kept for r in results), promises=results),
        bill=bill,
        limits=(),
        energy_j_per_month=sum(_energy_j(choice).values()) / choice.n_months
        if _is_drawn(choice)
        else None,
        carbon_kg_per_month=None,
    )


def provisioned_in(choice: Choice, pool: str) -> list[ProvisionedNodes]:
    """Nodes of one pool, by terms, that are held at any time."""
    return [
        h for h in choice.selection.provisioned if h.pool == pool and h.n_nodes.max(initial=0) > 0
    ]


def _pools(choice: Choice) -> Iterator[PlannedPool]:
    shown: set[str] = set()
    for option in choice.selection.chosen:
        row = choice.table.row_of(option)
        is_first = option.pool not in shown
        shown.add(option.pool)
        sharers = [o.workload for o in choice.selection.chosen if o.pool == option.pool]
        yield from by_role(
            _pool(choice, row, is_first=is_first, is_shared=len(sharers) > 1), row.sized.candidate
        )


def by_role(pool: PlannedPool, candidate: Candidate) -> Iterator[PlannedPool]:
    """The pool; of a disaggregated one, its prefill engines and its decode engines apart.

    Both stand on the same nodes, which are paid for once: with those that prefill.
    """
    layout = candidate.layout
    if not layout.is_disaggregated:
        yield pool
        return
    n_prefill = pool.n_replicas * layout.n_prefill * layout.engine.n_accelerators
    roles = (
        ("prefill", layout.n_prefill, n_prefill, pool.source),
        ("decode", layout.n_decode, pool.n_accelerators - n_prefill, "the nodes of prefill"),
    )
    for role, n_each, n_accelerators, source in roles:
        alone = replace(pool.layout, n_prefill=0, n_decode=0, n_servers_per_replica=1, role=role)
        yield replace(
            pool,
            n_accelerators=n_accelerators,
            n_replicas=n_each * pool.n_replicas,
            n_spare_replicas=n_each * pool.n_spare_replicas,
            layout=alone,
            source=source,
            purchases=pool.purchases if role == "prefill" else (),
        )


def _pool(choice: Choice, row: FleetRow, *, is_first: bool, is_shared: bool) -> PlannedPool:
    candidate, option = row.sized.candidate, row.option
    lines = tuple(_purchases(choice, option.pool)) if is_first and not choice.host else ()
    start = option.first_period
    n_nodes = int(
        sum(h.n_nodes[0, start] for h in provisioned_in(choice, option.pool)).max(initial=0)
    )
    need = int(option.need[0, start].max(initial=0)) + option.n_reserve
    is_cpu = str(candidate.accelerator).startswith("cpu")
    n = need if is_shared else n_nodes * row.n_per_node
    if option.slice_kind:
        # Slices of shared accelerators: the first service on slices counts them all.
        sliced = next(o for o in choice.selection.chosen if o.pool == option.pool and o.slice_kind)
        whole = _whole_need(choice, option.pool)
        n = n_nodes * row.n_per_node - whole if sliced is option else 0
    return PlannedPool(
        workload=option.workload,
        accelerator=str(candidate.accelerator),
        n_accelerators=0 if is_cpu else n,
        n_replicas=1 if row.is_run else row.sized.n_replicas,
        layout=pool_layout(candidate, row.n_per_node),
        precision=candidate.precision,
        source=_source(lines) if lines else _shared_source(choice, option),
        n_spare_replicas=row.sized.reserve.n_spare,
        engine=_engine(row.sized),
        steps=candidate.run.steps if candidate.run else RunSteps(max_loras=candidate.n_slots),
        purchases=lines,
        use=_use(choice, row),
    )


def pool_layout(candidate: Candidate, n_per_node: int) -> PoolLayout:
    """The whole layout of one replica or run."""
    return PoolLayout(
        **asdict(candidate.layout),
        sharding=candidate.run.sharding if candidate.run else "",
        share=candidate.share.name if candidate.share else "",
        n_servers_per_replica=ceil(candidate.n_accelerators / max(1, n_per_node)),
    )


def _whole_need(choice: Choice, pool: str) -> int:
    """Accelerators of a pool that others take whole, at their most in the first period."""
    whole = [o for o in choice.selection.chosen if o.pool == pool and not o.slice_kind]
    return sum(int(o.need[0, o.first_period].max(initial=0)) + o.n_reserve for o in whole)


def _shared_source(choice: Choice, option: FleetOption) -> str:
    if choice.host:
        return f"time-sharing: idle hours of pool {choice.host}"
    what = f"fractional GPUs ({option.slice_kind})" if option.slice_kind else "the nodes"
    return f"shares {what} of pool {option.pool}"


def _engine(sized: Sized) -> str:
    engine, run = sized.candidate.engine, sized.candidate.run
    if run is not None:
        return run.framework
    return "" if engine is None else f"{engine.name} {engine.version}"


def _use(choice: Choice, row: FleetRow) -> PoolUse:
    """Load over what the pool could do: at the peak, over all paid hours, and while safe."""
    sized, found = row.sized, row.sized.utilization
    mean = None
    if found.peak_frac is not None and sized.n_serving:
        hour_s = choice.table.problem.horizon.hour_s
        # Accelerators that are needed follow the load; spares are paid for besides.
        need = row.option.need[0, row.option.first_period]
        share = float((need * hour_s).sum() / ((need + row.option.n_reserve) * hour_s).sum())
        mean = found.peak_frac * share
    return PoolUse(
        peak_frac=found.peak_frac, mean_frac=mean, safe_frac=found.safe_frac, remark=found.band
    )


def _source(lines: Iterable[PurchaseLine]) -> str:
    return " + ".join(
        " ".join(filter(None, (line.purchase, line.cloud, line.offer, line.region)))
        for line in lines
    )


def _purchases(choice: Choice, pool: str) -> Iterator[PurchaseLine]:
    horizon = choice.table.problem.horizon
    share = horizon.hour_s / horizon.hour_s.sum()
    share_periods = horizon.running_discount_frac
    for provisioned in provisioned_in(choice, pool):
        rate = choice.table.rates.get(provisioned.terms)
        peak = int(provisioned.n_nodes.max())
        mean = float((provisioned.n_nodes[0] * share).sum(axis=1).mean())
        mean *= len(share_periods) * horizon.period_s / (choice.n_months * MONTH)
        usd = _terms_usd(choice, provisioned.terms, pool) / choice.n_months
        price = _price(rate, choice.pool(pool))
        if rate is not None and rate.capital is not None and not rate.capital.is_sunk:
            price = price.scaled(usd / (mean * HOURS_PER_MONTH) / price.value)  # as billed
        yield PurchaseLine(
            purchase="existing"
            if provisioned.terms.startswith("existing")
            else provisioned.purchase,
            offer=rate.node.name if rate else pool,
            cloud=(rate.node.cloud or "") if rate else "",
            region=(rate.node.region or "") if rate else "",
            n_nodes=peak,
            n_accelerators_per_node=choice.pool(pool).n_accelerators_per_node,
            paid_frac=mean / peak,
            price_usd_per_node_h=price,
            usd_per_month=usd,
            price_date=_date(rate),
            price_source=rate.evidence.source if rate else "",
            mean_w_per_node=choice.pool(pool).mean_w or None,
        )


def weak_prices(choice: Choice) -> Iterator[Assumption]:
    """Prices of the plan that rest on old or general evidence."""
    for provisioned in choice.selection.provisioned:
        rate = choice.table.rates.get(provisioned.terms)
        if rate is not None and rate.evidence.is_weak and provisioned.n_nodes.max(initial=0) > 0:
            yield Assumption(
                what=f"price of {rate.node.name}",
                value=f"{rate.price_usd_per_h.mid:,.2f} USD/h ({_date(rate) or 'undated'})",
                why=f"weak evidence: {rate.evidence.note}",
                change="gpuplan catalog update, or prices.offers",
                source=rate.evidence.source,
            )


def _date(rate: NodeRate | None) -> str:
    day = rate.evidence.price_date if rate else None
    return day.isoformat() if day else ""


def _price(rate: NodeRate | None, pool: NodePool) -> Estimate:
    if rate is None:
        usd = pool.existing_usd_per_node_h
        return Estimate(value=usd, low=usd, high=usd, tier="assumed")
    price = rate.price_usd_per_h
    tier: Tier = "assumed" if rate.evidence.is_weak else "measured"
    return Estimate(
        value=price.mid, low=price.low, high=price.high, tier=tier, sources=(rate.evidence.source,)
    )


def _terms_usd(choice: Choice, terms: str, pool: str) -> float:
    lines = [b for b in choice.bill if b.terms == terms and b.pool == pool]
    return sum(line.nominal_cents for line in lines) / 100.0


def _ranged(choice: Choice) -> Estimate:
    """The month of the bill with the range of its prices."""
    cost = choice.usd_per_month
    low = high = mid = 0.0
    for provisioned in choice.selection.provisioned:
        rate = choice.table.rates.get(provisioned.terms)
        usd = _terms_usd(choice, provisioned.terms, provisioned.pool) / choice.n_months
        price = rate.price_usd_per_h if rate and usd else Range(low=1.0, mid=1.0, high=1.0)
        mid += usd
        low += usd * price.low / price.mid
        high += usd * price.high / price.mid
    rest = cost - mid
    return Estimate(value=cost, low=low + rest, high=high + rest, tier="estimated")


def _peak_nodes(choice: Choice, pool: str) -> int:
    provisioned = provisioned_in(choice, pool)
    return int(sum(h.n_nodes[0] for h in provisioned).max()) if provisioned else 0


def _power(choice: Choice) -> Estimate | None:
    """What the nodes draw together at most, and on average; None where a draw is not known."""
    if not _is_drawn(choice):
        return None
    if choice.host:
        return Estimate(value=0.0, low=0.0, high=0.0, tier="estimated")  # drawn by the services
    highest = mean = 0.0
    for pool in choice.table.problem.pools:
        n = _peak_nodes(choice, pool.name)
        highest += n * pool.max_w
        mean += n * pool.mean_w
    return Estimate(value=highest, low=mean, high=highest, tier="estimated")


def _is_drawn(choice: Choice) -> bool:
    """Whether the draw of all nodes that are held is known."""
    used = {
        provisioned.pool
        for provisioned in choice.selection.provisioned
        if provisioned.n_nodes.max(initial=0) > 0
    }
    return all(choice.pool(name).max_w > 0 for name in used)


def _energy_j(choice: Choice) -> dict[str, float]:
    """What the nodes draw over the span, by the terms that they are held under."""
    hour_s = choice.table.problem.horizon.hour_s
    found: dict[str, float] = {}
    for provisioned in choice.selection.provisioned if not choice.host else ():
        joules = (
            float((provisioned.n_nodes[0] * hour_s).sum()) * choice.pool(provisioned.pool).mean_w
        )
        if joules:
            found[provisioned.terms] = found.get(provisioned.terms, 0.0) + joules
    return found


def carbon_kg_per_month(choice: Choice, scenario: Scenario) -> float | None:
    """Location-based average of the grids; None where the grid of any site is not known."""
    if not _is_drawn(choice):
        return None
    total = emitted_kg(_energy_j(choice), choice.table.rates, scenario)
    return None if total is None else total / choice.n_months


def _slo_results(choice: Choice, option: FleetOption) -> Iterator[SloResult]:
    for limit in choice.table.row_of(option).sized.limits:
        yield SloResult(
            workload=option.workload,
            what=f"{limit.metric} {limit.statistic}",
            limit_s=limit.limit_s,
            reached_s=limit.reached_s,
            is_kept=limit.is_kept,
            bound_s=limit.bound_s,
        )
