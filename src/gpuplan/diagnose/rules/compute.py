"""Causes that a device's counters show: three clusters at 98 % utilization, three answers.

Utilization says that some kernel ran, not that it worked: recorded runs with 99 and 100 % have
tensor units at 11 and 58 % [H100-telemetry]. What tells them apart is tensor activity, power and
link traffic.
"""

from collections.abc import Sequence

import numpy as np

from gpuplan.diagnose.features import DeviceView
from gpuplan.diagnose.finding import ACTIVITY, Finding, evidence_of, percent
from gpuplan.diagnose.rules.hosts import LINE_SHARE, Hosts, host_value, hosts_of
from gpuplan.domain.telemetry.diagnosis import Evidence
from gpuplan.domain.telemetry.observation import Telemetry

OCCUPIED = 0.90
TENSOR_FULL = 0.35
TENSOR_LOW = 0.15
SM_LOW = 0.50
POWER_LOW = 0.65
POWER_IDLE = 0.25
DRAM_FULL = 0.60
LINK_HEAVY = 25e9  # a device so busy on its links exchanges much of the time
CPU_FULL = 0.85
PCIE_SHARE = 0.64  # of the line, of which even copies from pinned memory reach only 0.8
IOWAIT = 0.15
GAPS = 0.30  # spread of utilization that stop-and-go shows
FINE_S = 10.0
LEAST_TURNS = 6  # up and down so often: stop-and-go, not a load that changed once
# A device that answers requests has gaps when none are asked.
SERVED = ("ttft_mean_s", "e2e_mean_s", "requests_running_count", "requests_per_s")


def compute_findings(telemetry: Telemetry, devices: Sequence[DeviceView]) -> list[Finding]:
    """One finding at most for each device that worked, and the stragglers among them."""
    hosts = hosts_of(telemetry)
    busy = [device for device in devices if device.busy_frac > 0.1]
    found = [one for device in busy if (one := _device(device, hosts)) is not None]
    return [*found, *_stragglers(busy)]


def _device(device: DeviceView, hosts: Hosts) -> Finding | None:
    util = device.get("gpu_util_frac")
    tensor, power = device.get("tensor_active_frac"), device.power_frac
    if util is None:
        util = device.get("sm_active_frac")
    if util is None:
        return None
    node = device.subject.node
    line = _line_share(device, hosts)
    if line is not None and line[0] >= LINE_SHARE and (tensor is None or tensor < TENSOR_FULL):
        return _network(device, util, line)
    pcie = _pcie_share(device)
    if pcie is not None and pcie >= PCIE_SHARE and (device.get("sm_active_frac") or util) < SM_LOW:
        row = evidence_of("PCIe", f"{percent(pcie)} of its rate", f"below {percent(PCIE_SHARE)}")
        return Finding("pcie_bound", 0.85, (row, *_layers(device)), (device.name,))
    feeding = _feeding(device, util, hosts, node)
    if feeding is not None:
        return feeding
    if util >= OCCUPIED:
        return _occupied(device, util, tensor=tensor, power=power)
    return _healthy(device, tensor, power)


def _layers(device: DeviceView) -> tuple[Evidence, ...]:
    """The layers of utilization as evidence, those that are known."""
    rows = [
        evidence_of(what, percent(value), "")
        for what, metric in ACTIVITY
        if (value := device.get(metric)) is not None
    ]
    if device.power_frac is not None:
        rows.append(evidence_of("power", f"{percent(device.power_frac)} of the board's", ""))
    return tuple(rows)


def _line_share(device: DeviceView, hosts: Hosts) -> tuple[float, str] | None:
    """The fullest link as a share of its line rate, and which it is."""
    shares = []
    link, line = device.link_bytes_per_s, device.facts.link_bytes_per_s
    if link is not None and line:
        shares.append((link / line, "links between devices"))
    node = device.subject.node
    fabric_line = host_value(hosts, node, "fabric_line_bytes_per_s")
    for metric in ("fabric_tx_bytes_per_s", "fabric_rx_bytes_per_s"):
        rate = host_value(hosts, node, metric)
        if rate is not None and fabric_line:
            shares.append((rate / fabric_line, "network between nodes"))
    return max(shares) if shares else None


