"""Activations of one layer per token: which tensors autograd keeps, module by module.

Every count was held against PyTorch's own list of saved tensors for Llama-, Phi-, Gemma- and
Falcon-like layers (docs/model/training-memory.md). Bytes are of one tensor-parallel rank.
"""

from typing import NamedTuple

from gpuplan.domain.model.layers import (
    Attention,
    Experts,
    FeedForward,
    LatentAttention,
    LayerGroup,
    Recurrence,
)
from gpuplan.domain.training.setup import Execution, LoRA, ParallelLayout, Target, TrainingSetup

HALF = 2.0  # bytes of a 16-bit element
SINGLE = 4.0  # bytes of a 32-bit element
MASK = 1.0  # bytes of a dropout mask's element
# Softmax in 32 bits and its 16-bit copy [measured: saved tensors of transformers' eager path].
EAGER_SCORE_BYTES = SINGLE + HALF
# Softmax, dropout mask, dropped softmax [Korthikanti2022].
FUSED_SCORE_BYTES = HALF + MASK + HALF
MOST_NORMS = 4


class Saved(NamedTuple):
    """Bytes of one layer per token, by what recompute can drop."""

    layer_input: float
    scores: float  # attention probabilities, where they are written out
    alternate: float  # every second matrix product and the attention output
    others: float
    backward: float  # gradients at work while the layer is differentiated; not kept

    @property
    def whole(self) -> float:
        """All that the backward pass needs."""
        return self.scores + self.others


class _Context(NamedTuple):
    """What every part needs to know."""

    h: int
    tp: int
    norm_tp: int  # ways that norms and residuals are split: sequence parallelism
    sequence_tokens: int
    execution: Execution
    adapter: LoRA | None

    def keeps_input(self, *targets: Target) -> bool:
        """A matrix keeps its input if it, or an adapter at it, learns."""
        if self.adapter is None or self.adapter.n_kept_base_inputs:
            return True
        has_own = self.adapter.has_dropout or self.adapter.input_bytes_per_element > HALF
        return not has_own and any(target in self.adapter.targets for target in targets)

    def adapter_inputs(self, targets: tuple[Target, ...], n_in: float) -> float:
        """Copies of an input that adapters keep for themselves."""
        if self.adapter is None:
            return 0.0
        n_adapted = sum(target in self.adapter.targets for target in targets)
        if self.adapter.has_dropout:
            return n_adapted * n_in * (self.adapter.input_bytes_per_element + MASK)
        if self.adapter.input_bytes_per_element > HALF:
            return n_adapted * n_in * self.adapter.input_bytes_per_element
        return 0.0

    def stale_input(self, n_in: float) -> float:
        """The same input of the step before, where the base's matrices hold on to it."""
        n_kept = self.adapter.n_kept_base_inputs if self.adapter else 0
        return HALF * n_in * max(0, n_kept - 1)


def layer_saved(
    group: LayerGroup, hidden_size: int, *, setup: TrainingSetup, layout: ParallelLayout
) -> Saved:
    """What one layer of the group keeps for each token of the rank."""
    c = _Context(
        h=hidden_size,
        tp=layout.tp,
        norm_tp=layout.tp if layout.has_sequence_parallel else 1,
        sequence_tokens=setup.sequence_tokens,
        execution=setup.execution,
        adapter=setup.adapter,
    )
    mixing, mixed = _mixer_bytes(group, c)
    feeding, feeding_alternate = _feed_bytes(group, c)
    scores = _score_bytes(group, c)
    layer_input = HALF * hidden_size / c.norm_tp
    return Saved(
        layer_input=layer_input,
        scores=scores,
        alternate=layer_input + mixed + feeding_alternate,
        others=_norm_bytes(group, c) + mixing + feeding,
        backward=_backward_bytes(group, c) + 2 * scores,
    )


def _norm_bytes(group: LayerGroup, c: _Context) -> float:
    """Inputs of norms; PyTorch's RMS norm widens them to 32 bits and keeps that."""
    is_layer_norm = _has_layer_norm(group)
    per_norm = 2 * c.h if is_layer_norm else c.h
    n_norms = min(MOST_NORMS, max(1, round(group.n_norm_params / per_norm)))
    if c.execution.kernels != "eager" or is_layer_norm:
        return n_norms * HALF * c.h / c.norm_tp
    learned = HALF if c.adapter is None else 0.0  # the normed value, for the norm's own weight
    return n_norms * (SINGLE + learned) * c.h / c.norm_tp


def _has_layer_norm(group: LayerGroup) -> bool:
    # Gated parts came with RMS norms; ungated ones are of the LayerNorm families.
    return group.feed_forward is not None and not group.feed_forward.is_gated


def _mixer_bytes(group: LayerGroup, c: _Context) -> tuple[float, float]:
    """Kept by attention or recurrence, and the part of it that "alternate" keeps."""
    retained, alternate = 0.0, 0.0
    for mixer in (group.mixer, group.cross):
        if isinstance(mixer, Attention):
            more, half = _attention_bytes(mixer, c)
        elif isinstance(mixer, LatentAttention):
            more, half = _latent_bytes(mixer, c)
        elif isinstance(mixer, Recurrence):
            # Inputs and outputs of the projections around the scan, and of the scan itself.
            more = 2 * HALF * mixer.n_matrix_params / c.h / c.tp
            half = more / 2
        else:
            continue
        retained, alternate = retained + more + _projection_inputs(c), alternate + half
    return retained, alternate


