"""Paid time that did nothing: by cause, by team, device by device.

Precision and recall of a fleet, as the documents mean them, from what was measured.

Precision: of the paid accelerator time, the share that did useful work. Recall: of the work that
was demanded, the share that was done in time. Too many devices: high recall, low precision; too
few: the other way round.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gpuplan.diagnose.features import DeviceView, EngineView
from gpuplan.diagnose.finding import Finding, evidence_of
from gpuplan.diagnose.rules.fleet import HELD_BYTES, IDLE_UTIL, WATCHED_S, held_bytes, is_idle
from gpuplan.domain.telemetry.diagnosis import Quality, Reclaim, TeamUse, Waste
from gpuplan.domain.telemetry.digest import summed
from gpuplan.domain.telemetry.observation import Series, Telemetry
from gpuplan.units import HOUR, HOURS_PER_MONTH

IN_FLIGHT = ("requests_running_count", "requests_waiting_count")
PIPES = tuple(f"{name}_active_frac" for name in ("tensor", "fp16", "fp32", "fp64", "dram"))
HANDED_OUT = ("allocated_count", "pending_count")


IDLE_WINDOW_S = 24 * HOUR  # of rest at a stretch: longer than a night
LEAST_SHARE = 0.01  # of a device's time: less is no waste worth a row


class Lost(NamedTuple):
    """Time of one device that did nothing useful, by cause."""

    cause: str
    device: DeviceView
    share_frac: float


def waste_of(devices: Sequence[DeviceView], *, n_alike: int = 1) -> tuple[Waste, ...]:
    """Lost time by cause: nobody's device, an idle job, pauses, kernels that leave SMs idle.

    `n_alike` is how many devices one anonymous series stands for.
    """
    groups: dict[str, list[Lost]] = {}
    for device in devices:
        for lost in _lost(device):
            if lost.share_frac >= LEAST_SHARE and device.span_s > 0:
                groups.setdefault(lost.cause, []).append(lost)
    return tuple(_sum(cause, group, n_alike) for cause, group in groups.items())


def _lost(device: DeviceView) -> Iterator[Lost]:
    """GPU_UTIL is a share of time: the rest is a pause; what SMs leave of it is inefficient."""
    if is_idle(device):
        is_held = held_bytes(device) > HELD_BYTES or bool(device.subject.job)
        cause = "allocated and idle" if is_held else "free and idle"
        yield Lost(cause, device, 1.0 - device.busy_frac)
        return
    util, sm = device.whole.get("gpu_util_frac"), device.whole.get("sm_active_frac")
    busy = device.busy_frac if util is None else util.mean
    yield Lost("pauses between work", device, 1.0 - busy)
    if sm is not None and util is not None:
        yield Lost("inefficient", device, util.mean - sm.mean)


def _sum(cause: str, lost: Sequence[Lost], n_alike: int) -> Waste:
    group = [one.device for one in lost]
    hours = [n_alike * one.share_frac * one.device.span_s / HOUR for one in lost]
    prices = [device.facts.usd_per_h for device in group]
    watts = [device.whole.get("power_w") for device in group]
    usd = None
    if all(price is not None for price in prices):
        usd = sum(h * (price or 0.0) for h, price in zip(hours, prices, strict=True))
    energy_j = None
    if all(stat is not None for stat in watts) and cause != "inefficient":
        # While idle a device draws about its lowest power.
        energy_j = sum(
            h * HOUR * (stat.low if stat else 0.0) for h, stat in zip(hours, watts, strict=True)
        )
    return Waste(
        cause=cause,
        accelerator_s=sum(hours) * HOUR,
        usd=usd,
        energy_j=energy_j,
        span_s=max(device.span_s for device in group),
    )


def team_use(telemetry: Telemetry, devices: Sequence[DeviceView]) -> tuple[TeamUse, ...]:
    """What each team holds and how busy it is; empty where no team is named."""
    groups: dict[str, list[DeviceView]] = {}
    for device in devices:
        if device.subject.team:
            groups.setdefault(device.subject.team, []).append(device)
    found = []
    for team, group in sorted(groups.items()):
        hours = [device.span_s / HOUR for device in group]
        idle = [h * (1.0 - d.busy_frac) for h, d in zip(hours, group, strict=True)]
        whole = sum(hours)
        prices = [device.facts.usd_per_h for device in group]
        usd = None
        if all(price is not None for price in prices):
            usd = sum(h * (price or 0.0) for h, price in zip(hours, prices, strict=True))
        busy = 1.0 - sum(idle) / whole if whole else 0.0
        found.append(
            TeamUse(
                team=team,
                accelerator_s=whole * HOUR,
                busy_frac=busy,
                idle_s=sum(idle) * HOUR,
                usd=usd,
            )
        )
    return tuple(found)


def reclaims(telemetry: Telemetry, devices: Sequence[DeviceView]) -> tuple[Reclaim, ...]:
    """Devices held and unused, dearest first: all the time, or a day at a stretch."""
    found = []
    for device in devices:
        is_held = held_bytes(device) > HELD_BYTES or bool(device.subject.job)
        stretch = _idle_stretch(telemetry, device) if is_held else None
        if stretch is None:
            continue
        price = device.facts.usd_per_h
        found.append(
            Reclaim(
                subject=device.name,
                team=device.subject.team,
                job=device.subject.job,
                begin_s=stretch[0],
                end_s=stretch[1],
                usd_per_month=_idle_usd(price, stretch, device.span_s),
                memory_held_bytes=held_bytes(device),
            )
        )
    return tuple(sorted(found, key=lambda one: -(one.usd_per_month or 0.0)))


def _idle_usd(
    price_usd_per_h: float | None, stretch: tuple[float, float], span_s: float
) -> float | None:
    """What the idle time costs a month: of a device that also works, its idle share."""
    if price_usd_per_h is None:
        return None
    idle_frac = min(1.0, (stretch[1] - stretch[0]) / max(span_s, 1.0))
    return price_usd_per_h * HOURS_PER_MONTH * idle_frac


def idle_at_times(devices: Sequence[DeviceView], idle: Sequence[Reclaim]) -> list[Finding]:
    """Devices allocated and idle for a day or longer, at work before or after."""
    whole = {device.name for device in devices if is_idle(device)}
    found = []
    for one in idle:
        none = f"none for {(one.end_s - one.begin_s) / HOUR:,.0f} h at a stretch"
        rows = (
            evidence_of("GPU utilization", none, ""),
            evidence_of("memory allocated", f"{one.memory_held_bytes / 1e9:.1f} GB", ""),
        )
        if one.subject not in whole:
            found.append(Finding("idle_allocated", 0.8, rows, (one.subject,)))
    return found


def _idle_stretch(telemetry: Telemetry, device: DeviceView) -> tuple[float, float] | None:
    """The longest time without a kernel; None where it is too short to count."""
    series = telemetry.one("gpu_util_frac", device.row) or telemetry.one(
        "sm_active_frac", device.row
    )
    if series is None or not series.is_given.any():
        return None
    if is_idle(device):
        whole = (float(series.at_s[0]), float(series.at_s[-1]))
        return whole if device.span_s >= WATCHED_S else None
    is_rest = (series.value <= IDLE_UTIL) & series.is_given
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_rest.astype(np.int64), [0]])))
    stretches = [
        (float(series.at_s[a]), float(series.at_s[min(b, len(series.at_s) - 1)]))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    longest = max(stretches, key=lambda one: one[1] - one[0], default=(0.0, 0.0))
    return longest if longest[1] - longest[0] >= IDLE_WINDOW_S else None


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
        ("sm_active_frac", f"share of SM time with work, of all device time{waits}"),
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
    retained = [one for engine in engines for one in engine.series.values()]
    for series, runs, waits, meant in (
        (retained, *IN_FLIGHT, "requests in the batch, of those in batch and queue"),
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
