"""The smallest number that holds, by trial: few trials, and the answer is checked on both sides.

A trial is a simulation. More replicas are taken to hold whenever fewer do; routers that look at
the load keep to that, and the caller tries the answer again on fresh draws.
"""

from collections.abc import Callable
from math import ceil, sqrt

Holds = Callable[[int], bool]


def staffing_bracket(fluid: float) -> tuple[int, int]:
    """From what the load needs on average to what square-root staffing adds [Halfin1981]."""
    low = max(1, ceil(fluid - 1e-9))
    return low, max(low, ceil(fluid + 2.0 * sqrt(fluid)))


def smallest_that_holds(holds: Holds, low: int, high: int, *, most: int) -> int | None:
    """The least n in [low, most] that holds, tried from the bracket outward; None: none does."""
    if holds(low):
        # The bracket is a guess: what lies below it is tried before it is believed.
        while low > 1 and holds(low - 1):
            low -= 1
        return low
    failed, enough = low, max(high, low + 1)
    if failed >= most:
        return None
    while not holds(min(enough, most)):
        failed = min(enough, most)
        if failed >= most:
            return None
        enough = 2 * failed
    return _bisect(holds, failed, min(enough, most))


def _bisect(holds: Holds, failed: int, enough: int) -> int:
    while enough - failed > 1:
        middle = (failed + enough) // 2
        if holds(middle):
            enough = middle
        else:
            failed = middle
    return enough


def largest_load(
    holds: Callable[[float], bool], *, known: float, limit: float, rel_tol: float = 0.02
) -> float:
    """The highest load between one that is known to hold and a limit, to a relative tolerance."""
    low, high = known, limit
    if high <= low or holds(high):
        return high if high > low else low
    while high - low > rel_tol * high:
        middle = 0.5 * (low + high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
