"""Fleets to choose from, whole accelerators and fractions of them.

A fraction is worth its price where several services share one accelerator. Alone, a service pays
for the whole: then a whole accelerator that takes no more of them is quicker for the same money.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.selection import FleetOption, SliceGeometry
from gpuplan.domain.plan.sizing import Sized
from gpuplan.selection.slices import maximal_geometries, mig_rules, time_slices


class FleetRow(NamedTuple):
    """An option with the sized fleet behind it."""

    option: FleetOption
    sized: Sized
    n_per_node: int
    load_frac: Floats = floats([])  # by hour, over the peak; empty: as at the peak throughout
    place: Ints = ints([])  # of each hour of the axis among the hours of the fleet
    is_window: bool = False  # deferrable work in quiet hours only
    is_run: bool = False  # all accelerators train together


def with_fractions(rows: Sequence[FleetRow], *, is_sharing: bool) -> list[FleetRow]:
    """The rows, fractions that others may share counted as slices, others only where they pay."""
    users: dict[str, set[str]] = {}
    for row in rows:
        if row.sized.candidate.share is not None:
            users.setdefault(row.option.pool, set()).add(row.option.workload)
    shared = {pool for pool, names in users.items() if is_sharing and len(names) > 1}
    whole = [row for row in rows if row.sized.candidate.share is None]
    return _surest_of_equals(
        _sliced(row) if row.option.pool in shared else row
        for row in rows
        if row.option.pool in shared or not _is_beaten(row, whole)
    )


def _is_beaten(row: FleetRow, whole: Iterable[FleetRow]) -> bool:
    """Whether whole accelerators do it as precisely in the same nodes, with no more at any time."""
    mine = row.option
    return row.sized.candidate.share is not None and any(
        other.option.workload == mine.workload
        and other.option.pool == mine.pool
        and other.sized.candidate.precision == row.sized.candidate.precision
        and other.option.n_reserve <= mine.n_reserve
        and bool((other.option.need <= mine.need).all())
        for other in whole
    )


def _surest_of_equals(rows: Iterable[FleetRow]) -> list[FleetRow]:
    """Of fleets that need the same nodes at all times the surest, then the quickest."""
    best: dict[tuple[object, ...], FleetRow] = {}
    for row in rows:
        key = _paid_alike(row)
        if key not in best or _unsureness(row) < _unsureness(best[key]):
            best[key] = row
    return list(best.values())


def _paid_alike(row: FleetRow) -> tuple[object, ...]:
    option, candidate = row.option, row.sized.candidate
    if row.is_run:
        return (option.workload, option.name)
    of = candidate.accelerator, candidate.precision, candidate.engine, candidate.offer
    paid = option.n_reserve, option.once_usd, option.time_s, option.need.tobytes()
    return (option.workload, option.pool, option.slice_kind, row.is_window, *of, *paid)


def _unsureness(row: FleetRow) -> tuple[float, float, float]:
    """How likely an SLO is violated: the share of its capacity, then of its tightest target.

    Errors of both are as wide for fleets of one accelerator: who has more room is surer.
    """
    used = [x.reached_s.value / x.limit_s for x in row.sized.limits]
    tightest = max(used, default=0.0)
    busy = row.sized.utilization.peak_frac or 0.0
    return max(busy, tightest), tightest, sum(used)


def _sliced(row: FleetRow) -> FleetRow:
    """Fractional GPUs that several services may share: counted as slices, not as wholes."""
    share = row.sized.candidate.share
    if share is None:
        return row
    like = row.option.need.shape
    n = row.sized.need.n_replicas[: like[0]][:, :, row.place]
    n = np.pad(n, ((0, 0), (like[1] - n.shape[1], 0), (0, 0)))  # what begins later
    return row._replace(option=replace(row.option, need=ints(n), slice_kind=share.name))


def geometries_of(rows: Iterable[FleetRow], catalog: Catalog) -> Iterator[SliceGeometry]:
    """How shared accelerators of each pool may be cut: MIG profiles mix, time slices do not."""
    pools: dict[str, dict[str, Candidate]] = {}
    for row in rows:
        if row.option.slice_kind:
            pools.setdefault(row.option.pool, {})[row.option.slice_kind] = row.sized.candidate
    for pool, kinds in pools.items():
        for kind, candidate in kinds.items():
            if candidate.share is not None and candidate.share.kind == "time_slice":
                yield time_slices(kind, candidate.share.n_per_accelerator, pool=pool)
        first = next(iter(kinds.values()))
        rules = mig_rules(catalog.mig_profiles_of(first.accelerator))
        used = [rule for rule in rules if rule.kind in kinds]
        yield from maximal_geometries(used, pool=pool)
