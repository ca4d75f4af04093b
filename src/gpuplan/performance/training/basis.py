"""A training configuration as seconds at full peak, full bandwidth and full link rate.

In: model, accelerator, setup, layout, fabric. Out: a StepBasis of numbers, in which no constant
of the calibration has entered yet.
"""

import math
from typing import NamedTuple

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.training.setup import Execution, ParallelLayout, Recompute, TrainingSetup
from gpuplan.domain.training.time import Fabric
from gpuplan.errors import CatalogError, InputError, one
from gpuplan.performance.training import process_groups as links
from gpuplan.performance.training.layers import (
    BYTES_16,
    AdapterWork,
    LayerWork,
    Split,
    adapter_work,
    forward_work,
    head_work,
)
from gpuplan.performance.training.traffic import Case, LinkBasis, RankParams, link_basis

OPERAND_BYTES = {
    "fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "mxfp8": 1.03125, "fp4": 0.5625,
}  # fmt: skip
# Block scales run along the product, so that both orientations are quantized anew.
# A 16-bit element is read and written narrower: 3 bytes in 8 bits, 2.56 in 4.
CAST_RATIO = {"fp8": 1.0, "mxfp8": 2.0, "fp4": 1.7}
WIDER = ("fp4", "mxfp8", "fp8", "bf16", "fp16", "tf32", "fp32")
# Shares of the forward pass that are computed again: products, mixers, the rest.
# "selective" repeats attention alone [Korthikanti2022]; "alternate" keeps attention and every
# second product [torchtitan].
RECOMPUTED: dict[Recompute, tuple[float, float, float]] = {
    "none": (0.0, 0.0, 0.0),
    "selective": (0.0, 1.0, 0.0),
    "alternate": (0.5, 0.0, 1.0),
    "full": (1.0, 1.0, 1.0),
}


class DeviceBasis(NamedTuple):
    """Forward seconds of one micro-batch on an average stage, at full peak or full bandwidth."""

    matmul16_s: float
    matmul8_s: float
    matmul4_s: float
    operand_s: float
    expert16_s: float
    expert8_s: float
    expert4_s: float
    expert_operand_s: float
    flash_s: float
    math_s: float
    score_s_per_byte: float
    scan_s: float
    hidden_s: float
    inner_s: float
    routed_s: float
    cast_s_per_byte: float
    adapter_flop_s: float
    adapter_s: float
    gradient_s_per_byte: float  # parameters whose gradients are summed over micro-batches
    dequantize_s: float


class HeadBasis(NamedTuple):
    """Output table and loss of one micro-batch, on the last stage."""

    matmul_s: float
    operand_s: float
    logits_s_per_byte: float


class PassBasis(NamedTuple):
    """How often parts of the forward are paid again."""

    backward_ratio: float  # matrix products: 2, or 1 where weights get no gradient
    matmul_again_frac: float
    mixer_again_frac: float
    other_again_frac: float


class HostBasis(NamedTuple):
    """What the host launches in one pass of a stage."""

    n_layers: float
    n_expert_layers: float
    n_local_experts: float


class ScheduleBasis(NamedTuple):
    """How micro-batches and stages make a step."""

    n_micro_batches: float
    n_fill: float  # stage times that the pipeline waits: (stages - 1) / chunks
    n_hiding: float  # micro-batches behind which the exchange of gradients can hide
    slowest_ratio: float  # layers of the fullest stage by the mean
    head_frac: float  # share of the head that the slowest stage waits for
    optimizer_s_per_byte: float  # parameters of one rank by bandwidth
    n_node_doublings: float
    input_s: float


class StepBasis(NamedTuple):
    """All that the step formula needs of a configuration."""

    device: DeviceBasis
    head: HeadBasis
    passes: PassBasis
    host: HostBasis
    link: LinkBasis
    schedule: ScheduleBasis


