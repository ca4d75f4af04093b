"""What a watch retains and expects, in: the past and one look; out: demand ahead, waste."""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import Diagnosis
from gpuplan.domain.telemetry.forecast import DemandSeries
from gpuplan.domain.telemetry.monitoring import WatchPoint
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.forecast.orders import seconds_until, trend_of, weekly_peaks
from gpuplan.forecast.predict import forecast
from gpuplan.observe.demand import DEMAND, demand_series
from gpuplan.units import HOUR

KEPT_HOURS = 24 * 7 * 26  # half a year: the bound of what a watch keeps


LEAST_HOURS = 48


FORECAST_HOURS = 24 * 7 * 8  # a forecast and its record look back no further


def remembered(
    telemetry: Telemetry, retained: Sequence[WatchPoint], *, now_s: float
) -> tuple[WatchPoint, ...]:
    """The past with this look's demand as the present hour; bounded, oldest first."""
    metric = retained[-1].metric if retained else next((m for m in DEMAND if telemetry.of(m)), None)
    if metric is None or not any(series.is_given.any() for series in telemetry.of(metric)):
        return tuple(retained)  # a look without demand is no reason to forget the past
    series = demand_series(telemetry, metric, None)
    hour_s = now_s // HOUR * HOUR
    point = WatchPoint(at_s=hour_s, n_demand=float(series.level.mean()), metric=series.name)
    older = [one for one in retained if one.at_s < hour_s and one.metric == series.name]
    return tuple([*older, point][-KEPT_HOURS:])


def expected(
    past: Sequence[WatchPoint], trigger_frac: float
) -> tuple[float | None, float | None, str]:
    """When the peak reaches the trigger, and the highest demand of the coming day."""
    if not past:
        return None, None, ""
    metric = past[-1].metric
    if len(past) < LEAST_HOURS:
        return None, None, metric
    begin_s = past[0].at_s
    by_hour = {round((point.at_s - begin_s) / HOUR): point.n_demand for point in past}
    n = max(by_hour) + 1
    level, last = [], past[0].n_demand
    for k in range(n):
        last = by_hour.get(k, last)
        level.append(last)
    series = DemandSeries(name=metric, unit="", begin_s=begin_s, step_s=HOUR, level=floats(level))
    peaks = weekly_peaks(series.level, HOUR)
    trend = trend_of(peaks)
    until = None
    if trend is not None and metric.endswith("_frac"):
        until = seconds_until(float(peaks[-1]), trigger_frac, trend.per_month_frac)
    late = level[-FORECAST_HOURS:]
    recent = replace(series, level=floats(late), begin_s=begin_s + HOUR * (len(level) - len(late)))
    return until, forecast(recent, 24 * HOUR).peak, metric


def waste_usd_per_h(found: Diagnosis) -> float | None:
    """Waste of the look by the hour; None where something has no price."""
    use = found.use
    if use is None or not use.span_s or any(one.usd is None for one in found.waste):
        return None
    return sum(one.usd or 0.0 for one in found.waste) / (use.span_s / HOUR)
