"""Fitted power, in: an accelerator's family and the kind of work; out: constants and ranges."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

from gpuplan.calibration.tables import read_constants
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.power import CapCurve, PowerConstants
from gpuplan.domain.provenance import Estimate, Tier

LEAST_BUSY_FRAC = 0.1
USUAL_ASKED_FRAC = 0.3  # of arithmetic and memory together, at which shares of waiting work hold
# Runs that leave the board waiting now and then, and those that keep its matrix units full.
CAP_CURVES: Mapping[str, CapCurve] = {
    "light": CapCurve(static_frac=0.2, burst_ratio=1.1, clock_exponent_ratio=3.9, knee_frac=0.82),
    "saturated": CapCurve(
        static_frac=0.25, burst_ratio=1.1, clock_exponent_ratio=2.5, knee_frac=0.75
    ),
}


def power_constants(accelerator: Accelerator, work: str = "text") -> PowerConstants:
    """Constants of this family and work; those of all families where it was never measured.

    Work: text, image-chat, video-chat, host-bound (an engine that leaves the board waiting, as
    vLLM did up to 0.6) or diffusion. Training and other matrix work goes with diffusion.
    """
    stored = _stored()
    load = stored["load_ratio"]
    ratio = load.get(f"{accelerator.family}|{work}", load.get(f"|{work}", load["|"]))
    return PowerConstants(
        memory_ratio=stored["memory_ratio"] * ratio,
        compute_ratio=stored["compute_ratio"] * ratio,
        unpack_ratio=stored["unpack_ratio"],
    )


def busy_frac(
    work: str,
    *,
    step_s: float | None = None,
    n_accelerators: int = 1,
    asked_frac: float = USUAL_ASKED_FRAC,
) -> float:
    """Share of time in which kernels run; text needs its step time, denoisers a layer's."""
    stored = _stored()
    if work in stored["busy_frac"]:
        return waiting_busy_frac(stored["busy_frac"][work], asked_frac)
    if step_s is None:
        return 1.0
    if work == "diffusion":
        return max(LEAST_BUSY_FRAC, 1.0 - float(stored["layer_gap_s"]) / step_s)
    return step_busy_frac(step_s, n_accelerators, values=stored)


def power_estimate(predicted_w: float, accelerator: Accelerator, work: str = "text") -> Estimate:
    """The prediction with its 80 % range; wider for families and work never measured."""
    stored = _stored()
    is_known = f"{accelerator.family}|{work}" in stored["load_ratio"]
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


def waiting_busy_frac(usual_frac: float, asked_frac: float) -> float:
    """Of a board that waits for its host: the more is asked of it, the less it waits."""
    share = usual_frac * sqrt(asked_frac / USUAL_ASKED_FRAC)
    return min(1.0, max(LEAST_BUSY_FRAC, share))


def step_busy_frac(step_s: float, n_accelerators: int, *, values: Mapping[str, Any]) -> float:
    """What the gaps between steps leave; never under a tenth."""
    gap_s = values["gap_s"] + (values["peer_gap_s"] if n_accelerators > 1 else 0.0)
    return max(LEAST_BUSY_FRAC, 1.0 - float(gap_s) / step_s)
