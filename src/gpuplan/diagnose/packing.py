"""Small work packed onto MIG slices: the smallest profile that holds each, and what it frees."""

import math
from collections.abc import Sequence

from gpuplan.diagnose.features import DeviceView
from gpuplan.diagnose.rules.fleet import is_small_work
from gpuplan.domain.hardware.devices import MigProfile
from gpuplan.domain.telemetry.figures import Packing
from gpuplan.units import HOURS_PER_MONTH


def packing_of(devices: Sequence[DeviceView]) -> Packing | None:
    """One profile for all small work of one kind of device; None where there is none to pack."""
    small = [one for one in devices if is_small_work(one) and one.facts.slices]
    if len(small) < 2:
        return None
    kind = small[0].facts
    same = [one for one in small if one.facts.slices == kind.slices]
    profile = _smallest(same, kind.slices)
    if profile is None:
        return None
    n_after = math.ceil(len(same) / profile.n_max)
    saved = None if kind.usd_per_h is None else (len(same) - n_after) * kind.usd_per_h
    return Packing(
        accelerator=same[0].subject.model or kind.name,
        profile=profile.name,
        n_before=len(same),
        n_after=n_after,
        usd_per_month=None if saved is None else saved * HOURS_PER_MONTH,
    )


def _smallest(devices: Sequence[DeviceView], slices: Sequence[MigProfile]) -> MigProfile | None:
    """The profile of which a device holds most, that every one of them fits into."""
    memory = max(stat.peak for one in devices if (stat := one.whole.get("memory_used_bytes")))
    active = [one.whole.get("sm_active_frac") or one.whole["gpu_util_frac"] for one in devices]
    compute = max(stat.high for stat in active)
    fitting = [s for s in slices if s.memory_bytes >= memory and s.compute_frac >= compute]
    return max(fitting, key=lambda s: (s.n_max, -s.memory_bytes), default=None)
