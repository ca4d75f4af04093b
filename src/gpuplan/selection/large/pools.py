"""Whole nodes for one pool, once it is known what runs there: exact, in a few milliseconds.

With needs given, hour h lacks max(0, n_h − n) nodes when n are held, so renting costs a convex
function of n in every period, and so does what deferrable work pays for the room that is left.
Orders serve periods in a row, so the program of orders and convex costs is whole by itself; where
quotas of several terms make it otherwise, counts are asked to be whole.
"""

from dataclasses import dataclass, replace

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.program.builder import INF, Builder, Program
from gpuplan.selection.program.solver import Effort, solve
from gpuplan.selection.program.tables import Tables

EFFORT = Effort(gap_frac=1e-5, n_nodes_max=1000)


@dataclass(frozen=True)
class PoolPlan:
    """Orders and switched-on nodes of one pool; what all its nodes cost less what batch pays."""

    orders: Floats  # [order of the pool]
    existing: Floats  # [scenario, period]
    usd: float


@dataclass(frozen=True)
class Batch:
    """What deferrable work pays for an accelerator-hour of a pool, and how much it takes."""

    usd_per_h: Floats  # [scenario, period]
    most_h: Floats


@dataclass(frozen=True)
class LimitHeadroom:
    """What limits leave for the orders of a pool: coefficients times counts, at most so much."""

    coefficient: Floats  # [limit row, order of the pool]
    most: Floats  # [limit row]


@dataclass(frozen=True)
class Costs:
    """What a unit of each decision is worth today, [order], [pool, s, q], [terms, s, q, h]."""

    order: Floats
    existing: Floats
    burst: Floats
    spot: Floats


def plan_pool(
    full: Tables,
    costs: Costs,
    pool: int,
    *,
    need: Floats,
    batch: Batch,
    room: LimitHeadroom | None = None,
) -> PoolPlan | None:
    """The cheapest whole nodes for a need [s, q, h], with what batch pays for the room it gets."""
    alone = _period_usd(full, costs, pool, need=need, batch=batch)
    n_existing = full.problem.pools[pool].n_nodes_existing
    usd = _with_existing(alone, costs.existing[pool], n_existing)
    orders = np.flatnonzero(full.orders.pool == pool)
    # What all scenarios hold alike they pay for alike: one curve for their sum.
    is_shared = not np.any(full.orders.scenario[orders] >= 0)
    curves = usd.sum(axis=0, keepdims=True) if is_shared else usd
    found = _cheapest_orders(full, orders, costs.order[orders], curves=curves, room=room)
    if found is None:
        return None
    counts, objective = found
    provisioned = _provisioned(full, orders, counts)
    return PoolPlan(
        counts, _switched_on(alone, costs.existing[pool], provisioned, n_existing), objective
    )


def _provisioned(full: Tables, orders: Ints, counts: Floats) -> Floats:
    """[s, q] nodes in service from so many of each order."""
    provisioned = np.zeros(full.shape[:2])
    for i, count in zip(orders, counts, strict=True):
        provisioned[full.orders.served(i)] += count
    return provisioned


def _period_usd(full: Tables, costs: Costs, pool: int, *, need: Floats, batch: Batch) -> Floats:
    """[s, q, n] rent for whole nodes beyond the n held, less what batch pays for free room."""
    size, hour_h = float(full.n_per_node[pool]), full.hour_h
    nodes = np.ceil(need / size - 1e-9)
    need_h = need @ hour_h
    most_h = np.where(batch.usd_per_h > 0, batch.most_h, 0.0)
    n_batch = np.ceil((most_h + need_h) / (size * hour_h.sum()))
    provisioned = np.arange(int(max(nodes.max(initial=0.0), n_batch.max(initial=0.0))) + 1)
    missing = np.maximum(0.0, nodes[..., None] - provisioned)
    usd, cheapest = _rent(full, costs, pool, missing=missing)
    room_h = size * (np.einsum("h,sqhn->sqn", hour_h, missing) + hour_h.sum() * provisioned)
    # Batch that paid more than rent would be given rented nodes: no more than rent is counted.
    paid = np.minimum(batch.usd_per_h, cheapest / size)[..., None]
    found: Floats = usd - paid * np.minimum(most_h[..., None], room_h - need_h[..., None])
    return found


def _rent(full: Tables, costs: Costs, pool: int, *, missing: Floats) -> tuple[Floats, Floats]:
    """[s, q, n] rent for what is missing [s, q, h, n], cheapest terms first; the cheapest price."""
    hour_h = full.hour_h
    terms = np.flatnonzero(full.burst.pool == pool)
    usd = np.zeros((*missing.shape[:2], missing.shape[3]))
    per_h = costs.burst[terms].sum(axis=3) / hour_h.sum()
    for m in np.argsort(full.burst.usd_per_h[terms].mean(axis=(1, 2)), kind="stable"):
        taken = np.minimum(missing, full.burst.n_max[terms[m]])
        usd += per_h[m][..., None] * np.einsum("h,sqhn->sqn", hour_h, taken)
        missing = missing - taken
    usd[missing.max(axis=2) > 1e-9] = INF
    return usd, per_h.min(axis=0) if len(terms) else np.full(usd.shape[:2], INF)


