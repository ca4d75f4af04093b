"""A training job with figures that can be checked by hand, and constants of a perfect machine."""

from fakes.links import steady_link
from gpuplan.calibration.training.constants import read_calibration, with_traits
from gpuplan.calibration.training.stacks import STACKS
from gpuplan.domain.training.setup import Execution, ParallelLayout, StateBytes, TrainingSetup
from gpuplan.domain.training.time import Fabric, TrainingConstants, constants_from

PERFECT = {
    "best16_frac": 1.0, "best8_frac": 1.0, "best4_frac": 1.0, "reach16_ratio": 1.0,
    "reach8_ratio": 1.0, "reach4_ratio": 1.0, "operand_ratio": 0.0, "grouped_ratio": 1.0,
    "grouped_operand_ratio": 0.0, "dequantize_ratio": 0.0, "flash_frac": 1.0,
    "flash_backward_ratio": 2.0, "math_frac": 1.0, "math_bytes_per_score": 0.0, "scan_frac": 1.0,
    "hidden_passes_ratio": 0.0, "inner_passes_ratio": 0.0, "expert_passes_ratio": 0.0,
    "adapter_passes_ratio": 0.0, "logit_bytes": 0.0, "cast_bytes": 0.0,
    "accumulate_bytes_per_param": 0.0, "optimizer_bytes_per_param": 0.0,
    "layer_s": 0.0, "expert_layer_ratio": 1.0,
    "local_expert_s": 0.0, "step_s": 0.0, "sharpness_ratio": 4.0, "tp_exposed_ratio": 1.0,
    "tp_far_ratio": 1.0, "tp_call_s": 0.0, "cp_exposed_ratio": 1.0, "ep_exposed_ratio": 1.0,
    "ep_far_ratio": 1.0, "p2p_exposed_ratio": 1.0, "dp_ratio": 1.0, "dp_overlap_frac": 0.0,
    "fsdp_ratio": 1.0, "fsdp_interference_frac": 0.0, "straggler_frac": 0.0, "overall_ratio": 1.0,
}  # fmt: skip


def perfect(**changed: float) -> TrainingConstants:
    """Every product at peak, nothing else costs anything, nothing is hidden."""
    return constants_from({**PERFECT, **changed})


def calibrated(accelerator, stack: str = "megatron") -> TrainingConstants:
    """The shipped constants of a dense model."""
    chosen = STACKS[stack]
    labels = {
        "stack": stack, "kernels": chosen.kernels, "flash": chosen.flash, "program": "",
        "links": chosen.links,
        "family": accelerator.family, "architecture": "dense",
    }  # fmt: skip
    values = read_calibration().fitted.values(labels)
    return constants_from(with_traits(values, accelerator, chosen))


def fabric(
    *, outside_bytes_per_s: float = 50e9, n_domain: int = 8, alpha_s: float = 3e-6
) -> Fabric:
    return Fabric(
        n_domain=n_domain,
        inside=steady_link(450e9, rate_frac=0.8, alpha_s=alpha_s),
        outside=steady_link(outside_bytes_per_s, rate_frac=0.9, alpha_s=10e-6),
    )


def setup(
    *, micro_batch: int = 1, sequence_tokens: int = 2048, n_micro_batches: int = 8, **execution
) -> TrainingSetup:
    return TrainingSetup(
        task="pretrain",
        states=StateBytes(gradient_bytes_per_param=2.0),
        micro_batch=micro_batch,
        sequence_tokens=sequence_tokens,
        n_micro_batches=n_micro_batches,
        execution=Execution(**execution),
    )


def alone() -> ParallelLayout:
    return ParallelLayout()
