"""Multi-head latent attention, its sparse indexer, and the compressed attention that followed.

What is cached: one latent vector and one rotated key per token, shared by all heads
[DeepSeek-V2]; the indexer keeps a 128-wide fp8 key and a 4-byte scale per token [DeepSeek-V3.2];
compressed layers keep one entry for every few tokens and a short window of plain ones.
"""

from gpuplan.catalog.architectures.attention import Part
from gpuplan.catalog.architectures.shape import Shape
from gpuplan.domain.model.layers import Cache, LatentAttention

INDEXER_SCALE_BYTES = 4


def latent_part(shape: Shape, *, layer: int) -> Part:
    """Latent attention of one layer with its cache."""
    f, heads = shape.f, shape.n_heads
    q_rank = f.maybe("q_lora_rank", least=1) if f.raw("q_lora_rank")[1] else None
    kv_rank, rope = f.count("kv_lora_rank"), f.count("qk_rope_head_dim")
    nope = f.count("qk_nope_head_dim")
    v_dim = f.count("v_head_dim", default=nope)
    q_width = heads * (nope + rope)
    down = shape.hidden * (kv_rank + rope) + (shape.hidden * q_rank if q_rank else 0)
    up_q = q_width * (q_rank or shape.hidden)
    up_kv = kv_rank * heads * (nope + v_dim)
    out = heads * v_dim * shape.hidden
    gate = shape.hidden * heads * v_dim if f.flag("mla_use_output_gate") else 0
    index = _indexer_params(shape, layer, q_rank or shape.hidden)
    mixer = LatentAttention(
        n_heads=heads,
        q_rank=q_rank,
        kv_rank=kv_rank,
        qk_nope_dim=nope,
        qk_rope_dim=rope,
        v_head_dim=v_dim,
        n_matrix_params=down + up_q + up_kv + out + gate + index,
        n_down_matrix_params=down + index,
        n_other_params=kv_rank
        + (q_rank or 0)
        + _latent_bias(shape, q_rank, kv_rank + rope)
        + (2 * f.count("index_head_dim") if index else 0),
        selected_tokens=f.maybe("index_topk", least=1),
    )
    cache = Cache(n_heads=1, elements_per_head=kv_rank + rope)
    return Part(mixer=mixer, caches=(cache, *_indexer_caches(shape, layer)))


def compressed_part(shape: Shape, *, layer: int) -> Part:
    """Attention over a short window and over entries that each stand for several tokens.

    One vector per entry is key and value at once. Layers with a small ratio select entries by an
    index; layers with a large one see them all; ratio 0 has the window alone [DeepSeek-V4].
    """
    f, hidden, dim = shape.f, shape.hidden, shape.head_dim
    ratio = _ratio(shape, layer)
    q_rank, groups = f.count("q_lora_rank"), f.count("o_groups", default=1)
    out_rank, width = f.count("o_lora_rank"), shape.n_heads * dim
    window, rope = f.maybe("sliding_window", least=1), f.count("qk_rope_head_dim")
    is_selective = 0 < ratio <= SELECTIVE_RATIO
    compressor = _compressor_params(shape, ratio, dim) if ratio else 0
    index = _compressed_index_params(shape, ratio, q_rank) if is_selective else 0
    down = hidden * (q_rank + dim) + compressor + index
    mixer = LatentAttention(
        n_heads=shape.n_heads,
        q_rank=q_rank,
        kv_rank=dim - rope,
        qk_nope_dim=max(0, dim - rope),
        qk_rope_dim=rope,
        v_head_dim=dim,
        n_matrix_params=down + q_rank * width + width * out_rank + groups * out_rank * hidden,
        n_down_matrix_params=down,
        n_other_params=shape.n_heads
        + q_rank
        + dim
        + (dim if ratio else 0)
        + (f.count("index_head_dim") if is_selective else 0),
        selected_tokens=f.maybe("index_topk", least=1) if is_selective else None,
        window_tokens=window,
        tokens_per_entry=ratio or 1,
    )
    return Part(
        mixer=mixer,
        caches=_compressed_caches(shape, ratio, window),
        n_extra_params=_hyper_connections(shape),
    )


SELECTIVE_RATIO = 16


def _ratio(shape: Shape, layer: int) -> int:
    ratios = shape.f.wholes("compress_ratios")
    if layer < len(ratios):
        return ratios[layer]
    words = shape.f.texts("layer_types")
    rates = shape.f.child("compress_rates")
    if rates is None or layer >= len(words) or words[layer] == "sliding_attention":
        return 0
    return rates.whole(words[layer])


def _compressor_params(shape: Shape, ratio: int, dim: int) -> int:
    # Overlapping windows are twice as wide where entries are selected.
    width = dim * (2 if ratio <= SELECTIVE_RATIO else 1)
    return 2 * shape.hidden * width + ratio * width


def _compressed_index_params(shape: Shape, ratio: int, q_rank: int) -> int:
    heads, dim = shape.f.count("index_n_heads"), shape.f.count("index_head_dim")
    queries = q_rank * heads * dim + shape.hidden * heads
    return queries + _compressor_params(shape, ratio, dim)


def _compressed_caches(shape: Shape, ratio: int, window: int | None) -> tuple[Cache, ...]:
    near = Cache(n_heads=1, elements_per_head=shape.head_dim, window_tokens=window)
    if not ratio:
        return (near,)
    far = Cache(n_heads=1, elements_per_head=shape.head_dim, tokens_per_entry=ratio)
    if ratio > SELECTIVE_RATIO:
        return near, far
    return near, far, indexer_cache(shape, ratio)


def _hyper_connections(shape: Shape) -> int:
    """Mixing of several residual streams, before attention and before the feed-forward part."""
    streams = shape.f.whole("hc_mult")
    outputs = streams * streams + 2 * streams
    return 2 * (outputs * streams * shape.hidden + outputs + 3) if streams else 0


def _latent_bias(shape: Shape, q_rank: int | None, kv_width: int) -> int:
    if not shape.f.flag("attention_bias"):
        return 0
    return (q_rank or 0) + kv_width + shape.hidden


def _has_indexer(shape: Shape, layer: int) -> bool:
    f = shape.f
    if f.maybe("index_topk") is None:
        return False
    kinds = f.texts("indexer_types", "index_layer_types")
    return layer >= len(kinds) or kinds[layer] != "shared"


def _indexer_params(shape: Shape, layer: int, q_width: int) -> int:
    if not _has_indexer(shape, layer):
        return 0
    heads, dim = shape.f.count("index_n_heads"), shape.f.count("index_head_dim")
    return q_width * heads * dim + shape.hidden * dim + shape.hidden * heads


def _indexer_caches(shape: Shape, layer: int) -> tuple[Cache, ...]:
    if not _has_indexer(shape, layer):
        return ()
    return (indexer_cache(shape),)


def indexer_cache(shape: Shape, tokens_per_entry: int = 1) -> Cache:
    """Index keys in fp8, one 4-byte scale for each entry."""
    dim = shape.f.count("index_head_dim")
    return Cache(
        n_heads=1,
        elements_per_head=dim,
        tokens_per_entry=tokens_per_entry,
        fixed_element_bytes=1 + INDEXER_SCALE_BYTES / dim,
        role="indexer",
        n_index_heads=shape.f.count("index_n_heads"),
    )
