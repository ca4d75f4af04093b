"""How weekly peaks grow: compound, linear or damped, chosen by a back-test on their own past.

Growth is a share per month. Compound growth multiplies each month, linear growth adds the same
amount each month, damped growth is compound growth that fades by a constant factor each week
[Gardner1985].
"""

import math
from itertools import combinations

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.telemetry.forecast import GROWTH_MODELS, GrowthModel, GrowthRecord, Trend
from gpuplan.units import WEEKS_PER_MONTH

LEAST_WEEKS = 3
RECENT_WEEKS = 5  # a month of slopes
DAMPING = 0.9  # of last week's growth that is left this week; Assumption: a usual value
MAX_AHEAD = 8  # weeks that a back-test looks ahead of each origin


def growth_ratio(model: GrowthModel, per_month_frac: float, weeks: float) -> float:
    """The level after so many weeks, over the level of today; never below 0."""
    if model == "linear":
        return max(0.0, 1.0 + per_month_frac * weeks / WEEKS_PER_MONTH)
    if model == "damped":
        weeks = (1.0 - DAMPING**weeks) / -math.log(DAMPING)
    return float((1.0 + per_month_frac) ** (weeks / WEEKS_PER_MONTH))


def weeks_until(model: GrowthModel, per_month_frac: float, ratio: float) -> float | None:
    """Weeks until the level has grown by this ratio; None where it never does."""
    if ratio <= 1.0:
        return 0.0
    if per_month_frac <= 0:
        return None
    if model == "linear":
        return (ratio - 1.0) / per_month_frac * WEEKS_PER_MONTH
    weeks = math.log(ratio) / math.log1p(per_month_frac) * WEEKS_PER_MONTH
    if model == "compound":
        return weeks
    left = 1.0 + weeks * math.log(DAMPING)  # of the growth that damping leaves in all
    return math.log(left) / math.log(DAMPING) if left > 0 else None


def trend_of(peaks: Floats, model: GrowthModel = "compound") -> Trend | None:
    """Growth of weekly peaks: the median of all slopes between two weeks [Sen1968]."""
    weeks = np.flatnonzero(peaks > 0)  # a week that is lost keeps its place
    n_weeks = len(weeks)
    if n_weeks < LEAST_WEEKS:
        return None
    if model == "damped":  # growth that fades is that of the last month
        weeks = weeks[-RECENT_WEEKS:]
    n = len(weeks)
    levels = peaks[weeks] if model == "linear" else np.log(peaks[weeks])
    slopes = [(levels[j] - levels[i]) / (weeks[j] - weeks[i]) for i, j in combinations(range(n), 2)]
    low, middle, high = (
        _per_month(model, float(slope), float(levels[-1]))
        for slope in np.quantile(slopes, [0.1, 0.5, 0.9])
    )
    return Trend(per_month_frac=middle, low_frac=low, high_frac=high, n_weeks=n_weeks, model=model)


def _per_month(model: GrowthModel, slope: float, last: float) -> float:
    """A slope by the week as a share per month of the last level."""
    if model == "linear":
        return slope * WEEKS_PER_MONTH / last
    return math.expm1(slope * WEEKS_PER_MONTH)


def back_tested(peaks: Floats) -> tuple[GrowthRecord, ...]:
    """The mean error of each model from past weeks, best first; none where the past is short."""
    origins = range(LEAST_WEEKS, len(peaks))
    errors: dict[GrowthModel, list[float]] = (
        {model: [] for model in GROWTH_MODELS} if len(origins) >= LEAST_WEEKS else {}
    )
    for model, found in errors.items():
        for origin in origins:
            found.extend(_errors(model, peaks[:origin], peaks[origin : origin + MAX_AHEAD]))
    rows = [
        GrowthRecord(model=model, error_frac=float(np.mean(found)), n_origins=len(origins))
        for model, found in errors.items()
        if found
    ]
    return tuple(sorted(rows, key=lambda row: row.error_frac))


def _errors(model: GrowthModel, past: Floats, truth: Floats) -> list[float]:
    trend = trend_of(past, model)
    if trend is None or not past[-1] > 0:
        return []
    ahead = [growth_ratio(model, trend.per_month_frac, k + 1) for k in range(len(truth))]
    expected = float(past[-1]) * np.array(ahead)
    is_known = truth > 0
    return list(np.abs(expected - truth)[is_known] / truth[is_known])


def weekly_error_frac(peaks: Floats, trend: Trend | None) -> float:
    """Deviation of a week's peak from the trend of the weeks before it, of the last peak."""
    if trend is None or len(peaks) < LEAST_WEEKS + 1:
        return 0.0
    ratio = growth_ratio(trend.model, trend.per_month_frac, 1.0)
    misses = peaks[1:] - peaks[:-1] * ratio
    return float(np.sqrt(np.mean(misses**2)) / peaks[-1]) if peaks[-1] > 0 else 0.0
