"""When to order, in: owned nodes, growth and lead time; out: the day, the bridge, the need."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, inf, log
from typing import NamedTuple

from gpuplan.domain.columns import floats
from gpuplan.domain.plan.answer import Crossover, Explanation, GrowthRow
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.scenario.demand import Growth
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.selection.sensitivity.recourse import recost
from gpuplan.studies.planning.curves import costs_usd_per_month
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.options import fleet_table
from gpuplan.units import MONTHS_PER_YEAR, WEEK, WEEKS_PER_MONTH


class OrderTiming(NamedTuple):
    """One growth rate: when the trigger is reached, and what it takes a year from now."""

    per_month_frac: float
    trigger_weeks: float  # inf: never
    bridge_weeks: float
    at_lead_frac: float  # utilization when an order of today arrives
    n_in_a_year: int

    @property
    def is_due(self) -> bool:
        """Whether an order placed today arrives after the trigger."""
        return self.bridge_weeks > 0


def growth_reasons(scenario: Scenario, demand: DemandProfile, curve: FleetCurve) -> Explanation:
    """When to order, and how many there will be, for every growth that was given."""
    orders = orders_of(scenario, demand)
    return Explanation(
        why=tuple(_order_lines(scenario.growth, orders[0])) if orders else (),
        crossovers=tuple(_order_row(order) for order in orders),
        growth=growth_counts(scenario, demand, curve),
    )


def order_of(
    growth: Growth, *, n_accelerators: int, peak_frac: float, per_month_frac: float
) -> OrderTiming | None:
    """Trigger, bridge and need; None where the scenario does not say when to order."""
    trigger, target = growth.trigger_utilization_frac, growth.target_utilization_frac
    if trigger is None or growth.lead_time_s is None or peak_frac <= 0:
        return None
    lead_weeks = growth.lead_time_s.mid / WEEK
    if peak_frac >= trigger:
        weeks = 0.0
    elif per_month_frac <= 0:
        weeks = inf
    else:
        weeks = log(trigger / peak_frac) / log(1 + per_month_frac) * WEEKS_PER_MONTH
    in_a_year = peak_frac * (1 + per_month_frac) ** MONTHS_PER_YEAR
    return OrderTiming(
        per_month_frac=per_month_frac,
        trigger_weeks=weeks,
        bridge_weeks=max(0.0, lead_weeks - weeks),
        at_lead_frac=peak_frac * (1 + per_month_frac) ** (lead_weeks / WEEKS_PER_MONTH),
        n_in_a_year=ceil(n_accelerators * in_a_year / (target or trigger) - 1e-9),
    )


def orders_of(scenario: Scenario, demand: DemandProfile) -> list[OrderTiming]:
    """Middle, low and high growth; none where nothing is owned or no lead time is known."""
    n = sum(nodes.n_accelerators for nodes in scenario.owned)
    if n == 0:
        return []
    given = [o.peak_utilization_frac for o in scenario.owned if o.peak_utilization_frac is not None]
    peak = max(given) if given else (demand.n_accelerators or 0.0) / n
    rates = scenario.growth.per_month_frac
    found = [
        order_of(scenario.growth, n_accelerators=n, peak_frac=peak, per_month_frac=rate)
        for rate in dict.fromkeys((rates.mid, rates.low, rates.high))
    ]
    return [order for order in found if order is not None]


def _order_lines(growth: Growth, order: OrderTiming) -> Iterator[str]:
    """What the middle growth asks for now."""
    if order.trigger_weeks == inf or growth.lead_time_s is None:
        yield f"growth of {order.per_month_frac:.0%}/month never reaches the utilization trigger"
        return
    lead_weeks = growth.lead_time_s.mid / WEEK
    yield (
        f"at {order.per_month_frac:.0%}/month peak utilization reaches "
        f"{growth.trigger_utilization_frac:.0%} in {order.trigger_weeks:.1f} weeks; after a lead "
        f"time of {lead_weeks:.0f} weeks it would be {order.at_lead_frac:.0%}"
    )
    if order.is_due:
        yield f"order now, and bridge about {order.bridge_weeks:.0f} weeks in the cloud"
    else:
        yield f"order within {order.trigger_weeks - lead_weeks:.1f} weeks"
    yield f"in 12 months {order.n_in_a_year} accelerators are needed"


def committed_reasons(inputs: PlanInputs, group: SolvedGroup) -> Explanation:
    """What the plan costs under other growth when its orders stay and only renting adapts."""
    choice, names = group.choice, group.sizings[0].demand.periods.scenarios
    if not choice.selection.orders or len(names) < 2 or inputs.scenario.objective == "regret":
        return Explanation()
    every = replace(inputs.scenario, objective="regret")  # all growths, not the middle one alone
    table = fleet_table(every, inputs.catalog, group.sizings, market=inputs.market)
    rates = inputs.scenario.growth.per_month_frac
    by_name = {"low": rates.low, "mid": rates.mid, "high": rates.high}
    costs = recost(table.problem, choice.selection) / choice.n_months
    parts = [
        f"{by_name[name]:.0%}/month "
        + (f"${usd:,.0f}/month" if usd < inf else "more nodes than can be rented")
        for name, usd in sorted(zip(names, costs, strict=True), key=lambda row: by_name[row[0]])
    ]
    line = "with the nodes ordered here and the rest rented, growth of " + ", of ".join(parts)
    return Explanation(why=(f"{line} (in today's money)",))


def _order_row(order: OrderTiming) -> Crossover:
    then = "there is time to order"
    if order.is_due:
        then = f"order now, bridge {order.bridge_weeks:.1f} weeks"
    return Crossover(
        what=f"growth of {order.per_month_frac:.0%}/month",
        at="never" if order.trigger_weeks == inf else f"{order.trigger_weeks:.1f} weeks",
        then=f"{then}; {order.n_in_a_year} accelerators in 12 months",
    )


def growth_counts(
    scenario: Scenario, demand: DemandProfile, curve: FleetCurve
) -> tuple[GrowthRow, ...]:
    """Counts and cost of the chosen kind of fleet under every growth that was given."""
    periods, rates = demand.periods, scenario.growth.per_month_frac
    if len(periods.start_s) < 2:
        return ()
    by_name = {"low": rates.low, "mid": rates.mid, "high": rates.high}
    return tuple(
        _growth_row(demand, curve, place=periods.scenarios.index(name), per_month_frac=rate)
        for name, rate in by_name.items()
        if name in periods.scenarios
    )


def _growth_row(
    demand: DemandProfile, curve: FleetCurve, *, place: int, per_month_frac: float
) -> GrowthRow:
    periods = demand.periods
    factors = floats(periods.load_ratio[place] / periods.load_ratio[0, 0])
    usd = costs_usd_per_month(curve, demand, factors)
    nodes = curve.n_nodes(floats(factors * demand.peak_of(0, 0)))
    first, last = (f"{int(n) * curve.n_per_node} x {curve.kind}" for n in nodes[[0, -1]])
    weights = periods.length_s / periods.length_s.sum()
    return GrowthRow(
        workload=demand.workload,
        name=periods.scenarios[place],
        per_month_frac=per_month_frac,
        load_ratio=float(periods.load_ratio[place, -1]),
        first_fleet=first,
        last_fleet=last,
        first_usd_per_month=float(usd[0]),
        last_usd_per_month=float(usd[-1]),
        mean_usd_per_month=float((usd * weights).sum()),
    )