def step_basis(
    model: Model,
    accelerator: Accelerator,
    setup: TrainingSetup,
    *,
    layout: ParallelLayout,
    fabric: Fabric,
) -> StepBasis:
    """Nouns to seconds at full rates."""
    split = Split(
        n_tokens=setup.micro_batch * setup.sequence_tokens / layout.cp,
        sequence_tokens=float(setup.sequence_tokens),
        tp=layout.tp,
        ep=layout.ep,
        sequence_parallel=layout.tp if layout.has_sequence_parallel else 1,
        operand_bytes=OPERAND_BYTES[setup.execution.compute],
        cast_ratio=CAST_RATIO.get(setup.execution.compute, 0.0),
        fuses_experts=setup.execution.kernels == "grouped",
        n_expert_islands=links.process_group("ep", layout, fabric).n_islands,
    )
    case = Case(model, accelerator, setup, layout, fabric, split)
    layers = forward_work(model, split)
    if not layers.matmul_flop:
        fix = "use a transformer or a state-space model"
        raise one(InputError, "training", model.name, "has no layers of matrix products", fix)
    head = head_work(model, split)
    adapter = adapter_work(model, setup.adapter, split) if setup.adapter else None
    rank = _rank_params(case, layers, adapter)
    again = recomputed_fracs(setup.execution)
    return StepBasis(
        device=_device_basis(case, layers, adapter),
        head=_head_basis(case, head),
        passes=PassBasis(2.0 if setup.adapter is None else 1.0, *again),
        host=HostBasis(*(n / layout.pp for n in _launches(layers))),
        link=link_basis(case, layers, rank),
        schedule=_schedule_basis(case, rank, head_frac_of_layer=_head_layers(layers, head)),
    )


def recomputed_fracs(execution: Execution) -> tuple[float, float, float]:
    """Shares of products, mixers and the rest that are computed again."""
    if execution.recompute == "selective" and execution.attention == "flash":
        return RECOMPUTED["none"]  # the kernel repeats its scores anyway, inside its backward
    return RECOMPUTED[execution.recompute]


def peak_flop_per_s(accelerator: Accelerator, compute: str) -> float:
    """Dense peak of the format; what the hardware cannot do runs at the next wider one."""
    peaks = accelerator.peak_flop_per_s
    wider = WIDER[WIDER.index(compute) :]
    # The two 16-bit formats share their units: a board that lists one does the other.
    for name in (*wider, "bf16") if compute == "fp16" else wider:
        if name in peaks:
            return peaks[name]
    where, what = f"accelerators.{accelerator.id}", f"no peak for {compute} or wider is published"
    raise one(CatalogError, "training", where, what, f"use one of {', '.join(sorted(peaks))}")


def _launches(layers: LayerWork) -> tuple[float, float, float]:
    return layers.n_layers, layers.n_expert_layers, layers.n_local_experts


def _head_layers(layers: LayerWork, head: LayerWork) -> float:
    return head.matmul_flop * layers.n_layers / (layers.matmul_flop + layers.expert_flop)


def _device_basis(case: Case, layers: LayerWork, adapter: AdapterWork | None) -> DeviceBasis:
    pp = case.layout.pp
    bandwidth = case.accelerator.memory.bytes_per_s
    peak16 = peak_flop_per_s(case.accelerator, "bf16")
    products = _by_format(case, layers.matmul_flop / pp)
    experts = _by_format(case, layers.expert_flop / pp)
    is_flash = case.setup.execution.attention == "flash"
    return DeviceBasis(
        *products,
        operand_s=layers.matmul_bytes / pp / bandwidth,
        expert16_s=experts[0],
        expert8_s=experts[1],
        expert4_s=experts[2],
        expert_operand_s=layers.expert_bytes / pp / bandwidth,
        flash_s=layers.flash_flop / pp / peak16 * is_flash,
        math_s=layers.score_flop / pp / peak16 * (not is_flash),
        score_s_per_byte=layers.score_elements / pp / bandwidth * (not is_flash),
        scan_s=layers.scan_flop / pp / peak16,
        hidden_s=layers.hidden_bytes / pp / bandwidth,
        inner_s=layers.inner_bytes / pp / bandwidth,
        routed_s=layers.routed_bytes / pp / bandwidth,
        cast_s_per_byte=layers.cast_elements / pp / bandwidth,
        adapter_flop_s=adapter.flop / pp / peak16 if adapter else 0.0,
        adapter_s=adapter.touched_bytes / pp / bandwidth if adapter else 0.0,
        gradient_s_per_byte=_n_accumulated(case, layers) / pp / bandwidth,
        dequantize_s=_dequantized_bytes(case, layers) / pp / bandwidth,
    )


def _by_format(case: Case, flop: float) -> tuple[float, float, float]:
    """Seconds at the dense peak of 16-, 8- and 4-bit units; two of them are 0."""
    compute = case.setup.execution.compute
    seconds = flop / peak_flop_per_s(case.accelerator, compute)
    peaks = case.accelerator.peak_flop_per_s
    if compute == "fp4" and "fp4" in peaks:
        return 0.0, 0.0, seconds
    if compute in ("fp4", "fp8", "mxfp8") and "fp8" in peaks:
        return 0.0, seconds, 0.0
    return seconds, 0.0, 0.0


