"""Time of a training step: arithmetic on a basis of seconds and on the constants, nothing else.

`step_parts` takes a single configuration, a column of configurations or a column of constants:
numbers and numpy arrays go through the same lines.
"""

from dataclasses import replace
from typing import NamedTuple, get_args

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.layers import LatentAttention, Recurrence
from gpuplan.domain.model.network import Model
from gpuplan.domain.training.setup import ParallelLayout, TrainingSetup
from gpuplan.domain.training.time import Cause, Fabric, TrainingConstants, TrainingStep
from gpuplan.performance.training.basis import (
    StepBasis,
    peak_flop_per_s,
    recomputed_fracs,
    step_basis,
)
from gpuplan.performance.training.layers import mean_attended_tokens

CAUSES: tuple[Cause, ...] = get_args(Cause)
RACE = 4.0  # exponent of the soft maximum of compute and the traffic that hides behind it
TINY_S = 1e-30


class Flops(NamedTuple):
    """Arithmetic of one token, forward and backward."""

    model_flop: float
    hardware_flop: float


class StageParts(NamedTuple):
    """One micro-batch on one stage, forward, backward and what is computed again."""

    matmul_s: float
    mixer_s: float
    other_s: float
    host_s: float
    tp_s: float
    ep_s: float
    cp_s: float

    @property
    def total_s(self) -> float:
        """The micro-batch as a whole on one stage."""
        return sum(self)


def training_step(
    model: Model,
    accelerator: Accelerator,
    setup: TrainingSetup,
    layout: ParallelLayout,
    fabric: Fabric,
    constants: TrainingConstants,
) -> TrainingStep:
    """Step time, throughput, MFU and HFU, with the step by cause."""
    basis = step_basis(model, accelerator, setup, layout=layout, fabric=fabric)
    parts = step_parts(basis, constants)
    step_s = sum(parts)
    n = layout.n_accelerators
    tokens = setup.micro_batch * setup.sequence_tokens * setup.n_micro_batches * layout.dp
    rate = tokens / step_s / n
    flop = token_flop(model, setup)
    peak = peak_flop_per_s(accelerator, setup.execution.compute)
    return TrainingStep(
        step_s=step_s,
        tokens_per_s_per_accelerator=rate,
        mfu_frac=rate * flop.model_flop / peak,
        hfu_frac=rate * flop.hardware_flop / peak,
        parts_s=tuple(zip(CAUSES, parts, strict=True)),
        n_accelerators=n,
        tokens_per_step=float(tokens),
    )


def network_bytes_per_step(
    model: Model,
    accelerator: Accelerator,
    setup: TrainingSetup,
    *,
    layout: ParallelLayout,
    fabric: Fabric,
) -> float:
    """Bytes that one rank sends in a step over its share of the NICs, hidden or not.

    The same collectives where a NIC carries a byte a second and costs nothing else: their seconds
    are bytes, beside which the seconds inside a scale-up domain are nothing.
    """
    free = replace(
        fabric.outside.ring, launch_s=0.0, alpha_s=0.0, rate_frac=1.0, copy_frac=0.0, ramp_s=0.0
    )
    outside = replace(
        fabric.outside, bytes_per_s=1.0, contended_frac=1.0, ring=free, pairwise=free, switch=None
    )
    slow = replace(fabric, outside=outside)
    basis = step_basis(model, accelerator, setup, layout=layout, fabric=slow)
    link, passes = basis.link, basis.passes
    far = (2.0 + passes.matmul_again_frac) * (link.tp_far_s + link.ep_far_s)
    far += (2.0 + passes.mixer_again_frac) * link.cp_s + link.fsdp_s + link.p2p_s
    return basis.schedule.n_micro_batches * far + link.dp_s


def token_flop(model: Model, setup: TrainingSetup) -> Flops:
    """Model and hardware arithmetic per token; attention as the causal half."""
    matrices = 2.0 * sum(g.n_active_matrix_params for g in model.main.groups)
    head = 2.0 * model.embedding.n_head_matrix_params
    mixing = mixing_flop(model, setup.sequence_tokens)
    forward = matrices + mixing + head
    # Frozen weights get no gradient: half of the backward products fall away.
    backward = 2.0 * forward if setup.adapter is None else matrices + head + 2.0 * mixing
    again = recomputed_fracs(setup.execution)
    recomputed = again[0] * matrices + again[1] * mixing
    return Flops(forward + backward, forward + backward + recomputed)


