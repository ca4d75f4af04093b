"""Services and runs within limits that they share, decided together.

Each group is solved exactly within what the other leaves. Where the limits leave both their own
best choice, that is the best of all. Where they do not, every kind of fleet that a run could take
is tried with the best services beside it, cheapest first, until no dearer one can win.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from math import inf
from typing import NamedTuple

from gpuplan.domain.plan.sizing import Sizing
from gpuplan.studies.planning.chosen import Choice, Part

MOST_MIXES = 400  # of runs with each other; beyond, what was tried so far counts

# Sizings, whether they are runs, and what was chosen before: a part of the plan, or why not.
Solve = Callable[[Sequence[Sizing], bool, Sequence[Choice]], Part | tuple[str, ...]]


class Found(NamedTuple):
    """Parts of a plan, and what is to be least."""

    parts: list[Part]
    least: float


def both_solved(
    services: Sequence[Sizing], runs: Sequence[Sizing], solve: Solve
) -> list[Part] | tuple[str, ...]:
    """The best plan of both; why there is none, where none was found."""
    alone = solve(runs, True, ())
    first = solve(services, False, ())
    if not isinstance(first, Part):
        return first
    if not isinstance(alone, Part):
        return alone
    last = solve(runs, True, [first.choice])
    if isinstance(last, Part) and _score(last) <= _score(alone) * (1 + 1e-9):
        return [first, last]  # neither gives way to the other
    found = [Found([first, last], _score(first) + _score(last))] if isinstance(last, Part) else []
    found += _tried(services, runs, solve, best=found[0].least if found else inf, floor=first)
    if not found:
        return () if isinstance(last, Part) else last
    return min(found, key=lambda each: each.least).parts


def _tried(
    services: Sequence[Sizing], runs: Sequence[Sizing], solve: Solve, *, best: float, floor: Part
) -> Iterator[Found]:
    """Plans that are better than any before them."""
    parts = [part for mix in _mixes(runs) if isinstance(part := solve(mix, True, ()), Part)]
    for run in sorted(parts, key=_score):
        # Services never cost less than with all limits to themselves.
        if _score(run) + _score(floor) >= best:
            return
        beside = solve(services, False, [run.choice])
        if isinstance(beside, Part) and _score(run) + _score(beside) < best:
            best = _score(run) + _score(beside)
            yield Found([beside, run], best)


def _mixes(runs: Sequence[Sizing]) -> Iterator[list[Sizing]]:
    """Every run on every kind of fleet that could do it, one kind each."""
    kinds = [[replace(sizing, sized=(each,)) for each in sizing.sized] for sizing in runs]
    yield from (list(mix) for mix in islice(product(*kinds), MOST_MIXES))


def _score(part: Part) -> float:
    return part.choice.selection.proof.value