def _projection_inputs(c: _Context) -> float:
    targets: tuple[Target, ...] = ("q", "k", "v")
    shared = HALF * c.h / c.norm_tp if c.keeps_input(*targets) else 0.0
    own = c.adapter_inputs(targets, c.h / c.norm_tp)
    if c.execution.packs_qkv and c.adapter is not None:
        # One packed matrix has one adapter input, however many of its parts are adapted.
        own /= max(1, sum(target in c.adapter.targets for target in targets))
    return shared + own + c.stale_input(c.h / c.norm_tp)


def _attention_bytes(mixer: Attention, c: _Context) -> tuple[float, float]:
    n_heads = mixer.n_heads / c.tp
    n_kv = max(1.0, mixer.n_kv_heads / c.tp)
    is_grouped = mixer.n_kv_heads < mixer.n_heads
    if c.execution.expands_kv:
        n_kv = n_heads
    query, key = n_heads * mixer.qk_head_dim, n_kv * mixer.qk_head_dim
    value, output = n_kv * mixer.v_head_dim, n_heads * mixer.v_head_dim
    retained = HALF * (query + key + value + output) + SINGLE * n_heads
    if c.execution.packs_qkv:
        # The value is a view: it pins the packed product, beside rotated queries and keys.
        retained += 0.0 if is_grouped and c.execution.expands_kv else HALF * (query + key)
        retained += _packed_updates(mixer, c)
    retained += c.adapter_inputs(("o",), output) + c.stale_input(output)
    # Products in order: q, k, v, o, gate, up, down; the odd ones are kept.
    alternate = HALF * (query + value) + HALF * output
    return retained, alternate


def _packed_updates(mixer: Attention, c: _Context) -> float:
    """Low-rank updates that are scattered into a packed product are kept by the scatter."""
    if c.adapter is None:
        return 0.0
    kv = mixer.n_kv_heads * mixer.qk_head_dim
    widths: dict[Target, int] = {"q": mixer.n_heads * mixer.qk_head_dim, "k": kv, "v": kv}
    return HALF * sum(widths[t] for t in c.adapter.targets if t in widths) / c.tp


def _latent_bytes(mixer: LatentAttention, c: _Context) -> tuple[float, float]:
    n_heads = mixer.n_heads / c.tp
    key_dim = mixer.qk_nope_dim + mixer.qk_rope_dim
    latent = (mixer.q_rank or 0) + mixer.kv_rank + mixer.qk_rope_dim
    # Latents are kept before and after their norms.
    retained = (
        HALF * (2 * latent + n_heads * (2 * key_dim + 2 * mixer.v_head_dim)) + SINGLE * n_heads
    )
    return retained, HALF * (latent + n_heads * (key_dim + mixer.v_head_dim))


def _score_bytes(group: LayerGroup, c: _Context) -> float:
    if c.execution.attention == "flash" or not isinstance(group.mixer, Attention):
        return 0.0
    is_eager = c.execution.kernels == "eager"
    per_score = EAGER_SCORE_BYTES if is_eager else FUSED_SCORE_BYTES
    return per_score * group.mixer.n_heads / c.tp * c.sequence_tokens


def _feed_bytes(group: LayerGroup, c: _Context) -> tuple[float, float]:
    """Kept by the feed-forward part, and the part of it that "alternate" keeps."""
    feed = group.feed_forward
    if feed is None:
        return 0.0, 0.0
    if isinstance(feed, FeedForward):
        return _dense_bytes(feed.intermediate_size, c, is_gated=feed.is_gated)
    return _expert_bytes(feed, c)


def _dense_bytes(intermediate_size: int, c: _Context, *, is_gated: bool) -> tuple[float, float]:
    f = intermediate_size / c.tp
    targets: tuple[Target, ...] = ("gate", "up") if is_gated else ("up",)
    retained = c.adapter_inputs(targets, c.h / c.norm_tp) + c.adapter_inputs(("down",), f)
    if c.keeps_input(*targets):
        retained += HALF * c.h / c.norm_tp
    retained += c.stale_input(c.h / c.norm_tp) + c.stale_input(f)
    if c.keeps_input("down"):
        retained += HALF * f
    return retained + _inner_bytes(f, c, is_gated=is_gated), HALF * (f + c.h / c.norm_tp)


def _inner_bytes(f: float, c: _Context, *, is_gated: bool) -> float:
    """Inputs of the non-linearity: both halves of a gate, and the activated one if not fused."""
    if not is_gated:
        return HALF * f
    return HALF * f * (3 if c.execution.kernels == "eager" else 2)


def _expert_bytes(experts: Experts, c: _Context) -> tuple[float, float]:
    """Every token is copied to each expert that works for it; outputs wait to be weighted."""
    inner, half = _dense_bytes(experts.intermediate_size, c, is_gated=experts.is_gated)
    weighted = HALF * c.h / c.norm_tp
    retained = experts.n_active * (inner + weighted) + SINGLE * experts.n_experts
    alternate = experts.n_active * half
    if experts.shared is not None:
        more, shared_half = _dense_bytes(
            experts.shared.intermediate_size, c, is_gated=experts.shared.is_gated
        )
        retained, alternate = retained + more, alternate + shared_half
    return retained, alternate


def _backward_bytes(group: LayerGroup, c: _Context) -> float:
    """Gradients of the widest inner tensors and of the residual, one layer at a time."""
    feed = group.feed_forward
    if feed is None:
        return 3 * HALF * c.h
    n_copies = feed.n_active if isinstance(feed, Experts) else 1
    n_wide = 3 if feed.is_gated else 2
    return HALF * (n_copies * n_wide * feed.intermediate_size / c.tp + 3 * c.h / c.norm_tp)
