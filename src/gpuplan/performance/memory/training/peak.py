"""Memory of a training step on the fullest accelerator: states, then the worst moment of a step.

A step has three moments that can be the peak: at the loss, when everything saved meets the
logits; in the backward pass of a layer, when that layer's recomputed tensors and gradients meet
what is saved; and at the optimizer, when its temporaries meet all gradients.
"""

from collections.abc import Callable
from math import exp, log
from statistics import NormalDist
from typing import NamedTuple

from gpuplan.domain.model.network import Model
from gpuplan.domain.training.setup import (
    ParallelLayout,
    Sharding,
    StateBytes,
    TrainingMemory,
    TrainingSetup,
)
from gpuplan.performance.memory.training.activations import Saved, layer_saved
from gpuplan.performance.memory.training.check import check_training
from gpuplan.performance.memory.training.params import (
    V_SHAPED,
    Stage,
    StageParams,
    adapter_params,
    largest_layer,
    largest_matrix,
    stage_params,
    stages,
)
from gpuplan.units import GIB, MIB

# Bytes per logit at the loss: see docs/model/training-memory.md for the tensors of each.
LOSS_BYTES = {
    "plain": 12.0, "held": 16.0, "sixteen": 6.0, "parallel": 10.0, "chunked": 6.0, "fused": 1.0,
}  # fmt: skip
COMPILED_CHUNKED_BYTES = 3.0  # logits turn into their gradients chunk by chunk, no softmax
# Cached and split blocks beyond what tensors use: mean of the two configurations of
# [fit: torchtitan-2024-12]; every other source is holdout.
FRAGMENTATION_FRAC = 0.16
# 10 % and 90 % quantiles of measured over predicted peak on 78 holdout rows of six sources.
LOW_FRAC, HIGH_FRAC = 0.92, 1.27
NORMAL = NormalDist()
LOW_SD, HIGH_SD = (abs(log(end)) / NORMAL.inv_cdf(0.9) for end in (LOW_FRAC, HIGH_FRAC))
CONTEXT_BYTES = 1271 * MIB  # CUDA context and kernels on A100 [BigScience-tr11-prequel]
GROUP_BYTES = 0.5 * GIB  # Assumption: buffers of one NCCL communicator group
SHARDINGS: tuple[Sharding, ...] = ("none", "zero1", "zero2", "zero3")  # each shards more
WIDE = 4.0  # bytes of a 32-bit element


class _Moment(NamedTuple):
    """One candidate for the peak."""

    gradients_bytes: float
    activations_bytes: float
    logits_bytes: float
    gathered_bytes: float
    temporary_bytes: float

    @property
    def total_bytes(self) -> float:
        return sum(self)


def training_memory(model: Model, setup: TrainingSetup, layout: ParallelLayout) -> TrainingMemory:
    """Bytes of the fullest accelerator at its peak."""
    check_training(model, setup, layout)
    return checked_memory(model, setup, layout)


def checked_memory(model: Model, setup: TrainingSetup, layout: ParallelLayout) -> TrainingMemory:
    """The same of a layout that is known to divide."""
    found = [_stage_memory(model, setup, layout, stage) for stage in stages(model, layout)]
    return max(found, key=lambda memory: memory.total_bytes)


def memory_range(total_bytes: float) -> tuple[float, float]:
    """Low and high end of the 80 % range around a predicted peak."""
    return LOW_FRAC * total_bytes, HIGH_FRAC * total_bytes


def fit_probability_frac(memory: TrainingMemory, has_bytes: float) -> float:
    """How likely a job fits: what it cannot do without, with the error of measured peaks.

    The allocator gives cached blocks back, so that fragmentation does not count; each side of the
    range is log-normal.
    """
    room = log(has_bytes / memory.least_bytes)
    return NORMAL.cdf(room / (HIGH_SD if room > 0 else LOW_SD))


def likely_bytes(memory: TrainingMemory, probability_frac: float) -> float:
    """What is enough for the job with a probability of at least one half."""
    return memory.least_bytes * exp(HIGH_SD * NORMAL.inv_cdf(probability_frac))


def _stage_memory(
    model: Model, setup: TrainingSetup, layout: ParallelLayout, stage: Stage
) -> TrainingMemory:
    params = stage_params(model, layout, stage)
    shared = _Shares(params, setup, layout)
    moments = _moments(model, setup, layout, stage, params)
    peak = max(moments, key=lambda moment: moment.total_bytes)
    adapters = _adapters_bytes(model, setup, layout)
    parts = {
        "weights_bytes": _weights_bytes(params, setup, layout),
        "master_bytes": shared.of(lambda s: s.master_bytes_per_param, from_stage="zero1"),
        "optimizer_bytes": shared.of(lambda s: s.optimizer_bytes_per_param, from_stage="zero1"),
        "adapters_bytes": adapters,
        **peak._asdict(),
    }
    allocated = sum(parts.values())
    return TrainingMemory(
        **parts,
        fragmentation_bytes=FRAGMENTATION_FRAC * allocated,
        reserve_bytes=_reserve_bytes(layout),
    )


