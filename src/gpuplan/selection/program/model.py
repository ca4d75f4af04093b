"""Tables in, program out: one function per constraint."""

from dataclasses import replace
from typing import Literal

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.selection import LimitKind, NamedLimit, needed_accelerators
from gpuplan.selection.program.builder import INF, Builder, Program
from gpuplan.selection.program.layout import Layout, counted, layout
from gpuplan.selection.program.measures import Total, expected, instant_rate, total
from gpuplan.selection.program.tables import Tables

SUMMED: dict[LimitKind, Total] = {
    "upfront": "upfront",
    "spend": "spend",
    "energy": "energy",
    "carbon": "carbon",
    "time": "time",
}


@dataclass(frozen=True)
class Model:
    """A program, what its columns mean, and which rows are the user's limits."""

    tab: Tables
    lay: Layout
    program: Program
    rows: dict[str, Ints]  # "one", "capacity", "any", "firm", "work", and each named limit
    scale: dict[str, float]  # row of a limit = limit / scale
    cost_scale: float = 1.0  # cost of the program = objective / scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What to minimise, what expected totals may not pass, and limits that may give way."""

    measure: Total | Literal["slack", "regret"] = "worth"
    ceilings: tuple[tuple[Total, float], ...] = ()
    slack_on: tuple[str, ...] = ()
    best_usd: tuple[float, ...] = ()  # [scenario] what regret is counted from
    most_regret_usd: float | None = None


def model(tab: Tables, *, integer: bool = True, goal: Goal | None = None) -> Model:
    """The whole problem as one program."""
    goal = goal or Goal()
    builder = Builder()
    lay = layout(tab, builder, integer=integer)
    rows = {
        "one": one_option_each(tab, lay, builder),
        "capacity": enough_accelerators(tab, lay, builder),
    }
    shared_reserve(tab, lay, builder)
    enough_slices(tab, lay, builder)
    rows |= deferrable_work_done(tab, lay, builder)
    mixed_load_served(tab, lay, builder)
    nodes_to_be_had(tab, lay, builder)
    scale = {}
    for limit in tab.problem.limits:
        key = limit_key(limit.name)
        rows[key], scale[key] = named_limit(tab, lay, builder, limit=limit)
    for kind, most in goal.ceilings:
        ceiling(builder, expected(tab, lay, kind), most=most)
    cost = _cost(tab, lay, builder, goal=goal, rows=rows, scale=scale)
    cost_scale = 1.0 if goal.measure in ("worth", "slack") else float(np.abs(cost).max()) or 1.0
    return Model(tab, lay, builder.program(cost / cost_scale), rows, scale, cost_scale)


def limit_key(name: str) -> str:
    """Where the rows of a limit are kept."""
    return f"limit {name}"


def _cost(
    tab: Tables,
    lay: Layout,
    builder: Builder,
    *,
    goal: Goal,
    rows: dict[str, Ints],
    scale: dict[str, float],
) -> Floats:
    """The objective; slacks and the regret are columns behind all others."""
    most = {limit.name: limit.most for limit in tab.problem.limits}
    slack = builder.columns((len(goal.slack_on),))
    for column, name in zip(slack, goal.slack_on, strict=True):
        builder.put(rows[limit_key(name)], column, -1.0)
    worst = builder.columns((1 if goal.best_usd else 0,), upper=_regret_most(goal))
    for s, usd in enumerate(goal.best_usd):
        coefficients = np.append(total(tab, lay, "worth", scenario=s), -1.0)
        _row(builder, np.append(np.arange(lay.n_columns), worst), coefficients, most=usd)
    cost = np.zeros(builder.n_columns)
    if goal.measure == "regret":
        cost[worst] = 1.0
    elif goal.measure == "slack":
        # Each limit gives way by its own size: a kilowatt and a dollar cannot be added.
        keys = [limit_key(name) for name in goal.slack_on]
        cost[slack] = [scale[k] / (most[n] or scale[k]) for k, n in zip(keys, goal.slack_on)]  # noqa: B905
    else:
        cost[: lay.n_columns] = expected(tab, lay, goal.measure)
    return cost


