"""Rows that know nodes are whole: the relaxed problem may not hold 0.4 of a node.

In an hour with needs x (in nodes) of the workloads C that run in a pool, n >= ceil(sum of C) holds
as long as all of C stay. Mixed-integer rounding [Marchand2001] says by how much it falls when one
leaves (at most τ) and rises when one joins (at least σ).

Merged hours have one count of rented nodes, their mean. It is no less than what any of the hours
together rent: those that ask for more than is held all day are added up, the others left out. Such
rows, as they are broken, make the merged problem as tight as one with every hour in it.
"""

from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.program.tables import Tables

# A workload is in C when its share in the pool is above this; each is tried, the strongest kept.
PARTS = (0.5, 0.3, 0.1, 0.7, 0.9)
VIOLATED = 1e-4


@dataclass(frozen=True)
class Cut:
    """Nodes held, weighted, + rented − option coefficients >= right side, row by row."""

    pool: int
    scenario: Ints  # [row]
    period: Ints
    cluster: Ints
    weight: Floats  # [row] of nodes that are held all day: the share of the hours that are asked
    options: Ints
    coefficient: Floats  # [row, option]
    right: Floats  # [row]
    has_burst: bool = True  # False: rented nodes are at their quota, on the right side


@dataclass(frozen=True)
class RelaxedPoint:
    """A solution of the relaxed problem, as cuts see it."""

    choose: Floats  # [option]
    burst: Floats  # [pool, scenario, period, cluster] rented
    committed: Floats  # [pool, scenario, period] ordered or there already


def rounding_cuts(full: Tables, cluster: Ints, point: RelaxedPoint) -> list[Cut]:
    """For every pool the rows that the point breaks."""
    cuts: list[Cut | None] = []
    for pool in np.unique(full.pool[point.choose > 1e-6]):
        rows = _pool_rows(full, point, pool=int(pool))
        cuts.append(_summed(full, cluster, point, pool=int(pool), rows=rows))
        cuts.append(_at_peak(full, point, pool=int(pool), rows=rows))
    return [cut for cut in cuts if cut is not None]


def _pool_rows(full: Tables, point: RelaxedPoint, *, pool: int) -> tuple[Ints, Floats, Floats]:
    """Options, coefficients and right sides, hour by hour: rounded where that asks for more."""
    options = np.flatnonzero((full.pool == pool) & (full.slice_kind == 0))
    share = point.choose[options]
    need = _with_reserve(full, options, share=share) / full.n_per_node[pool]
    coefficient, right = need.copy(), np.zeros(need.shape[1:])
    requested = np.tensordot(share, need, axes=(0, 0))
    for part in PARTS:
        mains = _mains(full.workload[options], share, part=part)
        if len(mains):
            rounded, bound = _rounded(need, mains)
            now = bound + np.tensordot(share, rounded, axes=(0, 0))
            more = now > requested + 1e-9
            coefficient[:, more], right[more] = rounded[:, more], bound[more]
            requested = np.maximum(requested, now)
    return options, coefficient, right


def _with_reserve(full: Tables, options: Ints, *, share: Floats) -> Floats:
    """Needs of the options; the workload with the largest reserve asks for that too.

    The pool holds back at least what any one of its workloads asks for.
    """
    need = full.need[options].copy()
    reserve = np.array([full.problem.options[i].n_reserve for i in options], dtype=float)
    if reserve.any():
        requested = np.bincount(full.workload[options], share * reserve)
        mine = full.workload[options] == int(requested.argmax())
        need[mine] += reserve[mine][:, None, None, None]
    return need


def _rounded(need: Floats, mains: Ints) -> tuple[Floats, Floats]:
    """Coefficients and right sides of the rounded rows of a set of options."""
    total = need[mains].sum(axis=0)
    top = np.ceil(total - 1e-9)
    part = np.clip(total - top + 1.0, 1e-9, 1.0)
    coefficient = joins(need, part)
    coefficient[mains] = leaves(need[mains], part)
    return coefficient, top - coefficient[mains].sum(axis=0)


