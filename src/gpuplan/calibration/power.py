"""Fitted power, in: an accelerator's family and the kind of work; out: constants and ranges."""

from collections.abc import Mapping
from typing import Any

from gpuplan.calibration.tables import read_constants
from gpuplan.domain.hardware import Accelerator
from gpuplan.domain.power import CapCurve, PowerConstants
from gpuplan.domain.provenance import Estimate, Tier

# Runs that leave the board waiting now and then, and those that keep its matrix units full.
CAP_CURVES: Mapping[str, CapCurve] = {
    "light": CapCurve(static_frac=0.2, burst_ratio=1.1, clock_exponent_ratio=3.9, knee_frac=0.82),
    "saturated": CapCurve(
        static_frac=0.25, burst_ratio=1.1, clock_exponent_ratio=2.5, knee_frac=0.75
    ),
}


def power_constants(accelerator: Accelerator) -> PowerConstants:
    """Constants of this family; those of all families together where it was never measured."""
    stored = _stored()
    held = stored["families"].get(accelerator.family, stored["all"])
    return PowerConstants(**held)


def busy_frac(work: str) -> float:
    """Share of time in which kernels run: text, image-chat, video-chat, host-bound, diffusion."""
    share: float = _stored()["busy_frac"].get(work, 1.0)
    return share


def power_estimate(predicted_w: float, accelerator: Accelerator, work: str = "text") -> Estimate:
    """The prediction with its 80 % range; wider for families and work never measured."""
    stored = _stored()
    is_known = accelerator.family in stored["families"] and work in stored["ranges"]
    low, high = stored["ranges"][work] if is_known else stored["range_new"]
    limit = accelerator.power.limit_w
    most = predicted_w * high if limit is None else min(predicted_w * high, max(limit, predicted_w))
    tier: Tier = "fitted" if is_known else "estimated"
    return Estimate(
        value=predicted_w,
        low=predicted_w * low,
        high=most,
        tier=tier,
        sources=tuple(stored["sources"]),
    )


def cap_estimate(light: float, saturated: float, *, is_saturated: bool) -> Estimate:
    """Slowdown under a cap: both curves span the range, the kind of work picks the value."""
    stored = _stored()["cap_ranges"]
    low, high = stored["saturated" if is_saturated else "light"]
    value = saturated if is_saturated else light
    return Estimate(
        value=value,
        low=max(1.0, value * low),
        high=max(saturated, value * high),
        tier="fitted",
        sources=("Zeus", "Perseus"),
    )


def _stored() -> Mapping[str, Any]:
    return read_constants("power.json")