def _regret_most(goal: Goal) -> float:
    return INF if goal.most_regret_usd is None else goal.most_regret_usd


def ceiling(builder: Builder, coefficients: Floats, *, most: float) -> None:
    """The sum may not pass `most`."""
    _row(builder, np.arange(len(coefficients)), coefficients, most=most)


def _row(builder: Builder, columns: Ints, coefficients: Floats, *, most: float) -> None:
    size = float(np.abs(coefficients).max()) or 1.0
    row = builder.rows((1,), upper=most / size)
    builder.put(np.broadcast_to(row, columns.shape), columns, coefficients / size)


def one_option_each(tab: Tables, lay: Layout, builder: Builder) -> Ints:
    """Every workload runs on exactly one of its options."""
    rows = builder.rows((len(tab.problem.workloads),), lower=1.0, upper=1.0)
    builder.put(rows[tab.workload], lay.choose, 1.0)
    return rows


def enough_accelerators(tab: Tables, lay: Layout, builder: Builder) -> Ints:
    """In every pool and hour: nodes held − need − reserve − batch ≥ 0, in accelerators."""
    used = tab.used_pools
    rows = builder.rows((len(used), *tab.shape), lower=0.0)
    place = np.full(len(tab.problem.pools), -1)
    place[used] = np.arange(len(used))
    put_nodes(tab, lay, builder, rows=rows, place=place, per_node=tab.n_per_node)
    is_whole = tab.slice_kind == 0
    builder.put(
        rows[place[tab.pool[is_whole]]],
        lay.choose[is_whole][:, None, None, None],
        -tab.need[is_whole],
    )
    builder.put(rows[place[lay.batch_pool]], lay.batch, -1.0)
    builder.put(rows, lay.reserve[used][:, None, None, None], -_reserve_counts(tab, used))
    for g, geometry in enumerate(tab.problem.geometries):
        a = place[tab.place(geometry.pool)]
        if a >= 0:
            builder.put(rows[a], lay.cut[g][:, :, None], -1.0)
    first = 0
    for fleet in tab.problem.mixed:
        for i, part in enumerate(fleet.parts, start=first):
            size = part.n_accelerators_per_replica
            builder.put(rows[place[tab.place(part.pool)]], lay.mixed[i], -float(size))
        first += len(fleet.parts)
    return rows


def _reserve_counts(tab: Tables, used: Ints) -> Floats:
    has = np.zeros(len(tab.problem.pools))
    for option, a in zip(tab.problem.options, tab.pool, strict=True):
        has[a] = max(has[a], float(option.n_reserve > 0))
    return has[used][:, None, None, None]


def put_nodes(
    tab: Tables,
    lay: Layout,
    builder: Builder,
    *,
    rows: Ints,
    place: Ints,
    per_node: Floats,
) -> None:
    """Nodes for firm work in rows [place of pool, scenario, period, hour]; spot is not firm."""
    for i, a in enumerate(tab.orders.pool):
        if place[a] >= 0:
            builder.put(rows[place[a]][tab.orders.served(i)], lay.order[i], per_node[a])
    for columns, pool in (
        (lay.existing[..., None], lay.existing_pool),
        (lay.burst, tab.burst.pool),
    ):
        is_in = place[pool] >= 0
        weights = per_node[pool[is_in]][:, None, None, None]
        builder.put(rows[place[pool[is_in]]], columns[is_in], weights)


def shared_reserve(tab: Tables, lay: Layout, builder: Builder) -> None:
    """A pool holds back as much as the largest failure domain that runs in it.

    One row for a workload and a pool, not for each option: only one of them is chosen.
    """
    reserve = np.array([float(o.n_reserve) for o in tab.problem.options])
    has = np.flatnonzero(reserve > 0)
    pair = tab.workload[has] * len(tab.problem.pools) + tab.pool[has]
    pairs, at = np.unique(pair, return_inverse=True)
    rows = builder.rows((len(pairs),), lower=0.0)
    builder.put(rows, lay.reserve[pairs % len(tab.problem.pools)], 1.0)
    builder.put(rows[at], lay.choose[has], -reserve[has])


