"""Whole nodes for one pool at a time, once it is known what runs there.

With the choice made, an hour needs a whole number of nodes, and orders serve periods in a row: the
relaxation of a pool's program is whole by itself unless deferrable work asks for hours as well.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.builder import Builder
from gpuplan.selection.solver import Effort, solve
from gpuplan.selection.tables import Tables

GAP = 1e-4


@dataclass(frozen=True)
class PoolPlan:
    """Orders and switched-on nodes of one pool, and what firm work alone then costs."""

    orders: Floats  # [order of the pool]
    existing: Floats  # [scenario, period]
    usd: float


@dataclass(frozen=True)
class Batch:
    """What deferrable work pays for an accelerator-hour of a pool, and how much it takes."""

    usd_per_h: Floats  # [scenario, period]
    most_h: Floats


@dataclass(frozen=True)
class Costs:
    """What a unit of each decision is worth today, [order], [pool, s, q], [terms, s, q, h]."""

    order: Floats
    existing: Floats
    burst: Floats
    spot: Floats


def pool_need(full: Tables, options: Ints) -> Floats:
    """[pool, scenario, period, hour] accelerators that the options and their reserve need."""
    need = np.zeros((len(full.problem.pools), *full.shape))
    reserve = np.zeros(len(full.problem.pools))
    for i in options:
        need[full.pool[i]] += full.need[i]
        reserve[full.pool[i]] = max(reserve[full.pool[i]], full.problem.options[i].n_reserve)
    total: Floats = need + reserve[:, None, None, None]
    return total


def whole_nodes(full: Tables, need: Floats) -> Floats:
    """Nodes for needs [pool, …]."""
    size = full.n_per_node[:, None, None, None]
    return np.ceil(need / size - 1e-9)


def plan_pool(
    full: Tables, costs: Costs, pool: int, *, need: Floats, batch: Batch
) -> PoolPlan | None:
    """The cheapest whole nodes for a need [s, q, h], with what batch pays for the room it gets."""
    size = float(full.n_per_node[pool])
    builder = Builder()
    rows = builder.rows(full.shape, lower=np.ceil(need / size - 1e-9))
    hours = builder.rows(full.shape[:2], lower=(need * full.hour_h).sum(axis=2) / size)
    orders = np.flatnonzero(full.orders.pool == pool)
    bought = _order_columns(full, builder, orders, rows=rows, hours=hours)
    n_existing = float(full.problem.pools[pool].n_nodes_existing)
    existing = builder.columns(full.shape[:2], upper=n_existing, integer=n_existing > 0)
    builder.put(rows, existing[..., None], 1.0)
    builder.put(hours, existing, float(full.hour_h.sum()))
    terms = np.flatnonzero(full.burst.pool == pool)
    quota = full.burst.n_max[terms][:, None, None, None]
    burst = builder.columns((len(terms), *full.shape), upper=quota)
    builder.put(rows[None], burst, 1.0)
    builder.put(hours[None, ..., None], burst, full.hour_h)
    served = builder.columns(full.shape[:2], upper=batch.most_h)
    builder.put(hours, served, -1.0 / size)
    cost = [
        costs.order[orders],
        costs.existing[pool].ravel(),
        costs.burst[terms].ravel(),
        -batch.usd_per_h.ravel(),
    ]
    effort = Effort(gap_frac=GAP, max_s=5.0)
    answer = solve(builder.program(np.concatenate(cost)), effort)
    if answer is None:
        return None
    return PoolPlan(
        orders=np.rint(answer.values[bought]),
        existing=np.rint(answer.values[existing]),
        usd=answer.objective,
    )


def _order_columns(
    full: Tables, builder: Builder, orders: Ints, *, rows: Ints, hours: Ints
) -> Ints:
    columns = builder.columns((len(orders),), integer=True)
    total_h = float(full.hour_h.sum())
    for column, i in zip(columns, orders, strict=True):
        s = full.orders.scenario[i]
        where = slice(None) if s < 0 else slice(s, s + 1)
        span = slice(full.orders.first[i], full.orders.last[i])
        builder.put(rows[where, span], column, 1.0)
        builder.put(hours[where, span], column, total_h)
    for m in np.unique(full.orders.terms[orders]):
        quota = full.problem.terms[m].n_nodes_max
        if quota is not None:
            _quota_rows(full, builder, orders, columns=columns, terms=(int(m), float(quota)))
    return columns


def _quota_rows(
    full: Tables, builder: Builder, orders: Ints, *, columns: Ints, terms: tuple[int, float]
) -> None:
    m, quota = terms
    rows = builder.rows(full.shape[:2], upper=quota)
    for column, i in zip(columns, orders, strict=True):
        if full.orders.terms[i] == m:
            s = full.orders.scenario[i]
            where = slice(None) if s < 0 else slice(s, s + 1)
            span = slice(full.orders.first[i], full.orders.last[i])
            builder.put(rows[where, span], column, 1.0)


def held_nodes(full: Tables, orders: Floats, existing: Floats) -> Floats:
    """[pool, scenario, period] nodes from orders [order] and switched on [pool, s, q]."""
    held = existing.copy()
    for i in np.flatnonzero(orders):
        s = full.orders.scenario[i]
        where = slice(None) if s < 0 else slice(s, s + 1)
        held[full.orders.pool[i], where, full.orders.first[i] : full.orders.last[i]] += orders[i]
    return held


def rent_rest(full: Tables, rest: Floats) -> Floats | None:
    """[terms, s, q, h] whole nodes rented for what is missing [pool, …], cheapest terms first."""
    burst = np.zeros((len(full.burst.pool), *full.shape))
    left = rest.copy()
    price = full.burst.usd_per_h.mean(axis=(1, 2))
    for m in np.argsort(price, kind="stable"):
        a = full.burst.pool[m]
        burst[m] = np.minimum(left[a], full.burst.n_max[m])
        left[a] -= burst[m]
    return None if np.any(left > 1e-6) else burst
