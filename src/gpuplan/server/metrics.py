"""A reading as Prometheus metrics, in base units."""

from typing import TYPE_CHECKING, Any

from gpuplan.domain.telemetry.diagnosis import Diagnosis
from gpuplan.domain.telemetry.monitoring import WatchReading
from gpuplan.errors import InputError, one

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


def library() -> Any:
    """The exposition library, or how to get it."""
    try:
        import prometheus_client  # noqa: PLC0415
    except ImportError as error:
        fix = "install gpuplan[observe]"
        raise one(InputError, "watch", "prometheus-client", "is not installed", fix) from error
    return prometheus_client


def registry_of(
    reading: WatchReading | None, *, is_up: bool, n_failures: int, now_s: float
) -> "CollectorRegistry":
    """Everything that is known now; the last good reading stays while the server is away."""
    client = library()
    registry = client.CollectorRegistry()

    made: dict[str, Any] = {}

    def gauge(name: str, text: str, value: float, **labels: str) -> None:
        if name not in made:
            made[name] = client.Gauge(name, text, list(labels), registry=registry)
        (made[name].labels(**labels) if labels else made[name]).set(value)

    gauge("gpuplan_up", "1 if the last look at the monitoring server succeeded", float(is_up))
    failures = client.Counter(
        "gpuplan_look_failures", "Looks that failed since the start", registry=registry
    )
    failures.inc(n_failures)
    if reading is not None:
        age_s = now_s - reading.at_s
        gauge("gpuplan_reading_age_seconds", "Since the last good look", age_s)
        _fleet(gauge, reading)
        _use(gauge, reading.diagnosis)
    return registry  # type: ignore[no-any-return]


def _fleet(gauge: Any, reading: WatchReading) -> None:
    gauge("gpuplan_replicas", "Engines that report", float(reading.n_replicas))
    gauge(
        "gpuplan_recommended_replicas",
        "Engines that the load calls for",
        float(reading.n_recommended),
    )
    optional = (
        ("gpuplan_waste_dollars_per_hour", "Paid and idle", reading.waste_usd_per_h),
        (
            "gpuplan_seconds_to_saturation",
            "Until the weekly peak reaches the trigger",
            reading.trigger_in_s,
        ),
        ("gpuplan_forecast_demand_peak", "Highest of the coming day", reading.n_peak_expected),
    )
    for name, text, value in optional:
        if value is not None:
            gauge(name, text, value)
    if reading.trigger_in_s is not None:
        text = "Days until the weekly peak reaches the trigger"
        gauge("gpuplan_days_to_saturation", text, reading.trigger_in_s / 86400.0)


def _use(gauge: Any, found: Diagnosis) -> None:
    if found.use is not None:
        for layer in found.use.layers:
            text = "Utilization in its layers"
            gauge("gpuplan_utilization_ratio", text, layer.mean_frac, layer=layer.name, stat="mean")
            peak = layer.peak_minute_frac
            gauge("gpuplan_utilization_ratio", text, peak, layer=layer.name, stat="peak")
        for band in found.use.bands:
            gauge("gpuplan_band_time_ratio", "Time in each band", band.time_frac, band=band.name)
        gauge("gpuplan_safe_utilization_ratio", "What this pool can bear", found.use.safe_frac)
        gauge("gpuplan_devices", "Accelerators that report", float(found.use.n_devices))
    for name, value in (
        ("precision", found.quality.precision_frac),
        ("recall", found.quality.recall_frac),
    ):
        if value is not None:
            gauge(f"gpuplan_{name}_ratio", f"The fleet's {name}", value)
    for verdict in found.verdicts:
        text = "Causes that are diagnosed, with their confidence"
        labels = {"cause": verdict.cause, "severity": verdict.severity}
        gauge("gpuplan_verdict_confidence_ratio", text, verdict.confidence_frac, **labels)