def published_flop(model: Model, setup: TrainingSetup) -> float:
    """Arithmetic per token as most tables count it: the whole square of attention, no recompute."""
    matrices = sum(g.n_active_matrix_params for g in model.main.groups)
    head = model.embedding.n_head_matrix_params
    return 6.0 * (matrices + head) + 6.0 * mixing_flop(model, setup.sequence_tokens)


def mixing_flop(model: Model, sequence_tokens: float) -> float:
    """Attention and recurrence of one token, averaged over its place in the sequence."""
    total = 0.0
    for group in model.main.groups:
        mixer = group.mixer
        if mixer is None:
            continue
        if isinstance(mixer, Recurrence):
            total += group.n_layers * mixer.scan_flop_per_token
            continue
        if isinstance(mixer, LatentAttention):
            qk = mixer.qk_nope_dim + mixer.qk_rope_dim
        else:
            qk = mixer.qk_head_dim
        observed = mean_attended_tokens(mixer, sequence_tokens)
        total += group.n_layers * 2.0 * mixer.n_heads * (qk + mixer.v_head_dim) * observed
    return total


def step_parts(basis: StepBasis, constants: TrainingConstants) -> tuple[float, ...]:
    """Seconds of one step by cause, in the order of CAUSES."""
    schedule, link = basis.schedule, constants.link
    stage = stage_parts(basis, constants)
    head_matmul, head_other = head_parts(basis, constants)
    n = schedule.n_micro_batches
    stage_s = stage.total_s
    slowest = n * schedule.slowest_ratio
    headed = n * schedule.head_frac
    paced_s = schedule.slowest_ratio * stage_s + schedule.head_frac * (head_matmul + head_other)
    fsdp_s = link.fsdp_ratio * basis.link.fsdp_s
    raced_s = race_s(paced_s, fsdp_s) - paced_s + link.fsdp_interference_frac * fsdp_s
    dp_s = link.dp_ratio * basis.link.dp_s
    hiding_s = link.dp_overlap_frac * schedule.n_hiding * paced_s
    exposed_dp_s = race_s(hiding_s, dp_s) - hiding_s
    p2p_s = link.p2p_exposed_ratio * basis.link.p2p_s
    parts = (
        slowest * stage.matmul_s + headed * head_matmul,
        slowest * stage.mixer_s,
        slowest * stage.other_s + headed * head_other,
        slowest * stage.host_s + constants.host.step_s,
        slowest * stage.tp_s,
        slowest * stage.ep_s,
        slowest * stage.cp_s,
        schedule.n_fill * stage_s,
        (n + schedule.n_fill) * p2p_s,
        n * raced_s + exposed_dp_s,
        constants.traffic.optimizer_bytes_per_param * schedule.optimizer_s_per_byte,
    )
    busy_s = sum(parts)
    input_s = race_s(busy_s, schedule.input_s, 8.0) - busy_s
    stragglers_s = constants.whole.straggler_frac * schedule.n_node_doublings * busy_s
    return (*parts, input_s, stragglers_s)


def stage_parts(basis: StepBasis, constants: TrainingConstants) -> StageParts:
    """One micro-batch on an average stage; the host shows where it is slower than the device."""
    passes, link = basis.passes, constants.link
    again = passes.matmul_again_frac
    matmul_s = _matmul_s(basis, constants)
    mixer_s = _mixer_s(basis, constants)
    other_s = _other_s(basis, constants)
    tp_s = (2.0 + again) * (
        link.tp_exposed_ratio * basis.link.tp_s
        + link.tp_far_ratio * basis.link.tp_far_s
        + link.tp_call_s * basis.link.n_tp_calls
    )
    ep_s = (2.0 + again) * (
        link.ep_exposed_ratio * basis.link.ep_s + link.ep_far_ratio * basis.link.ep_far_s
    )
    cp_s = (2.0 + passes.mixer_again_frac) * link.cp_exposed_ratio * basis.link.cp_s
    device_s = matmul_s + mixer_s + other_s + tp_s + ep_s + cp_s
    hosted_s = _host_s(basis, constants)
    host_s = race_s(device_s, hosted_s, constants.host.sharpness_ratio) - device_s
    return StageParts(matmul_s, mixer_s, other_s, host_s, tp_s, ep_s, cp_s)


