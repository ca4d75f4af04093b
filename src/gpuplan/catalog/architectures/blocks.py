"""A plain transformer block, of which encoders and towers are stacks."""

from gpuplan.catalog.architectures.shape import STAND_IN, Fields
from gpuplan.domain.model.layers import Attention, Cache, FeedForward, LayerGroup
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One layer's sizes and which of its parts have biases."""

    hidden: int
    n_heads: int
    inner: int
    head_dim: int | None = None
    n_kv_heads: int | None = None
    bias: str = "qkvom"
    is_gated: bool = False
    norm_terms: int = 2
    n_norms: int = 2
    n_extra_params: int = 0  # layer scales, norms of queries and keys
    is_causal: bool = False

    @property
    def dim(self) -> int:
        """Channels of a head."""
        return self.head_dim or max(1, self.hidden // self.n_heads)


def layers_of(
    block: Block,
    n_layers: int,
    *,
    window: int | None = None,
    cross_tokens: int | None = None,
    has_cross: bool = False,
) -> LayerGroup:
    """Equal layers; with cross-attention each has one more norm and keeps the other's keys."""
    n_norms = block.n_norms + (1 if has_cross else 0)
    return LayerGroup(
        n_layers=n_layers,
        mixer=attention_of(block, window=window),
        cross=attention_of(block, is_causal=False) if has_cross else None,
        feed_forward=_feed(block),
        caches=_caches(block, cross_tokens, has_cross=has_cross),
        n_norm_params=n_norms * block.norm_terms * block.hidden + block.n_extra_params,
    )


def attention_of(
    block: Block, *, window: int | None = None, is_causal: bool | None = None
) -> Attention:
    """The attention of a block."""
    n_kv = block.n_kv_heads or block.n_heads
    q_width, kv_width = block.n_heads * block.dim, n_kv * block.dim
    biases = {"q": q_width, "k": kv_width, "v": kv_width, "o": block.hidden}
    return Attention(
        n_heads=block.n_heads,
        n_kv_heads=n_kv,
        qk_head_dim=block.dim,
        v_head_dim=block.dim,
        n_matrix_params=2 * block.hidden * (q_width + kv_width),
        n_kv_matrix_params=2 * block.hidden * kv_width,
        n_other_params=sum(n for letter, n in biases.items() if letter in block.bias),
        window_tokens=window,
        is_causal=block.is_causal if is_causal is None else is_causal,
    )


def _feed(block: Block) -> FeedForward:
    n_in = 2 if block.is_gated else 1
    bias = n_in * block.inner + block.hidden if "m" in block.bias else 0
    return FeedForward(
        intermediate_size=block.inner,
        is_gated=block.is_gated,
        n_matrix_params=(n_in + 1) * block.hidden * block.inner,
        n_other_params=bias,
    )


def _caches(block: Block, cross_tokens: int | None, *, has_cross: bool) -> tuple[Cache, ...]:
    n_kv = block.n_kv_heads or block.n_heads
    retained = []
    if block.is_causal:
        retained.append(Cache(n_heads=n_kv, elements_per_head=2 * block.dim))
    if has_cross:
        retained.append(
            Cache(
                n_heads=n_kv,
                elements_per_head=2 * block.dim,
                window_tokens=cross_tokens,
                role="cross",
            )
        )
    return tuple(retained)


def checked_heads(f: Fields, hidden: int, *names: str) -> int:
    """Heads that divide the hidden width."""
    heads = f.count(*names)
    if hidden % heads and hidden != STAND_IN:
        f.bad(names[0], f"{heads} heads do not divide {hidden} channels", "fix one of them")
    return heads
