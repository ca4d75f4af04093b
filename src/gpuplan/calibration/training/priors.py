"""Prior values of the training constants, and what each may depend on.

Part-level measurements set the priors: best matrix products per accelerator [MAMF], flash
attention [Dao2023, Shah2024], NCCL. Totals move them only as far as their width allows.
"""

from typing import NamedTuple

from gpuplan.domain.calibration.constants import Constant, Effect
from gpuplan.domain.hardware.devices import Accelerator

# Best measured share of the dense peak, 16-bit and 8-bit [MAMF]; 4-bit and workstation boards
# from operator tables. A GeForce clocks above the rate that its sheet counts with.
BEST_FRAC: dict[str, tuple[float, float, float]] = {
    "v100": (0.80, 0.80, 0.80), "a100": (0.869, 0.87, 0.87), "h100": (0.803, 0.709, 0.70),
    "h200": (0.803, 0.734, 0.70), "gh200": (0.838, 0.776, 0.70), "b200": (0.776, 0.763, 0.60),
    "b300": (0.786, 0.745, 0.48), "gb200": (0.729, 0.723, 0.60), "gb300": (0.760, 0.745, 0.48),
    "mi300x": (0.514, 0.45, 0.45), "mi325x": (0.604, 0.50, 0.50), "mi350x": (0.62, 0.60, 0.50),
    "mi355x": (0.62, 0.60, 0.50), "h800": (0.803, 0.709, 0.70),
    "gaudi2": (0.969, 0.955, 0.9), "gaudi3": (0.741, 0.769, 0.7), "tpu": (0.93, 0.90, 0.90),
    "rtx-4090": (0.98, 0.95, 0.95), "rtx-3090": (0.95, 0.95, 0.95), "l40s": (0.62, 0.60, 0.60),
    "rtx-pro-6000": (0.84, 0.80, 0.75), "rtx-6000-ada": (0.70, 0.68, 0.68),
}  # fmt: skip
UNKNOWN_BEST_FRAC = (0.76, 0.70, 0.50)


def best_fracs(accelerator: Accelerator) -> tuple[float, float, float]:
    """16-, 8- and 4-bit; an accelerator that nobody measured gets the middle of the others."""
    name = str(accelerator.id)
    found = [key for key in BEST_FRAC if name.startswith(key)]
    return BEST_FRAC[max(found, key=len)] if found else UNKNOWN_BEST_FRAC


class Prior(NamedTuple):
    """One line of the table below."""

    name: str
    value: float
    log_sd: float
    effects: tuple[Effect, ...] = ()
    source: str = ""


def _by(log_sd: float, *kinds: str) -> Effect:
    return Effect(kinds=kinds, log_sd=log_sd)


MAMF = "share of the best matrix product that large training products reach"
FLASH = "FlashAttention-2 and vendor kernels, published forward rates"
TRAFFIC = "count of tensor crossings of a transformer layer"
NCCL = "collectives as measured, overlap as published"
PRIORS = (
    Prior("reach16_ratio", 0.84, 0.06, (_by(0.04, "family"),), MAMF),
    Prior("reach8_ratio", 0.88, 0.08, (_by(0.05, "family"),), MAMF),
    Prior("reach4_ratio", 0.88, 0.15, (), MAMF),
    Prior("operand_ratio", 1.12, 0.15, (), "small-product tables"),
    Prior("grouped_ratio", 0.88, 0.10, (), "grouped-product tables"),
    Prior("grouped_operand_ratio", 1.30, 0.15, (), "grouped-product tables"),
    Prior("dequantize_ratio", 2.5, 0.4, (), "bitsandbytes kernels"),
    Prior("flash_frac", 0.42, 0.12, (_by(0.25, "flash", "family"),), FLASH),
    Prior("flash_backward_ratio", 3.0, 0.06, (), FLASH),
    Prior("math_frac", 0.475, 0.12, (), "batched products of attention"),
    Prior("math_bytes_per_score", 10.9, 0.15, (), TRAFFIC),
    Prior("scan_frac", 0.10, 0.4, (), "state-space kernels"),
    Prior("hidden_passes_ratio", 9.0, 0.15, (_by(0.20, "kernels"),), TRAFFIC),
    Prior("inner_passes_ratio", 3.0, 0.15, (_by(0.20, "kernels"),), TRAFFIC),
    Prior("expert_passes_ratio", 6.0, 0.25, (), TRAFFIC),
    Prior("adapter_passes_ratio", 4.0, 0.3, (), TRAFFIC),
    Prior("logit_bytes", 16.0, 0.15, (), TRAFFIC),
    Prior("cast_bytes", 3.0, 0.25, (), TRAFFIC),
    Prior("accumulate_bytes_per_param", 5.0, 0.4, (), "32-bit sums, partly behind products"),
    Prior("optimizer_bytes_per_param", 29.0, 0.15, (), "Adam: state read and written"),
    Prior("overall_ratio", 1.0, 0.01, (
        _by(0.06, "kernels"), _by(0.05, "family"), _by(0.20, "architecture"),
        _by(0.03, "program"),
    ), "what the parts leave over"),
    Prior("layer_s", 0.5e-3, 0.2, (_by(0.7, "stack"),), "launches of a layer"),
    Prior("expert_layer_ratio", 3.2, 0.2, (), "launches of a layer"),
    Prior("local_expert_s", 0.10e-3, 0.4, (), "launches of a layer"),
    Prior("step_s", 8e-3, 0.2, (), "loop, logging, gradient norm"),
    Prior("sharpness_ratio", 3.7, 0.05, (), "launch queues hide jitter"),
    Prior("straggler_frac", 0.006, 0.3, (), "weak scaling of data-parallel jobs"),
    Prior("tp_exposed_ratio", 0.75, 0.15, (_by(0.4, "links"), _by(0.15, "stack")), NCCL),
    Prior("tp_far_ratio", 1.8, 0.2, (), NCCL),
    Prior("tp_call_s", 20e-6, 0.2, (), NCCL),
    Prior("cp_exposed_ratio", 0.30, 0.2, (), NCCL),
    Prior("ep_exposed_ratio", 0.9, 0.25, (), NCCL),
    Prior("ep_far_ratio", 1.0, 0.25, (), NCCL),
    Prior("p2p_exposed_ratio", 0.9, 0.25, (_by(0.5, "links"), _by(0.15, "stack")), NCCL),
    Prior("dp_ratio", 1.2, 0.15, (), NCCL),
    Prior("dp_overlap_frac", 0.8, 0.05, (), NCCL),
    Prior("fsdp_ratio", 1.2, 0.15, (_by(0.3, "stack"),), NCCL),
    Prior("fsdp_interference_frac", 0.15, 0.4, (), NCCL),
)  # fmt: skip


def prior() -> tuple[Constant, ...]:
    """Every constant: value and width before totals are seen, and what it may depend on."""
    return tuple(Constant(**line._asdict()) for line in PRIORS)
