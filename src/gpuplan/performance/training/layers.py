"""What the layers of a network execute in one forward pass on one accelerator.

In: the model's shapes, the tokens of a micro-batch, how they are split. Out: flop, bytes and
counts, before any efficiency. A matrix product of m x k by k x n is 2mnk flop and crosses memory
with m k + k n + m n elements; both halves are kept, so that time is additive in them.
"""

from functools import cache
from typing import NamedTuple

from gpuplan.domain.model.layers import (
    Attention,
    Experts,
    FeedForward,
    LatentAttention,
    LayerGroup,
    Mixer,
    Recurrence,
)
from gpuplan.domain.model.network import Model
from gpuplan.domain.training.setup import LoRA

BYTES_16 = 2.0
# The in-projection of a recurrent mixer is about two thirds of its matrices.
RECURRENT_IN_FRAC = 2 / 3
# Plain attention products whose heads are no multiple of 16 bytes miss the matrix units.
ALIGNED_ELEMENTS = 8
MISALIGNED_RATIO = 8.0


class Split(NamedTuple):
    """How one micro-batch is spread."""

    n_tokens: float  # of one accelerator: micro-batch x sequence / context parallel
    sequence_tokens: float
    tp: int
    ep: int
    sequence_parallel: int  # tp, or 1 where norms see the whole sequence
    operand_bytes: float  # of a matrix operand element
    cast_ratio: float = 0.0  # copies that casting below 16 bits makes, by those of plain 8-bit
    fuses_experts: bool = False  # activation and casts never leave the grouped product
    n_expert_islands: int = 1  # islands that the ranks of one expert group stand in


class Product(NamedTuple):
    """A weight matrix as one rank holds it."""

    n_out: float
    n_in: float
    is_split: bool  # by tensor parallelism


class LayerWork(NamedTuple):
    """One forward pass; sums over layers and over layer groups."""

    matmul_flop: float = 0.0
    matmul_bytes: float = 0.0
    expert_flop: float = 0.0
    expert_bytes: float = 0.0
    flash_flop: float = 0.0
    score_elements: float = 0.0  # of the whole square, where it is materialized
    score_flop: float = 0.0
    scan_flop: float = 0.0
    hidden_bytes: float = 0.0  # one crossing of the hidden vector
    inner_bytes: float = 0.0
    routed_bytes: float = 0.0
    cast_elements: float = 0.0
    n_params: float = 0.0  # matrix parameters of this rank
    n_layers: float = 0.0
    n_expert_layers: float = 0.0
    n_local_experts: float = 0.0  # summed over layers
    kv_bytes: float = 0.0  # keys and values of the micro-batch: what context parallelism passes on
    all_to_all_bytes: float = 0.0  # of one dispatch or combine, sent by this rank to all ranks
    far_bytes: float = 0.0  # the same towards scale-up domains, each token once per domain
    n_tp_reductions: float = 0.0

    def plus(self, other: "LayerWork", times: float = 1.0) -> "LayerWork":
        """The sum, with the other taken several times."""
        return LayerWork(*[a + times * b for a, b in zip(self, other, strict=True)])


def forward_work(model: Model, split: Split) -> LayerWork:
    """All layers of the main stack, one micro-batch."""
    total = LayerWork()
    for group in model.main.groups:
        total = total.plus(layer_work(group, model.main.hidden_size, split), group.n_layers)
    return total


def layer_work(group: LayerGroup, hidden: int, split: Split) -> LayerWork:
    """One layer of the group."""
    work = _mixer_work(group.mixer, hidden, split) if group.mixer else LayerWork()
    if group.cross is not None:
        work = work.plus(_mixer_work(group.cross, hidden, split))
    feed = group.feed_forward
    if isinstance(feed, Experts):
        work = work.plus(_expert_work(feed, hidden, split))
    elif feed is not None:
        work = work.plus(_feed_work(feed, hidden, split))
    n_blocks = (group.mixer is not None) + (group.cross is not None) + (feed is not None)
    # A layer with one block alone is half of a common layer: hybrids count them so.
    share = n_blocks / 2
    hidden_bytes = share * BYTES_16 * split.n_tokens * hidden / split.sequence_parallel
    return work._replace(hidden_bytes=hidden_bytes, n_layers=share, n_tp_reductions=float(n_blocks))


def head_work(model: Model, split: Split) -> LayerWork:
    """The products with the output table."""
    head = model.embedding.n_head_matrix_params
    hidden = model.main.hidden_size
    product = Product(head / hidden, hidden, is_split=True)
    return _products((product,), split._replace(operand_bytes=BYTES_16, cast_ratio=0.0))


