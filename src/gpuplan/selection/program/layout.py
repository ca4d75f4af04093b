"""Which column is which decision."""

from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.plan.selection import NamedLimit
from gpuplan.selection.program.builder import INF, Builder
from gpuplan.selection.program.tables import Tables

EXISTING, CHOICE = -1, -2  # in place of terms


@dataclass(frozen=True)
class Layout:
    """Numbers of the columns, by kind of decision."""

    choose: Ints  # [option]
    order: Ints  # [order]
    existing: Ints  # [pool that has some, scenario, period]
    existing_pool: Ints
    burst: Ints  # [terms, scenario, period, hour]
    spot: Ints
    batch: Ints  # [pool with batch options, scenario, period, hour] accelerators that do batch work
    batch_pool: Ints
    share: Ints  # [batch option, scenario, period] accelerator-hours
    cut: Ints  # [geometry, scenario, period] accelerators cut so
    reserve: Ints  # [pool]
    mixed: Ints  # [part, scenario, period, hour] replicas
    present: Ints  # [part, scenario, period, hour] whether there are any
    n_columns: int


def layout(tab: Tables, builder: Builder, *, integer: bool) -> Layout:
    """Columns for every decision of the problem."""
    s, q, h = tab.shape
    problem = tab.problem
    used = tab.used_pools
    existing_pool = np.array([a for a in used if problem.pools[a].n_nodes_existing], dtype=np.int64)
    n_existing = np.array([problem.pools[a].n_nodes_existing for a in existing_pool], dtype=float)
    batch_pool = np.unique(tab.shares.pool)
    parts = [part for fleet in problem.mixed for part in fleet.parts]
    has_loss = any(fleet.n_lost for fleet in problem.mixed)
    # No upper bound on the choice: its row says one, and a bound would take a share of the dual.
    choose = builder.columns((len(tab.pool),), integer=integer)
    return Layout(
        choose=choose,
        order=builder.columns((len(tab.orders.terms),), upper=_order_most(tab), integer=integer),
        existing=builder.columns(
            (len(existing_pool), s, q), upper=n_existing[:, None, None], integer=integer
        ),
        existing_pool=existing_pool,
        burst=_flexible(tab, builder, tab.burst.n_max, pool=tab.burst.pool, integer=integer),
        spot=_flexible(tab, builder, tab.spot.n_max, pool=tab.spot.pool, integer=integer),
        batch=builder.columns((len(batch_pool), s, q, h)),
        batch_pool=batch_pool,
        share=builder.columns((len(tab.shares.pool), s, q)),
        cut=builder.columns((len(problem.geometries), s, q), integer=integer),
        reserve=builder.columns((len(problem.pools),)),
        mixed=builder.columns((len(parts), s, q, h), integer=integer),
        present=builder.columns((len(parts) * has_loss, s, q, h), upper=1.0, integer=integer),
        n_columns=builder.n_columns,
    )


def _order_most(tab: Tables) -> Floats:
    """No orders for pools in which nothing could run."""
    quotas = [tab.problem.terms[m].n_nodes_max for m in tab.orders.terms]
    most = np.array([INF if quota is None else float(quota) for quota in quotas])
    return np.where(np.isin(tab.orders.pool, tab.used_pools), most, 0.0)


def _flexible(tab: Tables, builder: Builder, n_max: Floats, *, pool: Ints, integer: bool) -> Ints:
    most = np.where(np.isin(pool, tab.used_pools), n_max, 0.0)
    shape = (len(pool), *tab.shape)
    return builder.columns(shape, upper=most[:, None, None, None], integer=integer)


def counted(tab: Tables, lay: Layout, limit: NamedLimit) -> Floats:
    """1 for the columns whose pool and way of paying a limit counts, else 0."""
    pool, terms = np.zeros(lay.n_columns, dtype=int), np.full(lay.n_columns, EXISTING)
    pool[lay.choose], terms[lay.choose] = tab.pool, CHOICE
    pool[lay.order], terms[lay.order] = tab.orders.pool, tab.orders.terms
    pool[lay.existing] = lay.existing_pool[:, None, None]
    for columns, of in ((lay.burst, tab.burst), (lay.spot, tab.spot)):
        pool[columns] = of.pool[:, None, None, None]
        terms[columns] = of.index[:, None, None, None]
    names = [p.name for p in tab.problem.pools]
    is_pool = np.array([not limit.pools or name in limit.pools for name in names], dtype=float)
    is_paid = [_is_counted_terms(tab, limit, m) for m in range(len(tab.problem.terms))]
    # Choices and existing nodes lie behind the terms: counted from the end, -2 and -1.
    tail = [float(not limit.purchases), float(not limit.purchases or "owned" in limit.purchases)]
    is_counted: Floats = is_pool[pool] * np.array([*is_paid, *tail])[terms]
    return is_counted


def _is_counted_terms(tab: Tables, limit: NamedLimit, terms: int) -> float:
    given = tab.problem.terms[terms]
    is_requested = not limit.purchases or given.purchase in limit.purchases
    is_here = given.is_on_site or limit.kind not in ("power", "racks")
    return float(is_requested and is_here)
