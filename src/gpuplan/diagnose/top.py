"""One moment of telemetry as rows for a screen: busiest first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpuplan.diagnose.features import name_of
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.diagnosis import BandEdges, Verdict
from gpuplan.domain.telemetry.monitoring import TopDevice, TopEngine, TopFrame
from gpuplan.domain.telemetry.observation import Series, Telemetry

N_TRAIL = 40
N_ROWS = 64
STALE_STEPS = 3.0


def headline(verdicts: Sequence[Verdict]) -> str:
    """The gravest cause in a line."""
    if not verdicts:
        return "nothing reports"
    first = verdicts[0]
    return f"{first.severity}: {first.title} ({first.confidence_frac:.0%} sure)"


def frame_at(telemetry: Telemetry, at_s: float, headline: str) -> TopFrame:
    """What was known at an instant; samples older than three steps count as missing."""
    by_subject: dict[int, dict[str, Series]] = {}
    for series in telemetry.series:
        by_subject.setdefault(series.subject, {})[series.metric] = series
    devices, engines = [], []
    for row, metrics in by_subject.items():
        name = name_of(telemetry.subjects[row], row)
        if "gpu_util_frac" in metrics or "sm_active_frac" in metrics:
            devices.append(_device(name, telemetry.subjects[row].team, metrics, at_s))
        if "requests_running_count" in metrics or "kv_cache_frac" in metrics:
            engines.append(_engine(name, metrics, at_s))
    known = [device.use_frac for device in devices if device.use_frac is not None]
    devices.sort(key=lambda device: (-(device.use_frac or 0.0), device.name))
    return TopFrame(
        source=telemetry.source,
        at_s=at_s,
        devices=tuple(devices[:N_ROWS]),
        engines=tuple(engines[:N_ROWS]),
        mean_frac=float(np.mean(known)) if known else None,
        peak_frac=max(known, default=None),
        headline=headline,
        n_devices=len(devices),
    )


def moments(telemetry: Telemetry, n_most: int) -> tuple[float, ...]:
    """Instants to show, evenly over the recording."""
    times = np.unique(np.concatenate([series.at_s for series in telemetry.series]))
    retained = times[np.linspace(0, len(times) - 1, min(n_most, len(times))).astype(int)]
    return tuple(float(at_s) for at_s in retained)


def until(telemetry: Telemetry, at_s: float) -> Telemetry:
    """What had been seen by then."""
    retained = []
    for series in telemetry.series:
        n = int(np.searchsorted(series.at_s, at_s, side="right"))
        if n:
            retained.append(
                replace(series, at_s=floats(series.at_s[:n]), value=floats(series.value[:n]))
            )
    return replace(telemetry, series=tuple(retained))


def _now(metrics: Mapping[str, Series], metric: str, at_s: float) -> float | None:
    series = metrics.get(metric)
    if series is None:
        return None
    k = int(np.searchsorted(series.at_s, at_s, side="right")) - 1
    if k < 0 or not np.isfinite(series.value[k]):
        return None
    step_s = float(np.median(np.diff(series.at_s))) if len(series.at_s) > 1 else np.inf
    return float(series.value[k]) if at_s - series.at_s[k] <= STALE_STEPS * step_s else None


def _device(name: str, team: str, metrics: Mapping[str, Series], at_s: float) -> TopDevice:
    use_of = "gpu_util_frac" if "gpu_util_frac" in metrics else "sm_active_frac"
    use = _now(metrics, use_of, at_s)
    source = metrics[use_of]
    k = int(np.searchsorted(source.at_s, at_s, side="right"))
    retained, total = (
        _now(metrics, "memory_used_bytes", at_s),
        _now(metrics, "memory_total_bytes", at_s),
    )
    free = _now(metrics, "memory_free_bytes", at_s)
    size = (
        total
        if total is not None
        else retained + free
        if retained is not None and free is not None
        else None
    )
    return TopDevice(
        name=name,
        team=team,
        band="" if use is None else BandEdges().band(use),
        use_frac=use,
        sm_frac=_now(metrics, "sm_active_frac", at_s),
        tensor_frac=_now(metrics, "tensor_active_frac", at_s),
        memory_frac=retained / size if retained is not None and size else None,
        power_w=_now(metrics, "power_w", at_s),
        heat_c=_now(metrics, "temperature_c", at_s),
        trail_frac=floats(source.value[max(0, k - N_TRAIL) : k]),
    )


def _engine(name: str, metrics: Mapping[str, Series], at_s: float) -> TopEngine:
    return TopEngine(
        name=name,
        n_running=_now(metrics, "requests_running_count", at_s),
        n_waiting=_now(metrics, "requests_waiting_count", at_s),
        cache_frac=_now(metrics, "kv_cache_frac", at_s),
        output_tokens_per_s=_now(metrics, "output_tokens_per_s", at_s),
    )