@cache
def mixer_products(mixer: Mixer, hidden: int) -> tuple[Product, ...]:
    """The weight matrices of a mixer, fused as training frameworks fuse them."""
    if isinstance(mixer, Recurrence):
        inner = mixer.n_matrix_params / hidden
        n_in = RECURRENT_IN_FRAC * inner
        return (Product(n_in, hidden, is_split=True), Product(hidden, inner - n_in, is_split=True))
    if isinstance(mixer, LatentAttention):
        return _latent_products(mixer, hidden)
    n_queries = mixer.n_heads * mixer.qk_head_dim
    n_kv = mixer.n_kv_heads * (mixer.qk_head_dim + mixer.v_head_dim)
    out = Product(hidden, mixer.n_heads * mixer.v_head_dim, is_split=True)
    return (Product(n_queries + n_kv, hidden, is_split=True), out)


def _latent_products(mixer: LatentAttention, hidden: int) -> tuple[Product, ...]:
    n_queries = mixer.n_heads * (mixer.qk_nope_dim + mixer.qk_rope_dim)
    n_kv = mixer.n_heads * (mixer.qk_nope_dim + mixer.v_head_dim)
    down = mixer.kv_rank + mixer.qk_rope_dim + (mixer.q_rank or 0)
    return (
        Product(down, hidden, is_split=False),
        Product(n_queries, mixer.q_rank or hidden, is_split=True),
        Product(n_kv, mixer.kv_rank, is_split=True),
        Product(hidden, mixer.n_heads * mixer.v_head_dim, is_split=True),
    )


def feed_products(feed: FeedForward | Experts, hidden: int) -> tuple[Product, ...]:
    """Up and gate as one product, then down."""
    n_inner = feed.intermediate_size
    n_up = 2 * n_inner if feed.is_gated else n_inner
    return (Product(n_up, hidden, is_split=True), Product(hidden, n_inner, is_split=True))


def _mixer_work(mixer: Mixer, hidden: int, split: Split) -> LayerWork:
    products = mixer_products(mixer, hidden)
    work = _products(products, split)
    n_projected = sum(p.n_out for p in products[:-1]) / split.tp
    work = work._replace(inner_bytes=BYTES_16 * split.n_tokens * n_projected)
    if isinstance(mixer, Recurrence):
        return work._replace(scan_flop=mixer.scan_flop_per_token * split.n_tokens / split.tp)
    return work._replace(**_attention(mixer, split))


def _attention(mixer: Attention | LatentAttention, split: Split) -> dict[str, float]:
    heads = mixer.n_heads / split.tp
    if isinstance(mixer, LatentAttention):
        qk, n_kv = mixer.qk_nope_dim + mixer.qk_rope_dim, mixer.n_heads
    else:
        qk, n_kv = mixer.qk_head_dim, mixer.n_kv_heads
    width = qk + mixer.v_head_dim
    observed = mean_attended_tokens(mixer, split.sequence_tokens)
    # Narrow heads feed the matrix units worse: 64 costs 4/3 of 128 per flop [Dao2023].
    narrow = (1.0 + 64.0 / (width / 2)) / 1.5
    square = split.n_tokens * split.sequence_tokens * heads
    return {
        "flash_flop": 2.0 * width * split.n_tokens * observed * heads * narrow,
        "score_flop": 2.0 * width * square * (MISALIGNED_RATIO if qk % ALIGNED_ELEMENTS else 1),
        "score_elements": square,
        "kv_bytes": BYTES_16 * split.n_tokens * n_kv / split.tp * width,
    }


def mean_attended_tokens(mixer: Attention | LatentAttention, sequence_tokens: float) -> float:
    """Tokens that a query sees on average: half of the square when causal, less in a window."""
    is_causal = not isinstance(mixer, Attention) or mixer.is_causal
    limits = [n for n in (mixer.window_tokens, mixer.selected_tokens) if n is not None]
    window = min([sequence_tokens, *limits])
    if not is_causal:
        return window
    return window - window * window / (2.0 * sequence_tokens)


def _feed_work(feed: FeedForward, hidden: int, split: Split) -> LayerWork:
    products = feed_products(feed, hidden)
    inner = BYTES_16 * split.n_tokens * (products[0].n_out + feed.intermediate_size) / 2 / split.tp
    return _products(products, split)._replace(inner_bytes=inner)


