"""Paid time that did nothing: by cause, by team, device by device."""

from collections.abc import Sequence

from gpuplan.diagnose.features import DeviceView
from gpuplan.diagnose.rules.fleet import HELD_BYTES, WATCHED_S, held_bytes, is_idle
from gpuplan.domain.telemetry.diagnosis import Reclaim, TeamUse, Waste
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.units import HOUR, HOURS_PER_MONTH


def waste_of(devices: Sequence[DeviceView]) -> tuple[Waste, ...]:
    """Idle time of every device, by who holds it: nobody, an idle job, one that pauses."""
    groups: dict[str, list[DeviceView]] = {}
    for device in devices:
        if device.busy_frac < 1.0 and device.span_s > 0:
            groups.setdefault(_kind(device), []).append(device)
    return tuple(_sum(cause, group) for cause, group in groups.items())


def _kind(device: DeviceView) -> str:
    if not is_idle(device):
        return "pauses between work"
    is_held = held_bytes(device) > HELD_BYTES or bool(device.subject.job)
    return "held and idle" if is_held else "free and idle"


def _sum(cause: str, group: Sequence[DeviceView]) -> Waste:
    hours = [(1.0 - device.busy_frac) * device.span_s / HOUR for device in group]
    prices = [device.facts.usd_per_h for device in group]
    watts = [device.whole.get("power_w") for device in group]
    usd = None
    if all(price is not None for price in prices):
        usd = sum(h * (price or 0.0) for h, price in zip(hours, prices, strict=True))
    energy_j = None
    if all(stat is not None for stat in watts):
        # While idle a device draws about its lowest power.
        energy_j = sum(
            h * HOUR * (stat.low if stat else 0.0) for h, stat in zip(hours, watts, strict=True)
        )
    return Waste(cause=cause, accelerator_s=sum(hours) * HOUR, usd=usd, energy_j=energy_j)


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
    """Devices held and unused for the whole stretch, dearest first; a list, never an order."""
    found = []
    for device in devices:
        is_held = held_bytes(device) > HELD_BYTES or bool(device.subject.job)
        if not is_idle(device) or not is_held or device.span_s < WATCHED_S:
            continue
        series = [s for s in telemetry.series if s.subject == device.row]
        price = device.facts.usd_per_h
        found.append(
            Reclaim(
                subject=device.name,
                team=device.subject.team,
                job=device.subject.job,
                begin_s=min(float(s.at_s[0]) for s in series),
                end_s=max(float(s.at_s[-1]) for s in series),
                usd_per_month=None if price is None else price * HOURS_PER_MONTH,
                memory_held_bytes=held_bytes(device),
            )
        )
    return tuple(sorted(found, key=lambda one: -(one.usd_per_month or 0.0)))
