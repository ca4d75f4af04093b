"""Watch: one look at a live server -> diagnosis, replicas that the load calls for, what comes."""

from collections.abc import Sequence

from gpuplan.diagnose.features import engine_views
from gpuplan.diagnose.replicas import recommended_replicas
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.domain.telemetry.monitoring import TimeWindow, WatchPoint, WatchReading, WatchRequest
from gpuplan.observe.prometheus_live import read_prometheus
from gpuplan.pipeline.diagnose import diagnose
from gpuplan.studies.monitoring.watch import expected, remembered, waste_usd_per_h


def look(
    query: WatchRequest, retained: Sequence[WatchPoint], *, now_s: float
) -> tuple[WatchReading, tuple[WatchPoint, ...]]:
    """What is, what to do, and the past to keep for the next look."""
    window = TimeWindow.until(now_s, look_back_s=query.look_back_s, step_s=query.step_s)
    telemetry = read_prometheus(query.access, window)
    request = DiagnoseRequest(usd_per_h=query.usd_per_h, ttft_limit_s=query.ttft_limit_s)
    found = diagnose(telemetry, request)
    engines = engine_views(telemetry)
    n_wanted, reason = recommended_replicas(
        engines, found.use, cache_target_frac=query.cache_target_frac
    )
    past = remembered(telemetry, retained, now_s=now_s)
    trigger_in_s, peak, metric = expected(past, query.trigger_frac)
    reading = WatchReading(
        at_s=now_s,
        diagnosis=found,
        n_replicas=len(engines),
        n_recommended=n_wanted,
        reason=reason,
        trigger_in_s=trigger_in_s,
        n_peak_expected=peak,
        waste_usd_per_h=waste_usd_per_h(found),
        metric=metric,
    )
    return reading, past
