"""The demand in telemetry: one metric of all subjects, in equal steps."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpuplan.domain.columns import floats
from gpuplan.domain.telemetry.forecast import DemandSeries
from gpuplan.domain.telemetry.observation import METRICS, Series, Telemetry
from gpuplan.errors import InputError, one
from gpuplan.units import DAY, HOUR, MONTH

SHORT_MONTH, LONG_MONTH = 28 * DAY, 31 * DAY
MAX_GAP_S = 14 * DAY  # two of the longest season that a forecast knows

# In the order in which they say more about demand; shares are means, the rest adds up.
DEMAND = (
    "requests_per_s",
    "output_tokens_per_s",
    "requests_running_count",
    "submitted_count",
    "allocated_count",
    "active_nodes_count",
    "allocated_frac",
    "gpu_util_frac",
    "sm_active_frac",
)


def demand_series(telemetry: Telemetry, metric: str | None, step_s: float | None) -> DemandSeries:
    """What was asked of the fleet over time; gaps are drawn through, and counted."""
    name = metric or next((one for one in DEMAND if telemetry.of(one)), None)
    if name is None or not telemetry.of(name):
        observed = ", ".join(telemetry.metrics) or "nothing"
        what, fix = f"{name or 'no demand'} is not in it", f"choose one of: {observed}"
        raise one(InputError, telemetry.source, "metric", what, fix)
    whole = _given(telemetry, name)
    series = _after_gap(whole)
    step = step_s or _step(series)
    begin = min(float(s.at_s[0]) for s in series)
    n = int(_places(max(float(s.at_s[-1]) for s in series) - begin, step)) + 1
    total, n_known = np.zeros(n), np.zeros(n)
    for each in series:
        level, is_known = _binned(each, begin, step, n)
        total += np.where(is_known, level, 0.0)
        n_known += is_known
    if name.endswith("_frac"):
        total /= np.maximum(n_known, 1.0)  # who is silent is missing, not idle
    places = np.flatnonzero(n_known)
    filled = np.interp(np.arange(n), places, total[places])
    return DemandSeries(
        name=name,
        unit=METRICS[name],
        begin_s=begin,
        step_s=step,
        level=floats(filled),
        n_filled=int(n - len(places)),
        n_before_gap=sum(map(_n_given, whole)) - sum(map(_n_given, series)),
    )


def _given(telemetry: Telemetry, name: str) -> list[Series]:
    found = [each for each in telemetry.of(name) if each.is_given.any()]
    if not found:
        fix = "give a stretch of time with readings"
        raise one(InputError, telemetry.source, "metric", f"{name} has no readings", fix)
    return found


def _n_given(series: Series) -> int:
    return int(series.is_given.sum())


def _after_gap(series: list[Series]) -> list[Series]:
    """What follows the last gap of more than two weeks: a line through it would be invented.

    Of months, of more than three.
    """
    times = np.unique(np.concatenate([each.at_s[each.is_given] for each in series]))
    apart = np.diff(times)
    gaps = np.flatnonzero(apart > max(MAX_GAP_S, 3.1 * np.median(apart))) if len(apart) else apart
    if not len(gaps):
        return series
    begin_s = float(times[gaps[-1] + 1])
    retained = [
        replace(each, at_s=floats(each.at_s[is_late]), value=floats(each.value[is_late]))
        for each in series
        if (is_late := each.at_s >= begin_s).any()
    ]
    return [each for each in retained if each.is_given.any()]


def _step(series: list[Series]) -> float:
    """An hour, or what the samples allow where they are further apart or span less than days."""
    usual = (
        max(float(np.median(np.diff(s.at_s))) for s in series if len(s.at_s) > 1)
        if any(len(s.at_s) > 1 for s in series)
        else HOUR
    )
    span = max(float(s.at_s[-1] - s.at_s[0]) for s in series)
    step = HOUR if span >= 3 * 86400.0 else 600.0 if span >= 6 * HOUR else 60.0
    return max(step, MONTH if SHORT_MONTH <= usual <= LONG_MONTH else usual)


def _places(after_s: Any, step: float) -> Any:
    """Steps that have begun; months are of unequal length, so theirs is the nearest one."""
    return np.floor(after_s / step + (0.5 if step == MONTH else 0.0))


def _binned(
    series: Series, begin: float, step: float, n: int
) -> tuple[
    np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.bool_]]
]:
    is_given = series.is_given
    place = np.clip(_places(series.at_s[is_given] - begin, step).astype(np.int64), 0, n - 1)
    count = np.bincount(place, minlength=n)
    total = np.bincount(place, weights=series.value[is_given], minlength=n)
    return total / np.maximum(count, 1), count > 0
