"""A fleet's digest judged: the same bands and causes, from figures instead of series."""

import numpy as np

from gpuplan.diagnose.bands import band_shares, mean_hides_peak, safe_use
from gpuplan.diagnose.finding import ACTIVITY, Finding, evidence_of, percent, verdict_of
from gpuplan.diagnose.rules.fleet import HELD_BYTES
from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.telemetry.diagnosis import (
    BandEdges,
    Diagnosis,
    HeatMap,
    Layer,
    Quality,
    Reclaim,
    TeamUse,
    UseFigures,
    Waste,
)
from gpuplan.domain.telemetry.digest import FleetDigest
from gpuplan.units import HOUR, HOURS_PER_MONTH

IDLE_ALL = 0.999
OCCUPIED, LOW_TENSOR, IDLE_POWER = 0.90, 0.15, 0.25
N_RECLAIMS = 1000
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def diagnose_fleet(
    digest: FleetDigest,
    *,
    tdp_w: Floats,
    usd_per_h: float | None,
    edges: BandEdges,
    beta_ratio: float,
) -> Diagnosis:
    """What a large fleet does with its time; boards' powers come from the catalog, NaN unknown."""
    devices = digest.devices
    findings = _findings(digest, tdp_w)
    verdicts = [verdict_of(one) for one in findings] or [
        verdict_of(Finding("healthy", 0.6, (evidence_of("rules that fired", "none", ""),)))
    ]
    idle_s = devices.idle_frac * devices.span_s
    sm = devices.sm_frac
    has_sm = bool(np.isfinite(sm).any())
    useful = float(np.nanmean(sm if has_sm else devices.mean_frac))
    return Diagnosis(
        source=digest.source,
        use=_use(digest, edges),
        verdicts=tuple(verdicts),
        quality=Quality(
            precision_frac=useful,
            recall_frac=None,
            f_beta_ratio=None,
            beta_ratio=beta_ratio,
            meaning="precision: share of "
            + ("SM" if has_sm else "device")
            + " time with work; recall: nothing says what was demanded",
        ),
        waste=_waste(digest, idle_s, usd_per_h),
        teams=_teams(digest, idle_s, usd_per_h),
        reclaims=_reclaims(digest, usd_per_h),
        phases=(),
        heat=HeatMap(
            rows=("mean of all", "highest instant"),
            at_s=digest.at_s,
            use_frac=floats(np.stack([digest.hour_mean_frac, digest.hour_peak_frac])),
        ),
        latencies=(),
        quirks=(),
        assumptions=(),
    )


def _use(digest: FleetDigest, edges: BandEdges) -> UseFigures:
    percents = floats(np.arange(101) / 100.0)
    whole_s = float(digest.percent_s.sum())
    mean = float(percents @ digest.percent_s) / whole_s if whole_s else 0.0
    peak = float(digest.hour_peak_frac.max())
    n = len(digest.devices.name)
    layers = [
        Layer(
            name=name,
            metric=metric,
            mean_frac=float(np.nanmean(values)),
            p99_minute_frac=float(np.nanquantile(values, 0.99)),
            peak_minute_frac=float(np.nanmax(values)),
            n_series=int(np.isfinite(values).sum()),
        )
        for (name, metric), values in zip(
            ACTIVITY,
            (digest.devices.mean_frac, digest.devices.sm_frac, digest.devices.tensor_frac),
            strict=False,
        )
        if np.isfinite(values).any()
    ]
    warning = mean_hides_peak(mean, peak, edges)
    return UseFigures(
        metric="gpu_util_frac",
        mean_frac=mean,
        peak_frac=peak,
        bands=band_shares(percents, digest.percent_s, edges),
        layers=tuple(layers),
        n_devices=n,
        span_s=float(digest.devices.span_s.max()),
        safe_frac=safe_use(n),
        warnings=(warning,) if warning else (),
    )


