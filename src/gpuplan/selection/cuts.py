"""Rows that know nodes are whole: the relaxed problem may not hold 0.4 of a node.

In an hour with needs x (in nodes) of the workloads C that run in a pool, n >= ceil(sum of C) holds
as long as all of C stay. Mixed-integer rounding [Marchand2001] says by how much it falls when one
leaves (at most τ) and rises when one joins (at least σ). Hours of a cluster are averaged like the
needs themselves; means of valid rows are valid.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.tables import Tables

# Shares below this do not make a workload part of the set that a cut is built on.
PART = 0.5
VIOLATED = 1e-4


@dataclass(frozen=True)
class Cut:
    """Weighted nodes − option coefficients >= right side, for each scenario and period given."""

    pool: int
    scenario: Ints  # [row]
    period: Ints
    weight: Floats  # [row, cluster] of the nodes held
    options: Ints
    coefficient: Floats  # [row, option]
    right: Floats  # [row]
    has_burst: bool = True  # False: rented nodes are at their quota, on the right side


@dataclass(frozen=True)
class Point:
    """A solution of the relaxed problem, as cuts see it."""

    choose: Floats  # [option]
    nodes: Floats  # [pool, scenario, period, cluster]
    committed: Floats  # [pool, scenario, period] ordered or there already
    price: Floats  # [pool, scenario, period, cluster] of a node


def rounding_cuts(full: Tables, cluster: Ints, point: Point) -> list[Cut]:
    """For every pool the rows that the point breaks."""
    cuts: list[Cut | None] = []
    for pool in np.unique(full.pool[point.choose > 1e-6]):
        rows = _pool_rows(full, point, pool=int(pool))
        if rows is not None:
            cuts.append(_averaged(full, cluster, point, pool=int(pool), rows=rows))
            cuts.append(_at_peak(full, point, pool=int(pool), rows=rows))
    return [cut for cut in cuts if cut is not None]


def _pool_rows(full: Tables, point: Point, *, pool: int) -> tuple[Ints, Floats, Floats] | None:
    """Options, their coefficients and the right sides, hour by hour."""
    options = np.flatnonzero((full.pool == pool) & (full.slice_kind == 0))
    mains = _mains(full.workload[options], point.choose[options])
    if not len(mains):
        return None
    need = full.need[options] / full.n_per_node[pool]
    total = need[mains].sum(axis=0)
    top = np.ceil(total - 1e-9)
    part = np.clip(total - top + 1.0, 1e-9, 1.0)
    coefficient = joins(need, part)
    coefficient[mains] = leaves(need[mains], part)
    return options, coefficient, top - coefficient[mains].sum(axis=0)


def _at_peak(
    full: Tables, point: Point, *, pool: int, rows: tuple[Ints, Floats, Floats]
) -> Cut | None:
    """The worst hour of each period must be met though merged hours hide it.

    What cannot be rented, because the quota ends, must be ordered or there already.
    """
    options, coefficient, right = rows
    quota = float(full.burst.n_max[full.burst.pool == pool].sum())
    asked = right + np.tensordot(point.choose[options], coefficient, axes=(0, 0))
    short = asked.max(axis=2) - quota - point.committed[pool]
    s, q = np.nonzero(short > VIOLATED * (1.0 + point.committed[pool]))
    if not len(s):
        return None
    h = asked.argmax(axis=2)[s, q]
    weight = np.zeros((len(s), point.nodes.shape[3]))
    weight[:, 0] = 1.0
    return Cut(
        pool=pool,
        scenario=s,
        period=q,
        weight=weight,
        options=options,
        coefficient=coefficient[:, s, q, h].T,
        right=right[s, q, h] - quota,
        has_burst=False,
    )


def leaves(need: Floats, part: Floats) -> Floats:
    """τ: the most that the rounded sum falls when this need leaves it."""
    whole = np.floor(need + 1e-9)
    fell: Floats = whole + np.minimum(1.0, np.maximum(0.0, need - whole) / part)
    return fell


def joins(need: Floats, part: Floats) -> Floats:
    """σ: the least that the rounded sum rises when this need joins it."""
    whole = np.floor(need + 1e-9)
    rest = np.maximum(0.0, need - whole)
    rose: Floats = whole + np.maximum(0.0, (rest - (1.0 - part)) / part)
    return rose


def _mains(workload: Ints, choose: Floats) -> Ints:
    """For each workload that mostly runs here, the option with the largest share."""
    found = []
    for w in np.unique(workload[choose > 1e-6]):
        mine = np.flatnonzero(workload == w)
        if choose[mine].sum() > PART:
            found.append(int(mine[np.argmax(choose[mine])]))
    return np.array(found, dtype=np.int64)


def _averaged(
    full: Tables,
    cluster: Ints,
    point: Point,
    *,
    pool: int,
    rows: tuple[Ints, Floats, Floats],
) -> Cut | None:
    """Means over the hours of a cluster; rows that hold already or cost nothing are left out."""
    options, coefficient, right = rows
    n_clusters = point.nodes.shape[3]
    share = full.hour_h / np.bincount(cluster, full.hour_h)[cluster]
    mean = np.zeros((len(cluster), n_clusters))
    mean[np.arange(len(cluster)), cluster] = share
    summed, bound = coefficient @ mean, right @ mean
    held = point.nodes[pool]
    asked = bound + np.tensordot(point.choose[options], summed, axes=(0, 0))
    is_broken = (asked - held > VIOLATED * (1.0 + held)) & (point.price[pool] > 0)
    s, q, k = np.nonzero(is_broken)
    if not len(s):
        return None
    weight = np.zeros((len(s), n_clusters))
    weight[np.arange(len(s)), k] = 1.0
    return Cut(
        pool=pool,
        scenario=s,
        period=q,
        weight=weight,
        options=options,
        coefficient=summed[:, s, q, k].T,
        right=bound[s, q, k],
    )
