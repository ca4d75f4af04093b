"""What one iteration exchanges between ranks, and how many operators and passes it takes."""

from gpuplan.domain.hardware.links import LinkModel
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.layers import (
    Attention,
    Experts,
    FeedForward,
    LatentAttention,
    LayerGroup,
    Recurrence,
)
from gpuplan.domain.model.network import Model
from gpuplan.performance.collectives import (
    all_reduce_terms,
    all_to_all_curve,
    point_to_point_time_s,
)
from gpuplan.performance.kernels.curves import Curve
from gpuplan.performance.kernels.step import (
    Exchange,
)
from gpuplan.performance.memory.weights import expert_ways

HALF_BYTES = 2.0  # activations travel in 16 bits
# Reads and writes of one layer, in widths of what passes. Counted, not fitted: two norms with
# residual (2 each where fused), inputs and outputs of four matrix products (4).
N_HIDDEN_PASSES = 8.0
N_HEAD_PASSES = 4.0  # projections write, rotary reads and writes, attention or projection reads
N_INNER_PASSES = 4.0  # gate and up written, read; their product stays in the fused kernel
N_EXPERT_PASSES = 3.0  # copied to the expert, written, summed
# Kernels that a layer launches beside its matrix products: norms, rotary with cache write,
# attention; counted on the engines' own traces.
N_NORM_OPERATORS = 2
N_ATTENTION_OPERATORS = 4  # projections in, rotary, attention, projection out
N_LATENT_OPERATORS = 9  # two down- and two up-projections, two absorbed products, the rest as above
# Of an indexer: queries, keys, weights, norm, rotary, 8-bit write, scores, choice [DeepSeek-V3.2].
N_INDEX_OPERATORS = 8
N_RECURRENCE_OPERATORS = 6
N_DENSE_OPERATORS = 3  # up (and gate), activation, down
N_EXPERT_OPERATORS = 5  # router with its choice, sort, two products (activation within), sum


def exchange_work(model: Model, layout: ServingLayout, link: LinkModel) -> Exchange:
    """Collectives, hops between stages, operators and activation bytes of one iteration."""
    stack, groups = model.main, model.main.groups
    feeds = [(g.n_layers, g.feed_forward) for g in groups]
    n_mixers = sum(g.n_layers for g in groups if g.mixer is not None)
    n_dense = sum(n for n, feed in feeds if isinstance(feed, FeedForward))
    routed = [(n, feed) for n, feed in feeds if isinstance(feed, Experts)]
    n_routed = sum(n for n, _ in routed)
    is_expert_parallel = layout.dp > 1 and layout.ep > 1
    n_active = max((feed.n_active for _, feed in routed), default=0)
    return Exchange(
        n_reduces=0.0
        if layout.tp == 1
        else float(n_mixers + n_dense + (0 if is_expert_parallel else n_routed)),
        n_norm_reduces=0.0
        if layout.tp == 1
        else float(
            sum(
                g.n_layers
                for g in groups
                if isinstance(g.mixer, Attention) and g.mixer.is_normed_across_heads
            )
        ),
        reduce=all_reduce_terms(layout.tp, link),
        n_dispatches=2.0 * n_routed if is_expert_parallel else 0.0,
        dispatch=all_to_all_curve(layout.ep if is_expert_parallel else 1, link),
        # A token goes once to every rank that holds one of its experts, and comes back.
        n_dispatch_copies=float(min(n_active, layout.ep)) if is_expert_parallel else 0.0,
        n_stage_hops=float(layout.pp - 1),
        stage=point_to_point_curve(link),
        vector_bytes=HALF_BYTES * stack.hidden_size,
        link_bytes_per_s=link.bytes_per_s,
        n_operators=float(sum(g.n_layers * _n_operators(g) for g in groups)),
        activation_bytes=sum(
            g.n_layers * HALF_BYTES * _passed_width(g, stack.hidden_size, layout) for g in groups
        ),
    )


def point_to_point_curve(link: LinkModel) -> Curve:
    """From pipeline stage to stage; vectors are small, so two points tell the line."""
    start_s = point_to_point_time_s(0.0, link)
    return Curve(start_s, (point_to_point_time_s(1e6, link) - start_s) / 1e6, 0.0, 1.0)


def _passed_width(group: LayerGroup, hidden_size: int, layout: ServingLayout) -> float:
    """Elements per token that one layer reads and writes beside weights and cache."""
    mixer, feed, tp = group.mixer, group.feed_forward, layout.tp
    width = N_HIDDEN_PASSES * hidden_size
    if isinstance(mixer, Attention):
        heads = mixer.n_heads * mixer.qk_head_dim + 2 * mixer.n_kv_heads * mixer.qk_head_dim
        width += N_HEAD_PASSES * heads / tp
    elif isinstance(mixer, LatentAttention):
        width += N_HEAD_PASSES * mixer.n_heads * (mixer.qk_nope_dim + mixer.v_head_dim) / tp
    elif isinstance(mixer, Recurrence):
        width += 2 * N_HEAD_PASSES * hidden_size / tp
    if isinstance(feed, FeedForward):
        width += N_INNER_PASSES * feed.intermediate_size / tp
    elif isinstance(feed, Experts):
        inner = N_INNER_PASSES * feed.n_active * feed.intermediate_size
        copies = N_EXPERT_PASSES * feed.n_active * hidden_size
        width += (inner + copies) * layout.dp / expert_ways(layout)
        width += N_INNER_PASSES * (feed.shared.intermediate_size if feed.shared else 0) / tp
    return width


def _n_operators(group: LayerGroup) -> int:
    """Kernels that one layer launches."""
    mixer, feed = group.mixer, group.feed_forward
    n = N_NORM_OPERATORS
    if isinstance(mixer, Attention):
        n += N_ATTENTION_OPERATORS
    elif isinstance(mixer, LatentAttention):
        n += N_LATENT_OPERATORS
        n += N_INDEX_OPERATORS if any(cache.n_index_heads for cache in group.caches) else 0
    elif isinstance(mixer, Recurrence):
        n += N_RECURRENCE_OPERATORS
    if isinstance(feed, FeedForward):
        n += N_DENSE_OPERATORS
    elif isinstance(feed, Experts):
        n += N_EXPERT_OPERATORS + (N_DENSE_OPERATORS if feed.shared else 0)
    return n