def _pcie_share(device: DeviceView) -> float | None:
    rates = [device.get("pcie_tx_bytes_per_s"), device.get("pcie_rx_bytes_per_s")]
    known = [rate for rate in rates if rate is not None]
    line = device.facts.pcie_bytes_per_s
    return max(known) / line if known and line else None


def _network(device: DeviceView, util: float, line: tuple[float, str]) -> Finding:
    share, which = line
    rows = (
        evidence_of(which, f"{percent(share)} of the line rate", f"below {percent(LINE_SHARE)}"),
        evidence_of("GPU utilization", percent(util), "waiting for others counts as active"),
        *_layers(device)[1:],
    )
    return Finding("network_bound", 0.9, rows, (device.name,))


def _feeding(device: DeviceView, util: float, hosts: Hosts, node: str) -> Finding | None:
    """Whether something before the device is too slow: it stops and goes, or its host is full."""
    stat = device.busy.get("gpu_util_frac") or device.busy.get("sm_active_frac")
    is_swinging = stat is not None and stat.n_turns >= LEAST_TURNS and stat.high - stat.low >= GAPS
    if util >= OCCUPIED or not (is_swinging or util < 0.6):
        return None
    iowait, disk = (
        host_value(hosts, node, "cpu_iowait_frac"),
        host_value(hosts, node, "disk_busy_frac"),
    )
    cpu = host_value(hosts, node, "cpu_util_frac")
    rows = _layers(device)
    if (iowait is not None and iowait >= IOWAIT) or (disk is not None and disk >= 0.9):
        what = evidence_of(
            "host waits for storage", percent(iowait or disk or 0.0), f"below {percent(IOWAIT)}"
        )
        return Finding("storage_bound", 0.85, (what, *rows), (device.name,))
    if cpu is not None and cpu >= CPU_FULL:
        what = evidence_of("host's cores", f"{percent(cpu)} busy", f"below {percent(CPU_FULL)}")
        return Finding("host_bound", 0.85, (what, *rows), (device.name,))
    # Seconds apart, gaps are stalls; minutes apart they may be gaps in demand.
    is_served = any(name in device.whole for name in SERVED)
    is_fine = (
        not is_served and stat is not None and device.span_s / max(stat.n_samples, 1) <= FINE_S
    )
    if is_swinging and stat is not None and is_fine and device.busy_frac > 0.3 and stat.low < 0.2:
        what = evidence_of(
            "utilization swings", f"{percent(stat.low)} to {percent(stat.high)}", "steady"
        )
        return Finding("input_bound", 0.6, (what, *rows), (device.name,))
    return None


def _occupied(
    device: DeviceView, util: float, *, tensor: float | None, power: float | None
) -> Finding | None:
    """Always some kernel on the device: is it working?"""
    rows = _layers(device)
    sm, dram = device.get("sm_active_frac"), device.get("dram_active_frac")
    if power is not None and power < POWER_IDLE and (tensor is None or tensor < 0.02):
        row = evidence_of(
            "power", f"{percent(power)} of the board's", f"above {percent(POWER_IDLE)} at work"
        )
        return Finding(
            "busy_in_name", 0.75 if sm is not None else 0.6, (row, *rows), (device.name,)
        )
    if tensor is None:
        return None if power is None or power >= POWER_LOW else _unclear(device, rows)
    if tensor >= TENSOR_FULL or (dram is not None and dram >= DRAM_FULL):
        return _healthy(device, tensor, power)
    is_low_power = power is None or power <= POWER_LOW
    fp32 = device.get("fp32_active_frac")
    if tensor < 0.05 and fp32 is not None and fp32 >= 0.3:
        row = evidence_of(
            "single-precision pipe", percent(fp32), "idle where tensor units do the work"
        )
        return Finding("wrong_precision", 0.85, (row, *rows), (device.name,))
    if tensor >= TENSOR_LOW or not is_low_power:
        return None
    return _low_work(device, rows, sm=sm)


