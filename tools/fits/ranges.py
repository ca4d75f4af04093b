"""80 % ranges of a site never seen: half-widths learned from residuals outside every fit.

A ledger line is a prediction whose constants had not seen its row. Rows of a group (source, model,
accelerator) err together, so that a group counts as the root of its rows. A half-width is the
weighted quantile of misses that holds four of five, level by level: of the metric, of metric and
regime (a cell), of the kind of network in it, of engines where they were written for and of ports,
of the engine; each level leans on the one above as if that were a few groups more, but a cell of
more groups speaks for itself: one regime says nothing of another. A level that holds the same
groups as the one above has nothing to add: groups speak once, or three of them would outvote
their regime. What is newer to the fit is wider by a factor common to all cells.
Levels and their weights were chosen by the interval score of groups held out (docs/validation.md).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.inference.novelty import KINDS, SAME
from gpuplan.calibration.inference.ranges import Line
from gpuplan.calibration.residuals import weighted_quantiles
from gpuplan.domain.calibration.constants import AT_LIMIT, LEAST_LOG, SEEN, RangeRule

Floats = NDArray[np.float64]
LEVEL_FRAC = 0.785  # of the ledger: constants err less since than they did when it was written
MOST_LEVEL = 0.98
GROUPS_SHORT = 25.0  # the level is raised as if so many groups were one too few
NEW_LEVEL_FRAC = 0.84  # of what is new: its groups are few, and the large ones are the far ones
GROUPS_ABOVE = 4.0  # so many groups is the word of the level above worth
GROUPS_AS_KNOWN = 2.0  # so many groups say that what is new is as near as what is known
N_ROUNDS = 3  # between widths and the factors of novelty, which settle at once
NOVELTIES = (SAME, *reversed(dict.fromkeys(KINDS.values())))  # least new first
NO_LEAST: Mapping[str, float] = {}


def group_weights(lines: Sequence[Line]) -> Floats:
    """The weight of every line: a group counts as the root of its lines in a cell."""
    count = Counter((line.cell, line.group) for line in lines)
    return np.array([count[line.cell, line.group] ** -0.5 for line in lines])


def least_halves(held_out: Sequence[Line], ledger: Sequence[Line] = ()) -> dict[str, float]:
    """What rows held out of a fit ask for, by level where they are of more groups than the ledger.

    They flatter, as the form of the model was chosen with them in sight: no range is narrower.
    """
    found = _by_level(held_out, np.abs([line.log_ratio for line in held_out]))
    n_held, n_first = _groups_by_level(held_out), _groups_by_level(ledger)
    # A few groups say less than the level above.
    more = [k for k in sorted(n_held) if n_held[k] > max(GROUPS_ABOVE, n_first.get(k, 0))]
    return {key: round(found[key], 4) for key in more}


def _groups_by_level(lines: Sequence[Line]) -> dict[str, int]:
    groups: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        for key in line.levels:
            groups[key].add(line.group)
    return {key: len(names) for key, names in groups.items()}


def learned(
    lines: Sequence[Line], tails: Sequence[str] = (), log_least: Mapping[str, float] = NO_LEAST
) -> RangeRule:
    """The rule that these lines ask for; `tails` are percentiles told from a mean."""
    middles = _middles(lines, tails)
    misses = np.array([abs(line.log_ratio - middles.get(line.cell, 0.0)) for line in lines])
    new = dict.fromkeys(NOVELTIES, 0.0)
    halves: dict[str, float] = {}
    for _ in range(N_ROUNDS):
        known = misses / np.exp([new[line.novelty] for line in lines])
        halves = _at_least(_by_level(lines, known), log_least)
        own = np.exp([halves[line.levels[-1]] for line in lines])
        new = _factors_of_novelty(lines, misses / own)
    factors = {f"novelty|{kind}": value for kind, value in new.items()}
    factors |= {key: half - halves[_level_above(key)] for key, half in halves.items() if key}
    return RangeRule(
        log_half={key: round(value, 4) for key, value in sorted(factors.items())},
        log_middle={cell: round(value, 4) for cell, value in middles.items()},
        n_groups=len({line.group for line in lines}),
        log_least=log_least,
    )


def _at_least(halves: dict[str, float], log_least: Mapping[str, float]) -> dict[str, float]:
    """Half-widths no narrower than rows held out ask for, whose levels the ledger may not have."""
    found = dict(halves)
    for key in sorted(log_least, key=lambda key: key.count("|")):
        usual = _half_of(key, found) if _level_above(key) else found.get(key, log_least[key])
        found[key] = max(usual, log_least[key])
    return found


def _half_of(key: str, halves: dict[str, float]) -> float:
    """The half-width of a level; that of the one above where nothing is known of it."""
    if key not in halves:
        halves[key] = _half_of(_level_above(key), halves)
    return halves[key]


def _level_above(key: str) -> str:
    """The wider group of a level that `range_keys` names; none of a metric."""
    above, _, regime = key.rpartition("|")
    return f"{above} at the limit" if regime == AT_LIMIT else above


def with_tails(means: RangeRule, tails: RangeRule) -> RangeRule:
    """One rule: percentiles of the second, all else and what is new of the first."""
    return replace(
        means, log_half={**tails.log_half, **means.log_half}, log_middle=tails.log_middle
    )


def _middles(lines: Sequence[Line], tails: Sequence[str]) -> dict[str, float]:
    """By cell of a percentile, its usual log ratio to the mean."""
    weights, of = group_weights(lines), defaultdict(list)
    for line, weight in zip(lines, weights.tolist(), strict=True):
        if line.metric in tails:
            of[line.cell].append((line.log_ratio, weight))
    return {
        cell: float(weighted_quantiles(*np.array(pairs).T, at=(0.5,))[0])
        for cell, pairs in sorted(of.items())
    }


def _by_level(lines: Sequence[Line], misses: Floats) -> dict[str, float]:
    """The log half-width of every level, each leaning on the one above."""
    found, groups = {"": 0.0}, {"": set[str]()}
    for place in range(max((len(line.levels) for line in lines), default=0)):
        members: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i, line in enumerate(lines):
            if place < len(line.levels):  # some publish too little to tell kinds apart
                members[("", *line.levels)[place], line.levels[place]].append(i)
        for (above, key), some in members.items():
            own = [lines[i] for i in some]
            groups[key] = {line.group for line in own}
            n = 0.0 if groups[key] == groups[above] else n_groups(own)
            # One metric says nothing of another, nor a regime of one that is measured as well.
            speaks = place == 0 or (place == 1 and n > GROUPS_ABOVE)
            n_above = 0.0 if speaks else GROUPS_ABOVE
            log_width = log(_width(own, misses[some]))
            found[key] = (n * log_width + n_above * found[above]) / (n + n_above)
    return found


def _width(lines: Sequence[Line], misses: Floats, level_frac: float = LEVEL_FRAC) -> float:
    """The half-width that holds four of five lines of the next group, or another share."""
    level = min(MOST_LEVEL, level_frac * (1 + 1 / (n_groups(lines) + GROUPS_SHORT)))
    return max(LEAST_LOG, float(weighted_quantiles(misses, group_weights(lines), at=(level,))[0]))


def n_groups(lines: Sequence[Line]) -> float:
    """As how many groups lines count whose groups count as the roots of their lines."""
    counts = np.array(list(Counter(line.group for line in lines).values()), dtype=np.float64)
    return float(np.sqrt(counts).sum() ** 2 / counts.sum())


def _factors_of_novelty(lines: Sequence[Line], ratios: Floats) -> dict[str, float]:
    """By how much what is newer is wider, in logs: what is less new is no wider."""
    found, most = {}, 0.0
    for kind in NOVELTIES:
        at = [i for i, line in enumerate(lines) if line.novelty == kind]
        if at and kind not in (SAME, SEEN):
            own = [lines[i] for i in at]
            n, width = n_groups(own), _width(own, ratios[at], NEW_LEVEL_FRAC)
            most = max(most, n * log(width) / (n + GROUPS_AS_KNOWN))
        found[kind] = most
    return found
