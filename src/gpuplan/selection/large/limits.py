"""What named limits leave for one pool while the others stay where they are.

A limit's price in the relaxed problem joins the cost of orders; what is left of it, with everything
else at its relaxed or fixed amount, is the most that the pool may take.
"""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.large.master import Master, Relaxed
from gpuplan.selection.large.pools import Costs, LimitHeadroom
from gpuplan.selection.program.model import limit_key


def limit_rows(master: Master) -> Ints:
    """Rows of the user's limits."""
    built = master.built
    blocks = [built.rows[limit_key(x.name)].ravel() for x in built.tab.problem.limits]
    return np.concatenate([*blocks, np.zeros(0, dtype=np.int64)])


def priced(master: Master, costs: Costs, found: Relaxed) -> Costs:
    """Costs with what orders take of the limits, at the limits' prices."""
    rows = limit_rows(master)
    if not len(rows):
        return costs
    taken: Floats = master.early.matrix[rows].T @ found.duals[rows]
    at = np.searchsorted(master.early.number, master.built.lay.order)
    return replace(costs, order=costs.order - taken[at])


def room_for(master: Master, found: Relaxed, pool: int) -> LimitHeadroom | None:
    """What the orders of a pool may take; None where there are no limits."""
    rows = limit_rows(master)
    if not len(rows):
        return None
    mine = master.built.lay.order[master.built.tab.orders.pool == pool]
    used = sum(
        columns.matrix[rows] @ found.values[columns.number]
        for columns in (master.early, master.late)
    )
    at = np.searchsorted(master.early.number, mine)
    coefficient = master.early.matrix[rows][:, at].toarray()
    others = used - coefficient @ found.values[mine]
    # What rounding took beyond the limit cannot be mended here: nothing is left then.
    left = np.maximum(0.0, master.row_upper[rows] - others) * (1 + 1e-9) + 1e-9
    counts = np.any(coefficient != 0.0, axis=1)
    return LimitHeadroom(coefficient[counts], left[counts])