def enough_slices(tab: Tables, lay: Layout, builder: Builder) -> None:
    """Accelerators cut so give at least the slices needed, kind by kind and hour by hour."""
    geometries = tab.problem.geometries
    for k, kind in enumerate(tab.slices[1:], start=1):
        for a in np.unique(tab.pool[tab.slice_kind == k]):
            rows = builder.rows(tab.shape, lower=0.0)
            for g, geometry in enumerate(geometries):
                if tab.place(geometry.pool) == a:
                    n_slices = float(dict(geometry.counts).get(kind, 0))
                    builder.put(rows, lay.cut[g][:, :, None], n_slices)
            chosen = np.flatnonzero((tab.slice_kind == k) & (tab.pool == a))
            columns = lay.choose[chosen][:, None, None, None]
            builder.put(rows[None], columns, -tab.need[chosen])


def deferrable_work_done(tab: Tables, lay: Layout, builder: Builder) -> dict[str, Ints]:
    """Each period's work is done; what spot does not may do is done on firm nodes."""
    s, q, _ = tab.shape
    if not len(lay.share):
        return {}
    place = {int(a): i for i, a in enumerate(lay.batch_pool)}
    at = np.array([place[int(a)] for a in tab.shares.pool], dtype=int)
    any_rows = builder.rows((len(lay.batch_pool), s, q), lower=0.0)
    firm_rows = builder.rows((len(lay.batch_pool), s, q), lower=0.0)
    builder.put(any_rows[..., None], lay.batch, tab.hour_h)
    builder.put(firm_rows[..., None], lay.batch, tab.hour_h)
    builder.put(any_rows[at], lay.share, -1.0)
    is_firm = tab.shares.may_spot == 0
    builder.put(firm_rows[at[is_firm]], lay.share[is_firm], -1.0)
    for m, a in enumerate(tab.spot.pool):
        if int(a) in place:
            useful = tab.n_per_node[a] * tab.spot.useful[m] * tab.hour_h
            builder.put(any_rows[place[int(a)]][..., None], lay.spot[m], useful)
    work_rows = builder.rows((len(tab.work), s, q), lower=tab.work)
    builder.put(work_rows[tab.shares.work], lay.share, tab.shares.rate[:, None, None])
    return {"any": any_rows, "firm": firm_rows, "work": work_rows}


def mixed_load_served(tab: Tables, lay: Layout, builder: Builder) -> None:
    """Replicas of all kinds carry the load, and still do when some of one kind are lost."""
    first = 0
    for fleet in tab.problem.mixed:
        span = slice(first, first + len(fleet.parts))
        rates = np.array([part.n_load_per_replica for part in fleet.parts])
        replicas = lay.mixed[span]
        rows = builder.rows(tab.shape, lower=fleet.n_load)
        builder.put(rows, replicas, rates[:, None, None, None])
        if fleet.n_lost:
            _survive(tab, lay, builder, fleet=(fleet.n_load, fleet.n_lost, rates), span=span)
        first += len(fleet.parts)


def _survive(
    tab: Tables, lay: Layout, builder: Builder, *, fleet: tuple[Floats, int, Floats], span: slice
) -> None:
    load, n_lost, rates = fleet
    replicas, present = lay.mixed[span], lay.present[span]
    for i, rate in enumerate(rates):
        rows = builder.rows(tab.shape, lower=load)
        builder.put(rows, replicas, rates[:, None, None, None])
        # A kind with fewer replicas than may be lost is charged for all of them: safe, not exact.
        builder.put(rows, present[i], -n_lost * rate)
        most = np.ceil(load.max() / rate) + n_lost
        there = builder.rows(tab.shape, upper=0.0)
        builder.put(there, replicas[i], 1.0)
        builder.put(there, present[i], -float(most))