def _expert_work(feed: Experts, hidden: int, split: Split) -> LayerWork:
    n_local = feed.n_experts / split.ep
    n_routed = split.n_tokens * feed.n_active
    width = expert_width(feed, hidden)
    per_expert = split._replace(n_tokens=n_routed / n_local)
    products = feed_products(feed, width)
    one = _products(products, per_expert)
    dense = _feed_work(feed.shared, hidden, split) if feed.shared else LayerWork()
    dense = dense.plus(_narrowing(hidden, width, split))
    router = 2.0 * split.n_tokens * feed.n_router_params / split.sequence_parallel
    wide = BYTES_16 * n_routed * (products[0].n_out + feed.intermediate_size) / 2 / split.tp
    apart = 0.0 if split.fuses_experts and feed.is_gated else 1.0
    sent = BYTES_16 * split.n_tokens * width / split.tp
    return dense._replace(
        expert_flop=n_local * one.matmul_flop,
        expert_bytes=n_local * one.matmul_bytes,
        matmul_flop=dense.matmul_flop + router,
        inner_bytes=dense.inner_bytes + apart * wide,
        routed_bytes=BYTES_16 * n_routed * width / split.tp,
        cast_elements=dense.cast_elements + apart * n_local * one.cast_elements,
        n_params=dense.n_params + n_local * one.n_params,
        n_expert_layers=1.0,
        n_local_experts=n_local,
        all_to_all_bytes=sent * feed.n_active,
        far_bytes=sent * n_reached(feed.n_active, split.n_expert_islands),
    )


def expert_width(feed: Experts, hidden: int) -> int:
    """What an expert reads and writes: the hidden size, or less where tokens are narrowed first."""
    n_matrices = 3 if feed.is_gated else 2
    return min(hidden, round(feed.n_expert_matrix_params / (n_matrices * feed.intermediate_size)))


def _narrowing(hidden: int, width: int, split: Split) -> LayerWork:
    """Products into and out of the narrower width of latent experts, before anything is sent."""
    if width >= hidden:
        return LayerWork()
    mine = split._replace(n_tokens=split.n_tokens / split.sequence_parallel)
    down, up = Product(width, hidden, is_split=False), Product(hidden, width, is_split=False)
    return _products((down, up), mine)


def n_reached(n_active: int, n_places: int) -> float:
    """Places that a token is sent to: two of its experts in one place cost one copy [DeepEP]."""
    return float(n_places * (1.0 - (1.0 - 1.0 / n_places) ** n_active))


def _products(products: tuple[Product, ...], split: Split) -> LayerWork:
    flop = n_bytes = n_params = cast = 0.0
    m = split.n_tokens
    for product in products:
        weights = product.n_out * product.n_in
        # Column then row split: the wide side is divided, the hidden side is not.
        tp = split.tp if product.is_split else 1
        flop += 2.0 * m * weights / tp
        touched = m * (product.n_in + product.n_out) * (1 + 1 / tp) / 2
        n_bytes += split.operand_bytes * (touched / 2 + weights / tp) + BYTES_16 * touched / 2
        n_params += weights / tp
        cast += touched
    cast *= split.cast_ratio
    return LayerWork(matmul_flop=flop, matmul_bytes=n_bytes, n_params=n_params, cast_elements=cast)


class AdapterWork(NamedTuple):
    """Low-rank adapters of all layers, one forward pass."""

    n_params: float
    flop: float
    touched_bytes: float  # inputs and outputs of the adapted products, once


def adapter_work(model: Model, adapter: LoRA, split: Split) -> AdapterWork:
    """Two thin products beside every adapted one."""
    n_params = touched = 0.0
    hidden = model.main.hidden_size
    share = {"attention": _share(adapter, ("q", "k", "v", "o"))}
    share["feed"] = _share(adapter, ("gate", "up", "down"))
    for group in model.main.groups:
        parts = [(mixer_products(group.mixer, hidden), share["attention"])] if group.mixer else []
        if group.feed_forward is not None:
            parts.append((feed_products(group.feed_forward, hidden), share["feed"]))
        for products, adapted in parts:
            sides = sum(p.n_in + p.n_out for p in products)
            n_params += group.n_layers * adapted * adapter.rank * sides
            touched += group.n_layers * adapted * sides
    n_tokens = split.n_tokens / split.tp
    return AdapterWork(
        n_params=n_params,
        flop=2.0 * n_tokens * n_params,
        touched_bytes=BYTES_16 * n_tokens * touched,
    )


def _share(adapter: LoRA, targets: tuple[str, ...]) -> float:
    return sum(target in adapter.targets for target in targets) / len(targets)