def _reserve_bytes(layout: ParallelLayout) -> float:
    groups = (layout.tp, layout.pp, layout.cp, layout.ep, layout.dp)
    return CONTEXT_BYTES + GROUP_BYTES * sum(n > 1 for n in groups)


class _Shares(NamedTuple):
    """Splits what is sharded: dense parameters over all ranks, experts over fewer."""

    params: StageParams
    setup: TrainingSetup
    layout: ParallelLayout

    def of(self, pick: Callable[[StateBytes], float], *, from_stage: Sharding) -> float:
        """Bytes of one kind of state; frozen bases have none but weights."""
        if self.setup.adapter is not None:
            return 0.0
        return pick(self.setup.states) * self.n_params(is_sharded=self.is_sharded(from_stage))

    def is_sharded(self, from_stage: Sharding) -> bool:
        """The layout shards this kind of state: from this ZeRO stage on."""
        return SHARDINGS.index(self.layout.sharding) >= SHARDINGS.index(from_stage)

    def n_params(self, *, is_sharded: bool) -> float:
        """Parameters on one accelerator, whole or sharded."""
        if not is_sharded:
            return self.params.n_dense + self.params.n_expert
        n = self.layout.n_shards
        return self.params.n_dense / n + self.params.n_expert / max(1, n // self.layout.ep)


def _weights_bytes(params: StageParams, setup: TrainingSetup, layout: ParallelLayout) -> float:
    shares = _Shares(params, setup, layout)
    n_params = shares.n_params(is_sharded=shares.is_sharded("zero3"))
    wide = setup.states.weight_bytes_per_param
    adapter = setup.adapter
    if adapter is None or adapter.base is None:
        return wide * n_params
    n_small = params.n_matrix + params.n_expert + adapter.is_head_quantized * params.n_head
    small_frac = n_small / (params.n_dense + params.n_expert)
    return n_params * (small_frac * adapter.base.stored_bytes + (1 - small_frac) * wide)


def _adapters_bytes(model: Model, setup: TrainingSetup, layout: ParallelLayout) -> float:
    if setup.adapter is None:
        return 0.0
    n_shards = layout.n_shards if layout.sharding == "zero3" else 1
    per_param = setup.adapter.states.total_bytes_per_param
    return adapter_params(model, layout, setup.adapter) * per_param / n_shards


def _moments(
    model: Model,
    setup: TrainingSetup,
    layout: ParallelLayout,
    stage: Stage,
    params: StageParams,
) -> list[_Moment]:
    retained, at_work, last_layer = _activation_bytes(model, setup, layout, stage)
    gradients = _gradients_bytes(model, params, setup, layout)
    persists = setup.execution.has_gradient_buffers or setup.n_micro_batches > 1 or layout.pp > 1
    early = gradients if persists else 0.0
    weights, whole_gradients = _gathered_bytes(model, params, setup, layout)
    working = _working_bytes(model, params, setup, layout)
    logits = _logits_bytes(model, setup, layout) if stage.has_head else 0.0
    at_step = working + _step_bytes(params, setup, layout)
    return [
        _Moment(early, retained, logits, weights, working),
        _Moment(early, retained + at_work, 0.0, weights + whole_gradients, working),
        # The last layer of the backward pass: nothing else is saved any more, all gradients are.
        _Moment(gradients, last_layer, 0.0, weights + whole_gradients, working),
        _Moment(gradients, 0.0, 0.0, 0.0, at_step),
    ]


def _gradients_bytes(
    model: Model, params: StageParams, setup: TrainingSetup, layout: ParallelLayout
) -> float:
    shares = _Shares(params, setup, layout)
    is_sharded = shares.is_sharded("zero2") and not setup.execution.accumulates_unsharded
    if setup.adapter is not None:
        frozen = setup.adapter.frozen_gradient_bytes_per_param
        return frozen * shares.n_params(is_sharded=is_sharded)
    per_param = setup.states.gradient_bytes_per_param
    if setup.execution.steps_in_backward:
        return per_param * max(largest_matrix(model, layout), params.n_head, params.n_input)
    return per_param * shares.n_params(is_sharded=is_sharded)


def _gathered_bytes(
    model: Model, params: StageParams, setup: TrainingSetup, layout: ParallelLayout
) -> tuple[float, float]:
    """Whole weights of the layer at work, of the next and of the tables; whole gradients of one."""
    if layout.sharding != "zero3" or layout.n_shards == 1:
        return 0.0, 0.0
    per_param = setup.states.compute_bytes_per_param
    layer = largest_layer(model, layout)
    if setup.adapter is not None and setup.adapter.base is not None:
        per_param = setup.adapter.base.stored_bytes
    weights = per_param * (2 * layer + params.n_input + params.n_head)
    has_gradients = setup.adapter is None or setup.adapter.frozen_gradient_bytes_per_param > 0
    if not has_gradients or setup.execution.accumulates_unsharded:
        return weights, 0.0
    wide = max(per_param, setup.states.gradient_bytes_per_param)
    return weights, wide * max(layer, params.n_head)


def _working_bytes(
    model: Model, params: StageParams, setup: TrainingSetup, layout: ParallelLayout
) -> float:
    """Communication buckets of ZeRO, and the matrix that is unpacked from four bits."""
    total = 0.0
    if layout.sharding in ("zero1", "zero2") and layout.n_shards > 1:
        # ZeRO-2 fills one bucket while the other is reduced; ZeRO-1 has one.
        n_buckets = 2 if layout.sharding == "zero2" else 1
        elements = min(layout.bucket_elements, params.n_dense + params.n_expert)
        total += n_buckets * elements * setup.states.gradient_bytes_per_param
    if setup.adapter is not None and setup.adapter.base is not None:
        head = params.n_head if setup.adapter.is_head_quantized else 0.0
        total += setup.states.compute_bytes_per_param * max(largest_matrix(model, layout), head)
    return total


def _step_bytes(params: StageParams, setup: TrainingSetup, layout: ParallelLayout) -> float:
    """Temporaries of the optimizer: 32-bit gradients, or the square roots of plain PyTorch."""
    if setup.adapter is not None or setup.execution.steps_in_backward:
        return 0.0
    states = setup.states
    shares = _Shares(params, setup, layout)
    n_params = shares.n_params(is_sharded=shares.is_sharded("zero1"))
    if states.master_bytes_per_param > 0 and states.gradient_bytes_per_param < WIDE:
        return WIDE * n_params
    if setup.execution.kernels == "eager":
        return states.optimizer_bytes_per_param / 2 * n_params
    return 0.0


def _activation_bytes(
    model: Model, setup: TrainingSetup, layout: ParallelLayout, stage: Stage
) -> tuple[float, float, float]:
    """Saved by all micro-batches in flight; what a layer adds at work; one layer in full."""
    n_tokens = setup.micro_batch * setup.sequence_tokens / layout.cp
    hidden = model.main.hidden_size
    retained, at_work, alone = 0.0, 0.0, 0.0
    for group in model.main.groups:
        saved = layer_saved(group, hidden, setup=setup, layout=layout)
        n_layers = group.n_layers * stage.layers_frac
        per_layer = _retained_bytes(saved, setup.execution.recompute)
        retained += n_layers * per_layer
        at_work = max(at_work, saved.whole - min(per_layer, saved.whole) + saved.backward)
        alone = max(alone, saved.whole + saved.backward)
    in_flight = n_in_flight(setup, layout, stage)
    return in_flight * n_tokens * retained, n_tokens * at_work, n_tokens * alone


def _retained_bytes(saved: Saved, recompute: str) -> float:
    if recompute == "full":
        return saved.layer_input
    if recompute == "alternate":
        return min(saved.alternate, saved.others)
    return saved.others if recompute == "selective" else saved.whole


def n_in_flight(setup: TrainingSetup, layout: ParallelLayout, stage: Stage) -> float:
    """Micro-batches whose activations a stage holds at once, in whole stages."""
    n, pp = setup.n_micro_batches, layout.pp
    if pp == 1:
        return 1.0
    if layout.schedule == "v-half":
        resident = pp / 2 + 1
    elif layout.schedule == "v-min":
        resident = pp / 3 + 1
    elif layout.schedule in V_SHAPED:
        resident = float(pp)
    elif layout.n_virtual > 1:
        # Warm-up of the interleaved schedule, counted in chunks [Narayanan2021].
        chunks = 2 * (pp - stage.place - 1) + (layout.n_virtual - 1) * pp + 1
        resident = chunks / layout.n_virtual
    else:
        resident = float(pp - stage.place)
    return min(float(n), resident)


def _logits_bytes(model: Model, setup: TrainingSetup, layout: ParallelLayout) -> float:
    n_tokens = setup.micro_batch * setup.sequence_tokens / layout.cp
    execution = setup.execution
    per_logit = LOSS_BYTES[execution.loss]
    if execution.loss == "chunked" and execution.kernels == "compiled":
        per_logit = COMPILED_CHUNKED_BYTES
    return per_logit * n_tokens * model.embedding.n_vocab / layout.tp
