"""The time of a training step: what it runs on, the constants it rests on, and what comes out.

Constants are NamedTuples of numbers so that the same formula takes one value or a column of them.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from gpuplan.domain.hardware.links import LinkModel
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Estimate

Cause = Literal[
    "matrix products",
    "attention",
    "element-wise",
    "host",
    "tensor parallel",
    "expert parallel",
    "context parallel",
    "pipeline bubble",
    "pipeline transfers",
    "data parallel",
    "optimizer",
    "input",
    "stragglers",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The links that a job sees: inside an island of accelerators and between islands."""

    n_domain: int  # accelerators that share the fast link
    inside: LinkModel  # of one accelerator
    outside: LinkModel  # of one accelerator: its share of the adapters
    n_node: int = 8  # accelerators of one host: what stragglers and failures are counted by


class MatmulConstants(NamedTuple):
    """Reach of matrix products; `best` is the accelerator's, `reach` what training gets of it."""

    best16_frac: float  # of the dense 16-bit peak, best shape [MAMF]
    best8_frac: float
    best4_frac: float
    reach16_ratio: float
    reach8_ratio: float
    reach4_ratio: float
    operand_ratio: float  # times that operands cross memory
    grouped_ratio: float  # reach of grouped expert products, of the dense ones
    grouped_operand_ratio: float
    dequantize_ratio: float  # of the memory time of unpacking 4-bit weights


class MixerConstants(NamedTuple):
    """Attention and recurrence."""

    flash_frac: float  # of the dense 16-bit peak, forward, head dimension 128
    flash_backward_ratio: float  # time of backward by that of forward
    math_frac: float
    math_bytes_per_score: float
    scan_frac: float  # of the dense 16-bit peak that a recurrence reaches


class TrafficConstants(NamedTuple):
    """Memory traffic of all that is no matrix product."""

    hidden_passes_ratio: float  # crossings of the hidden vector in a layer's forward
    inner_passes_ratio: float  # crossings of the projections and the feed-forward inside
    expert_passes_ratio: float  # crossings of the routed copies
    adapter_passes_ratio: float
    logit_bytes: float  # per logit, forward and backward
    cast_bytes: float  # per operand element that is cast below 16 bits
    accumulate_bytes_per_param: float  # adding a micro-batch to the sum of gradients
    optimizer_bytes_per_param: float


class HostConstants(NamedTuple):
    """Time of launching kernels."""

    layer_s: float  # one pass through one layer
    expert_layer_ratio: float
    local_expert_s: float  # per expert of the layer on this accelerator and pass
    step_s: float
    sharpness_ratio: float  # exponent of the soft maximum of device and host


class LinkConstants(NamedTuple):
    """Communication: share that is not hidden, or loss against the plain formula."""

    tp_exposed_ratio: float
    tp_far_ratio: float
    tp_call_s: float
    cp_exposed_ratio: float
    ep_exposed_ratio: float
    ep_far_ratio: float
    p2p_exposed_ratio: float
    dp_ratio: float
    dp_overlap_frac: float  # share of one micro-batch's compute that can hide it
    fsdp_ratio: float
    fsdp_interference_frac: float


class WholeConstants(NamedTuple):
    """The step as a whole."""

    straggler_frac: float  # per doubling of the nodes
    overall_ratio: float  # label effects: software, accelerator and architecture
    imbalance_ratio: float = 1.0  # tokens of the busiest expert rank by the mean


class TrainingConstants(NamedTuple):
    """The numbers that measurements set."""

    matmul: MatmulConstants
    mixer: MixerConstants
    traffic: TrafficConstants
    host: HostConstants
    link: LinkConstants
    whole: WholeConstants


def constants_from(values: Mapping[str, float]) -> TrainingConstants:
    """Constants by their names; numbers or columns of numbers."""
    whole = {name: values[name] for name in WholeConstants._fields if name in values}
    return TrainingConstants(
        matmul=MatmulConstants(*(values[name] for name in MatmulConstants._fields)),
        mixer=MixerConstants(*(values[name] for name in MixerConstants._fields)),
        traffic=TrafficConstants(*(values[name] for name in TrafficConstants._fields)),
        host=HostConstants(*(values[name] for name in HostConstants._fields)),
        link=LinkConstants(*(values[name] for name in LinkConstants._fields)),
        whole=WholeConstants(**whole),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """One optimizer step."""

    step_s: float
    tokens_per_s_per_accelerator: float
    mfu_frac: float  # model arithmetic alone: no recompute, no embedding look-up, causal half
    hfu_frac: float  # with what is computed again
    parts_s: tuple[tuple[Cause, float], ...]  # they add up to the step
    n_accelerators: int
    tokens_per_step: float

    @property
    def cause(self) -> Cause:
        """The largest part that is not arithmetic, or matrix products."""
        losses = [part for part in self.parts_s if part[0] not in ("matrix products", "attention")]
        return max(losses, key=lambda part: part[1])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingForecast:
    """A step with its ranges, and what was assumed on the way."""

    step: TrainingStep
    step_s: Estimate
    tokens_per_s_per_accelerator: Estimate
    mfu_frac: Estimate
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """How often a job is stopped, and what a stop costs; None where nobody said."""

    mtbf_s: float | None  # of the whole job
    restart_s: float  # detect, replace, load, warm up


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWrites:
    """What is saved, how fast, and how often."""

    size_bytes: float
    write_bytes_per_s: float
    interval_s: float | None = None  # None: the best one
    is_asynchronous: bool = False  # then only the copy to host memory stops the job
    blocking_frac: float = 1.0  # share of the write that stops the job


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Useful share of the wall clock; None with a reason where the inputs do not say."""

    goodput_frac: float | None
    why_unknown: str
    interval_s: float | None
    write_s: float
    checkpoint_frac: float | None  # lost to writing
    lost_work_frac: float | None  # lost to work done again
    restart_frac: float | None
    straggler_frac: float = 0.0
