"""A training or fine-tuning job: what it trains, how it runs, and the memory that this takes."""

from typing import Literal

from gpuplan.domain.model.precision import NumberFormat
from gpuplan.domain.noun import dataclass

Task = Literal["pretrain", "full", "lora", "qlora"]
# "selective" drops attention scores [Korthikanti2022]; "alternate" keeps the inputs of layers,
# attention outputs and every second matrix product, as torchtitan's operator policy does.
Recompute = Literal["none", "selective", "alternate", "full"]
AttentionKernel = Literal["flash", "math"]
# Who writes what to memory between two matrix products: plain PyTorch operators, hand-fused
# kernels (Megatron, Transformer Engine), or a compiler that recomputes what is cheap. Grouped:
# fused, with an expert's products, activation and casts in one kernel.
Kernels = Literal["eager", "fused", "grouped", "compiled"]
# plain: logits upcast, and released before the backward pass; held: the caller keeps them;
# sixteen: never upcast; parallel: Megatron's over a split vocabulary; chunked: upcast piece by
# piece; fused: never whole.
Loss = Literal["plain", "held", "sixteen", "parallel", "chunked", "fused"]
Sharding = Literal["none", "zero1", "zero2", "zero3"]  # zero3 is fully sharded data parallel
Schedule = Literal["1f1b", "interleaved", "zero-bubble", "zbv", "v-half", "v-min"]
# The format of matrix products; attention and everything else stay in 16 bits or more.
Compute = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "fp4"]
Target = Literal["q", "k", "v", "o", "gate", "up", "down", "head"]
ATTENTION_TARGETS: tuple[Target, ...] = ("q", "k", "v", "o")
ALL_LINEAR_TARGETS: tuple[Target, ...] = ("q", "k", "v", "o", "gate", "up", "down")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Bytes that one parameter keeps on the accelerators, before any sharding."""

    weight_bytes_per_param: float = 2.0
    gradient_bytes_per_param: float = 4.0
    master_bytes_per_param: float = 4.0
    optimizer_bytes_per_param: float = 8.0
    compute_bytes_per_param: float = 2.0  # of a weight when it is gathered to be used

    @property
    def total_bytes_per_param(self) -> float:
        """All that stays between two steps."""
        return (
            self.weight_bytes_per_param
            + self.gradient_bytes_per_param
            + self.master_bytes_per_param
            + self.optimizer_bytes_per_param
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoRA:
    """Low-rank adapters on a frozen base; alpha changes no byte."""

    rank: int
    targets: tuple[Target, ...]
    states: StateBytes  # of the adapters; the base keeps its weights alone
    base: NumberFormat | None = None  # storage of quantized matrices; None: the base's own
    input_bytes_per_element: float = 2.0  # 4 where adapters are kept and fed in 32 bits
    has_dropout: bool = False  # then every adapted matrix keeps an input of its own
    is_head_quantized: bool = False
    # bitsandbytes before 0.44 kept the inputs of frozen matrices for nothing, and outside
    # autograd's list: 1, or 2 where those of the step before live through the next forward.
    n_kept_base_inputs: int = 0
    frozen_gradient_bytes_per_param: float = 0.0  # flat-parameter FSDP gives frozen ones too


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """How a step runs."""

    recompute: Recompute = "none"
    compute: Compute = "bf16"
    attention: AttentionKernel = "flash"
    kernels: Kernels = "fused"
    loss: Loss = "plain"
    steps_in_backward: bool = False  # optimizer fused into the backward pass
    has_gradient_buffers: bool = False  # gradients allocated once, for the whole run
    accumulates_unsharded: bool = False  # no_sync: gradients stay whole between micro-batches
    packs_qkv: bool = False  # one matrix makes queries, keys and values
    expands_kv: bool = False  # grouped keys and values are copied out to all heads
    scatters_stage_output: bool = True  # stages hand over one piece per tensor-parallel rank


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSetup:
    """One job on one data-parallel rank."""

    task: Task
    states: StateBytes
    micro_batch: int
    sequence_tokens: int
    n_micro_batches: int = 1  # per step and data-parallel rank
    execution: Execution = Execution()
    adapter: LoRA | None = None
    input_s: float = 0.0  # reading and preparing one step's samples, beside the step before


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLayout:
    """How a job is spread over accelerators."""

    tp: int = 1
    pp: int = 1
    n_virtual: int = 1  # model chunks of a stage
    schedule: Schedule = "1f1b"
    cp: int = 1
    ep: int = 1
    dp: int = 1
    sharding: Sharding = "none"
    n_shard: int | None = None  # None: all data- and context-parallel ranks; less: hybrid
    has_sequence_parallel: bool = False
    counts_embedding_as_layer: bool = False  # stages are balanced with the tables as layers
    bucket_elements: int = 0  # communication bucket beside the gradients; DeepSpeed: 5e8

    @property
    def n_accelerators(self) -> int:
        """All of them; expert parallelism lives inside data and context parallelism."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def n_shards(self) -> int:
        """Ranks that share one copy of what is sharded."""
        if self.sharding == "none":
            return 1
        return self.dp * self.cp if self.n_shard is None else self.n_shard


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Bytes of the fullest accelerator at its peak, by what they hold."""

    weights_bytes: float
    gradients_bytes: float
    master_bytes: float
    optimizer_bytes: float
    adapters_bytes: float  # weights, gradients and optimizer of adapters
    activations_bytes: float
    logits_bytes: float
    gathered_bytes: float  # whole weights and gradients of layers at work
    temporary_bytes: float
    fragmentation_bytes: float
    reserve_bytes: float  # context, libraries, communication: outside the allocator

    @property
    def states_bytes(self) -> float:
        """What stays between two steps."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.master_bytes
            + self.optimizer_bytes
            + self.adapters_bytes
        )

    @property
    def allocated_bytes(self) -> float:
        """What `torch.cuda.max_memory_allocated` reports."""
        return (
            self.states_bytes
            + self.activations_bytes
            + self.logits_bytes
            + self.gathered_bytes
            + self.temporary_bytes
        )

    @property
    def reserved_bytes(self) -> float:
        """What `torch.cuda.max_memory_reserved` reports."""
        return self.allocated_bytes + self.fragmentation_bytes

    @property
    def least_bytes(self) -> float:
        """Below this the job cannot run; under pressure the allocator gives cached blocks back."""
        return self.allocated_bytes + self.reserve_bytes

    @property
    def total_bytes(self) -> float:
        """What `nvidia-smi` shows of a job that is not short of memory."""
        return self.reserved_bytes + self.reserve_bytes
