"""Causes that lie in the monitoring itself."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gpuplan.diagnose.features import DEAD_S, DEAD_SAMPLES, DeviceView
from gpuplan.diagnose.finding import Finding, evidence_of, percent
from gpuplan.domain.telemetry.diagnosis import BandEdges, Evidence, UseFigures
from gpuplan.domain.telemetry.observation import Series, Telemetry

AT_WORK = 0.5  # share of the board's power that no idle device draws
OUTAGE_SAMPLES = 5
# Tensor units may well rest at full power: work in single precision leaves them alone.
PROFILING = ("engine_active_frac", "sm_active_frac", "gpu_util_frac")


def telemetry_findings(telemetry: Telemetry, devices: Sequence[DeviceView]) -> list[Finding]:
    """Dead counters, outages, devices that are not there."""
    dead = [one for device in devices if (one := _dead(telemetry, device)) is not None]
    return [*dead, *_outage(telemetry), *_missing(devices)]


def _dead(telemetry: Telemetry, device: DeviceView) -> Finding | None:
    """A counter at zero, for a minute and three samples, while the board works."""
    watts, tdp_w = telemetry.one("power_w", device.row), device.subject.tdp_w or device.facts.tdp_w
    if watts is None or not tdp_w:
        return None
    names = []
    for metric in PROFILING:
        series = telemetry.one(metric, device.row)
        if series is not None and _is_dead(series, watts, tdp_w):
            names.append(metric.removesuffix("_frac"))
    if not names:
        return None
    power = device.whole.get("power_w")
    share = power.high / tdp_w if power is not None else 0.0
    rows = (
        evidence_of("stands at zero", ", ".join(names), "moves with the load"),
        evidence_of(
            "power", f"{percent(share)} of the board's", f"below {percent(AT_WORK)} when idle"
        ),
    )
    return Finding("dead_counter", 0.9, rows, (device.name,))


def _is_dead(series: Series, watts: Series, tdp_w: float) -> bool:
    place = np.clip(np.searchsorted(watts.at_s, series.at_s, side="right") - 1, 0, None)
    is_working = (watts.value[place] >= AT_WORK * tdp_w) & series.is_given
    if not is_working.any() or (series.value[is_working] > 0).any():
        return False
    span_s = float(series.at_s[is_working].max() - series.at_s[is_working].min())
    # A single scrape proves it too: no board draws half its power with nothing on it.
    is_snapshot = len(series.at_s) == 1
    return is_snapshot or (int(is_working.sum()) >= DEAD_SAMPLES and span_s >= DEAD_S)


def _outage(telemetry: Telemetry) -> list[Finding]:
    """Many subjects fall to zero at one instant and return at another.

    The devices of one node may well fall idle together: a job ended. Those of several nodes do not.
    """
    for metric in ("gpu_util_frac", "allocated_frac", "active_nodes_count"):
        series = [one for one in telemetry.of(metric) if len(one.at_s) >= 10]
        nodes = {telemetry.subjects[one.subject].node for one in series}
        if metric == "gpu_util_frac" and len(nodes) < 3:
            continue
        found = _shared_zeros(series)
        if found is not None:
            begin_s, length_s, n_all = found
            rows = (
                evidence_of(
                    "at zero together", f"{n_all} series, {length_s / 60:.0f} minutes", "singly"
                ),
                evidence_of("from", f"{begin_s:.0f} s", ""),
            )
            return [Finding("telemetry_outage", 0.8 if n_all > 2 else 0.6, rows)]
    return []


def _shared_zeros(series: Sequence[Series]) -> tuple[float, float, int] | None:
    """Begin and length of a stretch at which every series that was at work shows zero."""
    if not series or any(len(one.at_s) != len(series[0].at_s) for one in series):
        return None
    values = np.vstack([one.value for one in series])
    is_zero = (values == 0).all(axis=0)
    before = np.flatnonzero(np.diff(is_zero.astype(np.int64)) == 1)
    for start in before:
        was_busy = values[:, max(0, start - 5) : start + 1].mean(axis=1) > 0.3 * values.max(axis=1)
        after = np.flatnonzero(~is_zero[start + 1 :])
        end = start + 1 + (int(after[0]) if len(after) else len(is_zero) - start - 2)
        returns = len(after) > 0
        if was_busy.mean() > 0.7 and returns and end - start >= OUTAGE_SAMPLES:
            at_s = series[0].at_s
            return float(at_s[start + 1]), float(at_s[end] - at_s[start + 1]), len(series)
    return None


def _missing(devices: Sequence[DeviceView]) -> list[Finding]:
    """A node with fewer devices than most of its neighbours."""
    counts = Counter(
        device.subject.node
        for device in devices
        if device.subject.node and not device.subject.share
    )
    if len(counts) < 3:
        return []
    usual, n_such = Counter(counts.values()).most_common(1)[0]
    short = [node for node, n in counts.items() if n < usual]
    if n_such < 0.6 * len(counts) or not short:
        return []
    row = evidence_of("devices", f"{counts[short[0]]} on {short[0]}", f"{usual} on most nodes")
    return [Finding("missing_devices", 0.8, (row,), tuple(short))]


FLAPS, FLAP_SHARE = 6, 0.2  # crossings, and crossings for each minute
DEEPER = ("sm_active_frac", "tensor_active_frac", "kv_cache_frac")


def use_findings(use: UseFigures | None, edges: BandEdges) -> list[Finding]:
    """Peaks behind the mean, too little use, or full by the only counter that there is."""
    if use is None:
        return []
    mean, peak = edges.band(use.mean_frac), edges.band(use.peak_frac)
    rows = (
        evidence_of("mean", percent(use.mean_frac), mean),
        evidence_of("peak minute", percent(use.peak_frac), peak),
    )
    if mean in ("waste", "under-used") and peak in ("hot", "overload"):
        return [Finding("uneven_load", 0.8, rows)]
    if mean == "waste":
        return [Finding("under_used", 0.8, rows)]
    has_deeper = any(layer.metric in DEEPER for layer in use.layers)
    if has_deeper or use.metric != "gpu_util_frac":
        return []
    return [*_flapping(use), *_level(mean, rows)]


def _level(mean: str, rows: tuple[Evidence, ...]) -> list[Finding]:
    """A steady level by the only counter that there is."""
    named = {"under-used": "under_used", "hot": "hot", "overload": "full_by_name"}
    return [Finding(named[mean], 0.7, rows)] if mean in named else []


def _flapping(use: UseFigures) -> list[Finding]:
    """Many crossings of an edge that hysteresis makes few: the edge is noise, not an alarm."""
    times = use.over_time
    if times is None or times.n_crossings < FLAPS:
        return []
    if times.n_crossings < FLAP_SHARE * len(times.minutes) or len(times.episodes) > FLAPS:
        return []
    rows = (
        evidence_of("crossings of a band's edge", f"{times.n_crossings}", f"fewer than {FLAPS}"),
        evidence_of("stretches with hysteresis", f"{len(times.episodes)}", ""),
    )
    return [Finding("flapping", 0.8, rows)]


def is_only_percent(telemetry: Telemetry) -> bool:
    """Whether utilization is all that was measured: neither work, nor latency, nor power."""
    metrics = {one.metric for one in telemetry.series if one.is_given.any()}
    return metrics <= {"gpu_util_frac", "memory_util_frac"} and not telemetry.histograms
