"""The cheapest fleet that meets every target: one kind, two kinds, then small steps from there.

More nodes never make waits longer but for anomalies of packing; every fleet that is answered was
simulated and meets the targets, and with one node less of any kind it does not.
"""

from collections.abc import Callable, Iterable, Iterator
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np

from gpuplan.candidates.search import smallest_that_holds
from gpuplan.domain.cluster.jobs import Jobs, column
from gpuplan.studies.cluster.planning.judge import Fleet, Judge
from gpuplan.studies.cluster.planning.quotas import moved
from gpuplan.units import HOURS_PER_MONTH

MOST_TIMES = 4  # the GPUs that all jobs would hold were none to wait
N_GRID = 24  # numbers of a kind that are tried beside another
N_MOVES = 6  # of quota from team to team, for one fleet


class Bounds(NamedTuple):
    """Fewest and most nodes of every kind."""

    low: tuple[int, ...]
    high: tuple[int, ...]


def node_bounds(judge: Judge, *, is_limited: bool = True) -> Bounds:
    """By the file, by jobs and services that ask for one kind, and by what could ever be useful."""
    reserved = sum(
        service.n_accelerators_per_replica * max(service.replicas_by_hour)
        for service in judge.cluster.services
    )
    peak, gang = _most_allocated(judge.jobs), int(judge.jobs.n_accelerators.max(initial=1))
    low, high = [], []
    for node in judge.nodes:
        group, size = node.group, node.group.n_accelerators_per_node
        needed = ceil(_requested_nodes(judge, group.accelerator) / size)
        provisioned = MOST_TIMES * (peak / (group.speed_ratio or 1.0) + reserved) / size
        useful = ceil(provisioned) + ceil(gang / size) + 1
        low.append(max(group.bounds.n_min, needed))
        limit = group.bounds.n_max if is_limited else None
        high.append(useful if limit is None else limit)
    return Bounds(tuple(map(min, low, high)), tuple(high))


def _requested_nodes(judge: Judge, accelerator: str) -> int:
    """The largest gang or replica that runs on this kind alone, where only one group has it."""
    kinds = [node.group.accelerator for node in judge.nodes]
    if kinds.count(accelerator) > 1:
        return 0
    replicas = [
        service.n_accelerators_per_replica * max(service.replicas_by_hour)
        for service in judge.cluster.services
        if service.accelerator == accelerator
    ]
    needs, jobs = judge.jobs.needs, judge.jobs
    gang = 0
    if accelerator in needs.accelerator_names:
        mine = needs.accelerator == needs.accelerator_names.index(accelerator)
        gang = int(jobs.n_accelerators[mine].max(initial=0))
    return max(sum(replicas), gang)


def _most_allocated(jobs: Jobs) -> float:
    """GPUs that run at once at most, were none to wait."""
    gpus = jobs.n_accelerators * column(jobs.needs.share_frac, len(jobs), 1.0)
    at = np.concatenate([jobs.arrive_s, jobs.arrive_s + jobs.duration_s])
    change = np.concatenate([gpus, -gpus])[np.argsort(at, kind="stable")]
    return float(np.cumsum(change).max(initial=1.0))


def cheapest_of(
    judge: Judge,
    bounds: Bounds,
    ways: Iterable[Fleet],
    holds: Callable[[Fleet], bool],
    below_usd: float = inf,
) -> Fleet | None:
    """The cheapest fleet under any policy and quotas; the first of them where they are equal."""
    best = None
    for way in ways:
        found = _cheapest(judge, bounds, way, holds, below_usd)
        if found is not None:
            best, below_usd = found, judge.usd_per_month(found.counts)
    return best


def _cheapest(
    judge: Judge, bounds: Bounds, start: Fleet, holds: Callable[[Fleet], bool], below_usd: float
) -> Fleet | None:
    """The cheapest fleet of the start's policy and quotas that costs less than the bound."""
    best: Fleet | None = None
    for fleet in _single(judge, bounds, start, holds):
        usd = judge.usd_per_month(fleet.counts)
        if usd < below_usd:
            best, below_usd = fleet, usd
    for fleet in _pairs(judge, bounds, start, holds, best):
        usd = judge.usd_per_month(fleet.counts)
        if usd < below_usd:
            best, below_usd = fleet, usd
    return None if best is None else descended(judge, bounds, best, holds)


def _single(
    judge: Judge, bounds: Bounds, start: Fleet, holds: Callable[[Fleet], bool]
) -> Iterator[Fleet]:
    """The least nodes of each kind beside the fewest of the others."""
    least = start._replace(counts=bounds.low)
    for kind in range(len(bounds.low)):
        n = least_of(judge, least, kind, holds, most=bounds.high[kind])
        if n is not None:
            yield least.with_count(kind, n)


def least_of(
    judge: Judge, fleet: Fleet, kind: int, holds: Callable[[Fleet], bool], *, most: int
) -> int | None:
    """The least nodes of one kind, no fewer than the fleet has; None where none up to most do."""
    low = fleet.counts[kind]
    group = judge.nodes[kind].group
    mean = _mean_allocated(judge.jobs) / (group.speed_ratio or 1.0) / group.n_accelerators_per_node
    guess = min(max(low, ceil(0.8 * mean)), most)
    if most < low:
        return None

    def is_enough(n: int) -> bool:
        return holds(fleet.with_count(kind, n))

    if low < guess and is_enough(guess):
        return _down(is_enough, low, guess)
    return smallest_that_holds(is_enough, max(guess, low), 2 * guess + 1, most=most)


