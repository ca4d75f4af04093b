"""What each device and each engine looks like in a few numbers; missing is None, never 0."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.telemetry.diagnosis import DeviceFacts
from gpuplan.domain.telemetry.observation import Series, Subject, Telemetry

BUSY_UTIL = 0.05
BUSY_SM = 0.02
DEAD_SAMPLES = 3
TELLING = ("gpu_util_frac", "sm_active_frac", "power_w", "xid_code", "switch_fault_code")
DEAD_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """One metric of one subject over time."""

    mean: float
    high: float  # 95th percentile of samples
    low: float  # 5th percentile
    peak: float
    n_samples: int
    n_turns: int  # how often it crosses the middle between its highs and lows


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """One device while it was busy, and how much of the time that was."""

    row: int
    name: str
    subject: Subject
    facts: DeviceFacts
    busy: Mapping[str, Stat]  # metric → while busy
    whole: Mapping[str, Stat]  # metric → over all time
    busy_frac: float
    span_s: float
    is_waiting: bool = False  # its kernels wait for other devices: activity is no work

    def get(self, metric: str) -> float | None:
        """Mean while busy, or None where nothing was measured."""
        stat = self.busy.get(metric)
        return None if stat is None else stat.mean

    @property
    def power_frac(self) -> float | None:
        """Power while busy, as a share of what the board is built for."""
        watts = self.get("power_w")
        tdp_w = self.subject.tdp_w or self.facts.tdp_w
        return None if watts is None or not tdp_w else watts / tdp_w

    @property
    def link_bytes_per_s(self) -> float | None:
        """Scale-up traffic of one direction, the busier one."""
        rates = [self.get("link_tx_bytes_per_s"), self.get("link_rx_bytes_per_s")]
        known = [rate for rate in rates if rate is not None]
        return max(known) if known else None

    @property
    def memory_frac(self) -> float | None:
        """Peak of device memory held."""
        used = self.whole.get("memory_used_bytes")
        total = self.whole.get("memory_total_bytes")
        free = self.whole.get("memory_free_bytes")
        size = self.subject.memory_bytes or self.facts.memory_bytes
        if total is not None:
            size = total.peak
        elif used is not None and free is not None:
            size = used.peak + free.low
        return None if used is None or not size else used.peak / size


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineView:
    """One inference engine over time."""

    row: int
    name: str
    series: Mapping[str, Series]

    def stat(self, metric: str) -> Stat | None:
        """Figures of a metric over all time."""
        series = self.series.get(metric)
        return None if series is None else stat_of(series)

    def mean(self, metric: str) -> float | None:
        """Mean over all time."""
        stat = self.stat(metric)
        return None if stat is None else stat.mean


def stat_of(
    series: Series, keep: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
) -> Stat | None:
    """Figures of a series, of all samples or of those kept; None without any."""
    is_kept = series.is_given if keep is None else series.is_given & keep
    if not is_kept.any():
        return None
    value, weight_s = series.value[is_kept], series.weight_s[is_kept]
    low, high = _tails(value)
    return Stat(
        mean=float(value @ weight_s) / float(weight_s.sum()),
        high=high,
        low=low,
        peak=float(value.max()),
        n_samples=len(value),
        n_turns=int((np.diff(value > (low + high) / 2.0)).sum()),
    )


def _tails(value: Floats) -> tuple[float, float]:
    """5th and 95th percentile, as numpy draws them; its own way costs ten times as much here."""
    ordered = np.sort(value)
    place = 0.05 * (len(ordered) - 1)
    k = int(place)
    part = place - k
    if k + 1 >= len(ordered):
        return float(ordered[0]), float(ordered[-1])
    low = ordered[k] + part * (ordered[k + 1] - ordered[k])
    high = ordered[-1 - k] - part * (ordered[-1 - k] - ordered[-2 - k])
    return float(low), float(high)


def device_views(telemetry: Telemetry, facts: Mapping[int, DeviceFacts]) -> tuple[DeviceView, ...]:
    """Every subject that reports a metric of a device."""
    by_subject: dict[int, dict[str, Series]] = {}
    for series in telemetry.series:
        by_subject.setdefault(series.subject, {})[series.metric] = series
    return tuple(
        _device_view(telemetry, row, metrics, facts.get(row, DeviceFacts()))
        for row, metrics in sorted(by_subject.items())
        if any(name in metrics for name in TELLING)
    )


def _device_view(
    telemetry: Telemetry, row: int, metrics: Mapping[str, Series], facts: DeviceFacts
) -> DeviceView:
    subject = telemetry.subjects[row]
    busy_at = _busy(metrics)
    whole = {name: stat_of(series) for name, series in metrics.items()}
    busy = {name: stat_of(series, _at(series, busy_at)) for name, series in metrics.items()}
    at_s = np.concatenate([series.at_s for series in metrics.values()])
    share = 0.0
    if busy_at is not None:
        source, is_busy = busy_at
        is_given = source.is_given
        weight_s = source.weight_s
        measured_s = float(weight_s[is_given].sum())
        share = float(weight_s[is_busy & is_given].sum()) / measured_s if measured_s else 0.0
    return DeviceView(
        row=row,
        name=name_of(subject, row),
        subject=subject,
        facts=facts,
        busy={name: stat for name, stat in busy.items() if stat is not None},
        whole={name: stat for name, stat in whole.items() if stat is not None},
        busy_frac=share,
        span_s=float(at_s.max() - at_s.min()),
    )


BusyAt = tuple[Series, np.ndarray[tuple[int], np.dtype[np.bool_]]]


def _busy(metrics: Mapping[str, Series]) -> BusyAt | None:
    """When the device worked: by its utilization, else by its processors."""
    for name, least in (("gpu_util_frac", BUSY_UTIL), ("sm_active_frac", BUSY_SM)):
        if name in metrics and metrics[name].is_given.any():
            return metrics[name], metrics[name].value > least
    return None


def _at(series: Series, busy: BusyAt | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """Samples of this series at busy instants of another one."""
    if busy is None:
        return None
    source, is_busy = busy
    if len(source.at_s) == len(series.at_s) and bool((source.at_s == series.at_s).all()):
        return is_busy
    place = np.clip(np.searchsorted(source.at_s, series.at_s, side="right") - 1, 0, None)
    return np.asarray(is_busy[place], dtype=np.bool_)


def name_of(subject: Subject, row: int) -> str:
    """How people would call it: node and device, else pod, service or number."""
    parts = [subject.node, f"gpu {subject.device}" if subject.device else "", subject.share]
    name = " ".join(part for part in parts if part)
    return name or subject.job or subject.service or subject.uuid or f"subject {row}"


def engine_views(telemetry: Telemetry) -> tuple[EngineView, ...]:
    """Every subject that reports a queue, a cache or tokens."""
    wanted = ("requests_waiting_count", "requests_running_count", "kv_cache_frac")
    by_subject: dict[int, dict[str, Series]] = {}
    for series in telemetry.series:
        by_subject.setdefault(series.subject, {})[series.metric] = series
    return tuple(
        EngineView(row=row, name=name_of(telemetry.subjects[row], row), series=metrics)
        for row, metrics in sorted(by_subject.items())
        if any(name in metrics for name in wanted)
    )


def window_means(series: Series, window_s: float) -> tuple[Floats, Floats]:
    """Start and mean of each window that holds samples."""
    is_given = series.is_given
    at_s, value = series.at_s[is_given], series.value[is_given]
    if len(at_s) == 0:
        return at_s, value
    retained, place = np.unique(np.floor((at_s - at_s[0]) / window_s), return_inverse=True)
    means = np.bincount(place, weights=value) / np.bincount(place)
    return at_s[0] + retained * window_s, means
