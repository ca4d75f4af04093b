"""A choice made better: one workload moves at a time, at what whole nodes cost in both pools.

What deferrable work pays for room, and how much of it there is, is taken as it was before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.selection.large.pools import Batch, Costs, plan_pool
from gpuplan.selection.program.tables import Tables

N_OPTIONS = 10  # of a workload that are tried, cheapest first
N_PASSES = 6
LEAST_USD = 1.0  # a move that saves less is not made


@dataclass
class PoolCostCache:
    """What sets of options cost in a pool; each is reckoned once."""

    full: Tables
    costs: Costs
    batch: list[Batch]  # [pool]
    known: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)

    def usd(self, pool: int, options: Iterable[int]) -> float:
        """The cheapest whole nodes for the options and what these cost once; inf: none."""
        key = (pool, tuple(sorted(options)))
        if key not in self.known:
            self.known[key] = self._reckon(pool, key[1])
        return self.known[key]

    def _reckon(self, pool: int, options: tuple[int, ...]) -> float:
        full = self.full
        given = [full.problem.options[i] for i in options]
        reserve = max((option.n_reserve for option in given), default=0)
        need: Floats = full.need[list(options)].sum(axis=0) + reserve
        plan = plan_pool(full, self.costs, pool, need=need, batch=self.batch[pool])
        first = float(full.problem.horizon.upfront_discount_frac[0])
        once = sum(option.once_usd for option in given) * first
        return float("inf") if plan is None else plan.usd + once


def improved(
    book: PoolCostCache, fixed: dict[int, int], *, above: Floats, most: float
) -> dict[int, int]:
    """Workload → option after all moves that pay.

    `above` is how much an option is dearer than the best of its workload at proven prices: where
    that is more than `most`, the distance of bill and bound, nothing better can hold it.
    """
    full = book.full
    now = dict(fixed)
    inside: dict[int, frozenset[int]] = {
        int(a): frozenset(o for o in now.values() if full.pool[o] == a) for a in full.used_pools
    }
    tried = {w: _tried(full, w, above=above, most=most) for w in now}
    for _ in range(N_PASSES):
        before = dict(now)
        for w in sorted(now):
            now[w] = _moved(book, inside, now[w], tried=tried[w])
        if now == before:
            break
    return now


def _tried(full: Tables, w: int, *, above: Floats, most: float) -> Ints:
    mine = np.flatnonzero((full.workload == w) & (above <= most))
    return mine[np.argsort(above[mine], kind="stable")][:N_OPTIONS]


def _moved(book: PoolCostCache, inside: dict[int, frozenset[int]], old: int, *, tried: Ints) -> int:
    """The best option for a workload while all others stay; the pools are told."""
    pool = book.full.pool
    a = int(pool[old])
    rest = inside[a] - {old}
    best, least = old, book.usd(a, inside[a]) - LEAST_USD
    for option in (int(i) for i in tried if i != old):
        b = int(pool[option])
        found = book.usd(b, (rest if b == a else inside[b]) | {option})
        if b != a:
            found += book.usd(a, rest) - book.usd(b, inside[b])
        if found < least:
            best, least = option, found
    inside[a] = rest
    inside[int(pool[best])] |= {best}
    return best
