"""80 % ranges from residuals of rows outside the fit, by how new a row was to the fit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, expm1
from statistics import quantiles
from typing import NamedTuple

import numpy as np

from gpuplan.calibration.residuals import metric_errors
from gpuplan.domain.calibration.constants import Spread
from gpuplan.domain.calibration.validation import MetricErrors

TAIL = 0.1
GOLDEN, HALF = 0.6180339887498949, 0.5  # even, repeatable, no generator needed
APART = ("max_load", "output_tokens_per_s")  # scored by kind of network too
LEAST_ROWS = 30  # a cell with fewer says little about its tails
PUBLICATION = "publication"
LEAST_SOURCES, LEAST_OF_SOURCE = 3, 10  # fewer publications, or rows of one, say little


class Miss(NamedTuple):
    """One residual outside the fit: log of measured / predicted."""

    novelty: str
    regime: str
    metric: str
    cells: tuple[str, ...]
    log_ratio: float
    source: str = ""  # the publication of the row


def spreads(misses: Iterable[Miss]) -> dict[str, Spread]:
    """The tails of every cell that has enough rows, and of all rows together."""
    found: dict[str, list[float]] = defaultdict(list)
    misses = list(misses)
    for miss in misses:
        for where in (miss.regime, "any"):
            for cell in (*miss.cells, "all"):
                found[f"{miss.novelty}|{where}|{miss.metric}|{cell}"].append(miss.log_ratio)
        found[f"{miss.novelty}|any|any|all"].append(miss.log_ratio)
    enough = {
        key: tails(values)
        for key, values in sorted(found.items())
        if len(values) >= LEAST_ROWS or key.endswith("|any|any|all")
    }
    return enough | publications(misses)


def publications(misses: Iterable[Miss]) -> dict[str, Spread]:
    """How far a new publication errs: of those held out, each counts as one.

    One publication may give most rows of a regime; rows of another are not like them.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for miss in misses:
        if miss.novelty == "source" and miss.source:
            for where in (miss.regime, "any"):
                key = f"{PUBLICATION}|{where}|{miss.metric}|all"
                found[key][miss.source].append(miss.log_ratio)
    enough = {
        key: [values for values in sources.values() if len(values) >= LEAST_OF_SOURCE]
        for key, sources in sorted(found.items())
    }
    return {key: even_tails(s) for key, s in enough.items() if len(s) >= LEAST_SOURCES}


def even_tails(groups: Sequence[Sequence[float]]) -> Spread:
    """Tails of values whose groups weigh the same."""
    weighed = sorted((value, 1.0 / len(group)) for group in groups for value in group)
    below, low, mid = 0.0, weighed[0][0], weighed[0][0]
    for value, weight in weighed:
        share = below / len(groups)
        low, mid = value if share <= TAIL else low, value if share <= HALF else mid
        if share >= 1.0 - TAIL:
            break
        below += weight
    return Spread(log_low=low, log_mid=mid, log_high=value, n=len(weighed))


def tails(values: list[float]) -> Spread:
    """Order statistics of split conformal prediction: one further row counts as unobserved."""
    ordered = sorted(values)
    n = len(ordered)
    rank = min(n, ceil((n + 1) * (1.0 - TAIL)))
    low, high = ordered[n - rank], ordered[rank - 1]
    return Spread(log_low=low, log_mid=ordered[n // 2], log_high=high, n=n)


def errors_by_split(misses: Iterable[Miss]) -> dict[str, dict[str, MetricErrors]]:
    """The errors of held-out rows by split, then by regime and metric."""
    found: dict[str, dict[str, list[Miss]]] = defaultdict(lambda: defaultdict(list))
    for miss in misses:
        found[miss.novelty][f"{miss.regime} {miss.metric}"].append(miss)
        if (miss.regime, miss.metric) == APART:
            found[miss.novelty][f"{miss.regime} {miss.metric}, {miss.cells[-1]}"].append(miss)
    return {
        split: {key: _errors(some) for key, some in sorted(groups.items()) if len(some) > 1}
        for split, groups in found.items()
    }


def _errors(misses: list[Miss]) -> MetricErrors:
    errors = np.array([expm1(-miss.log_ratio) for miss in misses])
    found = metric_errors(errors, _coverage(misses))
    return replace(found, p90_ape=quantiles(np.abs(errors), n=10)[-1])


def _coverage(misses: list[Miss]) -> float:
    """Each half inside the tails of the other, cell by cell where the cell is large enough.

    Tables alternate between conditions, so that every second row would be no fair half.
    """
    is_here = [(i * GOLDEN) % 1.0 < HALF for i in range(len(misses))]
    halves = (
        [miss for miss, here in zip(misses, is_here, strict=True) if here],
        [miss for miss, here in zip(misses, is_here, strict=True) if not here],
    )
    inside = 0
    for here, there in (halves, halves[::-1]):
        known = spreads(there)
        for miss in here:
            key = f"{miss.novelty}|{miss.regime}|{miss.metric}|"
            cell = next((c for c in (*miss.cells, "all") if key + c in known), None)
            spread = known[key + cell] if cell else tails([m.log_ratio for m in there])
            inside += spread.log_low <= miss.log_ratio <= spread.log_high
    return inside / len(misses)
