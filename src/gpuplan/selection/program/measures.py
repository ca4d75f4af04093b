"""What each decision adds to cost, energy, carbon and the rest: one coefficient per column.

A measure is linear, so a limit on it is a row and an objective of it is a cost vector.
"""

from collections.abc import Collection
from typing import Literal

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.plan.selection import NamedLimit
from gpuplan.selection.program.layout import Layout
from gpuplan.selection.program.tables import Orders, Tables, price_ratio
from gpuplan.units import HOUR

Total = Literal["worth", "upfront", "spend", "energy", "carbon", "time", "risk", "weighted"]


def expected(tab: Tables, lay: Layout, kind: Total) -> Floats:
    """The measure over all periods, weighted by the probability of each scenario."""
    probability = tab.problem.horizon.probability_frac
    return sum(
        (p * total(tab, lay, kind, scenario=s) for s, p in enumerate(probability)),
        start=np.zeros(lay.n_columns),
    )


def total(
    tab: Tables,
    lay: Layout,
    kind: Total,
    *,
    scenario: int,
    periods: Collection[int] = (),
) -> Floats:
    """The measure in one scenario, over the periods named (none named: all)."""
    if kind == "weighted":  # of shares, each of the least that it can be
        parts = [w * total(tab, lay, one, scenario=scenario) for one, w in tab.problem.weights]
        return sum(parts, start=np.zeros(lay.n_columns))
    n_periods = tab.shape[1]
    is_counted = np.array([not periods or q in periods for q in range(n_periods)], dtype=float)
    out = np.zeros(lay.n_columns)
    _add_orders(out, tab, lay, kind=kind, scenario=scenario, counted=is_counted)
    _add_flexible(out, tab, lay, kind=kind, scenario=scenario, counted=is_counted)
    _add_once(out, tab, lay, kind=kind, counted=is_counted)
    return out


def _weights(tab: Tables, kind: Total, counted: Floats) -> Floats:
    """[period] how a running sum counts."""
    discount = tab.problem.horizon.running_discount_frac
    return counted * discount if kind == "worth" else counted


def _rate(tab: Tables, kind: Total, *, is_rented: bool = False) -> Floats:
    """[pool, hour] of a physical measure: what one node adds."""
    mean_w = np.array([pool.mean_w for pool in tab.problem.pools])
    energy_j = mean_w[:, None] * tab.hour_h * HOUR
    if kind == "carbon":
        carbon = tab.least_carbon if is_rented else tab.carbon
        return np.where(energy_j > 0, energy_j * np.nan_to_num(carbon), 0.0)
    return energy_j


def _service(orders: Orders, weights: Floats) -> Floats:
    """Sum of the weights over each order's periods of service."""
    running = np.concatenate([[0.0], np.cumsum(weights)])
    served: Floats = running[orders.last] - running[orders.first]
    return served


def _add_orders(
    out: Floats, tab: Tables, lay: Layout, *, kind: Total, scenario: int, counted: Floats
) -> None:
    orders = tab.orders
    if kind in ("energy", "carbon"):
        per_node = _rate(tab, kind).sum(axis=1)[orders.pool]
        amount = per_node * _service(orders, counted)
    elif kind in ("time", "risk"):
        return
    else:
        amount = _order_usd(tab, kind, scenario=scenario, counted=counted)
    out[lay.order] += amount * np.isin(orders.scenario, (-1, scenario)).astype(float)


def _order_usd(tab: Tables, kind: Total, *, scenario: int, counted: Floats) -> Floats:
    orders, horizon = tab.orders, tab.problem.horizon
    terms = tab.problem.terms
    ratio = np.array(
        [
            price_ratio(tab.problem, m)[scenario, q]
            for m, q in zip(orders.terms, orders.period, strict=True)
        ]
    )
    weight = counted * horizon.upfront_discount_frac if kind == "worth" else counted
    upfront = np.array([terms[m].upfront_usd for m in orders.terms])
    usd: Floats = ratio * upfront * weight[orders.period]
    if kind == "upfront":
        return usd
    hourly = np.array([terms[m].usd_per_node_h for m in orders.terms])
    usd = usd + ratio * hourly * tab.hour_h.sum() * _service(orders, _weights(tab, kind, counted))
    return usd - residual_usd(tab) * horizon.end_discount_frac if kind == "worth" else usd


def residual_usd(tab: Tables) -> Floats:
    """What a node of each order is still worth at the end."""
    rows = zip(tab.orders.terms, tab.orders.last - tab.orders.first, strict=True)
    values = [(tab.problem.terms[m].residual_usd, age) for m, age in rows]
    return np.array([0.0 if retained is None else retained[age] for retained, age in values])


def _add_flexible(
    out: Floats, tab: Tables, lay: Layout, *, kind: Total, scenario: int, counted: Floats
) -> None:
    if kind in ("time", "risk", "upfront"):
        return
    weights = _weights(tab, kind, counted)
    for columns, terms in ((lay.burst, tab.burst), (lay.spot, tab.spot)):
        if kind in ("energy", "carbon"):
            rate = _rate(tab, kind, is_rented=True)[terms.pool]
            per_node = weights[:, None] * rate[:, None, :]
        else:
            hourly = terms.usd_per_h[:, scenario] * weights
            per_node = hourly[:, :, None] * tab.hour_h
        out[columns[:, scenario]] += per_node
    _add_existing(out, tab, lay, kind=kind, columns=lay.existing[:, scenario], weights=weights)


def _add_existing(
    out: Floats, tab: Tables, lay: Layout, *, kind: Total, columns: Ints, weights: Floats
) -> None:
    pools = lay.existing_pool
    if kind in ("energy", "carbon"):
        per_node = _rate(tab, kind).sum(axis=1)[pools]
    else:
        hourly = np.array([tab.problem.pools[a].existing_usd_per_node_h for a in pools])
        per_node = hourly * tab.hour_h.sum()
    out[columns] += per_node[:, None] * weights


def _add_once(out: Floats, tab: Tables, lay: Layout, *, kind: Total, counted: Floats) -> None:
    options = tab.problem.options
    if kind == "time":
        out[lay.choose] += np.array([o.time_s for o in options])
    elif kind == "risk":
        out[lay.choose] += np.array([o.risk_frac for o in options])
    elif kind in ("worth", "spend"):
        first = tab.problem.horizon.upfront_discount_frac[0] if kind == "worth" else 1.0
        out[lay.choose] += np.array([o.once_usd for o in options]) * first * counted[0]


def instant_rate(tab: Tables, limit: NamedLimit) -> Floats:
    """[pool] what one node counts against a limit that holds at every hour."""
    pools = tab.problem.pools
    is_in = np.array([not limit.pools or p.name in limit.pools for p in pools], dtype=float)
    per_node = {
        "power": [p.max_w for p in pools],
        "racks": [p.n_racks_per_node for p in pools],
        "nodes": [1.0] * len(pools),
        "accelerators": [float(p.n_accelerators_per_node) for p in pools],
    }[limit.kind]
    rate: Floats = is_in * np.array(per_node)
    return rate
