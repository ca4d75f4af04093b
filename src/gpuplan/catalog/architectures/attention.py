"""Softmax attention with heads: parameters, and what a layer keeps of a sequence."""

from dataclasses import replace

from gpuplan.catalog.architectures.shape import Fields, Shape
from gpuplan.domain.model.layers import Attention, Cache, Mixer, State
from gpuplan.domain.noun import dataclass

ATTENTION_GATES = ("afmoe", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_next")
SINKS = ("gpt_oss",)
# A window on every layer bounds the cache whatever the kind of layer is called.
SELF_GATED_HEADS = ("step3p5", "step3p7")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A mixer with what it keeps."""

    mixer: Mixer | None = None
    caches: tuple[Cache, ...] = ()
    states: tuple[State, ...] = ()
    cross: Attention | None = None
    n_extra_params: int = 0  # of the layer, beside the mixer's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Heads of one layer; local layers may have others than global ones."""

    n_heads: int
    n_kv_heads: int
    qk_dim: int
    v_dim: int
    is_value_key: bool = False  # values are the keys: no projection of their own
    has_own_kv: bool = True  # False: reads the cache of an earlier layer

    @property
    def n_kv_width(self) -> int:
        """Channels of keys and values as projections make them."""
        if not self.has_own_kv:
            return 0
        return self.n_kv_heads * (self.qk_dim + (0 if self.is_value_key else self.v_dim))


def attention_part(shape: Shape, kind: str, *, layer: int) -> Part:
    """Grouped-query attention of one layer with its cache."""
    heads = _heads(shape, kind, layer)
    window = _window(shape, kind)
    q_width = heads.n_heads * heads.qk_dim
    gate = _gate_params(shape, heads)
    kv_params = shape.hidden * heads.n_kv_width
    out_params = heads.n_heads * heads.v_dim * shape.hidden
    mixer = Attention(
        n_heads=heads.n_heads,
        n_kv_heads=heads.n_kv_heads,
        qk_head_dim=heads.qk_dim,
        v_head_dim=heads.v_dim,
        n_matrix_params=shape.hidden * q_width + gate + kv_params + out_params,
        n_kv_matrix_params=kv_params,
        n_other_params=_bias_params(shape, heads)
        + _qk_norm(shape, heads)
        + _sinks(shape, kind, heads),
        window_tokens=window,
        is_normed_across_heads=_qk_style(shape) == "width",
    )
    sparse = _sparse(shape, layer)
    if sparse is not None:
        mixer = replace(
            mixer,
            n_matrix_params=mixer.n_matrix_params + sparse.n_matrix_params,
            n_other_params=mixer.n_other_params + 2 * sparse.dim,
            selected_tokens=sparse.selected_tokens,
        )
        return Part(mixer=mixer, caches=(*_caches(heads, window, kind), sparse.cache))
    return Part(mixer=mixer, caches=_caches(heads, window, kind))


def cross_part(shape: Shape) -> Part:
    """Attention over an image alone, gated, with normed queries and keys [Llama-3.2-Vision]."""
    found = attention_part(shape, "full", layer=0)
    mixer = found.mixer
    if not isinstance(mixer, Attention):
        return found
    cross = replace(mixer, is_causal=False, n_other_params=2 * shape.head_dim + 2)
    retained = replace(found.caches[0], role="cross", window_tokens=shape.cross_tokens)
    return Part(cross=cross, caches=(retained,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """An index that selects blocks of past tokens."""

    dim: int
    selected_tokens: int
    n_matrix_params: int

    @property
    def cache(self) -> Cache:
        """One index key per token, in 16 bits."""
        return Cache(n_heads=1, elements_per_head=self.dim, fixed_element_bytes=2.0, role="indexer")


def _sparse(shape: Shape, layer: int) -> Sparse | None:
    """Block-sparse attention of MiniMax-M3; some of its layers stay full."""
    config = shape.f.child("sparse_attention_config") or shape.f
    chosen = config.wholes("sparse_attention_freq")
    if layer < len(chosen) and not chosen[layer]:
        return None
    if config is shape.f and not _is_listed_sparse(shape, layer):
        return None
    dim = config.count("sparse_index_dim", "index_head_dim", default=128)
    heads = config.count("sparse_num_index_heads", "index_n_heads", default=4)
    block = config.count("sparse_block_size", "index_block_size", default=128)
    blocks = config.count("sparse_topk_blocks", "index_topk_blocks", default=16)
    blocks += config.whole("sparse_local_block") + config.whole("sparse_init_block")
    return Sparse(
        dim=dim,
        selected_tokens=block * blocks,
        n_matrix_params=shape.hidden * (heads + 1) * dim,
    )


def _is_listed_sparse(shape: Shape, layer: int) -> bool:
    words = shape.f.texts("layer_types") if shape.model_type == "minimax_m3" else ()
    return layer < len(words) and words[layer] == "minimax_m3_sparse"


def _caches(heads: Heads, window: int | None, kind: str) -> tuple[Cache, ...]:
    if not heads.has_own_kv:
        return ()
    retained = Cache(
        n_heads=heads.n_kv_heads,
        elements_per_head=heads.qk_dim + heads.v_dim,
        window_tokens=window,
        is_chunked=kind == "chunked" and window is not None,
    )
    return (retained,)


def _own(shape: Shape, layer: int) -> Fields | None:
    """Figures that a configuration gives for this one layer."""
    table = shape.f.child("per_layer_config")
    if table is None:
        return None
    names = [name for name in (f"{layer:02d}", str(layer)) if table.given(name)]
    return table.child(names[0]) if names else None


def _heads(shape: Shape, kind: str, layer: int) -> Heads:
    f, is_local = shape.f, kind == "sliding"
    own = _own(shape, layer)
    if own is not None and own.values:
        dim = own.count("head_dim", default=shape.head_dim)
        return Heads(
            n_heads=own.count("num_attention_heads", default=shape.n_heads),
            n_kv_heads=own.count("num_key_value_heads", default=shape.n_kv_heads),
            qk_dim=dim,
            v_dim=own.count("v_head_dim", default=dim),
            is_value_key=f.flag("attention_k_eq_v") and not is_local,
            has_own_kv=_has_own_kv(shape, layer),
        )
    has_own_kv = _has_own_kv(shape, layer)
    if is_local and f.given("swa_num_key_value_heads"):
        return Heads(
            n_heads=f.count("swa_num_attention_heads", default=shape.n_heads),
            n_kv_heads=f.count("swa_num_key_value_heads"),
            qk_dim=f.count("swa_head_dim", default=shape.head_dim),
            v_dim=f.count("swa_v_head_dim", default=shape.v_head_dim),
        )
    if shape.model_type in ("gemma4_text", "gemma4_unified_text") and not is_local:
        return _gemma4_global(shape, has_own_kv=has_own_kv)
    return Heads(
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        qk_dim=shape.head_dim,
        v_dim=shape.v_head_dim,
        has_own_kv=has_own_kv,
    )


def _has_own_kv(shape: Shape, layer: int) -> bool:
    n_shared = shape.f.whole("num_kv_shared_layers")
    return n_shared == 0 or layer < shape.n_layers - n_shared


def _gemma4_global(shape: Shape, *, has_own_kv: bool) -> Heads:
    f = shape.f
    dim = f.count("global_head_dim", default=shape.head_dim)
    is_value_key = f.flag("attention_k_eq_v")
    n_kv_heads = shape.n_kv_heads
    if is_value_key:
        n_kv_heads = f.count("num_global_key_value_heads", default=shape.n_kv_heads)
    return Heads(
        n_heads=shape.n_heads,
        n_kv_heads=n_kv_heads,
        qk_dim=dim,
        v_dim=dim,
        is_value_key=is_value_key,
        has_own_kv=has_own_kv,
    )


def _window(shape: Shape, kind: str) -> int | None:
    if kind == "sliding":
        window = shape.f.maybe("sliding_window", "sliding_window_size", least=1)
    elif shape.model_type == "recurrent_gemma":
        window = shape.f.maybe("attention_window_size", least=1)
    elif kind == "chunked":
        window = shape.f.maybe("attention_chunk_size", least=1)
    else:
        window = None
    if window is not None and shape.max_context is not None and window >= shape.max_context:
        return None  # wider than the context: it never binds
    return window


def _gate_params(shape: Shape, heads: Heads) -> int:
    """An output gate is projected beside the queries."""
    if shape.model_type in SELF_GATED_HEADS:
        return shape.hidden * heads.n_heads
    has_gate = shape.model_type in ATTENTION_GATES
    has_gate = shape.f.flag("attention_output_gate", "attn_output_gate", default=has_gate)
    return shape.hidden * heads.n_heads * heads.v_dim if has_gate else 0


def _bias_params(shape: Shape, heads: Heads) -> int:
    n_q = heads.n_heads * heads.qk_dim
    widths = {
        "q": n_q,
        "k": heads.n_kv_heads * heads.qk_dim * heads.has_own_kv,
        "v": heads.n_kv_heads * heads.v_dim * heads.has_own_kv,
        "o": shape.hidden,
    }
    return sum(width for letter, width in widths.items() if shape.biases(letter))


def _qk_norm(shape: Shape, heads: Heads) -> int:
    style = _qk_style(shape)
    n_kv_heads = heads.n_kv_heads if heads.has_own_kv else 0
    if style == "head":
        return shape.family.norm_terms * heads.qk_dim * (2 if heads.has_own_kv else 1)
    if style in ("width", "heads"):
        return (heads.n_heads + n_kv_heads) * heads.qk_dim
    return 0


def _qk_style(shape: Shape) -> str:
    style: str = shape.family.qk_norm
    if shape.model_type == "llama4_text":
        return ""  # its norm has no parameters
    if shape.model_type.startswith(("hunyuan", "hy_v")):
        return style
    if shape.f.flag("use_qk_norm", "qk_layernorm", "use_query_key_norm", default=bool(style)):
        return style or ("head" if shape.model_type == "phi" else "heads")
    return ""


def _sinks(shape: Shape, kind: str, heads: Heads) -> int:
    has_sinks = shape.model_type in SINKS
    name = "add_swa_attention_sink_bias" if kind == "sliding" else "add_full_attention_sink_bias"
    return heads.n_heads if shape.f.flag(name, default=has_sinks) else 0
