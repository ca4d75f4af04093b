"""Forecast: telemetry -> demand in equal steps -> its future -> when to order."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpuplan.domain.columns import Floats
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.telemetry.forecast import (
    DemandForecast,
    ForecastRequest,
    OrderAdvice,
    OrderTerms,
    Outlook,
    Trend,
)
from gpuplan.domain.telemetry.monitoring import LiveSource
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.forecast.orders import advice, back_tested, trend_of, weekly_error_frac, weekly_peaks
from gpuplan.forecast.predict import forecast
from gpuplan.observe.demand import demand_series
from gpuplan.observe.read import read_source

EPOCH_S = 1e9  # times above it are dates, below it spans since the first sample
ALIKE = 0.005  # a month: growths closer than this are one row
SPREAD = 0.5  # of the growth that the user names, up and down, where nothing else is known


def outlook_of(source: Path | LiveSource, request: ForecastRequest | None = None) -> Outlook:
    """Demand ahead with its range and record, and when to order; of a file or a server."""
    return outlook(read_source(source), request or ForecastRequest())


def outlook(telemetry: Telemetry, request: ForecastRequest) -> Outlook:
    """The same, of telemetry that is here."""
    series = demand_series(telemetry, request.metric, request.step_s)
    found = forecast(series, request.horizon_s)
    peaks = weekly_peaks(series.level, series.step_s)
    trend = _trend(peaks, request)
    capacity = (
        request.n_capacity if request.n_capacity is not None else _capacity(series.name, request)
    )
    use = float(peaks[-1]) / capacity if capacity and len(peaks) else None
    rows, assumed = _advice(request, trend, use, terms=_terms(request, trend, peaks, found))
    return Outlook(
        forecast=found,
        trend=trend,
        peak_use_frac=use,
        advice=rows,
        no_advice=None if rows else _no_advice(request, use, series.name),
        assumptions=tuple(assumed),
    )


def _no_advice(request: ForecastRequest, use: float | None, metric: str) -> str | None:
    """What is missing for order dates that were asked for; None where nobody asked."""
    if request.lead_s is None and request.n_devices is None:
        return None
    if request.lead_s is None or request.n_devices is None:
        missing = (
            "the lead time (--lead-weeks)" if request.lead_s is None else "the fleet (--devices)"
        )
        return f"{missing} is not given"
    if use is None:
        return f"{metric} has no capacity to compare with: give --capacity"
    return "the history is too short for a trend of weekly peaks: give --growth per month"


def _capacity(metric: str, request: ForecastRequest) -> float | None:
    """A share is its own capacity, that of GPUs in use is the fleet; a rate has none we know of."""
    if metric == "allocated_count":
        return request.n_devices
    return 1.0 if metric.endswith("_frac") else None


def _trend(peaks: Floats, request: ForecastRequest) -> Trend | None:
    """Growth by the model that was asked for, or that did best on the past."""
    record = back_tested(peaks)
    best = record[0].model if record else "compound"
    found = trend_of(peaks, request.growth_model or best)
    return None if found is None else replace(found, record=record)


def _terms(
    request: ForecastRequest, trend: Trend | None, peaks: Floats, found: DemandForecast
) -> OrderTerms | None:
    """What an order depends on; None where fleet or lead time are not given."""
    if request.lead_s is None or request.n_devices is None:
        return None
    is_given = request.growth_frac_per_month is not None or trend is None
    model = request.growth_model or ("compound" if is_given or trend is None else trend.model)
    now_s = float(found.at_s[0])
    return OrderTerms(
        n_devices=request.n_devices,
        lead_s=request.lead_s,
        trigger_frac=request.trigger_frac,
        target_frac=request.target_frac,
        lead_high_s=request.lead_high_s,
        service_frac=request.service_frac,
        model=model,
        weekly_error_frac=weekly_error_frac(peaks, trend),
        now_s=now_s if now_s > EPOCH_S else None,
    )


def _advice(
    request: ForecastRequest, trend: Trend | None, use: float | None, *, terms: OrderTerms | None
) -> tuple[tuple[OrderAdvice, ...], list[Assumption]]:
    if use is None or terms is None:
        return (), []
    growth, assumed = request.growth_frac_per_month, []
    if growth is None and trend is None:
        return (), []
    if growth is None and trend is not None and trend.high_frac - trend.low_frac > ALIKE:
        growths = [trend.low_frac, trend.per_month_frac, trend.high_frac]
    else:
        middle = growth if growth is not None else (trend.per_month_frac if trend else 0.0)
        growths = [middle * (1 - SPREAD), middle, middle * (1 + SPREAD)]
        value = f"{growths[0]:.1%} and {growths[2]:.1%} a month"
        whose = "was given" if growth is not None else "was observed, which hardly varied"
        why = f"half and one and a half of the growth that {whose}"
        assumed.append(Assumption(what="other growths", value=value, why=why, change="--growth"))
    assumed += _assumed(request, trend)
    return advice(use, growths, terms), assumed


def _assumed(request: ForecastRequest, trend: Trend | None) -> Iterator[Assumption]:
    """Defaults of safety stock and growth model, with how to change them."""
    if request.lead_high_s is None:
        why = "no late lead time is given: the supplier delivers as quoted"
        yield assume("supplier risk", "none", why, "--lead-weeks-high")
    why = "safety stock covers demand and lead time with this probability"
    yield assume("service level", f"{request.service_frac:.0%}", why, "--service-level")
    if request.growth_model is None and request.growth_frac_per_month is not None:
        why = "a growth per month that is given multiplies each month"
        yield assume("growth model", "compound", why, "--growth-model")
    elif request.growth_model is None and trend is not None and not trend.record:
        why = "fewer than six weeks: too short a past to try other models on"
        yield assume("growth model", trend.model, why, "--growth-model")
