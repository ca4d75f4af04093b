"""How many servers a training run takes: the fewest that end in time, and the knee.

More accelerators exchange more and fail more often, so that efficiency falls as a run grows: from
any number that is too slow, the next one is at least as many times larger as the run is late.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from math import ceil, lcm
from typing import NamedTuple

from gpuplan.studies.training.search import LayoutSearch
from gpuplan.studies.training.shapes import Trial

LADDER = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
MOST_ACCELERATORS = 131_072
N_ROUNDS = 24
STALLED_FRAC = 0.99  # a larger run that saves less than this has reached its end
# As in `scale`: a doubling that brings less than half of what it could is past the knee.
WORTH_FRAC = 0.5
NEAR_RATIO = 2.5  # of two numbers that one layout serves
EVEN_PARTS = 64  # of a large run: it grows in steps of at least such a part


class RunCount(NamedTuple):
    """So many accelerators, their layout, and how long the run takes on them."""

    n: int
    trial: Trial
    wall_s: float


class CountSearch:
    """Numbers of accelerators of one kind of server for one run."""

    def __init__(
        self,
        search: LayoutSearch,
        wall_s: Callable[[int, Trial], float],
        *,
        n_least: float,
        n_most: int | None,
    ) -> None:
        self.search, self.wall_s = search, wall_s
        self.unit = search.server.n_per_node
        self.n_most = MOST_ACCELERATORS if n_most is None else n_most
        self.n_least = n_least  # no fewer can end in time, whatever their layout
        self.fastest: RunCount | None = None

    def at(self, n: int, like: Trial | None = None) -> RunCount | None:
        """The run on so many; only with layouts like this one, where one is given."""
        if not 0 < n <= self.n_most:
            return None
        trial = self.search.best(n) if like is None else self.search.resized(like, n)
        if trial is None:
            return None
        found = RunCount(n, trial, self.wall_s(n, trial))
        if self.fastest is None or found.wall_s < self.fastest.wall_s:
            self.fastest = found
        return found

    def first(self, n_least: float = 1.0) -> RunCount | None:
        """The fewest in whole servers that hold the run, from a number on."""
        start = max(1, ceil(n_least / self.unit - 1e-9))
        before = start - 1
        for k in dict.fromkeys(ceil(start * factor) for factor in LADDER):
            found = self.at(k * self.unit)
            if found is not None:
                between = (self.at(j * self.unit) for j in range(before + 1, k))
                return next((each for each in between if each is not None), found)
            before = k
        return None

    def fewest(self, limit_s: float) -> RunCount | None:
        """The fewest that end in time; None where no number does."""
        found = self.first(self.n_least)
        n_stalled = 0
        for _ in range(N_ROUNDS):
            if found is None or found.wall_s <= limit_s:
                break
            larger = self._larger(found, found.wall_s / limit_s)
            if larger is not None and larger.wall_s > STALLED_FRAC * found.wall_s:
                n_stalled += 1
            found = larger if n_stalled < 2 else None
        found = found and self.at(found.n)
        return None if found is None else self._fewer(found, limit_s)

    def _larger(self, found: RunCount, ratio: float) -> RunCount | None:
        """The next number worth a try, at least so many times larger."""
        sizes = [*self._next(found, ratio)]
        alike = (self.at(n, found.trial) for n in sizes) if ratio < NEAR_RATIO else ()
        others = (self.at(n) for n in sizes)
        return next((each for each in chain(alike, others) if each is not None), None)

    def _next(self, found: RunCount, ratio: float) -> Iterator[int]:
        """Whole servers first, then what the layout divides."""
        n = max(found.n + self.unit, self._whole(found.n * min(ratio, 8.0)))
        even = self.block(found.trial, n)
        yield from dict.fromkeys((n, even, self.block(found.trial, even + 1)))

    def _whole(self, n: float) -> int:
        """In whole servers; large runs in steps of an even part of them."""
        part = max(1, int(n / self.unit / EVEN_PARTS))
        step = self.unit << (part.bit_length() - 1)
        return step * ceil(n / step - 1e-9)

    def _fewer(self, found: RunCount, limit_s: float) -> RunCount:
        """Steps back that the last jump made too many."""
        for _ in range(4):
            n = max(self._whole(found.n * found.wall_s / limit_s), self.unit)
            if n >= found.n:
                n = found.n - self.unit
            fewer = self.at(n)
            if fewer is None or fewer.wall_s > limit_s:
                break
            found = fewer
        return found

    def half(self, found: RunCount) -> int:
        """Half as many, in whole servers."""
        return self._whole(found.n / 2)

    def block(self, trial: Trial, n: float) -> int:
        """At least so many that this layout divides, in whole servers."""
        layout = trial.layout
        block = lcm(self.unit, layout.tp * layout.pp * layout.cp * layout.ep)
        return block * ceil(n / block - 1e-9)

    def speedup_of_last_doubling(self, found: RunCount) -> float | None:
        """Speed over that of half as many; None where half cannot run it."""
        half = self.half(found)
        before = self.at(half) if half < found.n else None
        if before is None:
            return None
        return 1.0 + (before.wall_s / found.wall_s - 1.0) / (found.n / before.n - 1.0)

    def is_past_knee(self, found: RunCount) -> bool:
        """Whether the last doubling brings less than half of what it could."""
        speedup = self.speedup_of_last_doubling(found)
        return speedup is not None and speedup < 1.0 + WORTH_FRAC
