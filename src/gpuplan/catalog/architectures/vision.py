"""Vision transformers: towers of larger models, and encoders that stand alone."""

from dataclasses import replace

from gpuplan.catalog.architectures.blocks import Block, checked_heads, layers_of
from gpuplan.catalog.architectures.families import aliases_of, traits_of
from gpuplan.catalog.architectures.shape import Fields
from gpuplan.csv_rows import words
from gpuplan.domain.model.network import Embedding, LayerStack
from gpuplan.domain.noun import dataclass

HIDDEN = ("embed_dim", "hidden_size", "vt_hidden_size", "width")
LAYERS = ("num_hidden_layers", "depth", "vt_num_hidden_layers", "num_layers", "layers")
HEADS = ("num_attention_heads", "num_heads", "vt_num_attention_heads", "attention_heads", "heads")
INNER = ("intermediate_size", "vt_intermediate_size", "ffn_dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """Traits of a vision transformer."""

    bias: str = "qkvom"
    is_gated: bool = False
    norm_terms: int = 2
    n_norms: int = 2
    n_tokens: int = 0  # class, mask and register vectors
    positions: str = "grid"  # grid of patches, a table of its own, or none
    has_patch_bias: bool = True
    n_edge_norms: int = 1  # before the first and after the last layer
    has_layer_scale: bool = False
    has_pool_head: bool = False
    has_pooler: bool = False


SIGLIP = Tower()
TOWERS = traits_of("vision", Tower)
ALIASES = aliases_of("vision")
# Encoders published by themselves, and pairs of a text and an image encoder.
ALONE = words("catalog", "encoder_alone")
DUAL = ("clip", "siglip", "siglip2", "chinese_clip", "metaclip_2")


def tower_kind(f: Fields, owner: str) -> str:
    """The type of tower: what it says, else what its owner's type has."""
    for name in (f.text("model_type"), owner):
        kind = ALIASES.get(name, name)
        if kind in TOWERS:
            return kind
    return ""


def vision_tower(f: Fields, owner: str) -> LayerStack:
    """The tower with its patches and positions; projectors are counted apart."""
    kind = tower_kind(f, owner)
    if not kind:
        named = f.text("model_type") or owner
        f.notes.assume("vision tower", "plain vision transformer", f"unknown type {named!r}")
    if kind == "clip_vision_model" and f.text("position_embedding_type") == "rope":
        kind = "minimax_m3_vl_vision"
    tower = _adjusted(f, TOWERS.get(kind, SIGLIP), kind)
    hidden = f.count(*HIDDEN)
    block = _block(f, tower, kind, hidden)
    return LayerStack(
        role="vision",
        hidden_size=hidden,
        groups=(layers_of(block, f.count(*LAYERS)),),
        n_other_params=_edges(f, tower, kind, hidden=hidden, inner=block.inner),
    )


def _adjusted(f: Fields, tower: Tower, kind: str) -> Tower:
    if kind in ("siglip_vision_model", "siglip2_vision_model"):
        return replace(tower, has_pool_head=f.flag("vision_use_head", default=True))
    if kind == "kimi_vision" and f.text("norm_type") == "rmsnorm":
        bias = ("qkvo" if f.flag("attn_bias", default=True) else "") + (
            "m" if f.flag("linear_bias", default=True) else ""
        )
        has_bias = f.flag("patch_embed_proj_bias", default=True)
        return replace(tower, norm_terms=1, bias=bias, has_patch_bias=has_bias)
    if kind in ("internvl_vision", "vit", "deit", "dinov2") and not _has_qkv_bias(f, kind):
        return replace(tower, bias="om")
    return tower


def _has_qkv_bias(f: Fields, kind: str) -> bool:
    name = "attention_bias" if kind == "internvl_vision" else "qkv_bias"
    return f.flag(name, default=kind != "internvl_vision")


def _block(f: Fields, tower: Tower, kind: str, hidden: int) -> Block:
    heads = checked_heads(f, f.count("qkv_hidden_size", default=hidden), *HEADS)
    inner = f.maybe(*INNER, least=1)
    if kind == "glm4v_vision":
        inner = f.count("out_hidden_size")  # its own inner width is the merger's
    if inner is None or f.given("mlp_ratio") or kind.startswith("dinov2"):
        inner = int(f.number("mlp_ratio", default=4.0) * hidden)
    is_gated = tower.is_gated
    if f.flag("use_swiglu_ffn", "use_gated_mlp"):
        is_gated = True
        inner = (int(inner * 2 / 3) + 7) // 8 * 8 if kind.startswith("dinov2") else inner
    extra = 2 * hidden if tower.has_layer_scale else 0
    if kind == "gemma4_vision":
        extra += 2 * f.count("head_dim", default=max(1, hidden // heads))
    return Block(
        hidden=hidden,
        n_heads=heads,
        inner=inner,
        head_dim=_head_dim(f, heads),
        n_kv_heads=f.maybe("num_key_value_heads", least=1) if kind == "exaone4_5_vision" else None,
        bias=tower.bias,
        is_gated=is_gated,
        norm_terms=tower.norm_terms,
        n_norms=tower.n_norms,
        n_extra_params=extra,
    )


def _head_dim(f: Fields, heads: int) -> int | None:
    if f.given("qkv_hidden_size"):
        return max(1, f.count("qkv_hidden_size") // heads)
    return None


def _edges(f: Fields, tower: Tower, kind: str, *, hidden: int, inner: int) -> int:
    pixels = f.wholes("patch_size")
    area = (pixels[0] * pixels[-1]) if pixels else 1
    frames = f.count("temporal_patch_size", default=_frames(kind, f))
    channels = f.count("num_channels", "in_channels", "in_chans", default=3)
    patch = area * frames * channels * hidden + (hidden if tower.has_patch_bias else 0)
    tokens = tower.n_tokens + (f.whole("num_register_tokens") if "dino" in kind else 0)
    total = patch + tokens * hidden + _positions(f, tower, kind, area=area) * hidden
    total += tower.n_edge_norms * tower.norm_terms * hidden
    total += hidden * hidden + hidden if tower.has_pooler else 0
    return total + (_pool_head(hidden, inner) if tower.has_pool_head else 0)


def _frames(kind: str, f: Fields) -> int:
    compression = f.child("img_token_compression_config")
    return compression.count("temporal_patch_size", default=1) if compression else 1


def _positions(f: Fields, tower: Tower, kind: str, *, area: int) -> int:
    if tower.positions == "none":
        return 0
    if tower.positions == "axes":
        return 2 * f.count("position_embedding_size", default=10240)
    if tower.positions == "table":
        names = ("num_position_embeddings", "num_patches")
        height = f.maybe("init_pos_emb_height", "pos_emb_height", least=1)
        if height is not None:
            return height * f.count("init_pos_emb_width", "pos_emb_width")
        return f.count(*names)
    sides = f.wholes("image_size")
    has_class = 1 if tower.n_tokens and kind != "ijepa" else 0
    if kind == "deit":
        has_class = 2
    return (sides[0] * sides[-1] // max(1, area) if sides else 0) + has_class


def _pool_head(hidden: int, inner: int) -> int:
    """A query that gathers the image, as SigLIP has it."""
    attention = 4 * hidden * hidden + 4 * hidden
    return hidden + attention + 2 * hidden + 2 * hidden * inner + inner + hidden


def projector_params(top: Fields, vision: Fields, *, text_hidden: int) -> int:
    """Parameters between the tower and the text: by the tower's type, else by the owner's."""
    owner = top.text("model_type")
    kind, width = tower_kind(vision, owner), vision.count(*HIDDEN)
    by_tower = {
        "exaone4_5_vision": lambda: _qwen2_merger(vision, width, norm=width),
        "glm4v_vision": lambda: _glm_merger(vision, width),
        "kimi_vision": lambda: _merger(vision, width, text_hidden, norm=2 * width),
        "llama4_vision_model": lambda: _llama4_adapter(vision, text_hidden),
        "qwen2_5_vl": lambda: _qwen2_merger(vision, width, norm=width),
        "qwen2_vl": lambda: _qwen2_merger(vision, width, norm=2 * width),
        "qwen3_vl": lambda: _qwen3_mergers(vision, width),
        # Two convolutions halve the grid and double the width.
        "step3p7_vision": lambda: 90 * width**2 + 6 * width + 4 * width * text_hidden,
    }
    if kind in by_tower:
        return by_tower[kind]()
    if owner in ("mistral3", "mistral_large4", "ministral3"):
        bias = top.flag("multimodal_projector_bias", default=True)
        merge = top.count("spatial_merge_size", default=2) ** 2
        weights = width * merge * width + width * text_hidden + text_hidden * text_hidden
        return weights + width + (2 * text_hidden if bias else 0)
    return _simple_projector(top, vision, width, text_hidden)


def _llama4_adapter(f: Fields, text_hidden: int) -> int:
    first = f.count("projector_input_dim") * f.count("intermediate_size")
    second = f.count("projector_output_dim") ** 2
    return first + second + text_hidden * f.count("vision_output_dim")


def _qwen2_merger(f: Fields, width: int, *, norm: int) -> int:
    return _merger(f, width, f.count("out_hidden_size", "hidden_size"), norm=norm)


def _simple_projector(top: Fields, vision: Fields, width: int, text: int) -> int:
    owner = top.text("model_type")
    single = {
        "gemma3": width * text + width,
        "gemma3_text": width * text + width,
        "gemma4": width * text,
        "paligemma": width * text + text,
        "idefics3": width * top.count("scale_factor", default=2) ** 2 * text,
        "smolvlm": width * top.count("scale_factor", default=2) ** 2 * text,
    }
    if owner in single:
        return single[owner]
    entry = width
    if owner in ("internvl", "internvl_chat"):
        entry = 4 * width
    extra = 2 * entry if owner in ("internvl", "internvl_chat", "lfm2_vl") else 0
    if owner == "lfm2_vl":
        entry = width * top.count("downsample_factor", default=2) ** 2
        extra = 2 * entry
    if owner == "cohere2_vision":
        inner = top.count("alignment_intermediate_size")
        entry = width * top.count("downsample_factor", default=2) ** 2
        return entry * inner + inner + inner // 2 * text + text
    if owner in ("minimax_m3_vl", "minimax_m3"):
        return _two(width, text) + _two(4 * text, text)
    extra += text if owner in ("llava_next", "llava_onevision", "llava_next_video") else 0
    return _two(entry, text) + extra


def _two(entry: int, text: int) -> int:
    return entry * text + text + text * text + text


def _merger(f: Fields, width: int, out: int, *, norm: int) -> int:
    side = f.wholes("merge_kernel_size") or (f.count("spatial_merge_size", default=2),)
    wide = width * side[0] * side[-1] if len(side) > 1 else width * side[0] ** 2
    return norm + wide * wide + wide + wide * out + out


def _qwen3_mergers(f: Fields, width: int) -> int:
    out = f.count("out_hidden_size")
    wide = width * f.count("spatial_merge_size", default=2) ** 2
    plain = wide * wide + wide + wide * out + out
    n_deep = len(f.wholes("deepstack_visual_indexes"))
    return plain + 2 * width + n_deep * (plain + 2 * wide)


def _glm_merger(f: Fields, width: int) -> int:
    out, inner = f.count("out_hidden_size"), f.count("intermediate_size")
    side = f.count("spatial_merge_size", default=2)
    down = width * out * side * side + out
    return down + out * out + 2 * out + 3 * out * inner


def dual_parts(top: Fields, text: Fields, owner: str) -> tuple[Embedding, tuple[LayerStack, ...]]:
    """A text encoder and an image encoder that meet in one space."""
    vision = top.child("vision_config")
    if vision is None or text is top:
        top.bad("vision_config", "missing", "add it and text_config")
        return Embedding(n_vocab=0, n_input_params=0), ()
    hidden, is_siglip = text.count("hidden_size"), owner.startswith("siglip")
    block = Block(
        hidden=hidden,
        n_heads=checked_heads(text, hidden, "num_attention_heads"),
        inner=text.count("intermediate_size"),
        is_causal=False,
    )
    space = top.count("projection_dim", default=512)
    joint = hidden * hidden + hidden + 2 if is_siglip else hidden * space + 1
    encoder = LayerStack(
        role="encoder",
        hidden_size=hidden,
        groups=(layers_of(block, text.count("num_hidden_layers")),),
        n_other_params=2 * hidden + joint,
    )
    tower = vision_tower(vision, owner)
    more = 0 if is_siglip else tower.hidden_size * space
    n_vocab, rows = text.count("vocab_size"), text.count("max_position_embeddings")
    tables = Embedding(
        n_vocab=n_vocab,
        n_input_params=n_vocab * hidden,
        n_position_params=rows * hidden,
        is_tied=True,
    )
    return tables, (encoder, replace(tower, n_other_params=tower.n_other_params + more))
