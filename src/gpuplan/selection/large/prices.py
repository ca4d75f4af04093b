"""Prices of an accelerator-hour before anything runs: where column generation starts.

Lawful prices (no node costs less than what it can carry is worth) for a typical need: where nothing
runs yet, the relaxed problem itself would say "free". With several scenarios the relaxed problem of
their mean, which is so much smaller, gives better ones: its prices, times the probability of each
scenario, are lawful prices of the whole problem, because an order serves all scenarios and its
worth is shared out among them.
"""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.selection.large.master import open_master, pool_rows, solve_relaxed
from gpuplan.selection.program.builder import INF, Builder
from gpuplan.selection.program.measures import expected
from gpuplan.selection.program.model import Model, model
from gpuplan.selection.program.solver import solve
from gpuplan.selection.program.tables import Tables, Terms, tables


def opening_prices(built: Model) -> Floats:
    """[row] lawful prices of all pools' rows; zero elsewhere."""
    tab = built.tab
    prices = np.zeros(built.program.n_rows)
    cost = expected(tab, built.lay, "worth")
    hourly = np.zeros((len(tab.problem.pools), *tab.shape))
    for place, a in enumerate(tab.used_pools):
        hourly[a] = _pool_prices(built, int(a), cost=cost)
        prices[built.rows["capacity"][place]] = hourly[a]
    if "any" in built.rows:
        firm = (hourly[built.lay.batch_pool] / tab.hour_h).min(axis=3)
        work = np.minimum(firm, _spot_prices(built, cost=cost))
        prices[built.rows["any"]] = work
        prices[built.rows["firm"]] = firm - work
    return prices


def _pool_prices(built: Model, pool: int, *, cost: Floats) -> Floats:
    """[scenario, period, hour] what one more accelerator costs at the pool's typical need."""
    tab, lay = built.tab, built.lay
    builder = Builder()
    need = _typical_need(tab, pool)
    rows = builder.rows(tab.shape, lower=need)
    costs = []
    size = float(tab.n_per_node[pool])
    orders = np.flatnonzero(tab.orders.pool == pool)
    columns = builder.columns((len(orders),))
    costs.append(cost[lay.order[orders]])
    for column, i in zip(columns, orders, strict=True):
        scenarios, periods = tab.orders.served(i)
        builder.put(rows[scenarios, periods], column, size)
    existing = np.flatnonzero(lay.existing_pool == pool)
    columns = builder.columns((len(existing), *tab.shape[:2]))
    costs.append(cost[lay.existing[existing]].ravel())
    builder.put(rows[None], columns[..., None], size)
    burst = np.flatnonzero(tab.burst.pool == pool)
    columns = builder.columns((len(burst), *tab.shape))
    costs.append(cost[lay.burst[burst]].ravel())
    builder.put(rows[None], columns, size)
    answer = solve(builder.program(np.concatenate(costs)))
    if answer is None or answer.row_duals is None:
        return np.zeros(tab.shape)
    found: Floats = np.maximum(0.0, answer.row_duals).reshape(tab.shape)
    return found


def _typical_need(tab: Tables, pool: int) -> Floats:
    mine = tab.need[tab.pool == pool]
    mean: Floats = mine.mean(axis=0) if len(mine) else np.zeros(tab.shape)
    typical: Floats = mean + 1e-3 * (1.0 + mean.max())
    return typical


def _spot_prices(built: Model, *, cost: Floats) -> Floats:
    """[batch pool, scenario, period] of a useful accelerator-hour; inf without spot."""
    tab, lay = built.tab, built.lay
    found = np.full((len(lay.batch_pool), *tab.shape[:2]), INF)
    place: dict[int, int] = {int(a): i for i, a in enumerate(lay.batch_pool)}
    for m, a in enumerate(tab.spot.pool):
        if int(a) in place:
            useful: Floats = tab.n_per_node[a] * tab.spot.useful[m] * tab.hour_h
            per_hour = (cost[lay.spot[m]] / useful).min(axis=2)
            at = place[int(a)]
            found[at] = np.minimum(found[at], per_hour)
    return found


def mean_tables(full: Tables) -> Tables:
    """One scenario: the mean of all, by probability."""
    problem = full.problem
    time = replace(problem.horizon, probability_frac=floats([1.0]), n_shared_periods=None)
    steady = tuple(replace(terms, price_ratio=None) for terms in problem.terms)
    # Profiles are taken from the tables below; the nouns would have to be whole numbers.
    bare = replace(problem, horizon=time, terms=steady, options=(), deferrable=(), limits=())
    weight = problem.horizon.probability_frac
    return replace(
        full,
        problem=replace(bare, options=problem.options, deferrable=problem.deferrable),
        need=np.einsum("s,osqh->oqh", weight, full.need)[:, None],
        work=np.einsum("s,wsq->wq", weight, full.work)[:, None],
        orders=tables(bare).orders,
        burst=_mean_terms(full.burst, weight),
        spot=_mean_terms(full.spot, weight),
    )


def _mean_terms(terms: Terms, weight: Floats) -> Terms:
    mean = np.einsum("s,msq->mq", weight, terms.usd_per_h)[:, None]
    return replace(terms, usd_per_h=mean)


def mean_prices(built: Model) -> Floats | None:
    """[row] prices of a problem with scenarios, from its mean; None where that has no answer."""
    tab = built.tab
    mean = model(mean_tables(tab), integer=False)
    master = open_master(mean, opening_prices(mean))
    found = solve_relaxed(master)
    if not np.isfinite(found.objective):
        return None
    weight = tab.problem.horizon.probability_frac
    prices = np.zeros(built.program.n_rows)
    for (rows, _), (mean_rows, _) in zip(pool_rows(built), pool_rows(mean), strict=True):
        shape = (1, len(weight)) + (1,) * (rows.ndim - 2)
        prices[rows] = master.best[mean_rows] * weight.reshape(shape)
    return prices
