"""What frameworks do unless told otherwise: states per parameter and how their steps run.

Each entry was read from the framework's public source or documentation; `source` names it.
"""

from typing import NamedTuple

from gpuplan.domain.training.setup import Execution, StateBytes

# Bytes that an optimizer keeps per parameter whose own states are 32-bit.
OPTIMIZER_BYTES = {
    "adamw": 8.0,
    "adamw-bf16": 4.0,  # states in the 16-bit type of the weights
    "adamw-8bit": 2.0 + 2 * 4.0 / 256,  # two bytes, a 32-bit scale for every 256 of each
    "paged-adamw": 0.0,  # in pageable host memory, outside the allocator
    "paged-adamw-8bit": 0.0,
    "adafactor": 0.0,  # rows and columns only
    "lion": 4.0,
    "sgd": 0.0,
    "sgd-momentum": 4.0,
    "muon": 4.0,
}

# 16-bit everything, no master copy: torchtune, litgpt `bf16-true`.
HALF_STATES = StateBytes(
    weight_bytes_per_param=2.0,
    gradient_bytes_per_param=2.0,
    master_bytes_per_param=0.0,
    optimizer_bytes_per_param=OPTIMIZER_BYTES["adamw-bf16"],
)
# 32-bit sharded weights, cast when gathered: FSDP with mixed precision, 16 bytes.
FSDP_STATES = StateBytes(
    weight_bytes_per_param=4.0,
    gradient_bytes_per_param=4.0,
    master_bytes_per_param=0.0,
    optimizer_bytes_per_param=OPTIMIZER_BYTES["adamw"],
)
# 16-bit weights, 32-bit gradients, master and Adam: Megatron Core in bf16, 18 bytes.
MEGATRON_STATES = StateBytes()
# 16-bit weights and gradients: DeepSpeed and Megatron in fp16, 16 bytes.
FP16_STATES = StateBytes(gradient_bytes_per_param=2.0)
# DeepSpeed's bf16 optimizer accumulates in 32 bits beside the 16-bit gradients, 20 bytes.
DEEPSPEED_BF16_STATES = StateBytes(gradient_bytes_per_param=6.0)
# Adapters in the 16-bit type of the base, and in 32 bits as PEFT makes them.
HALF_ADAPTER = HALF_STATES
WIDE_ADAPTER = StateBytes(
    weight_bytes_per_param=4.0, gradient_bytes_per_param=4.0, master_bytes_per_param=0.0
)


class Practice(NamedTuple):
    """How a framework trains by default, with its source."""

    states: StateBytes
    execution: Execution
    source: str


PRACTICES = {
    "megatron": Practice(
        MEGATRON_STATES,
        Execution(kernels="fused", loss="parallel", has_gradient_buffers=True),
        "Megatron-Core distributed data parallel and vocab-parallel cross entropy",
    ),
    "megatron-deepspeed": Practice(
        FP16_STATES,
        Execution(
            recompute="full",
            attention="math",
            kernels="fused",
            loss="parallel",
            has_gradient_buffers=True,
        ),
        "bigscience-workshop tr11-176B-ml; layers are checkpointed one by one",
    ),
    "torchtitan": Practice(
        FSDP_STATES,
        Execution(recompute="alternate", kernels="eager", loss="plain", expands_kv=True),
        "torchtitan 2024-12: 32-bit parameters, bf16 when gathered, operator checkpointing",
    ),
    "torchtune": Practice(
        HALF_STATES,
        Execution(recompute="full", kernels="eager", loss="plain", expands_kv=True),
        "torchtune recipes",
    ),
    "litgpt": Practice(
        HALF_STATES,
        Execution(kernels="eager", loss="sixteen", packs_qkv=True, expands_kv=True),
        "litgpt finetune recipes in bf16-true",
    ),
    "transformers": Practice(
        HALF_STATES,
        Execution(recompute="full", kernels="eager", loss="held"),
        "transformers Trainer with gradient checkpointing, PEFT",
    ),
    "maxtext": Practice(
        FSDP_STATES,
        Execution(recompute="full", kernels="compiled", loss="plain"),
        "MaxText base configuration: 32-bit parameters, every layer recomputed",
    ),
    "internevo": Practice(
        FP16_STATES,
        Execution(recompute="full", kernels="fused", loss="plain", has_gradient_buffers=True),
        "InternEvo configs/7B_sft.py",
    ),
}
