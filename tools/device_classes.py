"""What kind of work a device does, by what it keeps busy [H100-telemetry]."""

from typing import Literal

from gpuplan.diagnose.features import DeviceView
from gpuplan.diagnose.rules.compute import DRAM_FULL, LINK_HEAVY, TENSOR_FULL

WorkloadClass = Literal["idle", "compute", "communication", "memory", "mixed", "unknown"]
IDLE_SM, IDLE_UTIL, IDLE_POWER = 0.02, 0.05, 0.25


def device_class(device: DeviceView) -> WorkloadClass:
    """The class of a device over the whole stretch; power stands in where counters are missing."""
    if device.busy_frac < 0.05:
        return "idle"
    tensor, dram = device.get("tensor_active_frac"), device.get("dram_active_frac")
    link = device.link_bytes_per_s
    if tensor is None:
        return _by_power(device)
    if tensor >= TENSOR_FULL:
        return "compute"
    if link is not None and link >= LINK_HEAVY:
        return "communication"
    return "memory" if dram is not None and dram >= DRAM_FULL else "mixed"


def _by_power(device: DeviceView) -> WorkloadClass:
    power = device.power_frac
    if power is None:
        return "unknown"
    return "compute" if power >= 0.9 else "idle" if power < IDLE_POWER else "mixed"
