"""Training software by its few differing traits, in: names as people write them; out: a Stack.

A stack is what changes the time of a step and is no property of model, layout or accelerator:
which attention kernel, what is fused, what is overlapped.
"""

import re
from typing import NamedTuple

from gpuplan.domain.training.setup import AttentionKernel, Kernels, Sharding


class Stack(NamedTuple):
    """Traits of one generation of training software."""

    name: str
    attention: AttentionKernel = "flash"
    kernels: Kernels = "eager"
    has_sequence_parallel: bool = True
    sharding: Sharding = "zero3"  # where nothing else is stated
    gradient_bytes: float = 2.0  # what is exchanged per gradient
    overlaps_gradients: bool = True
    scatters_stage_output: bool = True
    flash: str = "fa2"  # generation of the attention kernel
    links: str = "blocking"  # tensor and pipeline transfers wait, or hide behind products
    accumulate_ratio: float = 1.0  # bytes of adding a micro-batch, by those of a fused kernel
    host_ratio: float = 1.0  # launches and Python of a layer, by those of a plain one
    fuses_experts: bool = False  # one kernel for an expert's products, activation and casts


SCRIPTS, COMPILER = "finetune", "xla"
BEFORE_FLASH = Stack(
    "megatron-2021",
    attention="math",
    kernels="fused",
    has_sequence_parallel=False,
    sharding="none",
    overlaps_gradients=False,
)
STACKS = {
    stack.name: stack
    for stack in (
        # Megatron-LM before flash attention and sequence parallelism, its forks and NeMo of 2022.
        BEFORE_FLASH,
        # The same with DeepSpeed's pipeline, which hands whole activations over and adds 16-bit
        # gradients to 32-bit sums in a pass of its own: 12 bytes where a fused product moves 5.
        BEFORE_FLASH._replace(
            name="megatron-deepspeed",
            sharding="zero1",
            scatters_stage_output=False,
            accumulate_ratio=2.4,
        ),
        # Megatron Core with Transformer Engine: NeMo, Megatron-Bridge, MLPerf, MegaScale, Primus.
        Stack("megatron", kernels="fused", sharding="zero1", flash="vendor", links="hidden"),
        # Fully sharded data parallel, operator by operator.
        Stack("fsdp"),
        Stack("fsdp-compiled", kernels="compiled", gradient_bytes=4.0),
        # The same with the maker's own layers and attention: Transformer Engine inside PyTorch.
        Stack("fsdp-fused", kernels="fused", flash="vendor"),
        # Hybrid-sharded engines of the DeepSpeed kind with flash attention.
        Stack("zero", has_sequence_parallel=False, sharding="zero1"),
        # Single-node fine-tuning scripts around modules:
        # every adapter brings kernels and modules of its own.
        Stack(SCRIPTS, has_sequence_parallel=False, host_ratio=3.0),
        # XLA: everything compiled, sharding by annotation.
        Stack(COMPILER, kernels="compiled", flash="vendor", links="hidden"),
    )
}
MODERN_MEGATRON = re.compile(
    r"nemo|bridge|mlperf|megascale|primus|transformer.?engine|megatron.?core|dgxc|mcore"
)
FLASH_ERA = "2022-09"
# From here on the recipes switch on the fused grouped kernel and record whole steps as graphs.
FUSED_RELEASE = (26, 6)


def stack_of(framework: str, *, source: str = "", date: str = "", note: str = "") -> Stack:
    """The stack that these words mean; the year decides between the two Megatrons."""
    text = f"{framework} {source}".lower()
    for pattern, name in (
        (r"maxtext|xla|jax|paxml|tpu", "xla"),
        (
            r"torchtune|litgpt|unsloth|peft|axolotl|trl|llama.?factory|hugging|transformers\b",
            "finetune",
        ),
        (r"internevo|internlm|colossal", "zero"),
    ):
        if re.search(pattern, text):
            return STACKS[name]
    if re.search(r"torchtitan|fsdp|foundry|composer|olmo", text):
        is_compiled = re.search(r"compile yes|torch\.compile(?! stated)", note.lower())
        has_engine = re.search(r"transformer.?engine|\bte\b", note.lower())
        return STACKS["fsdp-compiled" if is_compiled else "fsdp-fused" if has_engine else "fsdp"]
    if _is_modern(text, date):
        return STACKS["megatron"]._replace(fuses_experts=_fuses_experts(text))
    is_deepspeed = "deepspeed" in text and "vtrain" not in text
    return STACKS["megatron-deepspeed" if is_deepspeed else "megatron-2021"]


def _fuses_experts(text: str) -> bool:
    found = re.search(r"bridge[ :]+(\d\d)\.(\d\d)", text)
    return found is not None and (int(found[1]), int(found[2])) >= FUSED_RELEASE


def _is_modern(text: str, date: str) -> bool:
    if "launcher" in text:
        return False
    if MODERN_MEGATRON.search(text):
        return True
    if re.search(r"2020|2021|sc.?21|bloom|vtrain|nemo-megatron", text):
        return False
    # The fork with DeepSpeed outlived plain attention: its name tells the age only without a date.
    is_fork = "megatron-deepspeed" in text
    return date[:7] >= FLASH_ERA if date else not is_fork
