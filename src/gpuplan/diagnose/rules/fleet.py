"""Causes that lie in how devices are handed out: idle, scattered, too large, divided by quotas."""

from collections.abc import Sequence

import numpy as np

from gpuplan.diagnose.features import DeviceView
from gpuplan.diagnose.finding import Finding, evidence_of, percent
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.units import HOUR

HELD_BYTES = 1e9  # of device memory: somebody's program is there
IDLE_UTIL = 0.02
WATCHED_S = 600.0  # a shorter look cannot tell idle from a pause
LARGE_W = 300.0
WHOLE_NODE = 8


def fleet_findings(telemetry: Telemetry, devices: Sequence[DeviceView]) -> list[Finding]:
    """Idle, oversized and scattered devices."""
    found = [one for device in devices if (one := _idle(device) or _too_large(device)) is not None]
    return [*found, *_fragmented(telemetry, devices), *_pools(telemetry)]


def is_idle(device: DeviceView) -> bool:
    """Nothing ran in the whole stretch: neither by utilization nor by processors."""
    stats = [device.whole.get(name) for name in ("gpu_util_frac", "sm_active_frac")]
    known = [stat for stat in stats if stat is not None]
    return bool(known) and all(stat.high <= IDLE_UTIL for stat in known)


def held_bytes(device: DeviceView) -> float:
    """Device memory that programs keep."""
    stat = device.whole.get("memory_used_bytes")
    return stat.mean if stat is not None else 0.0


def _idle(device: DeviceView) -> Finding | None:
    if not is_idle(device):
        return None
    is_held = held_bytes(device) > HELD_BYTES or bool(device.subject.job)
    rows = (
        evidence_of("GPU utilization", f"none in {device.span_s / HOUR:,.1f} h", ""),
        evidence_of(
            "memory allocated", f"{held_bytes(device) / 1e9:.1f} GB", f"{HELD_BYTES / 1e9:.0f} GB"
        ),
    )
    sure = 0.9 if device.span_s >= WATCHED_S else 0.5
    return Finding("idle_allocated" if is_held else "idle_free", sure, rows, (device.name,))


def is_small_work(device: DeviceView) -> bool:
    """Work that stays below 40 % of the processors and a quarter of memory, yet is no idleness."""
    util, memory = device.whole.get("gpu_util_frac"), device.memory_frac
    if util is None or memory is None or device.span_s < WATCHED_S or device.busy_frac < 0.02:
        return False
    sm = device.whole.get("sm_active_frac")
    return (sm.high if sm is not None else util.high) < 0.4 and memory < 0.25


def _too_large(device: DeviceView) -> Finding | None:
    """Work whose peaks stay far below the device in every respect that was measured."""
    util, memory = device.whole.get("gpu_util_frac"), device.memory_frac
    sm = device.whole.get("sm_active_frac")
    if util is None or memory is None or device.span_s < WATCHED_S or device.busy_frac < 0.02:
        return None
    use = sm.high if sm is not None else util.high
    rows = (
        evidence_of("use in 95 % of samples", percent(use), "above 40 %"),
        evidence_of("memory allocated at most", percent(memory), "above 25 %"),
    )
    if is_small_work(device):
        return Finding("share_candidate", 0.75 if sm is not None else 0.6, rows, (device.name,))
    built_for_w = device.subject.tdp_w or device.facts.tdp_w or 0.0
    tensor, dram = device.whole.get("tensor_active_frac"), device.whole.get("dram_active_frac")
    is_easy = tensor is not None and dram is not None and tensor.high < 0.05 and dram.high < 0.15
    if is_easy and built_for_w >= LARGE_W and util.mean < 0.5:
        return Finding("over_specified", 0.65, rows, (device.name,))
    return None


def _latest(telemetry: Telemetry, metric: str) -> dict[str, float]:
    """The last reading of every node."""
    series = [one for one in telemetry.of(metric) if one.is_given.any()]
    nodes = [telemetry.subjects[one.subject].node for one in series]
    return {n: float(s.value[s.is_given][-1]) for n, s in zip(nodes, series, strict=True) if n}


def _handed_out(telemetry: Telemetry, devices: Sequence[DeviceView]) -> dict[str, float]:
    """Devices of every node that somebody has: as counted, as listed, or as seen on them."""
    counted = _latest(telemetry, "allocated_count")
    running = [one for one in telemetry.allocations if one.state == "running" and one.nodes]
    if counted or running:
        for one in () if counted else running:
            for node in one.nodes:
                counted[node] = counted.get(node, 0.0) + one.n_accelerators / len(one.nodes)
        return counted
    for device in devices if any(d.subject.job for d in devices) else ():
        is_held = bool(device.subject.job) or held_bytes(device) > HELD_BYTES
        counted[device.subject.node] = counted.get(device.subject.node, 0.0) + is_held
    return counted


def _fragmented(telemetry: Telemetry, devices: Sequence[DeviceView]) -> list[Finding]:
    """Enough free devices for a whole-node job, but on no single node."""
    used = _handed_out(telemetry, devices)
    total = _latest(telemetry, "total_count") if used else {}
    if used and not total:
        total = {n: float(sum(d.subject.node == n for d in devices)) for n in used}
    free = {node: n - used.get(node, 0.0) for node, n in total.items()}
    if len(free) < 2:
        return []
    size = max(int(max(total.values())), 1)
    waiting = [job for job in telemetry.allocations if job.state == "pending"]
    wants = max((job.n_accelerators for job in waiting), default=float(min(size, WHOLE_NODE)))
    is_scattered = sum(free.values()) >= wants > max(free.values())
    if not is_scattered or wants < 2:
        return []
    rows = (
        evidence_of(
            "free devices",
            f"{sum(free.values()):.0f} on {sum(n > 0 for n in free.values())} nodes",
            f"{wants:.0f} on one",
        ),
        evidence_of("largest free block", f"{max(free.values()):.0f}", f"{wants:.0f}"),
    )
    return [Finding("fragmented", 0.9 if waiting else 0.7, rows)]


def _pools(telemetry: Telemetry) -> list[Finding]:
    """Pools at their limit while all together have room."""
    series = [one for one in telemetry.of("allocated_frac") if one.is_given.any()]
    if len(series) < 3:
        return []
    peaks = np.array([np.nanquantile(one.value, 0.99) for one in series])
    mean = float(np.mean([one.mean() for one in series]))
    if (peaks >= 0.99).mean() < 0.5 or mean > 0.85:
        return []
    rows = (
        evidence_of(
            "pools that touch 100 %", f"{int((peaks >= 0.99).sum())} of {len(series)}", "few"
        ),
        evidence_of("mean of all", percent(mean), "above 85 %"),
    )
    return [Finding("pool_quota", 0.6, rows)]
