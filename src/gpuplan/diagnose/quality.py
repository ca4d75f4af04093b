"""Precision and recall of a fleet, as the documents mean them, from what was measured.

Precision: of the paid accelerator time, the share that did useful work. Recall: of the work that
was demanded, the share that was done in time. Too many devices: high recall, low precision; too
few: the other way round.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from gpuplan.diagnose.features import DeviceView, EngineView
from gpuplan.domain.telemetry.buckets import summed
from gpuplan.domain.telemetry.diagnosis import Quality
from gpuplan.domain.telemetry.observation import Series, Telemetry

IN_FLIGHT = ("requests_running_count", "requests_waiting_count")
PIPES = tuple(f"{name}_active_frac" for name in ("tensor", "fp16", "fp32", "fp64", "dram"))
HANDED_OUT = ("allocated_count", "pending_count")


def quality_of(
    telemetry: Telemetry,
    devices: Sequence[DeviceView],
    engines: Sequence[EngineView],
    *,
    ttft_limit_s: float | None,
    beta_ratio: float,
) -> Quality:
    """Both figures with what they rest on; None where nothing was measured for one."""
    precision, meant = _precision(telemetry, devices)
    recall, demanded = _recall(telemetry, engines, ttft_limit_s)
    return Quality(
        precision_frac=precision,
        recall_frac=recall,
        f_beta_ratio=f_beta(precision, recall, beta_ratio),
        beta_ratio=beta_ratio,
        meaning=f"precision: {meant}; recall: {demanded}",
    )


def f_beta(precision: float | None, recall: float | None, beta: float) -> float | None:
    """Weighted harmonic mean; a miss counts beta squared times a waste [VanRijsbergen1979]."""
    if precision is None or recall is None:
        return None
    below = beta**2 * precision + recall
    return (1 + beta**2) * precision * recall / below if below else 0.0


def _precision(telemetry: Telemetry, devices: Sequence[DeviceView]) -> tuple[float | None, str]:
    """Work done by the processors, else time with any kernel, over all measured device time."""
    n_waiting = sum(device.is_waiting for device in devices)
    waits = f"; {n_waiting} wait for others: only pipes at work count" if n_waiting else ""
    for metric, meant in (
        ("sm_active_frac", f"share of processor time with work, of all device time{waits}"),
        ("gpu_util_frac", "share of device time with any kernel: an upper bound of useful time"),
        ("allocated_frac", "share of devices given to jobs: an upper bound of useful time"),
    ):
        series = [one for one in telemetry.of(metric) if one.is_given.any()]
        if series:
            weights = [float(one.weight_s[one.is_given].sum()) for one in series]
            useful = {device.row: _at_work(device) for device in devices if device.is_waiting}
            means = [min(one.mean(), useful.get(one.subject, 1.0)) for one in series]
            return float(np.average(means, weights=weights)), meant
    return None, "no device reports its use"


def _at_work(device: DeviceView) -> float:
    """Activity of the busiest pipe or of memory: a kernel that spins uses neither."""
    stats = [device.whole.get(name) for name in PIPES]
    return max((stat.mean for stat in stats if stat is not None), default=1.0)


def _recall(
    telemetry: Telemetry, engines: Sequence[EngineView], ttft_limit_s: float | None
) -> tuple[float | None, str]:
    if ttft_limit_s is not None:
        found = [one for one in telemetry.histograms if one.metric == "ttft_s"]
        if found:
            upper, count = summed(found)
            within = float(count[upper <= ttft_limit_s * (1 + 1e-9)].sum())
            whole = float(count.sum())
            share = within / whole if whole else None
            return share, f"requests whose first token came within {ttft_limit_s:g} s"
    held = [one for engine in engines for one in engine.series.values()]
    for series, runs, waits, meant in (
        (held, *IN_FLIGHT, "requests in the batch, of those in batch and queue"),
        (telemetry.series, *HANDED_OUT, "devices given, of those given and asked for"),
    ):
        running, waiting = _total(series, runs), _total(series, waits)
        if running is not None and waiting is not None:
            whole = running + waiting
            return running / whole if whole > 0 else 1.0, meant
    return None, "nothing says what was demanded"


def _total(series: Iterable[Series], metric: str) -> float | None:
    """The means of a metric added up over all that report it; None where none does."""
    means = [one.mean() for one in series if one.metric == metric and one.is_given.any()]
    return sum(means) if means else None
