"""Telemetry in, a diagnosis out: figures first, then causes, then what they cost.

Small work packed onto MIG slices: the smallest profile that holds each, and what it frees.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gpuplan.diagnose.bands import band_shares, mean_hides_peak, minute_means, pooled
from gpuplan.diagnose.features import DeviceView, device_views, engine_views
from gpuplan.diagnose.finding import ACTIVITY, Finding, evidence_of, percent, together, verdict_of
from gpuplan.diagnose.gains import with_gains
from gpuplan.diagnose.over_time import over_time, pool_warnings
from gpuplan.diagnose.phases import node_phases
from gpuplan.diagnose.rules.compute import SERVED, compute_findings
from gpuplan.diagnose.rules.fleet import fleet_findings, is_small_work
from gpuplan.diagnose.rules.hardware import hardware_findings
from gpuplan.diagnose.rules.hosts import network_findings
from gpuplan.diagnose.rules.serving import serving_findings
from gpuplan.diagnose.rules.telemetry import is_only_percent, telemetry_findings, use_findings
from gpuplan.diagnose.service import service_of, with_replicas
from gpuplan.diagnose.waste import idle_at_times, quality_of, reclaims, team_use, waste_of
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.hardware.devices import MigProfile
from gpuplan.domain.telemetry.diagnosis import (
    BandEdges,
    DeviceFacts,
    DiagnoseRequest,
    Diagnosis,
    HeatMap,
    Layer,
    ModelFacts,
    UseFigures,
    Verdict,
)
from gpuplan.domain.telemetry.digest import quantile, summed
from gpuplan.domain.telemetry.figures import Packing, ServiceFigures, WorkDone
from gpuplan.domain.telemetry.observation import Series, Telemetry
from gpuplan.units import HOURS_PER_MONTH

LAYERS = (
    ("allocated", "allocated_frac"),
    *ACTIVITY,
    ("KV cache", "kv_cache_frac"),
)
USE = ("gpu_util_frac", "engine_active_frac", "sm_active_frac", "allocated_frac")
SEVERITY = ("fault", "slow", "waste", "note", "fine")
AS_USUAL = DiagnoseRequest()
# Causes by which processors look active while they wait for other devices.
WAITING = ("network_bound", "communication_heavy", "kernels_or_exchange", "busy_in_name")
SELDOM = ("dead_counter", "kv_thrash", "slot_limited", "thermal_throttling")
# Metrics that say what was asked for, or how long it took.
WORK = (*SERVED, "output_tokens_per_s", "requests_waiting_count", "tpot_mean_s", "pending_count")
N_HEAT_ROWS, N_HEAT_COLUMNS = 64, 96


def diagnose(
    telemetry: Telemetry,
    facts: Mapping[int, DeviceFacts],
    request: DiagnoseRequest = AS_USUAL,
    *,
    model: ModelFacts | None = None,
) -> Diagnosis:
    """Everything that can be said, worst first."""
    devices, engines = device_views(telemetry, facts), engine_views(telemetry)
    edges, n_pool = request.edges or BandEdges(), request.expected_devices
    ttft_limit_s = request.ttft_limit_s
    service = service_of(telemetry, devices, engines, ttft_limit_s=ttft_limit_s, model=model)
    use = _use(telemetry, n_pool or len(devices), edges, service)
    idle = reclaims(telemetry, devices)
    findings = [
        *together(telemetry_findings(telemetry, devices), len(devices)),
        *together(hardware_findings(devices), len(devices)),
        *together(serving_findings(telemetry, engines), len(engines)),
        *together(compute_findings(telemetry, devices), len(devices)),
        *together(network_findings(telemetry), 0),
        *together(
            [*fleet_findings(telemetry, devices), *idle_at_times(devices, idle)], len(devices)
        ),
        *use_findings(use, edges),
    ]
    waiting = {name for one in findings if one.cause in WAITING for name in one.subjects}
    quality = quality_of(
        telemetry,
        [replace(one, is_waiting=one.name in waiting) for one in devices],
        engines,
        ttft_limit_s=ttft_limit_s,
        beta_ratio=request.beta_ratio,
    )
    gained = partial(with_gains, devices=devices, engines=engines, use=use)
    is_anonymous = len(devices) == 1 and not devices[0].subject.device
    return Diagnosis(
        source=telemetry.source,
        use=use and replace(use, packing=packing_of(devices)),
        verdicts=_with_effects(
            _verdicts(_full_not_limited(findings), quiet=_quiet(telemetry, use, edges)),
            gained,
            service,
        ),
        quality=replace(quality, service=service),
        waste=waste_of(devices, n_alike=n_pool if n_pool and is_anonymous else 1),
        teams=team_use(telemetry, devices),
        reclaims=idle,
        phases=node_phases(telemetry),
        heat=_heat(telemetry, devices, edges),
        latencies=_latencies(telemetry),
        quirks=telemetry.quirks,
        assumptions=telemetry.assumptions,
    )


def _full_not_limited(findings: Sequence[Finding]) -> list[Finding]:
    """More slots bring nothing where tensor units are full: the queue before them is overload."""
    is_full = any(one.cause == "compute_bound" and one.share_frac >= 0.5 for one in findings)
    return [
        one._replace(cause="overload") if is_full and one.cause == "slot_limited" else one
        for one in findings
    ]


def _quiet(telemetry: Telemetry, use: UseFigures | None, edges: BandEdges) -> Finding:
    """What is said where no rule fired, with the mean as its evidence."""
    row = evidence_of("rules that fired", "none", "")
    if use is not None:
        row = evidence_of("mean utilization", percent(use.mean_frac), edges.band(use.mean_frac))
    return Finding(_quiet_cause(telemetry, use, edges), 0.6, (row,))


def _quiet_cause(telemetry: Telemetry, use: UseFigures | None, edges: BandEdges) -> str:
    """Green takes demand or latency beside utilization."""
    if is_only_percent(telemetry):
        return "not_enough_to_judge"
    if telemetry.histograms or any(
        one.metric in WORK and one.is_given.any() for one in telemetry.series
    ):
        return "healthy"
    is_low = use is not None and edges.band(use.mean_frac) == "under-used"
    return "under_used" if is_low else "demand_unknown"


def _verdicts(findings: Sequence[Finding], *, quiet: Finding) -> tuple[Verdict, ...]:
    """Worst and surest first; what a graver finding explains is left out."""
    # A cause that few devices show explains nothing about the rest.
    causes = {one.cause for one in findings if one.share_frac >= 0.5 or one.cause in SELDOM}
    retained = [one for one in findings if not _is_explained(one, causes)] or [quiet]
    verdicts = [verdict_of(finding) for finding in retained]
    return tuple(
        sorted(verdicts, key=lambda one: (SEVERITY.index(one.severity), -one.confidence_frac))
    )


def _with_effects(
    verdicts: Sequence[Verdict], gained: Callable[[Verdict], Verdict], service: ServiceFigures
) -> tuple[Verdict, ...]:
    """What each action brings to this fleet, and how many replicas this queue takes."""
    return tuple(with_replicas(gained(one), service.backlog) for one in verdicts)


def _is_explained(finding: Finding, causes: set[str]) -> bool:
    """A dead counter explains idleness; an outage too; heat explains lost clocks."""
    by = {
        "idle_allocated": {"dead_counter"},
        "idle_free": {"dead_counter"},
        "share_candidate": {"dead_counter"},
        "power_throttling": {"thermal_throttling"},
        "overload": {"kv_thrash", "slot_limited"},
        "low_demand": {"kv_thrash", "slot_limited", "overload"},
        "input_bound": {"storage_bound", "host_bound"},
        "under_used": {
            "idle_allocated",
            "idle_free",
            "dead_counter",
            "telemetry_outage",
            "share_candidate",
            "over_specified",
            "storage_bound",
            "host_bound",
            "input_bound",
            "low_demand",
        },
        "full_by_name": {"busy_in_name", "kernels_or_exchange"},
    }
    return bool(by.get(finding.cause, set()) & causes)


def _use(
    telemetry: Telemetry, n_devices: int, edges: BandEdges, service: ServiceFigures
) -> UseFigures | None:
    metric = next((name for name in USE if any(s.is_given.any() for s in telemetry.of(name))), None)
    if metric is None:
        return None
    series = [one for one in telemetry.of(metric) if one.is_given.any()]
    value, weight_s = pooled(series)
    mean = float(np.average(value, weights=weight_s))
    peak = float(minute_means(series).max())
    n_pool = max(n_devices, len(series))
    times = over_time(series, edges, n_devices=n_pool, mean_frac=mean)
    safe = times.suggested_high_frac
    warnings = [mean_hides_peak(mean, peak, edges), *pool_warnings(n_pool, edges, times)]
    at_s = np.concatenate([one.at_s for one in series])
    return UseFigures(
        metric=metric,
        mean_frac=mean,
        peak_frac=peak,
        bands=band_shares(value, weight_s, edges),
        layers=(*_layers(telemetry), *_model_layers(service.work)),
        n_devices=n_devices or len(series),
        span_s=float(at_s.max() - at_s.min()),
        safe_frac=safe,
        warnings=tuple(text for text in warnings if text),
        over_time=times,
    )


def _model_layers(work: WorkDone | None) -> Iterator[Layer]:
    """MFU and MBU by what engines wrote; one figure for all the time."""
    for name, metric in (("model FLOPs (MFU)", "mfu_frac"), ("model bandwidth (MBU)", "mbu_frac")):
        value = getattr(work, metric, None)
        if value is not None:
            same = {"mean_frac": value, "p99_minute_frac": value, "peak_minute_frac": value}
            yield Layer(name=name, metric=metric, n_series=1, **same)


def _layers(telemetry: Telemetry) -> tuple[Layer, ...]:
    layers = []
    for name, metric in LAYERS:
        series = [one for one in telemetry.of(metric) if one.is_given.any()]
        if not series:
            continue
        value, weight_s = pooled(series)
        minutes = minute_means(series)
        layers.append(
            Layer(
                name=name,
                metric=metric,
                mean_frac=float(np.average(value, weights=weight_s)),
                p99_minute_frac=float(np.quantile(minutes, 0.99)),
                peak_minute_frac=float(minutes.max()),
                n_series=len(series),
            )
        )
    return tuple(layers)


def _heat(telemetry: Telemetry, devices: Sequence[DeviceView], bands: BandEdges) -> HeatMap | None:
    rows = [(device, telemetry.one("gpu_util_frac", device.row)) for device in devices]
    known = [(one, series) for one, series in rows if series is not None and len(series.at_s) > 1]
    if not known:
        return None
    begin = min(float(series.at_s[0]) for _, series in known)
    end = max(float(series.at_s[-1]) for _, series in known)
    # A column holds a sample of each device, so that an empty one is a gap in the telemetry.
    step_s = float(np.median([np.median(np.diff(series.at_s)) for _, series in known]))
    n_columns = min(N_HEAT_COLUMNS, round((end - begin) / step_s) + 1) if step_s > 0 else 1
    edges = np.linspace(begin, end + step_s, n_columns + 1) - step_s / 2
    means = [_over_steps([series], edges) for _, series in known[:N_HEAT_ROWS]]
    groups = _groups(known)
    return HeatMap(
        rows=tuple(device.name for device, _ in known[:N_HEAT_ROWS]),
        at_s=floats(edges[:-1] + step_s / 2),
        use_frac=floats(np.array(means)),
        edges=bands,
        groups=tuple(groups),
        group_use_frac=floats(np.array([_over_steps(g, edges) for g in groups.values()]))
        if groups
        else None,
    )


def _groups(known: Sequence[tuple[DeviceView, Series]]) -> dict[str, list[Series]]:
    """Devices of each team and of each node, where there are several of them."""
    found: dict[str, list[Series]] = {}
    for kind in ("team", "node"):
        names = sorted({getattr(device.subject, kind) for device, _ in known} - {""})
        for name in names[:N_HEAT_ROWS] if len(names) > 1 else ():
            same = [series for one, series in known if getattr(one.subject, kind) == name]
            found[f"team {name}" if kind == "team" else f"{name}, all GPUs"] = same
    return found


def _over_steps(group: Sequence[Series], edges: Floats) -> Floats:
    """Mean of all samples in each step; NaN where there are none."""
    n, value = len(edges) - 1, pooled(group)[0]
    at_s = np.concatenate([one.at_s[one.is_given] for one in group])
    place = np.clip(np.searchsorted(edges, at_s, side="right") - 1, 0, n - 1)
    count, total = np.bincount(place, minlength=n), np.bincount(place, value, n)
    return floats(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _latencies(telemetry: Telemetry) -> tuple[tuple[str, float, float, float], ...]:
    found = []
    for metric in ("ttft_s", "tpot_s", "e2e_s", "wait_s"):
        histograms = [one for one in telemetry.histograms if one.metric == metric]
        if histograms:
            upper, count = summed(histograms)
            values = [quantile(upper, count, share) for share in (0.5, 0.95, 0.99)]
            if all(value is not None for value in values):
                found.append((metric, *(float(value or 0.0) for value in values)))
    return tuple(found)  # type: ignore[arg-type]


def packing_of(devices: Sequence[DeviceView]) -> Packing | None:
    """One profile for all small work of one kind of device; None where there is none to pack."""
    small = [one for one in devices if is_small_work(one) and one.facts.slices]
    if len(small) < 2:
        return None
    kind = small[0].facts
    same = [one for one in small if one.facts.slices == kind.slices]
    profile = _smallest(same, kind.slices)
    if profile is None:
        return None
    n_after = math.ceil(len(same) / profile.n_max)
    saved = None if kind.usd_per_h is None else (len(same) - n_after) * kind.usd_per_h
    return Packing(
        accelerator=same[0].subject.model or kind.name,
        profile=profile.name,
        n_before=len(same),
        n_after=n_after,
        usd_per_month=None if saved is None else saved * HOURS_PER_MONTH,
    )


def _smallest(devices: Sequence[DeviceView], slices: Sequence[MigProfile]) -> MigProfile | None:
    """The profile of which a device holds most, that every one of them fits into."""
    memory = max(stat.peak for one in devices if (stat := one.whole.get("memory_used_bytes")))
    active = [one.whole.get("sm_active_frac") or one.whole["gpu_util_frac"] for one in devices]
    compute = max(stat.high for stat in active)
    fitting = [s for s in slices if s.memory_bytes >= memory and s.compute_frac >= compute]
    return max(fitting, key=lambda s: (s.n_max, -s.memory_bytes), default=None)
