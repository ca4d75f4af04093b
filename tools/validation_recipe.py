"""Half-widths by the recipe that ranges are held against: one factor per cell on ranges stated.

A factor per metric and regime, shrunk to that of all cells, on a half-width that leans to the
middle of its cell; accelerators of no fitted row are wider by one factor more.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from gpuplan.calibration.inference.novelty import KINDS
from gpuplan.calibration.inference.ranges import Line
from gpuplan.calibration.residuals import weighted_quantiles
from gpuplan.domain.calibration.constants import LEAST_LOG

LEVEL_FRAC, MOST_LEVEL = 0.8, 0.98
GROUPS_SHORT, GROUPS_NEW, DAMPED = 15.0, 4.0, 0.5
NEW, LEAST_GROUPS = KINDS["accelerator"], 4


class Stated(NamedTuple):
    """A line with the half-width that was stated with it."""

    line: Line
    half: float


class Recipe(NamedTuple):
    """Middles of stated half-widths and factors on them, by cell."""

    log_middle: dict[str, float]
    factor: dict[str, float]
    usual: float
    new: float

    def half(self, of: Stated) -> float:
        """The half-width that it gives a line."""
        new = self.new if of.line.novelty == NEW else 1.0
        factor = self.factor.get(of.line.cell, self.usual)
        return max(LEAST_LOG, factor * new * _scale(self.log_middle, of))


def _scale(log_middle: dict[str, float], of: Stated) -> float:
    stated = log(max(LEAST_LOG, of.half))
    middle = log_middle.get(of.line.cell, stated)
    return exp(middle + DAMPED * (stated - middle))


def recipe(lines: Sequence[Stated]) -> Recipe:
    """What these lines ask for."""
    count = Counter((each.line.cell, each.line.group) for each in lines)
    weights = np.array([count[each.line.cell, each.line.group] ** -0.5 for each in lines])
    cells: dict[str, list[int]] = defaultdict(list)
    for i, each in enumerate(lines):
        cells[each.line.cell].append(i)
    logs = np.array([log(max(LEAST_LOG, each.half)) for each in lines])
    middle = {c: float(np.average(logs[at], weights=weights[at])) for c, at in cells.items()}
    miss = np.array([abs(each.line.log_ratio) / _scale(middle, each) for each in lines])
    is_new = np.array([each.line.novelty == NEW for each in lines])
    groups = np.array([each.line.group for each in lines])

    def asked(at: np.ndarray) -> float:
        level = LEVEL_FRAC * (1 + 1 / (len(set(groups[at])) + GROUPS_SHORT))
        found = weighted_quantiles(miss[at], weights[at], at=(min(MOST_LEVEL, level),))
        return float(found[0])

    new = _new_factor(cells, miss, weights, is_new=is_new, groups=groups)
    miss = np.where(is_new, miss / new, miss)
    n = {c: len(set(groups[at])) for c, at in cells.items() if len(set(groups[at])) > 1}
    own = {c: log(asked(np.array(cells[c]))) for c in n}
    usual = float(np.average(list(own.values()), weights=list(n.values())))
    factor = {c: exp((n[c] * own[c] + GROUPS_SHORT * usual) / (n[c] + GROUPS_SHORT)) for c in own}
    return Recipe(middle, factor, exp(usual), new)


def _new_factor(
    cells: dict[str, list[int]],
    miss: np.ndarray,
    weights: np.ndarray,
    *,
    is_new: np.ndarray,
    groups: np.ndarray,
) -> float:
    """By how much accelerators of no fitted row miss more than the others of their cell."""
    ratios, mass, names = [], [], set()
    for at in map(np.array, cells.values()):
        known, new = at[~is_new[at]], at[is_new[at]]
        if len(set(groups[known])) < LEAST_GROUPS or not len(new):
            continue
        usual = weighted_quantiles(miss[known], weights[known], at=(LEVEL_FRAC,))[0]
        ratios += (miss[new] / usual).tolist()
        mass += weights[new].tolist()
        names |= set(groups[new])
    if not ratios:
        return 1.0
    raw = weighted_quantiles(np.array(ratios), np.array(mass), at=(LEVEL_FRAC,))[0]
    return float(max(1.0, raw) ** (len(names) / (len(names) + GROUPS_NEW)))
