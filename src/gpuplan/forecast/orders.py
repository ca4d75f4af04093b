"""Growth, triggers and lead times: when to order, how much to spare, and what bridges the gap.

Peaks count, never means: utilization grows from the highest hour of the last week. Safety stock
covers both the deviation of demand and that of the supplier's lead time [Silver1998].
"""

import math
from collections.abc import Sequence

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.telemetry.forecast import GrowthModel, LateDelivery, OrderAdvice, OrderTerms
from gpuplan.forecast.growth import growth_ratio, weeks_until
from gpuplan.units import MONTHS_PER_YEAR, WEEK, WEEKS_PER_MONTH

P90_DEVIATIONS = 1.2816  # of a normal distribution: where its 90th percentile lies


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