def _down(is_enough: Callable[[int], bool], low: int, provisioned: int) -> int:
    """The least between a number that may fail and one that holds."""
    if is_enough(low):
        return low
    while provisioned - low > 1:
        middle = (low + provisioned) // 2
        low, provisioned = (low, middle) if is_enough(middle) else (middle, provisioned)
    return provisioned


def _mean_allocated(jobs: Jobs) -> float:
    gpus = jobs.n_accelerators * column(jobs.needs.share_frac, len(jobs), 1.0)
    return float((gpus * jobs.duration_s).sum() / max(jobs.span_s, 1.0))


def _pairs(
    judge: Judge,
    bounds: Bounds,
    start: Fleet,
    holds: Callable[[Fleet], bool],
    best: Fleet | None,
) -> Iterator[Fleet]:
    """Some of one kind, and the least of another that is cheaper than the best so far."""
    usd = inf if best is None else judge.usd_per_month(best.counts)
    for one in range(len(bounds.low)):
        for other in range(len(bounds.low)):
            if one == other:
                continue
            for n in _grid(bounds.low[one] + 1, bounds.high[one]):
                fleet = start._replace(counts=bounds.low).with_count(one, n)
                most = min(bounds.high[other], _affordable(judge, fleet, other, usd))
                if most < bounds.low[other]:
                    break
                if most < 1 or not holds(fleet.with_count(other, most)):
                    continue
                k = least_of(judge, fleet, other, holds, most=most)
                if k is not None:
                    found = fleet.with_count(other, k)
                    usd = judge.usd_per_month(found.counts)
                    yield found


def _grid(low: int, high: int) -> list[int]:
    if high < low:
        return []
    return sorted({round(n) for n in np.linspace(low, high, min(N_GRID, high - low + 1))})


def _affordable(judge: Judge, fleet: Fleet, kind: int, below_usd: float) -> int:
    """The most nodes of the kind with which the fleet is cheaper than the bound."""
    if below_usd == inf:
        return 1 << 30
    rest = below_usd - judge.usd_per_month(fleet.with_count(kind, 0).counts)
    each = judge.nodes[kind].usd_per_h.mid * HOURS_PER_MONTH
    return ceil(rest / each - 1e-9) - 1 if each else 1 << 30


def descended(
    judge: Judge,
    bounds: Bounds,
    best: Fleet,
    holds: Callable[[Fleet], bool],
    ways: tuple[Fleet, ...] = (),
) -> Fleet:
    """One node less, or one of another kind instead, for as long as it is cheaper and holds.

    Under the fleet's own policy and quotas first, then under the others.
    """
    while True:
        usd = judge.usd_per_month(best.counts)
        able = [
            way._replace(counts=fleet.counts)
            for way in (best, *ways)
            for fleet in _neighbours(best, bounds)
            if judge.usd_per_month(fleet.counts) < usd - 1e-6
        ]
        able.sort(key=lambda fleet: judge.usd_per_month(fleet.counts))
        better = next((fleet for fleet in able if holds(fleet)), None)
        if better is None:
            return best
        best = better


def _neighbours(fleet: Fleet, bounds: Bounds) -> Iterator[Fleet]:
    for kind, n in enumerate(fleet.counts):
        if n <= bounds.low[kind]:
            continue
        fewer = fleet.with_count(kind, n - 1)
        yield fewer
        for other, m in enumerate(fleet.counts):
            if other != kind and m < bounds.high[other]:
                yield fewer.with_count(other, m + 1)


def rebalanced(judge: Judge, fleet: Fleet) -> Fleet | None:
    """The fleet with quota moved from teams that have time to those that wait; None: no use."""
    teams = [team for team in judge.cluster.teams if team.quotas]
    targets = {team.name: team.wait_p90_s for team in teams}
    for _ in range(N_MOVES):
        late = [one for one in judge.missed(fleet) if one.kind == "wait" and one.who in targets]
        if not late or len(late) < len(judge.missed(fleet)):
            return fleet if not judge.missed(fleet) else None
        taker = max(late, key=lambda one: one.wait_p90_s / max(one.target_p90_s, 1.0)).who
        givers = sorted(targets, key=lambda name: -(targets[name] or inf))
        waiting = {one.who for one in late}
        able = (
            moved(judge.cluster, fleet.quotas, giver, taker)
            for giver in givers
            if giver not in waiting
        )
        shares = next((one for one in able if one is not None), None)
        if shares is None:
            return None
        fleet = fleet._replace(quotas=shares)
    return fleet if judge.is_met(fleet) else None


def within(judge: Judge, bounds: Bounds, start: Fleet, usd: float) -> Iterator[Fleet]:
    """For each kind: as many as bounds and money allow, beside the fewest of the others."""
    least = start._replace(counts=bounds.low)
    for kind in range(len(bounds.low)):
        most = bounds.high[kind]
        if usd != inf:
            each = judge.nodes[kind].usd_per_h.mid * HOURS_PER_MONTH
            rest = usd - judge.usd_per_month(least.with_count(kind, 0).counts)
            most = min(most, floor(rest / each + 1e-9)) if each else most
        if most >= bounds.low[kind]:
            yield least.with_count(kind, most)
