"""When to order, in: owned nodes, growth and lead time; out: the day, the bridge, the need.

The week of a plan, in: what was chosen; out: accelerators of every workload by the hour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from gpuplan.domain.columns import Ints, floats, ints
from gpuplan.domain.plan.answer import Crossover, Explanation, GrowthRow
from gpuplan.domain.plan.bill import CashLine, PeriodCost
from gpuplan.domain.plan.comparison import Calendar, CalendarRow
from gpuplan.domain.plan.selection import FleetOption, SelectionProblem
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.scenario.demand import Growth
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.telemetry.forecast import OrderAdvice, OrderTerms
from gpuplan.forecast.orders import advice
from gpuplan.selection.sensitivity.recourse import recost
from gpuplan.studies.planning.bill import plan_bill
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.options import fleet_table
from gpuplan.studies.planning.priced import priced
from gpuplan.units import HOUR, HOURS_PER_WEEK, MONTH, WEEK

N_HOURS = int(HOURS_PER_WEEK)
IN_ORDER = (24, 168)  # kinds of hours that are the hours of a day or a week, in their order
UNORDERED = "a load-duration curve says how long, not when: the busiest hours are shown first"
JOBS = "jobs start at the first hour"


def order_reasons(scenario: Scenario, demand: DemandProfile) -> Explanation:
    """When to order, and how many there will be, for every growth that was given."""
    orders = orders_of(scenario, demand)
    return Explanation(
        why=tuple(_order_lines(scenario.growth, orders[0])) if orders else (),
        crossovers=tuple(_order_row(order) for order in orders),
    )


def orders_of(scenario: Scenario, demand: DemandProfile) -> tuple[OrderAdvice, ...]:
    """Middle, low and high growth; none where nothing is owned or no lead time is known."""
    n, growth = sum(nodes.n_accelerators for nodes in scenario.owned), scenario.growth
    trigger, rates = growth.trigger_utilization_frac, growth.per_month_frac
    if n == 0 or trigger is None or growth.lead_time_s is None:
        return ()
    given = [o.peak_utilization_frac for o in scenario.owned if o.peak_utilization_frac is not None]
    peak = max(given) if given else (demand.n_accelerators or 0.0) / n
    terms = OrderTerms(
        n_devices=n,
        lead_s=growth.lead_time_s.mid,
        trigger_frac=trigger,
        target_frac=growth.target_utilization_frac or trigger,
    )
    growths = tuple(dict.fromkeys((rates.mid, rates.low, rates.high)))
    return advice(peak, growths, terms) if peak > 0 else ()


def _order_lines(growth: Growth, order: OrderAdvice) -> Iterator[str]:
    """What the middle growth asks for now."""
    rate = f"{order.growth_frac_per_month:.0%}/month"
    if order.trigger_in_s is None or growth.lead_time_s is None:
        yield f"growth of {rate} never reaches the utilization trigger"
        return
    trigger_weeks, lead_weeks = order.trigger_in_s / WEEK, growth.lead_time_s.mid / WEEK
    yield (
        f"at {rate} peak utilization reaches "
        f"{growth.trigger_utilization_frac:.0%} in {trigger_weeks:.1f} weeks; after a lead "
        f"time of {lead_weeks:.0f} weeks it would be {order.use_at_arrival_frac:.0%}"
    )
    if order.bridge_s > 0:
        yield f"order now, and bridge about {order.bridge_s / WEEK:.0f} weeks in the cloud"
    else:
        yield f"order within {trigger_weeks - lead_weeks:.1f} weeks"
    yield f"in 12 months {order.n_needed_in_a_year} accelerators are needed"


def growth_reasons(inputs: PlanInputs, group: SolvedGroup) -> Explanation:
    """The plan's fleet under every growth that was given, and with the orders of this plan."""
    n_periods = group.choice.table.problem.horizon.shape[1]
    if n_periods < 2 or inputs.scenario.objective == "regret":
        return Explanation()
    every = replace(inputs.scenario, objective="regret")  # all growths, not the middle one alone
    problem = fleet_table(every, inputs.catalog, group.sizings, market=inputs.market).problem
    rows = _growth_rows(inputs.scenario, group, problem)
    return Explanation(why=tuple(_committed(inputs.scenario, group, problem)), growth=tuple(rows))


def _committed(scenario: Scenario, group: SolvedGroup, problem: SelectionProblem) -> Iterator[str]:
    """What the plan costs under other growth when its orders stay and only renting adapts."""
    choice, by_name = group.choice, _rates(scenario)
    names = group.sizings[0].demand.periods.scenarios
    if not choice.selection.orders or len(names) < 2:
        return
    # The plan's own prices: draws at its load are in them.
    given = choice.table.problem
    same = replace(problem, pools=given.pools, terms=given.terms)
    staff = sum(b.nominal_cents for b in choice.bill if b.kind == "staff") / 100.0
    costs = (recost(_undiscounted(same), choice.selection) + staff) / choice.n_months
    parts = [
        f"{by_name[name]:.0%}/month "
        + (f"${usd:,.0f}/month" if usd < inf else "more nodes than can be rented")
        for name, usd in sorted(zip(names, costs, strict=True), key=lambda row: by_name[row[0]])
    ]
    yield "with the nodes ordered here and the rest rented, growth of " + ", of ".join(parts)


def _rates(scenario: Scenario) -> dict[str, float]:
    rates = scenario.growth.per_month_frac
    return {"low": rates.low, "mid": rates.mid, "high": rates.high}


def _undiscounted(problem: SelectionProblem) -> SelectionProblem:
    """The problem in the money of each day: months are told in that money alone."""
    even = floats(np.ones(problem.horizon.shape[1]))
    time = replace(
        problem.horizon,
        upfront_discount_frac=even,
        running_discount_frac=even,
        end_discount_frac=1.0,
    )
    return replace(problem, horizon=time)


