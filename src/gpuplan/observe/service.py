"""What a service really saw: load, lengths, latencies, size, power."""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.telemetry.digest import quantile, summed
from gpuplan.domain.telemetry.observation import Histogram, Series, Telemetry
from gpuplan.domain.telemetry.replan import Observed

PEAK_S = 3600.0  # the busiest hour counts; shorter telemetry gives its busiest stretch
QUANTILE = 0.95


def observed_service(telemetry: Telemetry) -> Observed:
    """Figures that a plan can be held against."""
    rates = telemetry.of("requests_per_s")
    total = _sum(rates)
    engines = {s.subject for s in telemetry.of("requests_running_count")}
    spans = [float(s.at_s[-1] - s.at_s[0]) for s in telemetry.series if len(s.at_s) > 1]
    return Observed(
        peak_requests_per_s=None if total is None else _peak(*total),
        mean_requests_per_s=None if total is None else float(total[1].mean()),
        input_tokens=_mean(telemetry.histograms, "input_tokens"),
        output_tokens=_mean(telemetry.histograms, "output_tokens"),
        ttft_p95_s=_p95(telemetry.histograms, "ttft_s"),
        tpot_p95_s=_p95(telemetry.histograms, "tpot_s"),
        e2e_p95_s=_p95(telemetry.histograms, "e2e_s"),
        n_replicas=len(engines) or None,
        power_w=_power(telemetry),
        span_s=max(spans, default=0.0),
    )


Curve = tuple[
    np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]
]


def _sum(series: Sequence[Series]) -> Curve | None:
    """All series added up on the times of the densest one."""
    known = [one for one in series if one.is_given.any()]
    if not known:
        return None
    grid = max(known, key=lambda one: len(one.at_s)).at_s
    total = np.zeros(len(grid))
    for one in known:
        retained = one.is_given
        total += np.interp(grid, one.at_s[retained], one.value[retained])
    return np.asarray(grid), total


def _peak(at_s: np.ndarray, value: np.ndarray) -> float:
    _, hour = np.unique((at_s - at_s[0]) // PEAK_S, return_inverse=True)
    return float((np.bincount(hour, weights=value) / np.bincount(hour)).max())


def _mean(histograms: Sequence[Histogram], metric: str) -> float | None:
    found = [one for one in histograms if one.metric == metric]
    n = sum(float(np.nansum(one.count)) for one in found)
    total = sum(float(np.nansum(one.total)) for one in found)
    return total / n if n > 0 and total > 0 else None


def _p95(histograms: Sequence[Histogram], metric: str) -> float | None:
    """From added buckets; a value beyond the last bound is at least that bound."""
    found = [one for one in histograms if one.metric == metric]
    if not found:
        return None
    upper, count = summed(found)
    return quantile(upper, count, QUANTILE)


def _power(telemetry: Telemetry) -> float | None:
    boards = [one.mean() for one in telemetry.of("power_w") if one.is_given.any()]
    return sum(boards) if boards else None
