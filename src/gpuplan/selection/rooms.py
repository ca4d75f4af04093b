"""What named limits leave for one pool while the others stand where they are.

A limit's price in the relaxed problem joins the cost of orders; what is left of it, with everything
else at its relaxed or fixed amount, is the most that the pool may take.
"""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.master import Columns, Master, Relaxed
from gpuplan.selection.pools import Costs, Room
from gpuplan.selection.program import limit_key


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
    row, column, value = _entries(master.early, rows)
    n_columns = len(master.early.number)
    taken = np.bincount(column, found.duals[rows][row] * value, minlength=n_columns)
    at = np.searchsorted(master.early.number, master.built.lay.order)
    return replace(costs, order=costs.order - taken[at])


def room_for(master: Master, found: Relaxed, pool: int) -> Room | None:
    """What the orders of a pool may take; None where there are no limits."""
    rows = limit_rows(master)
    if not len(rows):
        return None
    mine = master.built.lay.order[master.built.tab.orders.pool == pool]
    used = np.zeros(len(rows))
    for columns in (master.early, master.late):
        row, column, value = _entries(columns, rows)
        used += np.bincount(row, value * found.values[columns.number[column]], minlength=len(rows))
    row, column, value = _entries(master.early, rows)
    number = master.early.number[column]
    is_mine = np.isin(number, mine)
    coefficient = np.zeros((len(rows), len(mine)))
    coefficient[row[is_mine], np.searchsorted(mine, number[is_mine])] = value[is_mine]
    others = used - coefficient @ found.values[mine]
    # What rounding took beyond the limit cannot be mended here: nothing is left then.
    left = np.maximum(0.0, master.row_upper[rows] - others) * (1 + 1e-9) + 1e-9
    counts = np.any(coefficient != 0.0, axis=1)
    return Room(coefficient[counts], left[counts])


def _entries(columns: Columns, rows: Ints) -> tuple[Ints, Ints, Floats]:
    """Place among the rows, position of the column, and value, of all entries in these rows."""
    place = np.full(int(max(columns.row.max(initial=0), rows.max())) + 1, -1)
    place[rows] = np.arange(len(rows))
    column = np.repeat(np.arange(len(columns.number)), np.diff(columns.starts))
    kept = place[columns.row] >= 0
    return place[columns.row[kept]], column[kept], columns.value[kept]