def _at_peak(
    full: Tables, point: RelaxedPoint, *, pool: int, rows: tuple[Ints, Floats, Floats]
) -> Cut | None:
    """The worst hour of each period must be met though merged hours hide it.

    What cannot be rented, because the quota ends, must be ordered or there already. Of the rows
    that say so for the sum and for sets of options, the one that is broken most counts.
    """
    options, share = rows[0], point.choose[rows[0]]
    found = _beyond_quota(full, share, pool=pool, rows=rows)
    requested = np.stack([base + np.tensordot(share, rate, axes=(0, 0)) for rate, base in found])
    worst = requested.max(axis=0)
    short = worst.max(axis=2) - point.committed[pool]
    s, q = np.nonzero(short > VIOLATED * (1.0 + point.committed[pool]))
    if not len(s):
        return None
    h = worst.argmax(axis=2)[s, q]
    kind = requested.argmax(axis=0)[s, q, h]
    rates, bases = (np.stack(column) for column in zip(*found, strict=True))
    return Cut(
        pool=pool,
        scenario=s,
        period=q,
        cluster=np.zeros(len(s), dtype=np.int64),
        weight=np.ones(len(s)),
        options=options,
        coefficient=rates[kind, :, s, q, h],
        right=bases[kind, s, q, h],
        has_burst=False,
    )


def _beyond_quota(
    full: Tables, share: Floats, *, pool: int, rows: tuple[Ints, Floats, Floats]
) -> list[tuple[Floats, Floats]]:
    """Coefficients and right sides of nodes that cannot be rented: the sum, and sets of options."""
    options, coefficient, right = rows
    quota = float(full.burst.n_max[full.burst.pool == pool].sum())
    found = [(coefficient, right - quota)]
    for part in PARTS if np.isfinite(quota) else ():
        mains = _mains(full.workload[options], share, part=part)
        if len(mains):
            found.append(beyond(coefficient, quota - right, full.workload[options], mains))
    return found


def beyond(need: Floats, room: Floats, workload: Ints, mains: Ints) -> tuple[Floats, Floats]:
    """Coefficients and right sides of what the needs [option, …] lack beyond the room [...].

    What is lacking is convex in the sum of needs, F with the main option of every workload. Each
    that asks for less than its main option takes off no more than F, each that asks for more adds
    no less than it would with the others gone [Nemhauser1978].
    """
    main = np.zeros((int(workload.max()) + 1, *room.shape))
    main[workload[mains]] = need[mains]
    lacking = np.maximum(0.0, main.sum(axis=0) - room)
    gone = np.minimum(main, lacking)  # [workload, …] what is taken off when it leaves the pool
    mine = main[workload]
    less = -np.minimum(mine - need, lacking)
    more = np.maximum(0.0, need - room) - np.maximum(0.0, mine - room)
    coefficient = np.where(need <= mine, less, more) + gone[workload]
    return coefficient, lacking - gone.sum(axis=0)


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


def _mains(workload: Ints, choose: Floats, *, part: float) -> Ints:
    """For each workload with more than this part here, the option with the largest share."""
    found = []
    for w in np.unique(workload[choose > 1e-6]):
        mine = np.flatnonzero(workload == w)
        if choose[mine].sum() > part:
            found.append(int(mine[np.argmax(choose[mine])]))
    return np.array(found, dtype=np.int64)


def _summed(
    full: Tables,
    cluster: Ints,
    point: RelaxedPoint,
    *,
    pool: int,
    rows: tuple[Ints, Floats, Floats],
) -> Cut | None:
    """The hours of a cluster that ask for more than is held all day, added up, where broken."""
    options, coefficient, right = rows
    n_clusters = point.burst.shape[3]
    share = full.hour_h / np.bincount(cluster, full.hour_h)[cluster]
    mean = np.zeros((len(cluster), n_clusters))
    mean[np.arange(len(cluster)), cluster] = share
    requested = right + np.tensordot(point.choose[options], coefficient, axes=(0, 0))
    provisioned = point.committed[pool][..., None]
    is_requested = requested > provisioned
    short = np.maximum(0.0, requested - provisioned) @ mean - point.burst[pool]
    s, q, k = np.nonzero(short > VIOLATED * (1.0 + provisioned))
    if not len(s):
        return None
    taken = is_requested[s, q] * mean[:, k].T  # [row, hour]
    return Cut(
        pool=pool,
        scenario=s,
        period=q,
        cluster=k,
        weight=taken.sum(axis=1),
        options=options,
        coefficient=np.einsum("orh,rh->ro", coefficient[:, s, q], taken),
        right=(right[s, q] * taken).sum(axis=1),
    )