def _n_accumulated(case: Case, layers: LayerWork) -> float:
    keeps_whole = case.layout.sharding != "zero3" or case.layout.n_shards == 1
    sums_whole = keeps_whole and case.setup.n_micro_batches > 1
    return layers.n_params if sums_whole and case.setup.adapter is None else 0.0


def _dequantized_bytes(case: Case, layers: LayerWork) -> float:
    adapter = case.setup.adapter
    if adapter is None or adapter.base is None or not adapter.base.is_quantized:
        return 0.0
    return layers.n_params * (adapter.base.stored_bytes + BYTES_16)


def _head_basis(case: Case, head: LayerWork) -> HeadBasis:
    bandwidth = case.accelerator.memory.bytes_per_s
    n_logits = case.split.n_tokens * case.model.embedding.n_vocab / case.layout.tp
    return HeadBasis(
        matmul_s=head.matmul_flop / peak_flop_per_s(case.accelerator, "bf16"),
        operand_s=head.matmul_bytes / bandwidth,
        logits_s_per_byte=n_logits / bandwidth,
    )


def _rank_params(case: Case, layers: LayerWork, adapter: AdapterWork | None) -> RankParams:
    layout, table = case.layout, case.model.embedding
    # On a pipeline the fullest rank holds one table, alone it holds both.
    tables = max(table.n_input_params, table.n_head_matrix_params)
    if layout.pp == 1:
        tables = table.n_params
    n_expert = _n_expert_params(case)
    n_dense = layers.n_params / layout.pp - n_expert + tables / layout.tp
    trained = adapter.n_params / layout.tp / layout.pp / (n_dense + n_expert) if adapter else 1.0
    return RankParams(n_dense, n_expert, trained)


def _n_expert_params(case: Case) -> float:
    resident = 0.0
    for group in case.model.main.groups:
        feed = group.feed_forward
        n_experts = getattr(feed, "n_experts", 0)
        if n_experts:
            resident += group.n_layers * n_experts * getattr(feed, "n_expert_matrix_params", 0)
    return resident / (case.layout.ep * case.layout.tp * case.layout.pp)


def _schedule_basis(case: Case, rank: RankParams, *, head_frac_of_layer: float) -> ScheduleBasis:
    layout, setup = case.layout, case.setup
    slowest, head = _slowest(case, head_frac_of_layer)
    n_sharing = layout.n_shards if layout.sharding != "none" else 1
    updated = rank.n_all * rank.n_trained_frac / n_sharing
    n_nodes = max(1.0, layout.n_accelerators / case.fabric.n_node)
    return ScheduleBasis(
        n_micro_batches=float(setup.n_micro_batches),
        n_fill=bubble_ratio(layout, setup.n_micro_batches) * setup.n_micro_batches,
        n_hiding=_n_hiding(layout, setup.n_micro_batches),
        slowest_ratio=slowest,
        head_frac=head,
        optimizer_s_per_byte=updated / case.accelerator.memory.bytes_per_s,
        n_node_doublings=math.log2(n_nodes),
        input_s=setup.input_s,
    )


def bubble_ratio(layout: ParallelLayout, n_micro_batches: int) -> float:
    """Idle time of a pipeline by its busy time: (p - 1) / (v m) [Narayanan2021]."""
    return (layout.pp - 1) / (layout.n_virtual * n_micro_batches)


def _n_hiding(layout: ParallelLayout, n_micro_batches: int) -> float:
    """One micro-batch; with chunks, those that run between the first ready chunk and the last."""
    chunks = layout.n_virtual
    return 1.0 / chunks + min(n_micro_batches, layout.pp) * (chunks - 1) / chunks


def _slowest(case: Case, head_layers: float) -> tuple[float, float]:
    """Layers of the stage that sets the pace, by the mean, and whether it has the head."""
    n_layers, pp = case.model.main.n_layers, case.layout.pp
    if pp == 1:
        return 1.0, 1.0
    mean = n_layers / pp
    slots = pp * case.layout.n_virtual
    if case.layout.counts_embedding_as_layer or (n_layers % slots and not (n_layers + 2) % slots):
        full = (n_layers + 2) / pp
        # The last stage gives a layer for the head: whichever is larger sets the pace.
        return (full / mean, 0.0) if head_layers < 1.0 else ((full - 1) / mean, 1.0)
    even = math.ceil(n_layers / pp)
    spare = even * pp - n_layers
    if spare and head_layers < spare:
        return even / mean, 0.0
    return even / mean, 1.0
