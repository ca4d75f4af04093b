"""80 % ranges from residuals of rows outside the fit, by how new a row was to the fit."""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from gpuplan.domain.calibration import Spread

TAIL = 0.1
LEAST_ROWS = 30  # a cell with fewer tells little about its tails


class Miss(NamedTuple):
    """One residual outside the fit: log of measured / predicted."""

    novelty: str
    regime: str
    metric: str
    cells: tuple[str, ...]
    log_ratio: float


def spreads(misses: Iterable[Miss]) -> dict[str, Spread]:
    """The tails of every cell that has enough rows, and of all rows together."""
    found: dict[str, list[float]] = defaultdict(list)
    for miss in misses:
        for where in (miss.regime, "any"):
            for cell in (*miss.cells, "all"):
                found[f"{miss.novelty}|{where}|{miss.metric}|{cell}"].append(miss.log_ratio)
        found[f"{miss.novelty}|any|any|all"].append(miss.log_ratio)
    return {key: tails(values) for key, values in sorted(found.items()) if _is_told(key, values)}


def _is_told(key: str, values: list[float]) -> bool:
    return len(values) >= LEAST_ROWS or key.endswith("|any|any|all")


def tails(values: list[float]) -> Spread:
    """Order statistics of split conformal prediction: the n-th plus one counts as unseen."""
    ordered = sorted(values)
    n = len(ordered)
    rank = min(n, ceil((n + 1) * (1.0 - TAIL)))
    return Spread(log_low=ordered[n - rank], log_high=ordered[rank - 1], n=n)