def _findings(digest: FleetDigest, tdp_w: Floats) -> list[Finding]:
    devices = digest.devices
    is_idle = devices.idle_frac >= IDLE_ALL
    is_held = np.nan_to_num(devices.held_bytes) > HELD_BYTES
    power = devices.power_w / tdp_w
    is_full = devices.mean_frac >= OCCUPIED
    share = devices.tensor_frac
    cases: tuple[tuple[str, float, Mask, str, str], ...] = (
        (
            "idle_allocated",
            0.9,
            is_idle & is_held,
            "no kernel in the whole window",
            "memory is allocated",
        ),
        (
            "idle_free",
            0.9,
            is_idle & ~is_held,
            "no kernel in the whole window",
            "no memory is allocated",
        ),
        ("busy_in_name", 0.7, is_full & (power < IDLE_POWER), "busy at", "idle power"),
        (
            "kernels_or_exchange",
            0.6,
            is_full & (share < LOW_TENSOR) & ~(power < IDLE_POWER),
            "busy, tensor units below",
            percent(LOW_TENSOR),
        ),
        (
            "under_used",
            0.7,
            (devices.mean_frac < 0.3) & ~is_idle & (devices.p95_frac < 0.7),
            "mean below 30 %",
            "95 % of samples below 70 %",
        ),
    )
    found = []
    for cause, sure, mask, what, against in cases:
        n = int(mask.sum())
        if n:
            names = tuple(devices.name[k] for k in np.flatnonzero(mask))
            row = evidence_of(what, f"{n:,} of {len(mask):,} devices", against)
            found.append(Finding(cause, sure, (row,), names, n / len(mask)))
    return found


def _waste(digest: FleetDigest, idle_s: Floats, usd_per_h: float | None) -> tuple[Waste, ...]:
    is_idle = digest.devices.idle_frac >= IDLE_ALL
    is_held = np.nan_to_num(digest.devices.held_bytes) > HELD_BYTES
    kinds = (
        ("allocated and idle", is_idle & is_held),
        ("free and idle", is_idle & ~is_held),
        ("pauses between work", ~is_idle),
    )
    found = []
    for cause, mask in kinds:
        seconds = float(idle_s[mask].sum())
        if seconds > 0:
            usd = None if usd_per_h is None else seconds / HOUR * usd_per_h
            span_s = float(digest.devices.span_s.max())
            found.append(
                Waste(cause=cause, accelerator_s=seconds, usd=usd, energy_j=None, span_s=span_s)
            )
    return tuple(found)


def _teams(digest: FleetDigest, idle_s: Floats, usd_per_h: float | None) -> tuple[TeamUse, ...]:
    names = np.array(digest.devices.team)
    found = []
    for team in sorted({name for name in digest.devices.team if name}):
        mask = names == team
        whole_s = float(digest.devices.span_s[mask].sum())
        idle = float(idle_s[mask].sum())
        usd = None if usd_per_h is None else whole_s / HOUR * usd_per_h
        busy = 1.0 - idle / whole_s if whole_s else 0.0
        found.append(
            TeamUse(team=team, accelerator_s=whole_s, busy_frac=busy, idle_s=idle, usd=usd)
        )
    return tuple(found)


def _reclaims(digest: FleetDigest, usd_per_h: float | None) -> tuple[Reclaim, ...]:
    devices = digest.devices
    rows = np.flatnonzero(
        (devices.idle_frac >= IDLE_ALL) & (np.nan_to_num(devices.held_bytes) > HELD_BYTES)
    )[:N_RECLAIMS]
    end_s = float(digest.at_s[-1]) + HOUR if len(digest.at_s) else 0.0
    return tuple(
        Reclaim(
            subject=devices.name[k],
            team=devices.team[k],
            job="",
            begin_s=end_s - float(devices.span_s[k]),
            end_s=end_s,
            usd_per_month=None if usd_per_h is None else usd_per_h * HOURS_PER_MONTH,
            memory_held_bytes=float(devices.held_bytes[k]),
        )
        for k in rows
    )
