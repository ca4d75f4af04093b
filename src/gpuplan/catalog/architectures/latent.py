"""Multi-head latent attention, its sparse indexer, and the compressed attention that followed.

What is cached: one latent vector and one rotated key per token, shared by all heads
[DeepSeek-V2]; the indexer keeps a 128-wide fp8 key and a 4-byte scale per token [DeepSeek-V3.2];
compressed layers keep one entry for every few tokens and a short window of plain ones.
"""

from gpuplan.catalog.architectures.attention import Part
from gpuplan.catalog.architectures.shape import Shape
from gpuplan.domain.layers import Cache, LatentAttention

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
    return (indexer_cache(shape.f.count("index_head_dim")),)


def indexer_cache(dim: int, tokens_per_entry: int = 1) -> Cache:
    """Index keys in fp8, one 4-byte scale for each entry."""
    return Cache(
        n_heads=1,
        elements_per_head=dim,
        tokens_per_entry=tokens_per_entry,
        fixed_element_bytes=1 + INDEXER_SCALE_BYTES / dim,
        role="indexer",
    )
