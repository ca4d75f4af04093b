"""GPUs for jobs that need part of one: MIG partitions with lawful geometries, MPS, time-slicing."""

from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np

from gpuplan.domain.cluster.answer import FractionAdvice, FractionOption
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, SlicePlaces
from gpuplan.domain.cluster.jobs import ANY, Jobs, column
from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.slices import SliceRule, maximal_geometries
from gpuplan.units import HOURS_PER_MONTH

BUSY_FRAC = 0.99  # of the time for which a partition is enough
ISOLATION = {
    "whole GPUs": "full: memory, bandwidth and faults of its own",
    "MIG": "memory, bandwidth, compute and faults of its own; a partition changes only when empty",
    "MPS": "memory limit per client, compute share; bandwidth is shared, a fault can stop all",
    "time-slicing": "none: turns of the whole GPU, no memory limit, latency grows with neighbours",
}


def fraction_advice(cluster: Cluster, jobs: Jobs) -> tuple[FractionAdvice, ...]:
    """For each GPU type with MIG: how many GPUs the fractional jobs need, by way of sharing."""
    share = column(jobs.needs.share_frac, len(jobs), 1.0)
    able = np.flatnonzero((share < 1) | (column(jobs.needs.profile, len(jobs), ANY) != ANY))
    known, found = set(), []
    for group in cluster.groups:
        if group.slices and group.accelerator not in known and len(able):
            known.add(group.accelerator)
            found.append(_advice(group, jobs, able, share[able]))
    return tuple(one for one in found if one is not None)


def fraction_notes(cluster: Cluster, jobs: Jobs) -> Iterator[str]:
    """Why no partition is advised: no GPU with MIG, or no job on part of one."""
    if not any(group.slices for group in cluster.groups):
        names = ", ".join(dict.fromkeys(group.accelerator for group in cluster.groups))
        yield f"MIG: {names} cannot be cut into slices"
    elif not fraction_advice(cluster, jobs):
        yield (
            "MIG: every job asks for whole GPUs, so nothing can be packed; give jobs on part of "
            "one as gpus below 1 or with a mig_profile, as gpuplan diagnose finds them"
        )


def _advice(group: NodeGroup, jobs: Jobs, able: Ints, share: Floats) -> FractionAdvice | None:
    profiles = sorted(group.slices, key=lambda one: (one.share_frac, one.n_places))
    kind = np.searchsorted([one.share_frac for one in profiles], share - 1e-9)
    kind = np.minimum(kind, len(profiles) - 1)
    span = jobs.arrive_s[able], jobs.arrive_s[able] + jobs.duration_s[able]
    wanted = [
        int(busy_level(span[0][kind == k], span[1][kind == k], np.ones((kind == k).sum())))
        for k in range(len(profiles))
    ]
    if not sum(wanted):
        return None
    partitions = partition(profiles, wanted)
    n_whole = int(busy_level(*span, np.ones(len(able))))
    n_shared = ceil(busy_level(*span, share) - 1e-9)
    counts = {
        "whole GPUs": n_whole,
        "MIG": sum(n for _, n in partitions),
        "MPS": n_shared,
        "time-slicing": n_shared,
    }
    return FractionAdvice(
        accelerator=group.accelerator,
        slices=tuple((p.profile, n) for p, n in zip(profiles, wanted, strict=True) if n),
        partitions=partitions,
        options=tuple(_option(group, way, n) for way, n in counts.items()),
    )


def _option(group: NodeGroup, way: str, n: int) -> FractionOption:
    usd = group.usd_per_accelerator_h
    return FractionOption(
        way=way,
        n_accelerators=n,
        usd_per_month=None if usd is None else n * usd * HOURS_PER_MONTH,
        isolation=ISOLATION[way],
    )


def busy_level(begin_s: Floats, end_s: Floats, weight: Floats) -> float:
    """What runs at once for all but 1 % of the time, were no job to wait."""
    if not len(begin_s):
        return 0.0
    at = np.concatenate([begin_s, end_s])
    order = np.argsort(at, kind="stable")
    level = np.cumsum(np.concatenate([weight, -weight])[order])[:-1]
    lasts = np.diff(at[order])
    by_level = np.argsort(level, kind="stable")
    passed = np.cumsum(lasts[by_level])
    if passed[-1] == 0:
        return float(level.max())
    place = int(np.searchsorted(passed, BUSY_FRAC * passed[-1]))
    return float(level[by_level][min(place, len(level) - 1)])


def partition(
    profiles: Sequence[SlicePlaces], wanted: Sequence[int]
) -> tuple[tuple[str, int], ...]:
    """The fewest GPUs, each with a lawful geometry, that hold the slices.

    A job may run on a larger slice than it asks for: of every profile and those above it there are
    at least as many slices as jobs.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    rules = [SliceRule(kind=p.profile, starts=p.starts, n_places=p.n_places) for p in profiles]
    geometries = maximal_geometries(rules, pool="")
    rows = np.array([[*_at_least(dict(g.counts), profiles)] for g in geometries]).T
    needed = np.cumsum(wanted[::-1])[::-1]
    solved = milp(
        np.ones(len(geometries)),
        constraints=LinearConstraint(rows, lb=needed),
        bounds=Bounds(0, np.inf),
        integrality=np.ones(len(geometries), np.int64),
    )
    counts = np.rint(np.asarray(solved.x)).astype(np.int64)
    return tuple((g.name, int(n)) for g, n in zip(geometries, counts, strict=True) if n)


def _at_least(counts: dict[str, int], profiles: Sequence[SlicePlaces]) -> Iterator[int]:
    """Slices of each profile or a larger one."""
    for k in range(len(profiles)):
        yield sum(counts.get(p.profile, 0) for p in profiles[k:])
