"""Telemetry in, a diagnosis out: figures first, then causes, then what they cost."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpuplan.diagnose.bands import (
    band_shares,
    mean_hides_peak,
    minute_means,
    pooled,
    safe_use,
)
from gpuplan.diagnose.features import DeviceView, device_views, engine_views
from gpuplan.diagnose.finding import Finding, seen, together, verdict_of
from gpuplan.diagnose.phases import node_phases
from gpuplan.diagnose.quality import quality_of
from gpuplan.diagnose.rules.compute import compute_findings
from gpuplan.diagnose.rules.fleet import fleet_findings
from gpuplan.diagnose.rules.hardware import hardware_findings
from gpuplan.diagnose.rules.serving import serving_findings
from gpuplan.diagnose.rules.telemetry import telemetry_findings, use_findings
from gpuplan.diagnose.waste import reclaims, team_use, waste_of
from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.buckets import quantile, summed
from gpuplan.domain.telemetry.diagnosis import (
    BandEdges,
    DeviceFacts,
    Diagnosis,
    HeatMap,
    Layer,
    UseFigures,
    Verdict,
)
from gpuplan.domain.telemetry.observation import Telemetry

LAYERS = (
    ("allocated", "allocated_frac"),
    ("any kernel", "gpu_util_frac"),
    ("processors", "sm_active_frac"),
    ("tensor units", "tensor_active_frac"),
    ("device memory", "dram_active_frac"),
    ("key-value cache", "kv_cache_frac"),
)
USE = ("gpu_util_frac", "engine_active_frac", "sm_active_frac", "allocated_frac")
SEVERITY = ("fault", "slow", "waste", "note", "fine")
SELDOM = ("dead_counter", "kv_thrash", "slot_limited", "thermal_throttling")
N_HEAT_ROWS, N_HEAT_COLUMNS = 64, 96


def diagnose(
    telemetry: Telemetry,
    facts: Mapping[int, DeviceFacts],
    *,
    edges: BandEdges | None = None,
    ttft_limit_s: float | None = None,
    beta_ratio: float = 1.0,
) -> Diagnosis:
    """Everything that can be said, worst first."""
    devices, engines = device_views(telemetry, facts), engine_views(telemetry)
    use = _use(telemetry, len(devices), edges or BandEdges())
    findings = [
        *together(telemetry_findings(telemetry, devices), len(devices)),
        *together(hardware_findings(devices), len(devices)),
        *together(serving_findings(telemetry, engines), len(engines)),
        *together(compute_findings(telemetry, devices), len(devices)),
        *together(fleet_findings(telemetry, devices), len(devices)),
        *use_findings(use, edges or BandEdges()),
    ]
    return Diagnosis(
        source=telemetry.source,
        use=use,
        verdicts=_verdicts(findings, devices),
        quality=quality_of(
            telemetry, devices, engines, ttft_limit_s=ttft_limit_s, beta_ratio=beta_ratio
        ),
        waste=waste_of(devices),
        teams=team_use(telemetry, devices),
        reclaims=reclaims(telemetry, devices),
        phases=node_phases(telemetry),
        heat=_heat(telemetry, devices),
        latencies=_latencies(telemetry),
        quirks=telemetry.quirks,
        assumptions=telemetry.assumptions,
    )


def _verdicts(findings: Sequence[Finding], devices: Sequence[DeviceView]) -> tuple[Verdict, ...]:
    """Worst and surest first; what a graver finding explains is left out."""
    # A cause that few devices show explains nothing about the rest.
    causes = {one.cause for one in findings if one.share_frac >= 0.5 or one.cause in SELDOM}
    kept = [one for one in findings if not _is_explained(one, causes)]
    if not kept:
        row = seen("rules that fired", "none", "")
        kept = [Finding("healthy", 0.6, (row,))]
    verdicts = [verdict_of(finding) for finding in kept]
    return tuple(
        sorted(verdicts, key=lambda one: (SEVERITY.index(one.severity), -one.confidence_frac))
    )


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


def _use(telemetry: Telemetry, n_devices: int, edges: BandEdges) -> UseFigures | None:
    metric = next((name for name in USE if any(s.is_given.any() for s in telemetry.of(name))), None)
    if metric is None:
        return None
    series = [one for one in telemetry.of(metric) if one.is_given.any()]
    value, weight_s = pooled(series)
    mean = float(np.average(value, weights=weight_s))
    peak = float(minute_means(series).max())
    safe = safe_use(max(len(series), 1))
    warnings = [mean_hides_peak(mean, peak, edges)]
    if safe < edges.good_frac:
        warnings.append(
            f"{len(series)} alone can bear {safe:.0%} before requests queue: "
            f"the band of {edges.good_frac:.0%} to {edges.hot_frac:.0%} is too high for so few"
        )
    elif safe > edges.hot_frac:
        warnings.append(
            f"a pool of {len(series)} can bear {safe:.0%}: the band up to {edges.hot_frac:.0%} "
            "wastes some of it"
        )
    at_s = np.concatenate([one.at_s for one in series])
    return UseFigures(
        metric=metric,
        mean_frac=mean,
        peak_frac=peak,
        bands=band_shares(value, weight_s, edges),
        layers=_layers(telemetry),
        n_devices=n_devices or len(series),
        span_s=float(at_s.max() - at_s.min()),
        safe_frac=safe,
        warnings=tuple(text for text in warnings if text),
    )


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


def _heat(telemetry: Telemetry, devices: Sequence[DeviceView]) -> HeatMap | None:
    rows = [(d.name, telemetry.one("gpu_util_frac", d.row)) for d in devices[:N_HEAT_ROWS]]
    known = [(name, series) for name, series in rows if series is not None and len(series.at_s) > 1]
    if not known:
        return None
    begin = min(float(series.at_s[0]) for _, series in known)
    end = max(float(series.at_s[-1]) for _, series in known)
    edges = np.linspace(begin, end, N_HEAT_COLUMNS + 1)
    use = np.full((len(known), N_HEAT_COLUMNS), np.nan)
    for k, (_, series) in enumerate(known):
        place = np.clip(
            np.searchsorted(edges, series.at_s, side="right") - 1, 0, N_HEAT_COLUMNS - 1
        )
        is_given = series.is_given
        count = np.bincount(place[is_given], minlength=N_HEAT_COLUMNS)
        total = np.bincount(
            place[is_given], weights=series.value[is_given], minlength=N_HEAT_COLUMNS
        )
        use[k, count > 0] = total[count > 0] / count[count > 0]
    return HeatMap(
        rows=tuple(name for name, _ in known), at_s=floats(edges[:-1]), use_frac=floats(use)
    )


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
