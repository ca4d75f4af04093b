"""The 80 % range around an estimated wait, from how far off earlier estimates were.

Scores are ratios of waits; shares outside of the range adapt to the misses within the record, and
a record of long waits, whose jobs miss alike, counts as few.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.units import DAY

COVERAGE = 0.8
GRAIN_S = 60.0  # of a wait: shorter ones are equal to people
NEVER_S = 365 * DAY  # of a job that starts in no simulated future
LEAST_RECORD = 30  # estimates before the shares outside of a range are adapted
ADAPT_FRAC = 0.05  # of a share, by which a miss or a hit moves it [Gibbs2021]
ROUNDING = 1e-9
ALONE_WAITS = 2.0  # waits apart from each other, two jobs miss by themselves; Assumption
Z90 = 1.2816  # 90th percentile of a normal distribution


def score(wait_s: Floats | float, expected_s: Floats | float) -> Floats:
    """How far off an estimate was: a ratio of waits, a minute added to both."""
    found: Floats = np.log((np.asarray(wait_s) + GRAIN_S) / (np.asarray(expected_s) + GRAIN_S))
    return found


class Record(NamedTuple):
    """Earlier estimates in order of start; jobs that still wait start at infinity, come last, and
    have the score of their wait so far."""

    scores: Floats
    arrive_s: Floats
    start_s: Floats


def adapted_tails(earlier: Record, alone_frac: float = 1.0) -> tuple[float, float]:
    """Shares below and above the range that would have held the record itself [Gibbs2021].

    Every estimate is held against the range of those before it whose jobs had started by then; a
    miss on a side makes that side's share smaller, a hit a little larger, by the less the more of
    them come together.
    """
    tail, step = (1 - COVERAGE) / 2, ADAPT_FRAC * alone_frac
    shares = np.array([tail, tail])
    for k in range(LEAST_RECORD, int(np.isfinite(earlier.start_s).sum())):
        known = earlier.scores[:k][earlier.start_s[:k] < earlier.arrive_s[k]]
        if len(known) >= LEAST_RECORD / 2:
            low, high = _bounds(known, shares)
            found = earlier.scores[k]
            misses = np.array([found < low - ROUNDING, found > high + ROUNDING])
            shares += step * (tail - misses)
    return float(shares[0]), float(shares[1])


def _bounds(scores: Floats, shares: Any) -> tuple[float, float]:
    below, above = np.clip(shares, 0.0, 0.5)
    low, high = np.quantile(scores, [below, 1 - above])
    return float(low), float(high)


def calibrated(wait_s: float, earlier: Record, now_s: float) -> tuple[float, float]:
    """The 80 % range around an estimate, from the scores of earlier ones."""
    if len(earlier.scores) == 0:
        return 0.0, NEVER_S
    scores, n = _telling(earlier), n_alone(earlier, now_s)
    middle, alone_frac = float(np.median(scores)), min(1.0, n / len(earlier.scores))
    bounds = np.array(_bounds(scores, adapted_tails(earlier, alone_frac)))
    wide = middle + stretch(n) * (bounds - middle)
    grown = (wait_s + GRAIN_S) * np.exp(wide) - GRAIN_S
    return max(0.0, float(grown[0])), max(0.0, float(grown[1]))


def _telling(earlier: Record) -> Floats:
    """Scores of jobs that started; of those that wait only the ones already beyond their range.

    Whoever started in a time is a fair draw of all waits, whoever was submitted in it is not: the
    long waits among them are still open. Where hardly any started, open waits are what there is.
    """
    begun = np.isfinite(earlier.start_s)
    if begun.sum() < LEAST_RECORD / 2:
        return earlier.scores
    most = np.quantile(earlier.scores[begun], (1 + COVERAGE) / 2)
    return earlier.scores[begun | (earlier.scores > most)]


def n_alone(earlier: Record, now_s: float) -> float:
    """Independent misses in a record: as many as its time holds waits apart from each other."""
    begun = np.isfinite(earlier.start_s)
    used = begun if begun.sum() >= LEAST_RECORD / 2 else np.ones(len(begun), bool)
    arrive_s = earlier.arrive_s[used]
    mean_s = float((np.minimum(earlier.start_s[used], now_s) - arrive_s).mean())
    span_s = now_s - float(arrive_s.min())
    return float(np.clip(span_s / max(ALONE_WAITS * mean_s, GRAIN_S), 2.0, max(2, len(arrive_s))))


def stretch(n: float) -> float:
    """Width for n independent misses over that for many: Student's t, a draw beside n of them.

    The series of t in the normal quantile [Abramowitz1964].
    """
    free, z = n - 1.0, Z90
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return float(t * np.sqrt(1.0 + 1.0 / n) / z)