def nodes_to_be_had(tab: Tables, lay: Layout, builder: Builder) -> None:
    """Quotas of committed terms over time, and the most that a pool can hold."""
    n_scenarios, n_periods, _ = tab.shape
    orders = tab.orders
    for m, terms in enumerate(tab.problem.terms):
        if terms.is_committed and terms.n_nodes_max is not None:
            rows = builder.rows((n_scenarios, n_periods), upper=float(terms.n_nodes_max))
            for i in np.flatnonzero(orders.terms == m):
                scenarios, periods = orders.served(i)
                builder.put(rows[scenarios, periods], lay.order[i], 1.0)
    for a in tab.used_pools:
        most = tab.problem.pools[a].n_nodes_max
        if most is not None:
            weight = np.zeros(len(tab.problem.pools))
            weight[a] = 1.0
            everything = NamedLimit(name="", kind="nodes", most=float(most))
            _instant_rows(tab, lay, builder, limit=everything, weight=weight)


def named_limit(
    tab: Tables, lay: Layout, builder: Builder, *, limit: NamedLimit
) -> tuple[Ints, float]:
    """The rows of a limit, and what they were divided by to keep numbers near one."""
    if limit.workloads:
        return _need_rows(tab, lay, builder, limit=limit), 1.0
    keep = counted(tab, lay, limit)
    n_scenarios = tab.shape[0]
    if limit.kind not in SUMMED:
        weight = instant_rate(tab, limit)
        scale = float(weight.max()) or 1.0
        small = replace(limit, most=limit.most / scale)
        return _instant_rows(tab, lay, builder, limit=small, weight=weight / scale), scale
    kind = SUMMED[limit.kind]
    sums = [
        keep * total(tab, lay, kind, scenario=s, periods=limit.periods) for s in range(n_scenarios)
    ]
    scale = float(np.abs(sums).max()) or 1.0
    rows = builder.rows((n_scenarios,), upper=limit.most / scale)
    for row, values in zip(rows, sums, strict=True):
        columns = np.flatnonzero(values)
        builder.put(np.full(len(columns), row), columns, values[columns] / scale)
    return rows, scale


def _need_rows(tab: Tables, lay: Layout, builder: Builder, *, limit: NamedLimit) -> Ints:
    """Accelerators that options of the named workloads need, reserve included, at every hour."""
    rows = builder.rows(tab.shape, upper=limit.most)
    for i, option in enumerate(tab.problem.options):
        if option.workload in limit.workloads:
            builder.put(rows, lay.choose[i], needed_accelerators(tab.problem, option))
    return rows


def _instant_rows(
    tab: Tables, lay: Layout, builder: Builder, *, limit: NamedLimit, weight: Floats
) -> Ints:
    """Nodes of the terms counted, times weight, at every hour at which they can differ."""
    keep = counted(tab, lay, limit)
    flexible = [(lay.burst, tab.burst.pool), (lay.spot, tab.spot.pool)]
    varies = any(
        np.any(keep[columns] * weight[pool][:, None, None, None]) for columns, pool in flexible
    )
    n_scenarios, n_periods, n_hours = tab.shape
    kept_periods = list(limit.periods or range(n_periods))
    n_hours = n_hours if varies else 1
    rows = builder.rows((n_scenarios, len(kept_periods), n_hours), upper=limit.most)
    orders = tab.orders
    for i, a in enumerate(orders.pool):
        covered = [j for j, q in enumerate(kept_periods) if orders.first[i] <= q < orders.last[i]]
        scenarios, _ = orders.served(i)
        value = weight[a] * keep[lay.order[i]]
        if value and covered:
            builder.put(rows[scenarios][:, covered], lay.order[i], value)
    existing = lay.existing[:, :, kept_periods][..., None]
    weights = weight[lay.existing_pool][:, None, None, None]
    builder.put(rows[None], existing, weights * keep[existing])
    if varies:
        for columns, pool in flexible:
            block = columns[:, :, kept_periods]
            builder.put(rows[None], block, weight[pool][:, None, None, None] * keep[block])
    return rows
