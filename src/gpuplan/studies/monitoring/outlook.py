"""Forecast: telemetry -> demand in equal steps -> its future -> when to order."""

from pathlib import Path

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.telemetry.forecast import ForecastRequest, OrderAdvice, Outlook, Trend
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.forecast.orders import advice, trend_of, weekly_peaks
from gpuplan.forecast.predict import forecast
from gpuplan.observe.demand import demand_series
from gpuplan.observe.read import read_telemetry

SPREAD = 0.5  # of the growth that the user names, up and down, where nothing else is known


def outlook_of_file(path: Path, asked: ForecastRequest) -> Outlook:
    """What a file of telemetry says of the time to come."""
    return outlook(read_telemetry(path), asked)


def outlook(telemetry: Telemetry, asked: ForecastRequest) -> Outlook:
    """The same, of telemetry that is here."""
    series = demand_series(telemetry, asked.metric, asked.step_s)
    found = forecast(series, asked.horizon_s)
    peaks = weekly_peaks(series.level, series.step_s)
    trend = trend_of(peaks)
    capacity = asked.n_capacity if asked.n_capacity is not None else _capacity(series.name)
    use = float(peaks[-1]) / capacity if capacity and len(peaks) else None
    rows, assumed = _advice(asked, trend, use)
    return Outlook(
        forecast=found, trend=trend, peak_use_frac=use, advice=rows, assumptions=tuple(assumed)
    )


def _capacity(metric: str) -> float | None:
    """A share is its own capacity; a count or a rate has none that we know of."""
    return 1.0 if metric.endswith("_frac") else None


def _advice(
    asked: ForecastRequest, trend: Trend | None, use: float | None
) -> tuple[tuple[OrderAdvice, ...], list[Assumption]]:
    if use is None or asked.lead_s is None or asked.n_devices is None:
        return (), []
    growth, assumed = asked.growth_frac_per_month, []
    if growth is not None:
        growths = [growth * (1 - SPREAD), growth, growth * (1 + SPREAD)]
        value = f"{growths[0]:.0%} and {growths[2]:.0%} a month"
        why = "half and one and a half of the growth that was given"
        assumed.append(Assumption(what="other growths", value=value, why=why, change="--growth"))
    elif trend is not None:
        growths = [trend.low_frac, trend.per_month_frac, trend.high_frac]
    else:
        return (), []
    rows = advice(
        use,
        growths,
        n_devices=asked.n_devices,
        lead_s=asked.lead_s,
        trigger_frac=asked.trigger_frac,
        target_frac=asked.target_frac,
    )
    return rows, assumed
