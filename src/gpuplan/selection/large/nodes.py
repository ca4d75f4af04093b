"""Counts of nodes: what options need, what is held, what must be rented."""

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.program.tables import Tables


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


def provisioned_nodes(full: Tables, orders: Floats, existing: Floats) -> Floats:
    """[pool, scenario, period] nodes from orders [order] and switched on [pool, s, q]."""
    provisioned = existing.copy()
    for i in np.flatnonzero(orders):
        provisioned[full.orders.pool[i]][full.orders.served(i)] += orders[i]
    return provisioned


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
