"""Rows that know nodes are whole: the relaxed problem may not hold 0.4 of a node.

In an hour with needs x (in nodes) of the workloads C that run in a pool, n >= ceil(sum of C) holds
as long as all of C stay. Mixed-integer rounding [Marchand2001] says by how much it falls when one
leaves (at most τ) and rises when one joins (at least σ). Hours are added up with weights, so that
one row serves a pool, a scenario and a period; sums of valid rows are valid.
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


@dataclass(frozen=True)
class Point:
    """A solution of the relaxed problem, as cuts see it."""

    choose: Floats  # [option]
    nodes: Floats  # [pool, scenario, period, cluster]
    price: Floats  # [pool, scenario, period, cluster] of a node


def rounding_cuts(full: Tables, cluster: Ints, point: Point) -> list[Cut]:
    """For every pool the rows that the point breaks."""
    cuts = []
    for pool in np.unique(full.pool[point.choose > 1e-6]):
        cut = _pool_cut(full, cluster, point, pool=int(pool))
        if cut is not None:
            cuts.append(cut)
    return cuts


def _pool_cut(full: Tables, cluster: Ints, point: Point, *, pool: int) -> Cut | None:
    options = np.flatnonzero((full.pool == pool) & (full.slice_kind == 0))
    mains = _mains(full.workload[options], point.choose[options])
    if not len(mains) or not point.price[pool].any():
        return None
    need = full.need[options] / full.n_per_node[pool]
    total = need[mains].sum(axis=0)
    top = np.ceil(total - 1e-9)
    part = np.clip(total - top + 1.0, 1e-9, 1.0)
    coefficient = joins(need, part)
    coefficient[mains] = leaves(need[mains], part)
    right = top - coefficient[mains].sum(axis=0)
    return _weighted(full, cluster, point, pool=pool, rows=(options, coefficient, right))


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


def _weighted(
    full: Tables,
    cluster: Ints,
    point: Point,
    *,
    pool: int,
    rows: tuple[Ints, Floats, Floats],
) -> Cut | None:
    """Hours added up with the price of a node as weight; rows that hold already are left out."""
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