def _order_row(order: OrderAdvice) -> Crossover:
    then, at = "there is time to order", order.trigger_in_s
    if order.bridge_s > 0:
        then = f"order now, bridge {order.bridge_s / WEEK:.1f} weeks"
    return Crossover(
        what=f"growth of {order.growth_frac_per_month:.0%}/month",
        at="never" if at is None else f"{at / WEEK:.1f} weeks",
        then=f"{then}; {order.n_needed_in_a_year} accelerators in 12 months",
    )


def _growth_rows(
    scenario: Scenario, group: SolvedGroup, problem: SelectionProblem
) -> Iterator[GrowthRow]:
    """The chosen kind of fleet under low, middle and high growth, priced as a plan is."""
    periods, choice = group.sizings[0].demand.periods, group.choice
    known = {(option.workload, option.name): option for option in problem.options}
    for name, rate in _rates(scenario).items():
        if name not in periods.scenarios:
            continue
        at = periods.scenarios.index(name)
        options = [
            replace(o, need=ints(known[o.workload, o.name].need[at : at + 1]))
            for o in choice.selection.chosen
            if (o.workload, o.name) in known
        ]
        found = priced(choice, *options, has_limits=False)
        if found is not None:
            ratio = float(periods.load_ratio[at, -1])
            yield from _rows(found, name=name, per_month_frac=rate, load_ratio=ratio)


def _rows(
    choice: Choice, *, name: str, per_month_frac: float, load_ratio: float
) -> Iterator[GrowthRow]:
    """One row for each workload: its part of the bill, by what it uses."""
    bill = plan_bill(choice)
    last = len(bill.by_period) - 1
    for option in choice.selection.chosen:
        mine = [line for line in bill.cash_flow if line.workload == option.workload]
        yield GrowthRow(
            workload=option.workload,
            name=name,
            per_month_frac=per_month_frac,
            load_ratio=load_ratio,
            first_fleet=_fleet(choice, option, 0),
            last_fleet=_fleet(choice, option, last),
            first_usd_per_month=_month_usd(choice, mine, bill.by_period[0]),
            last_usd_per_month=_month_usd(choice, mine, bill.by_period[last]),
            mean_usd_per_month=sum(line.usd for line in mine) / choice.n_months,
        )


def _month_usd(choice: Choice, mine: Sequence[CashLine], period: PeriodCost) -> float:
    """A month of a period: what runs in it, and its part of what is paid at once."""
    once = sum(line.usd for line in mine if not line.span_s)
    runs = sum(x.usd for x in mine if x.span_s and x.start_s == period.start_s)
    return runs / (period.span_s / MONTH) + once / choice.n_months


def _fleet(choice: Choice, option: FleetOption, period: int) -> str:
    """How many of what the option holds in a period: whole nodes where it has them to itself."""
    pool = choice.pool(option.pool)
    n = int(option.need[0, period].max(initial=0)) + option.n_reserve
    if all(o.pool != option.pool or o is option for o in choice.selection.chosen):
        n = pool.nodes_for(n) * pool.n_accelerators_per_node
    return f"{n} x {pool.accelerator}"


def calendar_of(groups: Sequence[SolvedGroup]) -> Calendar:
    """Accelerators by workload and hour of the first week; spares are held in every hour."""
    rows = tuple(row for group in groups for row in _calendar_rows(group.choice))
    remarks = dict.fromkeys(note for group in groups for note in _remarks(group.choice))
    hours = tuple(range(N_HOURS)) if rows else ()
    return Calendar(hours=hours, rows=rows, remark="; ".join(remarks))


def _calendar_rows(choice: Choice) -> Iterator[CalendarRow]:
    place = _place(choice)
    for option in choice.selection.chosen:
        need = _accelerators(choice, option)[place.clip(0)]
        yield CalendarRow(
            workload=option.workload,
            accelerator=choice.pool(option.pool).accelerator,
            kind="job" if choice.is_jobs else "service",
            accelerators=tuple(int(n) for n in np.where(place >= 0, need, 0)),
        )


def _accelerators(choice: Choice, option: FleetOption) -> Ints:
    """Whole accelerators in each kind of hour, spares included while any is needed."""
    need = np.asarray(option.need[0, option.first_period])
    provisioned = np.where(need > 0, need + option.n_reserve, 0)
    if option.slice_kind:
        sized = choice.table.row_of(option).sized
        provisioned = np.array([sized.candidate.n_accelerators_for(int(n)) for n in provisioned])
    return ints(provisioned)


def _place(choice: Choice) -> Ints:
    """For each hour of the week, its kind in the choice's own hours; -1: after the last job."""
    hour_s = np.asarray(choice.table.problem.horizon.hour_s)
    if choice.is_jobs and not choice.repeats:
        ends_h = np.cumsum(hour_s) / HOUR
        found = np.searchsorted(ends_h, np.arange(N_HOURS) + 0.5, side="right")
        return ints(np.where(found < len(hour_s), found, -1))
    if len(hour_s) in IN_ORDER:
        return ints(np.arange(N_HOURS) % len(hour_s))
    ends_h = np.cumsum(hour_s) / hour_s.sum() * N_HOURS
    found = np.searchsorted(ends_h, np.arange(N_HOURS) + 0.5, side="right")
    return ints(np.minimum(found, len(hour_s) - 1))


def _remarks(choice: Choice) -> Iterator[str]:
    n = len(choice.table.problem.horizon.hour_s)
    if choice.is_jobs and not choice.repeats:
        yield JOBS
    elif n > 1 and n not in IN_ORDER:
        yield UNORDERED
