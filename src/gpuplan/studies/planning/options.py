"""Sized fleets and rates as rows to choose from, in: Sizings and a Market; out: a problem."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.reserve import reserve_for
from gpuplan.catalog.names import find_accelerator
from gpuplan.cost.annuity import running_discount
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.plan.packing import accelerators_for, nodes_for
from gpuplan.domain.plan.selection import (
    FleetOption,
    Horizon,
    NodePool,
    NodeTerms,
    SelectionProblem,
    WallDraw,
)
from gpuplan.domain.plan.sizing import HourLoads, Periods, Sized, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.terms import Resilience
from gpuplan.domain.scenario.workload import Training
from gpuplan.studies.market.offers import Market, rates_for
from gpuplan.studies.market.owned import Standing, lead_time_s, staff_usd_per_h, worth_by_age
from gpuplan.studies.planning.deferrable import (
    in_quiet_hours,
    is_deferrable,
    is_recurring,
    quietest_first,
)
from gpuplan.studies.planning.limits import limits_of
from gpuplan.studies.planning.rows import FleetRow, geometries_of, with_fractions
from gpuplan.studies.planning.weights import energy_counts, weights_of, with_risk
from gpuplan.studies.power.carbon import carbon_counts, carbon_kg_per_j
from gpuplan.studies.power.node_draw import node_watts, racks_per_node, wall_draw
from gpuplan.units import GBIT, HOURS_PER_WEEK, YEAR

MORE = 1.02  # a year of 12 months is a little shorter than one of 365 days
NO_MARKETS: Mapping[str, Market] = MappingProxyType({})


class FleetTable(NamedTuple):
    """The selection problem, and for each of its options the fleet behind it."""

    problem: SelectionProblem
    by_name: dict[tuple[str, str], FleetRow]  # workload, option
    rates: dict[str, NodeRate]  # by the name of the terms
    leads: Mapping[str, float] = MappingProxyType({})  # seconds from order to service, likewise

    def row_of(self, option: FleetOption) -> FleetRow:
        """What the option was made of."""
        return self.by_name[option.workload, option.name]

    def covers(self, sizings: Iterable[Sizing]) -> bool:
        """Whether every workload has at least one option."""
        return {*self.problem.workloads} == {sizing.workload for sizing in sizings}


def fleet_table(
    scenario: Scenario,
    catalog: Catalog,
    sizings: Sequence[Sizing],
    *,
    market: Market,
    is_jobs: bool = False,
    markets: Mapping[str, Market] = NO_MARKETS,
) -> FleetTable:
    """Every sized fleet on every kind of node that carries it; some workloads may have their own
    part of the market.
    """
    hours, places = aligned_hours([sizing.demand.hours for sizing in sizings])
    periods = sizings[0].demand.periods
    n = n_scenarios(scenario, periods)
    known = {pool_name(rate) for rate in market.ways if is_known(rate, scenario, catalog)}
    is_sharing = len(sizings) > 1 and not is_jobs
    weigh = _Rows(scenario, hours, (n, len(periods.start_s)))
    quiet = quietest_first(sizings, places)
    rows = [
        row
        for sizing, place in zip(sizings, places, strict=True)
        for row in weigh.all_rows(sizing, place, markets.get(sizing.workload, market), quiet=quiet)
        if row.option.pool in known
    ]
    rows = with_fractions(rows, is_sharing=is_sharing)
    problem, rates = _problem(scenario, catalog, sizings, rows, market=market, hours=hours)
    # The staff of a site is paid for services; for runs where there is nothing else.
    is_staffed = not is_jobs or all(work.has_end for work in scenario.workloads)
    problem = replace(
        problem,
        limits=limits_of(
            scenario, periods, is_jobs=is_jobs and not is_recurring(scenario, sizings)
        ),
        weights=weights_of(scenario),
        site_usd_per_h=staff_usd_per_h(scenario) if is_staffed else 0.0,
    )
    by_name = {(row.option.workload, row.option.name): row for row in rows}
    leads = _leads(scenario, catalog, rates)
    return FleetTable(problem=problem, by_name=by_name, rates=rates, leads=leads)


def _problem(
    scenario: Scenario,
    catalog: Catalog,
    sizings: Sequence[Sizing],
    rows: Sequence[FleetRow],
    *,
    market: Market,
    hours: Floats,
) -> tuple[SelectionProblem, dict[str, NodeRate]]:
    """The rows with the pools they run in and the ways to pay for them."""
    periods = sizings[0].demand.periods
    used = {row.option.pool for row in rows}
    rates = {
        rate.id: rate
        for rate in market.rates
        if pool_name(rate) in used and not outlasts(rate, periods)
    }
    leads = _leads(scenario, catalog, rates)
    problem = SelectionProblem(
        horizon=horizon_of(scenario, hours, periods, n_scenarios=n_scenarios(scenario, periods)),
        pools=_pools(scenario, catalog, market, used=used),
        terms=tuple(
            terms_of(rate, periods, lead_s=leads.get(name, 0.0)) for name, rate in rates.items()
        ),
        options=tuple(row.option for row in rows),
        objective=scenario.objective,
        geometries=tuple(geometries_of(rows, catalog)),
    )
    return problem, rates


def pool_name(rate: NodeRate) -> str:
    """Equal nodes are one pool, whoever they come from; processors also by their size.

    Rented nodes whose network replicas may span are a pool of their own, and so are those that
    training was sized for: no run spans one's own site and a rented one.
    """
    node = rate.node
    if node.fabric:
        where = " (own)" if rate.capital is not None else ""
        return f"{node.accelerator} x{node.n_accelerators} {node.fabric}{where}"
    is_spanned = rate.terms.is_for_spanning or rate.evidence.source == "user"
    if is_spanned and rate.capital is None and node.network_bytes_per_s is not None:
        gbit = f" at {node.network_bytes_per_s / GBIT:g} Gbit/s"
        return f"{node.accelerator} x{node.n_accelerators}{gbit}"
    size = f" {node.n_vcpus} vCPU" if node.accelerator.startswith("cpu") else ""
    return f"{node.accelerator}{size} x{node.n_accelerators}"


def aligned_hours(all_hours: Sequence[HourLoads]) -> tuple[Floats, list[Ints]]:
    """One axis of hours for all workloads, and where each finds its own hour on it.

    Equal axes are kept. Others say how long but not when: their peaks are taken to coincide, which
    never needs fewer nodes than the truth.
    """
    first = all_hours[0].hours_per_week
    if all(np.array_equal(hours.hours_per_week, first) for hours in all_hours):
        return first, [ints(range(len(first))) for _ in all_hours]
    orders = [np.argsort(-hours.load_frac, kind="stable") for hours in all_hours]
    ends = [
        np.cumsum(hours.hours_per_week[order])
        for hours, order in zip(all_hours, orders, strict=True)
    ]
    edges = np.unique(np.round(np.concatenate(ends), 9))
    width = np.diff(np.concatenate([[0.0], edges]))
    middle = edges - width / 2
    places = [
        ints(order[np.minimum(np.searchsorted(end, middle, side="right"), len(order) - 1)])
        for order, end in zip(orders, ends, strict=True)
    ]
    return floats(width), places


def n_scenarios(scenario: Scenario, periods: Periods) -> int:
    """The middle growth alone; all of them where regret over them is to be least."""
    return len(periods.scenarios) if scenario.objective == "regret" else 1


def horizon_of(
    scenario: Scenario, hours_per_week: Floats, periods: Periods, *, n_scenarios: int = 1
) -> Horizon:
    """Periods of equal hours, discounted as the budget says; the middle growth counts most."""
    length_s = float(periods.length_s[0])
    yearly = scenario.budget.discount_frac_per_year
    start = np.asarray(periods.start_s)
    n = len(start)
    return Horizon(
        hour_s=floats(np.asarray(hours_per_week) / HOURS_PER_WEEK * length_s),
        upfront_discount_frac=floats((1 + yearly) ** (-start / YEAR)),
        running_discount_frac=floats([running_discount(s, length_s, yearly) for s in start]),
        end_discount_frac=float((1 + yearly) ** (-n * length_s / YEAR)),
        probability_frac=_probability_frac(n_scenarios),
    )


def _probability_frac(n_scenarios: int) -> Floats:
    """Assumption: the middle growth, which comes first, is twice as likely as any other."""
    weights = np.array([2.0, *np.ones(n_scenarios - 1)])
    return floats(weights / weights.sum())


class _Rows(NamedTuple):
    """Sized fleets on the pools of a market, over one axis of hours."""

    scenario: Scenario
    hours: Floats
    shape: tuple[int, int]  # scenarios, periods

    def all_rows(
        self, sizing: Sizing, place: Ints, market: Market, *, quiet: Ints
    ) -> Iterator[FleetRow]:
        """Every fleet of a workload on every pool; of deferrable work in its quiet hours too."""
        load, every = sizing.demand.hours.load_frac[place], ints(range(len(self.hours)))
        for sized in sizing.sized:
            for row in self.rows(sized, place, market):
                option = with_risk(row.option, self.scenario, sized, sizing.demand)
                yield row._replace(option=option, load_frac=load)
            if is_deferrable(self.scenario, sizing):
                for shaped, is_in in in_quiet_hours(sized, sizing.demand, self.hours, quiet):
                    for row in self.rows(shaped, every, market):
                        yield _in_window(row, is_in, self.hours)

    def rows(self, sized: Sized, place: Ints, market: Market) -> Iterator[FleetRow]:
        """The fleet on every pool that carries it."""
        known = set()
        for rate in rates_for(market.ways, sized.candidate):
            pool, n = pool_name(rate), rate.node.n_accelerators
            if pool in known:
                continue
            known.add(pool)
            is_placed = nodes_for(sized.candidate, 1, n) is not None
            if is_placed and _spans_all(market, pool, sized.candidate.layout):
                provisioned = _with_reserve(sized, self.scenario.policy.resilience, n)
                yield self._row(provisioned, place, market, pool=pool, n_per_node=n)

    def _row(
        self, sized: Sized, place: Ints, market: Market, *, pool: str, n_per_node: int
    ) -> FleetRow:
        option = _option(sized, place, pool=pool, n_per_node=n_per_node, shape=self.shape)
        busy_h = float(self.hours[option.need[0, option.first_period] > 0].sum())
        once = market.porting_usd.get(str(sized.candidate.accelerator), 0.0)
        option = replace(option, once_usd=once, time_s=busy_h / HOURS_PER_WEEK)
        workload = self.scenario.workload(sized.candidate.workload)
        is_run = workload is not None and isinstance(workload.work, Training)
        return FleetRow(
            option=option, sized=sized, n_per_node=n_per_node, place=place, is_run=is_run
        )


def _in_window(row: FleetRow, is_in: Floats, hours: Floats) -> FleetRow:
    """The row under a name that tells its window."""
    fleet, pool = row.option.name.rsplit(" on ", 1)
    h_per_day = float(hours[is_in > 0].sum()) / 7
    option = replace(row.option, name=f"{fleet} {h_per_day:.3g} h/day on {pool}")
    return row._replace(option=option, load_frac=is_in, is_window=True)


def _spans_all(market: Market, pool: str, layout: ServingLayout) -> bool:
    """Whether a replica of several nodes finds its network on every node of the pool."""
    if layout.network_bytes_per_s is None:
        return True
    return all(rate.node.joins(layout) for rate in market.ways if pool_name(rate) == pool)


def _option(
    sized: Sized, place: Ints, *, pool: str, n_per_node: int, shape: tuple[int, int]
) -> FleetOption:
    candidate, (n_scenarios, n_periods) = sized.candidate, shape
    replicas = sized.need.n_replicas[:n_scenarios][:, :, place]
    # A fleet that is not needed from the first period on was sized from its own first one.
    late = n_periods - replicas.shape[1]
    replicas = np.pad(replicas, ((0, 0), (late, 0), (0, 0)))
    table = [accelerators_for(candidate, n, n_per_node) or 0 for n in range(replicas.max() + 1)]
    return FleetOption(
        workload=candidate.workload,
        name=f"{candidate.name} on {pool}",
        pool=pool,
        need=ints(np.asarray(table)[replicas]),
        n_reserve=accelerators_for(candidate, sized.reserve.n_spare, n_per_node) or 0,
    )


def _with_reserve(sized: Sized, resilience: Resilience, n_per_node: int) -> Sized:
    """Spares for nodes of this very size: a large node takes more replicas with it."""
    if sized.reserve.domain == "none":
        return sized
    reserve = reserve_for(
        sized.candidate, sized.n_serving, resilience, n_accelerators_per_node=max(1, n_per_node)
    )
    given = sized.reserve
    if given.n_headroom:
        why = given.why.rsplit("; ", 1)[-1]
        reserve = reserve.with_headroom(given.n_headroom, why)
    return replace(sized, reserve=reserve)


def outlasts(rate: NodeRate, periods: Periods) -> bool:
    """Whether a commitment is paid for longer than anything is planned: its price is not what a
    run of days or a short horizon would pay.
    """
    term_s = rate.terms.term_s
    is_rented = rate.is_committed and rate.capital is None
    return is_rented and term_s is not None and term_s > MORE * float(periods.length_s.sum())


def terms_of(rate: NodeRate, periods: Periods, *, lead_s: float = 0.0) -> NodeTerms:
    """One purchase option, in periods; bought nodes as capital, with their residual value."""
    length_s, n_periods = float(periods.length_s[0]), len(periods.start_s)
    term_s = rate.terms.term_s
    n_term = None if term_s is None else max(1, round(term_s / length_s))
    terms = NodeTerms(
        name=rate.id,
        pool=pool_name(rate),
        purchase=rate.purchase,
        usd_per_node_h=rate.price_usd_per_h.mid,
        n_term_periods=n_term if n_term is None or n_term < n_periods else None,
        n_nodes_max=rate.terms.n_nodes_max,
        is_on_site=rate.purchase == "owned" or rate.capital is not None,
    )
    capital = rate.capital
    if capital is None or capital.is_sunk:
        return terms
    provisioned = sum(part.usd_per_h.mid for part in rate.parts if part.name == "capital")
    return replace(
        terms,
        usd_per_node_h=rate.price_usd_per_h.mid - provisioned,
        upfront_usd=capital.outlay_usd.mid,
        residual_usd=worth_by_age(capital, length_s, n_periods),
        n_lead_periods=min(n_periods - 1, round(lead_s / length_s)),
    )


def _leads(scenario: Scenario, catalog: Catalog, rates: Mapping[str, NodeRate]) -> dict[str, float]:
    """Time from order to service of what can be bought, by terms; street prices have the usual."""
    given = {
        str(find_accelerator(price.accelerator, catalog).accelerator.id): price
        for price in scenario.prices.hardware
    }
    bought = {k: rate.node.accelerator for k, rate in rates.items() if rate.capital is not None}
    return {name: lead_time_s(scenario, given.get(kind)) for name, kind in bought.items()}


def is_known(rate: NodeRate, scenario: Scenario, catalog: Catalog) -> bool:
    """Whether all that the choice counts is known of the node: its draw, and its grid."""
    is_drawn = energy_counts(scenario) or carbon_counts(scenario)
    is_placed = scenario.site is not None and rate.purchase == "owned"
    if is_drawn or is_placed:
        draw = node_watts(catalog, rate.node.accelerator, rate.node.n_accelerators)
        if draw.max_w == 0:
            return False
    return not carbon_counts(scenario) or carbon_kg_per_j(rate, scenario) is not None


def _pools(
    scenario: Scenario, catalog: Catalog, market: Market, *, used: Collection[str]
) -> tuple[NodePool, ...]:
    """The pools that options run in, in the order of the market."""
    standing = {pool_name(each.rate): each for each in market.standing}
    first: dict[str, NodeRate] = {}
    for rate in market.ways:
        first.setdefault(pool_name(rate), rate)
    pools = []
    for name, rate in first.items():
        if name not in used:
            continue
        node, there = rate.node, standing.get(name)
        power = node_watts(catalog, node.accelerator, node.n_accelerators)
        carbon = carbon_kg_per_j(rate, scenario) if carbon_counts(scenario) else None
        pools.append(
            NodePool(
                name=name,
                accelerator=node.accelerator,
                n_accelerators_per_node=max(1, node.n_accelerators),
                max_w=power.max_w,
                mean_w=_assumed_w(there, power.mean_w),
                wall=_wall(scenario, catalog, rate, power.max_w, _assumed_w(there, power.mean_w)),
                n_racks_per_node=racks_per_node(scenario, catalog, node),
                carbon_kg_per_j=None if carbon is None else floats([carbon]),
                n_nodes_existing=there.n_nodes if there else 0,
                existing_usd_per_node_h=there.rate.price_usd_per_h.mid if there else 0.0,
            )
        )
    return tuple(pools)


def _assumed_w(there: Standing | None, mean_w: float) -> float:
    """The mean draw that prices were reckoned with; of nodes there already, their own."""
    return there.mean_w if there is not None and there.mean_w else mean_w


def _wall(
    scenario: Scenario, catalog: Catalog, rate: NodeRate, max_w: float, assumed_w: float
) -> WallDraw | None:
    """How the node draws, and the user's own figure of its mean."""
    wall = wall_draw(catalog, rate.node.accelerator, rate.node.n_accelerators)
    given = _given_mean_w(scenario, catalog, rate, max_w)
    return wall and wall._replace(given_mean_w=given, assumed_w=assumed_w)


def _given_mean_w(
    scenario: Scenario, catalog: Catalog, rate: NodeRate, max_w: float
) -> float | None:
    """Mean draw of nodes that stand there, where the user says how busy they are."""
    for owned in scenario.owned:
        card = find_accelerator(owned.accelerator, catalog).accelerator
        is_same = str(card.id) == rate.node.accelerator
        if is_same and owned.n_accelerators_per_node == rate.node.n_accelerators:
            share = owned.mean_utilization_frac
            return None if share is None else share * (owned.node_max_w or max_w)
    return None
