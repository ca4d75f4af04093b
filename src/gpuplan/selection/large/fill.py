"""Deferrable work laid into what is free, and whole nodes rented for the rest.

With nodes and firm work given, nothing joins one period to another, so each scenario and period is
a small program: accelerator-hours of work against whole nodes for whole hours. They are solved side
by side; what each finds does not depend on the others, nor on how many there are at a time.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.large.pools import Costs
from gpuplan.selection.program.builder import Builder
from gpuplan.selection.program.solver import Effort, solve
from gpuplan.selection.program.tables import Tables, Terms

GAP = 1e-3
N_NODES = 300
N_THREADS = 2


@dataclass(frozen=True)
class DeferrablePlacement:
    """Batch shares [option, s, q] and the nodes rented for them [terms, s, q, h]."""

    share: Floats
    burst: Floats
    spot: Floats


def fill(
    full: Tables, costs: Costs, *, free_h: Floats, burst: Floats
) -> DeferrablePlacement | None:
    """Work done in free accelerator-hours [pool, s, q] and nodes rented beside `burst`."""
    share = np.zeros((len(full.shares.pool), *full.shape[:2]))
    more, spot = burst.copy(), np.zeros((len(full.spot.pool), *full.shape))
    places = list(np.ndindex(*full.shape[:2]))
    cells = [_Cell(full, costs, s, q, free_h[:, s, q], burst[:, s, q]) for s, q in places]
    with ThreadPoolExecutor(N_THREADS) as threads:
        solved = list(threads.map(_fill_cell, cells))
    for (s, q), done in zip(places, solved, strict=True):
        if done is None:
            return None
        share[:, s, q], extra, spot[:, s, q] = done
        more[:, s, q] += extra
    return DeferrablePlacement(share, more, spot)


@dataclass(frozen=True)
class _Cell:
    full: Tables
    costs: Costs
    scenario: int
    period: int
    free_h: Floats  # [pool]
    burst: Floats  # [terms, hour]


def _fill_cell(cell: _Cell) -> tuple[Floats, Floats, Floats] | None:
    """Shares [option], burst [terms, hour] and spot [terms, hour] for one scenario and period."""
    full = cell.full
    builder = Builder()
    n_pools = len(full.problem.pools)
    any_rows = builder.rows((n_pools,), lower=-cell.free_h)
    firm_rows = builder.rows((n_pools,), lower=-cell.free_h)
    work = full.work[:, cell.scenario, cell.period]
    work_rows = builder.rows((len(work),), lower=work)
    shares = builder.columns((len(full.shares.pool),))
    builder.put(any_rows[full.shares.pool], shares, -1.0)
    is_firm = full.shares.may_spot == 0
    builder.put(firm_rows[full.shares.pool[is_firm]], shares[is_firm], -1.0)
    builder.put(work_rows[full.shares.work], shares, full.shares.rate)
    groups = _groups(full.hour_h)
    left = full.burst.n_max[:, None] - cell.burst
    burst, burst_cost = _units(
        cell, builder, full.burst, left=left, rows=(any_rows, firm_rows), groups=groups
    )
    left = np.broadcast_to(full.spot.n_max[:, None], (len(full.spot.pool), len(full.hour_h)))
    spot, spot_cost = _units(cell, builder, full.spot, left=left, rows=(any_rows,), groups=groups)
    cost = np.concatenate([np.zeros(len(shares)), burst_cost, spot_cost])
    # Nodes are counted, not seconds: the answer is the same on a busy machine.
    effort = Effort(gap_frac=GAP, n_nodes_max=N_NODES)
    answer = solve(builder.program(cost), effort)
    if answer is None:
        return None
    values = answer.values
    rented = _placed(np.rint(values[burst]), full.burst.n_max[:, None] - cell.burst, groups)
    return np.maximum(0.0, values[shares]), rented, _placed(np.rint(values[spot]), left, groups)


def _groups(hour_h: Floats) -> list[Ints]:
    """Positions of the hours, grouped by equal length."""
    return [np.flatnonzero(hour_h == length) for length in np.unique(hour_h)]


def _units(
    cell: _Cell,
    builder: Builder,
    terms: Terms,
    *,
    left: Floats,
    rows: tuple[Ints, ...],
    groups: list[Ints],
) -> tuple[Ints, Floats]:
    """Whole node-hours [terms, group]; hours of one length are alike, so only their sum counts."""
    full = cell.full
    is_burst = terms is full.burst
    cost = (cell.costs.burst if is_burst else cell.costs.spot)[:, cell.scenario, cell.period]
    most = np.stack([left[:, hours].sum(axis=1) for hours in groups], axis=1)
    columns = builder.columns(most.shape, upper=most, integer=True)
    lengths = np.array([full.hour_h[hours[0]] for hours in groups])
    useful = (full.n_per_node[terms.pool] * terms.useful)[:, None] * lengths
    for block in rows:
        builder.put(block[terms.pool][:, None], columns, useful)
    unit = np.stack([cost[:, hours[0]] for hours in groups], axis=1)
    return columns, unit.ravel()


def _placed(units: Floats, left: Floats, groups: list[Ints]) -> Floats:
    """[terms, hour] the node-hours spread evenly over hours that have room."""
    placed = np.zeros(left.shape)
    for m in range(len(units)):
        for g, hours in enumerate(groups):
            todo = units[m, g]
            while todo > 0:
                room = hours[left[m, hours] - placed[m, hours] > 0.5]
                level = room[np.argsort(placed[m, room], kind="stable")][: int(todo)]
                placed[m, level] += 1.0
                todo -= len(level)
    return placed
