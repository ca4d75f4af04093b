"""Growth, triggers and lead times: when to order, and what bridges the time until it comes.

Peaks count, never means: use grows as (1 + g)^(t / month) from the highest hour of the last week.
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.telemetry.forecast import OrderAdvice, Trend
from gpuplan.units import MONTHS_PER_YEAR, WEEK, WEEKS_PER_MONTH

LEAST_WEEKS = 3


def weekly_peaks(values: Floats, step_s: float) -> Floats:
    """Highest hour of each whole week, the last week ending with the series."""
    hour = max(1, round(3600.0 / step_s))
    n_hours = len(values) // hour
    hours = values[len(values) - n_hours * hour :].reshape(n_hours, hour).mean(axis=1)
    per_week = round(WEEK / (hour * step_s))
    n_weeks = len(hours) // per_week
    if n_weeks == 0:
        return hours.max(keepdims=True) if n_hours else values[:0]
    weeks = hours[len(hours) - n_weeks * per_week :].reshape(n_weeks, per_week)
    return np.asarray(weeks.max(axis=1))


def trend_of(peaks: Floats) -> Trend | None:
    """Growth of weekly peaks: the median of all slopes between two weeks, in logs [Sen1968]."""
    weeks = np.flatnonzero(peaks > 0)  # a week that is lost keeps its place
    n = len(weeks)
    if n < LEAST_WEEKS:
        return None
    logs = np.log(peaks[weeks])
    slopes = [(logs[j] - logs[i]) / (weeks[j] - weeks[i]) for i, j in combinations(range(n), 2)]
    low, middle, high = np.quantile(slopes, [0.1, 0.5, 0.9])
    per_month = WEEKS_PER_MONTH
    return Trend(
        per_month_frac=math.expm1(middle * per_month),
        low_frac=math.expm1(low * per_month),
        high_frac=math.expm1(high * per_month),
        n_weeks=n,
    )


def advice(
    peak_use_frac: float,
    growths: Sequence[float],
    *,
    n_devices: int,
    lead_s: float,
    trigger_frac: float,
    target_frac: float,
) -> tuple[OrderAdvice, ...]:
    """One row for each growth that is thought possible."""
    return tuple(
        _advice(
            peak_use_frac,
            growth,
            n_devices,
            lead_s=lead_s,
            trigger=trigger_frac,
            target=target_frac,
        )
        for growth in growths
    )


def _advice(
    use: float, growth: float, n_devices: int, *, lead_s: float, trigger: float, target: float
) -> OrderAdvice:
    trigger_in_s = seconds_until(use, trigger, growth)
    in_a_year = n_devices * use * (1.0 + growth) ** MONTHS_PER_YEAR / target
    return OrderAdvice(
        growth_frac_per_month=growth,
        trigger_in_s=trigger_in_s,
        order_in_s=None if trigger_in_s is None else max(0.0, trigger_in_s - lead_s),
        bridge_s=0.0 if trigger_in_s is None else max(0.0, lead_s - trigger_in_s),
        use_at_arrival_frac=use * (1.0 + growth) ** (lead_s / WEEK / WEEKS_PER_MONTH),
        n_needed_in_a_year=math.ceil(in_a_year - 1e-9),
    )


def seconds_until(use: float, level: float, growth: float) -> float | None:
    """When a use that grows so reaches a level; 0 if it is there, None if it never will."""
    if use >= level:
        return 0.0
    if growth <= 0 or use <= 0:
        return None
    return math.log(level / use) / math.log1p(growth) * WEEKS_PER_MONTH * WEEK
