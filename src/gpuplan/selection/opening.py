"""Prices of an accelerator-hour in a pool before anything runs there.

Lawful prices (no node costs less than what it can carry is worth) for a typical need: where nothing
runs yet, the relaxed problem itself would say "free".
"""

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.selection.builder import INF, Builder
from gpuplan.selection.measures import expected
from gpuplan.selection.program import Model
from gpuplan.selection.solver import solve
from gpuplan.selection.tables import Tables


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
        s = tab.orders.scenario[i]
        where = slice(None) if s < 0 else slice(s, s + 1)
        builder.put(rows[where, tab.orders.first[i] : tab.orders.last[i]], column, size)
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
