"""What acting on a cause can bring to this very fleet: its room, computed from what was measured.

The room of a slow cause is the throughput that comes back when what is waited for is there, of a
waste the share of paid time that it takes. An action gains the part of the room that
`data/actions.csv` gives it. Where nothing measured tells the room, no gain is stated.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpuplan.diagnose.features import DeviceView, EngineView
from gpuplan.diagnose.rules.compute import DRAM_FULL, TENSOR_FULL
from gpuplan.domain.telemetry.diagnosis import UseFigures, Verdict

TENSOR_OVER_FP32 = 8.0  # TF32 on tensor units against FP32 beside them, A100 and H100 datasheets
HALVED = 0.5  # of the bytes or of the arithmetic, in a format half as wide
FULL_FRAC = 0.9  # utilization that consolidated devices may reach
Level = Callable[[DeviceView], float | None]  # speed of a device over what it could have


def with_gains(
    verdict: Verdict,
    devices: Sequence[DeviceView],
    engines: Sequence[EngineView],
    use: UseFigures | None,
) -> Verdict:
    """The verdict with what each action gains here; none is stated where the room is unknown."""
    room = _room(verdict, devices, engines, use) or 0.0
    actions = [
        replace(
            one, gain_low_frac=one.gain_low_frac * room, gain_high_frac=one.gain_high_frac * room
        )
        for one in verdict.actions
    ]
    return replace(verdict, actions=tuple(actions))


def _room(
    verdict: Verdict,
    devices: Sequence[DeviceView],
    engines: Sequence[EngineView],
    use: UseFigures | None,
) -> float | None:
    cause = verdict.cause
    if cause in LEVELS:
        return _returned(verdict.subjects, devices, LEVELS[cause])
    if cause == "straggler":
        return _held_up(verdict.subjects, devices)
    if cause in ("idle_allocated", "idle_free"):
        return verdict.share_frac
    if cause in ("share_candidate", "over_specified"):
        return _oversized(verdict.subjects, devices)
    if cause in LOADS and use is not None and use.mean_frac:
        return LOADS[cause](use)
    return SERVED[cause](engines) if cause in SERVED else None


def _returned(subjects: Sequence[str], devices: Sequence[DeviceView], level: Level) -> float | None:
    """Throughput of the fleet that comes back where each of these works at its full speed."""
    mine = [one for one in devices if one.name in subjects or one.subject.node in subjects]
    levels = [found for one in mine or devices if (found := level(one)) is not None]
    if not levels:
        return None
    rest = len(devices) - len(mine or devices)
    now = rest + sum(max(0.02, min(one, 1.0)) for one in levels)
    return (rest + len(levels)) / now - 1.0


def _delivered(device: DeviceView) -> float | None:
    """Time with a kernel, over all the time while there was work."""
    util = device.get("gpu_util_frac")
    return device.get("sm_active_frac") if util is None else util


def _pipes(device: DeviceView) -> float | None:
    """The fuller of tensor units and memory, over what a working device shows."""
    known = [
        value / full
        for name, full in (("tensor_active_frac", TENSOR_FULL), ("dram_active_frac", DRAM_FULL))
        if (value := device.get(name)) is not None
    ]
    return max(known, default=None)


def _kernels(device: DeviceView) -> float | None:
    """Occupied processors over occupied time, or pipes: the less there is to gain the better."""
    util, sm = device.get("gpu_util_frac"), device.get("sm_active_frac")
    shares = [_pipes(device), sm / util if util and sm is not None else None]
    return max((one for one in shares if one is not None), default=None)


def _narrow(device: DeviceView) -> float | None:
    """Time left where single-precision work moves to tensor units [Amdahl1967]."""
    share = device.get("fp32_active_frac")
    return None if share is None else 1.0 - share * (1.0 - 1.0 / TENSOR_OVER_FP32)


def _fewer_bytes(device: DeviceView) -> float | None:
    share = device.get("dram_active_frac")
    return None if share is None else 1.0 - HALVED * share


def _clock(device: DeviceView) -> float | None:
    clock, most = device.get("sm_clock_hz"), device.facts.sm_clock_max_hz
    return None if clock is None or not most else clock / most


def _held_up(subjects: Sequence[str], devices: Sequence[DeviceView]) -> float | None:
    """How much longer the slowest takes than its group, which waits for it in every step."""
    slow = [one for one in devices if one.name in subjects]
    groups = {one.subject.job or one.subject.node for one in slow}
    group = [one for one in devices if (one.subject.job or one.subject.node) in groups]
    for metric, power in (("sm_clock_hz", -1.0), ("tensor_active_frac", 1.0)):
        usual = [x for one in group if (x := one.get(metric))]
        own = [x for one in slow if (x := one.get(metric))]
        if own and usual:
            room = max(float((x / np.median(usual)) ** power) for x in own) - 1.0
            if room > 0.0:
                return room
    return None


def _oversized(subjects: Sequence[str], devices: Sequence[DeviceView]) -> float | None:
    """Share of the fleet that these leave unused, by whatever they use most of."""
    unused = []
    for one in devices:
        stat = one.whole.get("sm_active_frac") or one.whole.get("gpu_util_frac")
        if one.name in subjects and stat is not None:
            unused.append(1.0 - max(stat.high, one.memory_frac or 0.0))
    return sum(unused) / len(devices) if unused else None


def _ratio(engines: Sequence[EngineView], part: str, whole: str) -> float | None:
    """One count over another, of all engines that report both."""
    both = [(one.mean(part), one.mean(whole)) for one in engines]
    known = [(a, b) for a, b in both if a is not None and b]
    return sum(a for a, _ in known) / sum(b for _, b in known) if known else None


def _slots(engines: Sequence[EngineView]) -> float | None:
    """Sequences that wait over those that run, at most as many as the KV cache has room for."""
    waiting = _ratio(engines, "requests_waiting_count", "requests_running_count")
    retained = max((one.mean("kv_cache_frac") or 0.0 for one in engines), default=0.0)
    return waiting if waiting is None or not retained else min(waiting, 1.0 / retained - 1.0)


def _uneven(engines: Sequence[EngineView]) -> float | None:
    loads = [x for one in engines if (x := one.mean("requests_running_count")) is not None]
    return max(loads) * len(loads) / sum(loads) - 1.0 if sum(loads) else None


LEVELS: dict[str, Level] = {
    **dict.fromkeys(
        ("storage_bound", "host_bound", "input_bound", "pcie_bound", "nic_bound", "packet_loss"),
        _delivered,
    ),
    **dict.fromkeys(
        ("network_bound", "communication_heavy", "kernels_or_exchange", "busy_in_name"), _pipes
    ),
    **dict.fromkeys(("thermal_throttling", "power_throttling"), _clock),
    "small_kernels": _kernels,
    "wrong_precision": _narrow,
    "memory_bandwidth_bound": _fewer_bytes,
    "compute_bound": lambda _: HALVED,
}
LOADS: dict[str, Callable[[UseFigures], float]] = {
    **dict.fromkeys(
        ("under_used", "low_demand"), lambda use: max(0.0, 1.0 - use.mean_frac / FULL_FRAC)
    ),
    "uneven_load": lambda use: use.peak_frac / use.mean_frac - 1.0,
}
SERVED: dict[str, Callable[[Sequence[EngineView]], float | None]] = {
    "kv_thrash": lambda engines: _ratio(engines, "preemptions_per_s", "requests_per_s"),
    "slot_limited": _slots,
    "replica_imbalance": _uneven,
}
