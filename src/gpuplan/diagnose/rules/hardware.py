"""Causes that lie in the hardware: heat, power limits, faults."""

from collections.abc import Sequence

from gpuplan.diagnose.features import DeviceView
from gpuplan.diagnose.finding import Finding, evidence_of, percent

# Reasons for lower clocks, as NVML numbers them [NVML-clock-reasons].
SOFTWARE_THERMAL, HARDWARE_THERMAL, HARDWARE_SLOWDOWN, SOFTWARE_POWER = 0x20, 0x40, 0x8, 0x4
CLOCK_LOSS = 0.90
HOT_C = 87.0
# Faults of the application or its library, not of the device [NVIDIA-XID].
APPLICATION_XIDS = {13, 31, 43, 45, 68}


def hardware_findings(devices: Sequence[DeviceView]) -> list[Finding]:
    """Heat, power and faults, device by device."""
    rules = (_thermal, _power, _faults, _memory_errors, _link_errors)
    return [one for device in devices for rule in rules if (one := rule(device)) is not None]


def _clock_share(device: DeviceView) -> float | None:
    """Clock at work against the highest that the device reached or is built for."""
    clock = device.busy.get("sm_clock_hz")
    if clock is None:
        return None
    best = max(device.facts.sm_clock_max_hz or 0.0, clock.peak)
    return clock.mean / best if best else None


def _bits(device: DeviceView) -> int:
    stat = device.busy.get("throttle_bits")
    return int(stat.high) if stat is not None else 0


def _thermal(device: DeviceView) -> Finding | None:
    bits, heat = _bits(device), device.busy.get("temperature_c")
    share = _clock_share(device)
    is_reported = bool(bits & (SOFTWARE_THERMAL | HARDWARE_THERMAL | HARDWARE_SLOWDOWN))
    is_hot = heat is not None and heat.high >= HOT_C
    is_slow = share is not None and share < CLOCK_LOSS
    if not (is_reported or (is_hot and is_slow)):
        return None
    rows = []
    if is_reported:
        rows.append(evidence_of("the driver's reason for lower clocks", "heat", "none"))
    if heat is not None:
        rows.append(evidence_of("temperature", f"{heat.high:.0f} °C", f"below {HOT_C:.0f} °C"))
    if share is not None:
        rows.append(
            evidence_of("clock at work", f"{percent(share)} of the highest", "90 % or more")
        )
    return Finding(
        "thermal_throttling", 0.95 if is_reported and is_slow else 0.75, tuple(rows), (device.name,)
    )


def _power(device: DeviceView) -> Finding | None:
    """The bit alone is a full, healthy device; a throttled one has lost clock for it."""
    share, limit = _clock_share(device), device.whole.get("power_limit_w")
    watts = device.busy.get("power_w")
    built_for_w = device.subject.tdp_w or device.facts.tdp_w
    if share is None or share >= CLOCK_LOSS or watts is None:
        return None
    cap_w = limit.mean if limit is not None else built_for_w
    if not cap_w or watts.mean < 0.93 * cap_w:
        return None
    rows = (
        evidence_of("power", f"{percent(watts.mean / cap_w)} of its limit", "below 93 %"),
        evidence_of("clock at work", f"{percent(share)} of the highest", "90 % or more"),
    )
    return Finding("power_throttling", 0.85, rows, (device.name,))


def _faults(device: DeviceView) -> Finding | None:
    stat = device.whole.get("xid_code")
    if stat is None or stat.peak <= 0:
        return None
    code = int(stat.peak)
    is_own = code in APPLICATION_XIDS
    against = "faults of this kind come from the application" if is_own else "none"
    row = evidence_of("last fault", f"Xid {code}", against)
    return Finding("device_faults", 0.5 if is_own else 0.9, (row,), (device.name,))


def _memory_errors(device: DeviceView) -> Finding | None:
    stat, rows_lost = (
        device.whole.get("ecc_uncorrected_per_s"),
        device.whole.get("remapped_rows_count"),
    )
    has_errors = stat is not None and stat.peak > 0
    has_lost = rows_lost is not None and rows_lost.peak > 0
    if not has_errors and not has_lost:
        return None
    row = evidence_of("uncorrected errors", "yes" if has_errors else "rows were replaced", "none")
    return Finding("memory_errors", 0.9 if has_errors else 0.7, (row,), (device.name,))


def _link_errors(device: DeviceView) -> Finding | None:
    switch = device.whole.get("switch_fault_code")
    if switch is not None and switch.peak > 0:
        row = evidence_of("fault of a switch or its port", f"code {switch.peak:.0f}", "none")
        return Finding("link_errors", 0.8, (row,), (device.name,))
    stat = device.whole.get("pcie_replays_per_s")
    if stat is None or stat.mean < 0.1:
        return None
    row = evidence_of("repeated transfers", f"{stat.mean:.1f} a second", "below 0.1")
    return Finding("link_errors", 0.8, (row,), (device.name,))
