"""Encoders of text: BERT and its kin."""

from gpuplan.catalog.architectures.blocks import Block, checked_heads, layers_of
from gpuplan.catalog.architectures.families import traits_of
from gpuplan.catalog.architectures.shape import CONTEXT, VOCAB, Fields
from gpuplan.domain.model.layers import LayerGroup
from gpuplan.domain.model.network import Embedding, LayerStack
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """Traits of an encoder family."""

    bias: str = "qkvom"
    is_gated: bool = False
    norm_terms: int = 2
    has_positions: bool = True
    has_types: bool = True
    has_pooler: bool = True
    has_embedding_norm: bool = True
    has_final_norm: bool = False
    is_factorized: bool = False  # a narrow embedding is widened by a projection


ENCODERS = traits_of("encoder", Encoder)
HIDDEN = ("hidden_size", "dim", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layers", "n_layer")
HEADS = ("num_attention_heads", "n_heads", "n_head")
INNER = ("intermediate_size", "hidden_dim", "n_inner", "ffn_embed_dim")


def encoder_parts(f: Fields, kind: str) -> tuple[Embedding, LayerStack, int | None]:
    """Embedding, layers and longest input of an encoder."""
    traits = ENCODERS[kind]
    reduced = f.given("num_layers", "ffn_embed_dim")
    hidden = f.count("hidden_dim", *HIDDEN) if reduced else f.count(*HIDDEN)
    heads = checked_heads(f, hidden, *HEADS)
    inner = f.count("ffn_embed_dim") if f.given("ffn_embed_dim") else f.count(*INNER)
    context = f.maybe(*CONTEXT, least=1)
    block = Block(
        hidden=hidden,
        n_heads=heads,
        inner=inner,
        bias=_bias(f, kind, traits),
        is_gated=traits.is_gated,
        norm_terms=traits.norm_terms,
        n_kv_heads=f.maybe("num_key_value_heads", least=1) if kind == "eurobert" else None,
        n_extra_params=hidden if kind in ("gte", "new") else 0,  # bias of the second matrix
    )
    other = _other(f, kind, traits, hidden=hidden, heads=heads)
    groups = _groups(f, kind, block)
    if kind == "albert":  # all layers are one: take back what is counted more than once
        stored = f.count("num_hidden_groups", default=1) * f.count("inner_group_num", default=1)
        other -= (groups[0].n_layers - stored) * layers_of(block, 1).n_params
    stack = LayerStack(role="encoder", hidden_size=hidden, groups=groups, n_other_params=other)
    return _embedding(f, traits, hidden, context), stack, context


def _bias(f: Fields, kind: str, traits: Encoder) -> str:
    if kind != "modernbert":
        return traits.bias
    return ("qkvo" if f.flag("attention_bias") else "") + ("m" if f.flag("mlp_bias") else "")


def _groups(f: Fields, kind: str, block: Block) -> tuple[LayerGroup, ...]:
    n_layers = f.count("num_layers", *LAYERS)
    if kind == "albert":
        f.notes.assume("shared layers", "stored once", f"used {n_layers} times over")
        return (layers_of(block, n_layers),)
    if kind != "modernbert":
        return (layers_of(block, n_layers),)
    every = f.count("global_attn_every_n_layers", default=3)
    n_global = -(-n_layers // every)
    local = layers_of(block, n_layers - n_global, window=f.count("local_attention", default=128))
    groups = (layers_of(block, n_global), local)
    return tuple(group for group in groups if group.n_layers)


def _embedding(f: Fields, traits: Encoder, hidden: int, context: int | None) -> Embedding:
    n_vocab = f.count(*VOCAB[:-1])
    width = f.count("embedding_size", default=hidden) if traits.is_factorized else hidden
    has_positions = traits.has_positions and f.flag("position_biased_input", default=True)
    rows = (context or 0) if has_positions else 0
    types = f.whole("type_vocab_size", default=2) if traits.has_types else 0
    return Embedding(
        n_vocab=n_vocab,
        n_input_params=(n_vocab + types) * width,
        n_position_params=rows * width,
        is_tied=True,
    )


def _other(f: Fields, kind: str, traits: Encoder, *, hidden: int, heads: int) -> int:
    width = f.count("embedding_size", default=hidden) if traits.is_factorized else hidden
    total = traits.norm_terms * width if traits.has_embedding_norm else 0
    total += traits.norm_terms * hidden if traits.has_final_norm else 0
    total += hidden * hidden + hidden if traits.has_pooler else 0
    if traits.is_factorized and (width != hidden or kind == "albert"):
        total += width * hidden + hidden
    if kind == "mpnet":
        total += f.count("relative_attention_num_buckets", default=32) * heads
    if kind == "modernbert":
        total -= hidden  # the first layer takes the embedding's norm
        total += (2 * f.count(*LAYERS) + 1) * hidden if f.flag("norm_bias") else 0
    if kind.startswith("deberta"):
        total += _disentangled(f, kind, hidden)
    return total


def _disentangled(f: Fields, kind: str, hidden: int) -> int:
    """Relative positions of DeBERTa; the first version projects them in every layer."""
    if not f.flag("relative_attention"):
        return 0
    _name, span = f.raw("max_relative_positions")
    buckets = f.raw("position_buckets")[1]
    if not isinstance(span, int) or span < 1:
        span = f.count(*CONTEXT)
    if isinstance(buckets, int) and buckets > 0:
        span = buckets
    total = 2 * span * hidden
    if kind == "deberta-v2":
        kernel = f.whole("conv_kernel_size")
        total += hidden * hidden * kernel + 3 * hidden if kernel else 0
        return total + (2 * hidden if "layer_norm" in f.text("norm_rel_ebd") else 0)
    return total + f.count(*LAYERS) * (2 * hidden * hidden + hidden)
