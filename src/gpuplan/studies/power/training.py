"""Power of training, in: a step and its flop; out: watts of all accelerators."""

from dataclasses import replace

from gpuplan.calibration.power import power_constants, power_estimate
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.power import Utilization
from gpuplan.domain.provenance import Estimate
from gpuplan.performance.power import accelerator_power_w

# The draw of large matrix work was measured on denoisers; no published training run gives its
# draw together with its utilization.
WORK = "diffusion"
# Optimizer states, activations and gradients cross the memory beside the matrices (Assumption).
MEMORY_FRAC = 0.3


def training_power(
    accelerator: Accelerator,
    hardware_flop_per_s: float,
    *,
    n_accelerators: int,
) -> dict[str, Estimate]:
    """Draw of the whole job; empty where no limit is published.

    `hardware_flop_per_s` is of one accelerator and counts recomputed work: it draws as well.
    """
    if accelerator.power.limit_w is None:
        return {}
    peaks = accelerator.peak_flop_per_s
    sixteen = peaks.get("bf16", peaks.get("fp16", max(peaks.values())))
    use = Utilization(
        compute_frac=hardware_flop_per_s / sixteen,
        other_memory_frac=MEMORY_FRAC,
        busy_frac=1.0,
    )
    watts = accelerator_power_w(accelerator, use, power_constants(accelerator, WORK))
    each = replace(power_estimate(watts, accelerator, WORK), tier="estimated")
    return {"power_w": each.scaled(n_accelerators)}