def head_parts(basis: StepBasis, constants: TrainingConstants) -> tuple[float, float]:
    """Products with the output table, and the loss, of one micro-batch."""
    matmul, head = constants.matmul, basis.head
    n_passes = 1.0 + basis.passes.backward_ratio
    reach = matmul.best16_frac * matmul.reach16_ratio
    product_s = n_passes * (head.matmul_s / reach + matmul.operand_ratio * head.operand_s)
    loss_s = constants.traffic.logit_bytes * head.logits_s_per_byte
    overall = constants.whole.overall_ratio
    return overall * product_s, overall * loss_s


def _matmul_s(basis: StepBasis, constants: TrainingConstants) -> float:
    device, passes, matmul = basis.device, basis.passes, constants.matmul
    reach16 = matmul.best16_frac * matmul.reach16_ratio
    reach8 = matmul.best8_frac * matmul.reach8_ratio
    reach4 = matmul.best4_frac * matmul.reach4_ratio
    dense_s = (
        device.matmul16_s / reach16
        + device.matmul8_s / reach8
        + device.matmul4_s / reach4
        + matmul.operand_ratio * device.operand_s
    )
    grouped_s = (
        device.expert16_s / reach16 + device.expert8_s / reach8 + device.expert4_s / reach4
    ) / matmul.grouped_ratio + (
        matmul.operand_ratio * matmul.grouped_operand_ratio * device.expert_operand_s
    )
    n_passes = 1.0 + passes.backward_ratio + passes.matmul_again_frac
    products_s = n_passes * (dense_s + constants.whole.imbalance_ratio * grouped_s)
    # Adapters are trained, so that they get all three products.
    adapters_s = (3.0 + passes.matmul_again_frac) * device.adapter_flop_s / reach16
    unpacked_s = (2.0 + passes.matmul_again_frac) * matmul.dequantize_ratio * device.dequantize_s
    return constants.whole.overall_ratio * (
        products_s
        + adapters_s
        + unpacked_s
        + constants.traffic.accumulate_bytes_per_param * device.gradient_s_per_byte
    )


def _mixer_s(basis: StepBasis, constants: TrainingConstants) -> float:
    device, mixer = basis.device, constants.mixer
    again = basis.passes.mixer_again_frac
    flash_s = device.flash_s / mixer.flash_frac * (1.0 + mixer.flash_backward_ratio + again)
    math_s = device.math_s / mixer.math_frac + mixer.math_bytes_per_score * device.score_s_per_byte
    scan_s = device.scan_s / mixer.scan_frac
    return constants.whole.overall_ratio * (flash_s + (3.0 + again) * (math_s + scan_s))


def _other_s(basis: StepBasis, constants: TrainingConstants) -> float:
    device, traffic = basis.device, constants.traffic
    forward_s = (
        traffic.hidden_passes_ratio * device.hidden_s
        + traffic.inner_passes_ratio * device.inner_s
        + traffic.expert_passes_ratio * device.routed_s
        + traffic.adapter_passes_ratio * device.adapter_s
    )
    again = basis.passes.other_again_frac
    cast_s = traffic.cast_bytes * device.cast_s_per_byte * (3.0 + basis.passes.matmul_again_frac)
    return constants.whole.overall_ratio * ((3.0 + again) * forward_s + cast_s)


def _host_s(basis: StepBasis, constants: TrainingConstants) -> float:
    host, counts = constants.host, basis.host
    n_plain = counts.n_layers - counts.n_expert_layers
    layers_s = host.layer_s * (n_plain + host.expert_layer_ratio * counts.n_expert_layers)
    experts_s = host.local_expert_s * counts.n_local_experts
    return (2.0 + basis.passes.other_again_frac) * (layers_s + experts_s)


def race_s(a: float, b: float, sharpness: float = RACE) -> float:
    """A maximum with a soft corner: two things that run beside each other."""
    # Scaled, so that microseconds to the fourth power do not vanish.
    largest = a + b + TINY_S
    powers = (a / largest) ** sharpness + (b / largest) ** sharpness
    soft: float = largest * powers ** (1.0 / sharpness)
    return soft
