"""Inference memory of one replica: weights, peaks, reserves, and what is left for the cache."""

import math

from gpuplan.domain.inference.fit import Deployment
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.serving import (
    EngineSettings,
    InferenceMemory,
    LoraSlots,
    SequenceLoad,
    ServingLayout,
    StorageFormats,
)
from gpuplan.domain.model.layers import Attention, Experts, FeedForward, LatentAttention, LayerGroup
from gpuplan.domain.model.network import Model
from gpuplan.performance.memory import cache, weights
from gpuplan.units import GIB, MIB

# What a runtime takes outside the framework's allocator [measured:vllm-h100-2025]: one rank alone.
CONTEXT_BYTES = 0.13 * GIB
# Communication buffers by ranks in the group [aiconfigurator-systems].
COMMUNICATION_2_RANKS_BYTES = 342 * MIB
COMMUNICATION_MORE_RANKS_BYTES = 392 * MIB
# Captured decode graphs: one workspace per layer and captured size. Assumption: 8 MiB a layer,
# between the -0.9 and +1.0 GiB that engines log around the capture [measured:vllm-h100-2025].
GRAPH_BYTES_PER_LAYER = 8 * MIB
# Tensors of one hidden vector's width alive at once beside the feed-forward part:
# residual, normed input, output.
N_RESIDUAL_COPIES = 3


def setup_memory(setup: ServingSetup, context_tokens: int, n_sequences: int = 1) -> InferenceMemory:
    """Memory of a serving setup with so many sequences of this length."""
    return inference_memory(
        Deployment(
            model=setup.model,
            accelerator=setup.accelerator,
            storage=setup.storage,
            layout=setup.layout,
            engine=setup.settings,
            load=SequenceLoad(context_tokens=context_tokens, n_sequences=n_sequences),
        )
    )


def inference_memory(deployment: Deployment) -> InferenceMemory:
    """Every part of the fullest accelerator's memory, and what is left for the KV cache."""
    model, storage, layout = deployment.model, deployment.storage, deployment.layout
    engine, visible = deployment.engine, deployment.accelerator.memory.visible_bytes
    parts = {
        "weights_bytes": weights.weights_bytes(model, storage, layout),
        "activation_bytes": activation_bytes(model, layout, engine),
        "communication_bytes": communication_bytes(layout),
        "context_bytes": CONTEXT_BYTES,
        "lora_bytes": lora_bytes(model, engine.lora, storage, layout=layout),
    }
    graphs = graphs_bytes(model, layout)
    budget = engine.memory_use_frac * visible
    # Graphs outside the engine's share must still find room beside it.
    taken_by_graphs = graphs if engine.counts_graphs else max(0.0, graphs - (visible - budget))
    one = cache.sequence_bytes(deployment)
    return InferenceMemory(
        visible_bytes=visible,
        budget_bytes=budget,
        graphs_bytes=graphs,
        cache_bytes=budget - sum(parts.values()) - taken_by_graphs,
        sequence_bytes=one,
        block_bytes=cache.block_bytes(deployment),
        needed_bytes=one * math.ceil(deployment.load.n_sequences / layout.dp),
        **parts,
    )


def activation_bytes(model: Model, layout: ServingLayout, engine: EngineSettings) -> float:
    """Peak of the working tensors: the widest layer's forward pass, or sampling."""
    return max(_forward_peak_bytes(model, layout, engine), _sampler_peak_bytes(model, engine))


def _sampler_peak_bytes(model: Model, engine: EngineSettings) -> float:
    # Logits are gathered, so tensor parallelism does not divide this peak.
    n_rows = min(engine.max_sequences, engine.max_batch_tokens)
    has_head = model.embedding.n_head_matrix_params > 0
    return n_rows * model.embedding.n_vocab * engine.sampler_bytes_per_logit * has_head


def _forward_peak_bytes(model: Model, layout: ServingLayout, engine: EngineSettings) -> float:
    widths = [_peak_width(group, layout) for group in model.main.groups]
    width = max(widths, default=0.0) + N_RESIDUAL_COPIES * model.main.hidden_size
    return 2.0 * engine.max_batch_tokens * width  # activations are 16-bit


def _peak_width(group: LayerGroup, layout: ServingLayout) -> float:
    """Elements per token alive at the widest point of one layer."""
    return max(_mixer_width(group, layout), _feed_forward_width(group, layout))


def _mixer_width(group: LayerGroup, layout: ServingLayout) -> float:
    mixer = group.mixer
    if isinstance(mixer, Attention):
        qkv = mixer.n_heads * mixer.qk_head_dim + mixer.n_kv_heads * (
            mixer.qk_head_dim + mixer.v_head_dim
        )
        return (qkv + mixer.n_heads * mixer.v_head_dim) / layout.tp
    if isinstance(mixer, LatentAttention):
        per_head = 2 * (mixer.qk_nope_dim + mixer.qk_rope_dim) + 2 * mixer.v_head_dim
        return mixer.n_heads * per_head / layout.tp
    return 0.0


def _feed_forward_width(group: LayerGroup, layout: ServingLayout) -> float:
    feed = group.feed_forward
    if isinstance(feed, FeedForward):
        return (2 + feed.is_gated) * feed.intermediate_size / layout.tp
    if isinstance(feed, Experts):
        # Each token is copied to every expert it visits.
        expert = (2 + feed.is_gated) * feed.intermediate_size / max(1, layout.tp // layout.ep)
        shared = (2 + feed.is_gated) * (feed.shared.intermediate_size if feed.shared else 0)
        return feed.n_active * expert + shared / layout.tp
    return 0.0


def communication_bytes(layout: ServingLayout) -> float:
    """Buffers of the collectives; one rank alone has none."""
    n_ranks = layout.n_accelerators
    if n_ranks == 1:
        return 0.0
    return COMMUNICATION_2_RANKS_BYTES if n_ranks == 2 else COMMUNICATION_MORE_RANKS_BYTES


def graphs_bytes(model: Model, layout: ServingLayout) -> float:
    """CUDA graphs that are captured for decoding take this much."""
    return GRAPH_BYTES_PER_LAYER * math.ceil(model.main.n_layers / layout.pp)


def lora_bytes(
    model: Model, slots: LoraSlots | None, storage: StorageFormats, *, layout: ServingLayout
) -> float:
    """Adapter slots: two thin matrices beside every projection, in base precision."""
    if slots is None:
        return 0.0
    per_rank = sum(
        g.n_layers * lora_width(g, model.main.hidden_size, layout) for g in model.main.groups
    )
    stage_frac = math.ceil(model.main.n_layers / layout.pp) / model.main.n_layers
    return slots.n_slots * slots.max_rank * per_rank * stage_frac * storage.base.stored_bytes


def lora_width(group: LayerGroup, hidden: int, layout: ServingLayout) -> float:
    """Rows and columns of all adapted projections of one layer, per unit of rank.

    A projection cut by its outputs keeps the input side whole, and the other way round.
    """
    width = 0.0
    mixer, feed, tp = group.mixer, group.feed_forward, layout.tp
    if isinstance(mixer, Attention):
        q, v_out = mixer.n_heads * mixer.qk_head_dim, mixer.n_heads * mixer.v_head_dim
        k, v = mixer.n_kv_heads * mixer.qk_head_dim, mixer.n_kv_heads * mixer.v_head_dim
        width += 3 * hidden + (q + k + v) / tp + v_out / tp + hidden
    if isinstance(feed, FeedForward):
        n_up = 1 + feed.is_gated
        width += n_up * (hidden + feed.intermediate_size / tp)
        width += feed.intermediate_size / tp + hidden
    return width
