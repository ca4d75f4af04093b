"""What a network is made of: mixers, feed-forward parts, and what a layer keeps of a sequence.

Shapes are kept beside the parameter counts: counts size the memory, shapes size the time.
"Matrix" parameters multiply activations (2 flop each per token, and quantizable);
"other" parameters are norms, biases, convolutions, sinks: small, 16- or 32-bit, replicated.
"""

from typing import Literal

from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Key-value cache of one layer: grows with the sequence up to its window."""

    n_heads: int  # unit of tensor-parallel sharding; 1 = every rank holds it whole
    elements_per_head: int  # key and value together, per entry
    tokens_per_entry: int = 1  # compressed attention keeps one entry for several tokens
    window_tokens: int | None = None  # None: the whole context
    is_chunked: bool = False  # the window is a chunk of local attention, which does not slide
    fixed_element_bytes: float | None = None  # None: follows the cache precision
    role: Literal["kv", "indexer", "cross"] = "kv"
    n_index_heads: int = 0  # of an indexer: heads that score every entry, on every rank

    @property
    def elements_per_token(self) -> float:
        """Elements that one more token adds while it is inside the window."""
        return self.n_heads * self.elements_per_head / self.tokens_per_entry


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Recurrent state of one layer: the same size at any context."""

    n_heads: int  # unit of tensor-parallel sharding
    n_elements: int
    element_bytes: float  # state precision is the model's, not the cache's


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Softmax attention over heads; multi-head and multi-query are the ends of grouped-query."""

    n_heads: int
    n_kv_heads: int
    qk_head_dim: int
    v_head_dim: int
    n_matrix_params: int
    n_kv_matrix_params: int  # share of the above that makes keys and values
    n_other_params: int = 0
    window_tokens: int | None = None
    is_causal: bool = True
    is_normed_across_heads: bool = False  # ranks that share the heads must add up their squares
    selected_tokens: int | None = None  # sparse attention reads this many past tokens at most


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are unpacked from one small vector per token."""

    n_heads: int
    q_rank: int | None
    kv_rank: int
    qk_nope_dim: int
    qk_rope_dim: int
    v_head_dim: int
    n_matrix_params: int
    n_down_matrix_params: int  # share of the above that tensor parallelism cannot split
    n_other_params: int = 0
    selected_tokens: int | None = None  # sparse attention reads this many past tokens at most
    window_tokens: int | None = None
    # Above 1, one entry stands for several tokens, and the window is seen beside the entries.
    tokens_per_entry: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """Constant-state mixers: state-space, linear attention, gated delta rule, short convolution."""

    kind: str  # mamba1, mamba2, gated-delta, kda, lightning, rwkv, short-conv …
    n_heads: int
    scan_flop_per_token: float  # arithmetic of the recurrence itself, beyond the matrices
    n_matrix_params: int
    n_other_params: int = 0


Mixer = Attention | LatentAttention | Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """Dense feed-forward part."""

    intermediate_size: int
    is_gated: bool
    n_matrix_params: int
    n_other_params: int = 0

    @property
    def n_active_matrix_params(self) -> int:
        """All of it, for every token."""
        return self.n_matrix_params


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Mixture of experts: all are resident, a few work for each token."""

    n_experts: int
    n_active: int
    intermediate_size: int
    is_gated: bool
    n_expert_matrix_params: int  # of one routed expert
    n_expert_other_params: int = 0  # of one routed expert
    n_router_params: int = 0
    shared: FeedForward | None = None  # experts that every token passes
    n_other_params: int = 0

    @property
    def n_matrix_params(self) -> int:
        """Routed and shared, resident."""
        return self.n_experts * self.n_expert_matrix_params + self._n_shared_params

    @property
    def n_active_matrix_params(self) -> int:
        """What one token multiplies with, router included."""
        routed = self.n_active * self.n_expert_matrix_params
        return routed + self._n_shared_params + self.n_router_params

    @property
    def _n_shared_params(self) -> int:
        return self.shared.n_matrix_params if self.shared else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Equal layers; a network is a list of groups, in order of kind, not of depth."""

    n_layers: int
    mixer: Mixer | None = None
    cross: Attention | None = None  # attention over another stack's output
    feed_forward: FeedForward | Experts | None = None
    caches: tuple[Cache, ...] = ()
    states: tuple[State, ...] = ()
    n_norm_params: int = 0

    @property
    def n_params(self) -> int:
        """Parameters of all layers of the group."""
        return self.n_layers * (self._n_matrix(is_active=False) + self._n_other(is_active=False))

    @property
    def n_active_params(self) -> int:
        """Parameters that one token passes."""
        return self.n_layers * (self._n_matrix(is_active=True) + self._n_other(is_active=True))

    @property
    def n_matrix_params(self) -> int:
        """Resident matrices of all layers, without routers, which stay in high precision."""
        return self.n_layers * self._n_matrix(is_active=False)

    @property
    def n_active_matrix_params(self) -> int:
        """Matrices that one token multiplies with, routers included."""
        return self.n_layers * self._n_matrix(is_active=True)

    def _n_matrix(self, *, is_active: bool) -> int:
        parts = [part.n_matrix_params for part in (self.mixer, self.cross) if part]
        if self.feed_forward:
            feed = self.feed_forward
            parts.append(feed.n_active_matrix_params if is_active else feed.n_matrix_params)
        return sum(parts)

    def _n_other(self, *, is_active: bool) -> int:
        parts = [self.n_norm_params]
        parts += [part.n_other_params for part in (self.mixer, self.cross) if part]
        if isinstance(self.feed_forward, FeedForward):
            parts.append(self.feed_forward.n_other_params)
        if isinstance(self.feed_forward, Experts):
            parts.append(_n_expert_other(self.feed_forward, is_active=is_active))
        return sum(parts)


def _n_expert_other(experts: Experts, *, is_active: bool) -> int:
    n_used = experts.n_active if is_active else experts.n_experts
    # The router is a matrix in the active count; resident it stands with what is not quantized.
    router = 0 if is_active else experts.n_router_params
    shared = experts.shared.n_other_params if experts.shared else 0
    return experts.n_other_params + n_used * experts.n_expert_other_params + router + shared