def _low_work(
    device: DeviceView, rows: tuple[Evidence, ...], *, sm: float | None
) -> Finding | None:
    """Occupied, little arithmetic, little power: exchange, or many small kernels?"""
    link = device.link_bytes_per_s
    if link is not None and link >= LINK_HEAVY:
        row = evidence_of(
            "links between devices", f"{link / 1e9:.0f} GB/s", f"{LINK_HEAVY / 1e9:.0f} GB/s"
        )
        return Finding("communication_heavy", 0.7, (row, *rows), (device.name,))
    if sm is not None and sm >= 0.8:
        row = evidence_of("SM active without arithmetic", percent(sm), "spinning kernels look so")
        return Finding("kernels_or_exchange", 0.6, (row, *rows), (device.name,))
    if link is None:
        return _unclear(device, rows)
    if sm is None or sm < SM_LOW:
        return Finding("small_kernels", 0.85, rows, (device.name,))
    return None


def _unclear(device: DeviceView, rows: tuple[Evidence, ...]) -> Finding:
    sm = device.get("sm_active_frac")
    if sm is not None and sm < SM_LOW and device.get("dram_active_frac") is not None:
        return Finding("small_kernels", 0.6, rows, (device.name,))
    return Finding("kernels_or_exchange", 0.5, rows, (device.name,))


def _healthy(device: DeviceView, tensor: float | None, power: float | None) -> Finding | None:
    dram = device.get("dram_active_frac")
    if tensor is not None and tensor >= TENSOR_FULL:
        return Finding("compute_bound", 0.9, _layers(device), (device.name,))
    if dram is not None and dram >= DRAM_FULL:
        return Finding("memory_bandwidth_bound", 0.85, _layers(device), (device.name,))
    return None


def _stragglers(devices: Sequence[DeviceView]) -> list[Finding]:
    """A device that works longer than its group: the others spin until it arrives."""
    found = []
    for node, group in _groups(devices).items():
        if len(group) < 4:
            continue
        found += _slow_clock(node, group) or _works_longer(group)
    return found


def _groups(devices: Sequence[DeviceView]) -> dict[str, list[DeviceView]]:
    """Devices that work on one job: by job, else by node; all must be occupied."""
    groups: dict[str, list[DeviceView]] = {}
    for device in devices:
        if (device.get("gpu_util_frac") or 0.0) >= 0.8:
            groups.setdefault(device.subject.job or device.subject.node, []).append(device)
    return groups


def _compared(
    group: Sequence[DeviceView], metric: str
) -> tuple[list[tuple[float, DeviceView]], float]:
    """What each device shows, and the group's median; none of fewer than four."""
    values = [(device.get(metric), device) for device in group]
    known = [(value, device) for value, device in values if value is not None]
    return (known, float(np.median([v for v, _ in known]))) if len(known) >= 4 else ([], 0.0)


def _slow_clock(node: str, group: Sequence[DeviceView]) -> list[Finding]:
    known, middle = _compared(group, "sm_clock_hz")
    slow = [device for clock, device in known if clock < 0.88 * middle]
    if not slow or len(slow) > len(known) // 4:
        return []
    rows = (
        evidence_of(
            "its clock",
            f"{percent((slow[0].get('sm_clock_hz') or 0.0) / middle)} of the group's",
            "100 %",
        ),
    )
    return [Finding("straggler", 0.85, rows, tuple(device.name for device in slow))]


def _works_longer(group: Sequence[DeviceView]) -> list[Finding]:
    known, middle = _compared(group, "tensor_active_frac")
    late = [device for value, device in known if middle > 0.02 and value > 1.35 * middle]
    if len(late) != 1:
        return []
    share = (late[0].get("tensor_active_frac") or 0.0) / middle
    rows = (
        evidence_of(
            "its tensor units are active", f"{share:.1f} x as long as the group's", "as long"
        ),
    )
    return [Finding("straggler", 0.6, rows, (late[0].name,))]