def _with_existing(alone: Floats, unit_usd: Floats, n_existing: int) -> Floats:
    """[s, q, n] with as many existing nodes switched on as pay."""
    usd = alone
    for _ in range(min(n_existing, alone.shape[2])):
        one_more = np.concatenate([usd[..., 1:], usd[..., -1:]], axis=2) + unit_usd[..., None]
        if not np.any(one_more < usd):
            break
        usd = np.minimum(usd, one_more)
    return usd


def _switched_on(alone: Floats, unit_usd: Floats, provisioned: Floats, n_existing: int) -> Floats:
    """[s, q] existing nodes that pay beside those held."""
    counts = np.arange(n_existing + 1)
    at = np.minimum(alone.shape[2] - 1, provisioned[..., None].astype(int) + counts)
    usd = np.take_along_axis(alone, at, axis=2) + counts * unit_usd[..., None]
    on: Floats = usd.argmin(axis=2).astype(float)
    return on


def _cheapest_orders(
    full: Tables, orders: Ints, order_usd: Floats, *, curves: Floats, room: LimitHeadroom | None
) -> tuple[Floats, float] | None:
    """Whole counts of each order against convex costs [group, period, n]; None: not to be had."""
    is_lawful = np.isfinite(curves)
    if not is_lawful[..., -1].all():
        return None
    low = is_lawful.argmax(axis=2)
    builder = Builder()
    rows = builder.rows(low.shape, lower=low, upper=low)
    columns = builder.columns((len(orders),))
    for column, i in zip(columns, orders, strict=True):
        builder.put(rows[full.orders.served(i)], column, 1.0)
    _quotas(full, builder, orders, columns=columns)
    if room is not None:
        limits = builder.rows(room.most.shape, upper=room.most)
        builder.put(limits[:, None], columns, room.coefficient)
    # Beyond the last corner one more node costs nothing and saves nothing.
    builder.put(rows, builder.columns(low.shape), -1.0)
    where, length, slope = _pieces(curves, is_lawful)
    builder.put(rows[where], builder.columns((len(slope),), upper=length), -1.0)
    program = builder.program(np.concatenate([order_usd, np.zeros(low.size), slope]))
    found = _whole(program, columns)
    base = float(np.take_along_axis(curves, low[..., None], axis=2).sum())
    return None if found is None else (found[0], found[1] + base)


def _whole(program: Program, columns: Ints) -> tuple[Floats, float] | None:
    """Whole values of the columns and the objective; asked for only where they are not so."""
    answer = solve(program)
    if answer is None:
        return None
    counts = np.rint(answer.values[columns])
    if np.any(np.abs(answer.values[columns] - counts) > 1e-6):
        is_integer = np.zeros(program.n_columns)
        is_integer[columns] = 1.0
        answer = solve(replace(program, is_integer=is_integer), EFFORT)
        if answer is None:
            return None
        counts = np.rint(answer.values[columns])
    return counts, answer.objective


def _pieces(curves: Floats, is_lawful: Floats) -> tuple[tuple[Ints, Ints], Floats, Floats]:
    """(group, period), length and slope of every straight piece of the curves."""
    step = np.diff(np.where(is_lawful, curves, 0.0), axis=2)
    can = is_lawful[..., :-1]
    same = 1e-9 * (1.0 + np.abs(step[can]).max(initial=0.0))
    goes_on = can[..., :-1] & (np.abs(np.diff(step, axis=2)) <= same)
    first = np.zeros((*can.shape[:2], 1), dtype=bool)
    bend = can & ~np.concatenate([first, goes_on], axis=2)
    group, period, at = np.nonzero(bend)
    key = group * step.shape[1] + period
    end = np.append(at[1:], 0)
    end[np.append(key[1:] != key[:-1], True)[: len(end)]] = step.shape[2]
    return (group, period), (end[: len(at)] - at).astype(float), step[bend]


def _quotas(full: Tables, builder: Builder, orders: Ints, *, columns: Ints) -> None:
    """No more of committed terms at a time than are to be had."""
    for m in np.unique(full.orders.terms[orders]):
        quota = full.problem.terms[m].n_nodes_max
        if quota is None:
            continue
        rows = builder.rows(full.shape[:2], upper=float(quota))
        for column, i in zip(columns, orders, strict=True):
            if full.orders.terms[i] == m:
                builder.put(rows[full.orders.served(i)], column, 1.0)
