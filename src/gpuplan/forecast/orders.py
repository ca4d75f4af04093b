"""Growth, triggers and lead times: when to order, how much to spare, and what bridges the gap.

Peaks count, never means: utilization grows from the highest hour of the last week. Safety stock
covers both the deviation of demand and that of the supplier's lead time [Silver1998].

How weekly peaks grow: compound, linear or damped, chosen by a back-test on their own past.

Growth is a share per month. Compound growth multiplies each month, linear growth adds the same
amount each month, damped growth is compound growth that fades by a constant factor each week
[Gardner1985].
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.telemetry.forecast import (
    GROWTH_MODELS,
    GrowthModel,
    GrowthRecord,
    LateDelivery,
    OrderAdvice,
    OrderTerms,
    Trend,
)
from gpuplan.units import MONTHS_PER_YEAR, WEEK, WEEKS_PER_MONTH

LEAST_WEEKS = 3
RECENT_WEEKS = 5  # a month of slopes
DAMPING = 0.9  # of last week's growth that is left this week; Assumption: a usual value
MAX_AHEAD = 8  # weeks that a back-test looks ahead of each origin


P90_DEVIATIONS = 1.2816  # of a normal distribution: where its 90th percentile lies


def weekly_peaks(values: Floats, step_s: float) -> Floats:
    """Highest hour of each whole week, the last week ending with the series.

    Of steps longer than a week the weeks between lie on the line from one to the next.
    """
    if step_s > WEEK:
        end_s = step_s * (len(values) - 1)
        weeks_s = np.arange(end_s, -1.0, -WEEK)[::-1]
        return floats(np.interp(weeks_s, step_s * np.arange(len(values)), values))
    hour = max(1, round(3600.0 / step_s))
    n_hours = len(values) // hour
    hours = values[len(values) - n_hours * hour :].reshape(n_hours, hour).mean(axis=1)
    per_week = round(WEEK / (hour * step_s))
    n_weeks = len(hours) // per_week
    if n_weeks == 0:
        return hours.max(keepdims=True) if n_hours else values[:0]
    weeks = hours[len(hours) - n_weeks * per_week :].reshape(n_weeks, per_week)
    return np.asarray(weeks.max(axis=1))


def advice(
    peak_use_frac: float, growths: Sequence[float], terms: OrderTerms
) -> tuple[OrderAdvice, ...]:
    """One row for each growth that is thought possible."""
    return tuple(_advice(peak_use_frac, growth, terms) for growth in growths)


def _advice(use: float, growth: float, terms: OrderTerms) -> OrderAdvice:
    n, lead_s, model = terms.n_devices, terms.lead_s, terms.model
    trigger_in_s = seconds_until(use, terms.trigger_frac, growth, model)
    order_in_s = None if trigger_in_s is None else max(0.0, trigger_in_s - lead_s)
    in_a_year = growth_ratio(model, growth, MONTHS_PER_YEAR * WEEKS_PER_MONTH)
    at_arrival = growth_ratio(model, growth, lead_s / WEEK)
    spare = _safety_stock(use, growth, terms)
    lowered = terms.trigger_frac - spare * terms.target_frac / n
    return OrderAdvice(
        growth_frac_per_month=growth,
        trigger_in_s=trigger_in_s,
        order_in_s=order_in_s,
        now_s=terms.now_s,
        bridge_s=_bridge_s(trigger_in_s, lead_s),
        use_at_arrival_frac=use * at_arrival,
        n_needed_in_a_year=math.ceil(n * use * in_a_year / terms.target_frac - 1e-9),
        n_safety_stock=spare,
        reorder_at_frac=max(0.0, lowered) / max(1.0, at_arrival),
        late=None
        if terms.lead_high_s is None
        else LateDelivery(
            lead_s=terms.lead_high_s,
            bridge_s=_bridge_s(trigger_in_s, terms.lead_high_s),
            use_at_arrival_frac=use * growth_ratio(model, growth, terms.lead_high_s / WEEK),
        ),
    )


def _bridge_s(trigger_in_s: float | None, lead_s: float) -> float:
    """From the trigger until an order of today arrives."""
    return 0.0 if trigger_in_s is None else max(0.0, lead_s - trigger_in_s)


def _safety_stock(use: float, growth: float, terms: OrderTerms) -> int:
    """Devices that cover the lead time's uncertain demand: z sqrt(L s_d^2 + d^2 s_L^2).

    Weekly deviations are taken as independent, the lead time's 90th percentile as given.
    """
    from statistics import NormalDist  # noqa: PLC0415  (0.03 s to load)

    lead = terms.lead_s / WEEK
    late = 0.0 if terms.lead_high_s is None else terms.lead_high_s / WEEK - lead
    per_week = use * (growth_ratio(terms.model, growth, lead + 1) - 1.0) / (lead + 1)
    deviation = math.sqrt(
        lead * (use * terms.weekly_error_frac) ** 2 + (per_week * late / P90_DEVIATIONS) ** 2
    )
    z = NormalDist().inv_cdf(terms.service_frac)
    return max(0, math.ceil(z * deviation * terms.n_devices / terms.target_frac - 1e-9))


def seconds_until(
    use: float, level: float, growth: float, model: GrowthModel = "compound"
) -> float | None:
    """When a use that grows so reaches a level; 0 if it is there, None if it never will."""
    if use >= level:
        return 0.0
    weeks = weeks_until(model, growth, level / use) if use > 0 else None
    return None if weeks is None else weeks * WEEK


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
