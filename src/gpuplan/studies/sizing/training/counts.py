"""How many servers a training run takes: the fewest that end in time, and the knee.

Numbers that divide well are tried from the least that could be enough, then fewer in the layout
that was found: memory, heads and stages make the speed of a run jump from one number to the next.
"""

from collections.abc import Callable, Iterator
from math import ceil, lcm
from typing import NamedTuple, Protocol

from gpuplan.studies.training.shapes import ServerKind, Trial

LADDER = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
MOST_ACCELERATORS = 131_072
N_ROUNDS = 12
SPENT_RATIO = 6.0  # times the fastest number: beyond, nothing is gained any more
# As in `scale`: a doubling that brings less than half of what it could is past the knee.
WORTH_FRAC = 0.5
EVEN_GAIN = 0.75  # of what arithmetic asks for: a number that divides better may do
EVEN_PARTS = 64  # of a large run: it grows in steps of at least such a part


def even_numbers(least: float) -> Iterator[int]:
    """From the least on: itself, powers of two, and three times powers of two."""
    start = max(1, ceil(least - 1e-9))
    yield start
    power = 1
    while True:
        yield from (k for k in sorted({power, power + power // 2}) if k > start)
        power *= 2


class RunCount(NamedTuple):
    """So many accelerators, their layout, and how long the run takes on them."""

    n: int
    trial: Trial
    wall_s: float

    @property
    def cost(self) -> float:
        """Accelerator-seconds that are paid for."""
        return self.n * self.wall_s


class Layouts(Protocol):
    """Who knows the layouts of a run on one kind of server."""

    @property
    def server(self) -> ServerKind:
        """The servers."""

    def layouts(self, n: int) -> tuple[Trial, ...]:
        """The shortest steps on so many."""

    def resized(self, like: Trial, n: int) -> tuple[Trial, ...]:
        """Layouts like this one on another number."""


class CountSearch:
    """Numbers of accelerators of one kind of server for one run."""

    def __init__(
        self,
        search: Layouts,
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
        self._too_few = 0  # does not hold the run, or is too slow

    def at(self, n: int, like: Trial | None = None) -> RunCount | None:
        """The run on so many; only with layouts like this one, where one is given."""
        if not 0 < n <= self.n_most:
            return None
        trials = self.search.layouts(n) if like is None else self.search.resized(like, n)
        runs = [RunCount(n, trial, self.wall_s(n, trial)) for trial in trials]
        found = min(runs, key=lambda run: run.wall_s, default=None)
        if found is None:
            return None
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
        found = self._even(limit_s)
        return None if found is None else self._fewer(found, limit_s)

    def _even(self, limit_s: float) -> RunCount | None:
        """The fewest that end in time among numbers that divide well."""
        wanted, before = self.n_least / self.unit, 1.0
        for k in even_numbers(wanted):
            n = k * self.unit
            if n > self.n_most or self._is_spent(n):
                return None
            found = self.at(n) if k >= wanted - 1e-9 else None
            if found is not None and found.wall_s <= limit_s:
                return found
            if found is not None:
                # One number may divide badly and be far too slow: two in a row say more.
                late = found.wall_s / limit_s
                wanted, before = k * max(1.0, EVEN_GAIN * min(late, before, 2.0)), late
            self._too_few = n
        return None

    def _is_spent(self, n: int) -> bool:
        """Whether so many are far beyond the fastest number: more only slow each other down."""
        return self.fastest is not None and n > SPENT_RATIO * self.fastest.n

    def _fewer(self, found: RunCount, limit_s: float) -> RunCount:
        """Fewer in the same layout that still end in time, from the least that could."""
        least = max(self._whole(found.n * found.wall_s / limit_s), self._too_few + 1)
        n = self.block(found.trial, least)
        for _ in range(N_ROUNDS):
            if n >= found.n:
                break
            fewer = self.at(n, found.trial)
            if fewer is not None and fewer.wall_s <= limit_s:
                # Fewer are more efficient each, so that still fewer may do.
                return self._fewer(self._best_of(self.at(fewer.n), fewer), limit_s)
            late = fewer.wall_s / limit_s if fewer is not None else 1.0
            n = max(self.block(found.trial, n + 1), self.block(found.trial, self._whole(n * late)))
        return found

    @staticmethod
    def _best_of(first: RunCount | None, second: RunCount) -> RunCount:
        return second if first is None or second.wall_s < first.wall_s else first

    def _whole(self, n: float) -> int:
        """In whole servers; large runs in steps of an even part of them."""
        part = max(1, int(n / self.unit / EVEN_PARTS))
        step = self.unit << (part.bit_length() - 1)
        return step * ceil(n / step - 1e-9)

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
