"""A decoder's layers, one by one from the configuration, then gathered into groups of equals.

Layers that follow no plain plan: searched one by one, or with their parts doubled.

What single families add beside mixers and feed-forward parts: rare, counted for exactness.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gpuplan.catalog.architectures.attention import Part, attention_part, cross_part
from gpuplan.catalog.architectures.feed import dense_part, experts_part, inner_size
from gpuplan.catalog.architectures.hybrid import (
    recurrent_part,
    zamba_stored_once,
)
from gpuplan.catalog.architectures.latent import compressed_part, latent_part
from gpuplan.catalog.architectures.pattern import feed_kinds, mixer_kinds
from gpuplan.catalog.architectures.shape import INNER, VOCAB, Fields, Shape, is_new_falcon
from gpuplan.csv_rows import words
from gpuplan.domain.model.layers import Experts, FeedForward, LayerGroup
from gpuplan.domain.model.network import Embedding, LayerStack

GEMMA3N = "gemma3n_text"
PER_LAYER = (GEMMA3N, "gemma4_text", "gemma4_unified_text")


WIDTH_STEP = 256


MTP = words("catalog", "mtp_layers")
MAX_MTP = 64
RECURRENT = ("conv", "hybrid", "lightning", "linear", "mamba", "recurrent")


def grouped(layers: Sequence[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Equal layers counted together, in order of first appearance."""
    counts = Counter(layers)
    return tuple(replace(layer, n_layers=n * layer.n_layers) for layer, n in counts.items())


def text_stack(shape: Shape) -> LayerStack:
    """The decoder."""
    layers = irregular_layers(shape) or [
        _layer(shape, i, mixer, feed) for i, (mixer, feed) in enumerate(plan(shape))
    ]
    other = shape.norm(shape.hidden) + special_params(shape)
    if shape.model_type == "zamba2":
        n_hybrid = sum(1 for layer in layers if layer.cross)
        other -= zamba_stored_once(shape, n_hybrid)
        shape.f.notes.assume("shared blocks", "stored once", f"used in {n_hybrid} layers")
    return LayerStack(
        role="text", hidden_size=shape.hidden, groups=grouped(layers), n_other_params=other
    )


def plan(shape: Shape) -> list[tuple[str, str]]:
    """Kind of mixer and of feed-forward part, layer by layer."""
    feeds = feed_kinds(shape)
    feeds += ["none"] * (shape.n_layers - len(feeds))
    return list(zip(mixer_kinds(shape), feeds, strict=False))


def _layer(shape: Shape, index: int, mixer: str, feed: str) -> LayerGroup:
    part = mixer_part(shape, mixer, index)
    return LayerGroup(
        n_layers=1,
        mixer=part.mixer,
        cross=part.cross,
        feed_forward=feed_part(shape, feed, index),
        caches=part.caches,
        states=part.states,
        n_norm_params=n_norms(shape) * shape.norm(shape.hidden)
        + part.n_extra_params
        + layer_params(shape, feed),
    )


def mixer_part(shape: Shape, kind: str, index: int) -> Part:
    """The mixer of one layer."""
    if kind == "latent" or (kind == "full" and shape.f.given("kv_lora_rank")):
        return latent_part(shape, layer=index)
    if kind in RECURRENT:
        return recurrent_part(shape, kind, layer=index)
    if kind == "compressed":
        return compressed_part(shape, layer=index)
    if kind == "none":
        return Part()
    return cross_part(shape) if kind == "cross" else attention_part(shape, kind, layer=index)


def feed_part(shape: Shape, kind: str, index: int) -> FeedForward | Experts | None:
    """The feed-forward part of one layer."""
    if kind == "none":
        return None
    return (
        experts_part(shape, index) if kind == "moe" else dense_part(shape, inner_size(shape, index))
    )


def embedding(shape: Shape, *, is_tied: bool) -> Embedding:
    """Token tables, and positions where they are learned."""
    n_vocab = shape.f.count(*VOCAB)
    width = shape.f.count("word_embed_proj_dim", default=shape.hidden)
    table = n_vocab * width
    extra_rows = 8 * width if shape.model_type == "mllama_text_model" else 0  # image tokens
    rows = shape.family.position_rows
    positions = 0 if rows is None else (rows + (shape.max_context or 0)) * shape.hidden
    bias = n_vocab if shape.biases("h") else 0
    return Embedding(
        n_vocab=n_vocab,
        n_input_params=table + extra_rows,
        n_output_params=bias if is_tied else table + bias,
        n_position_params=positions,
        is_tied=is_tied,
        n_head_matrix_params=table,
    )


def mtp_stack(shape: Shape) -> tuple[LayerStack, ...]:
    """Layers that predict further tokens: a last layer of the network with a joining matrix."""
    count = min(shape.f.whole(*MTP), MAX_MTP)
    if not count or shape.f.flag("use_mtp", default=True) is False:
        return ()
    layers = [_layer(shape, shape.n_layers, mixer, feed) for mixer, feed in _mtp_plan(shape)]
    # Two norms at the entry, one at the exit, and the matrix that joins hidden state and token.
    join = 2 * shape.hidden * shape.hidden + 3 * shape.norm(shape.hidden)
    stack = LayerStack(
        role="mtp",
        hidden_size=shape.hidden,
        groups=grouped(layers * count),
        n_other_params=count * join,
    )
    return (stack,)


def _mtp_plan(shape: Shape) -> list[tuple[str, str]]:
    """Kinds of layer in one prediction module: its own pattern, else that of the last layer."""
    words = shape.f.texts("mtp_layers_block_type")
    letters = {"*": "attention", "E": "moe", "M": "mamba", "-": "mlp"}
    if not words:
        pattern = shape.f.text("mtp_hybrid_override_pattern")[:64]
        words = tuple(letters.get(letter, "mlp") for letter in pattern)
    kinds = {"attention": ("full", "none"), "moe": ("none", "moe"), "mamba": ("mamba", "none")}
    if words:
        return [kinds.get(word, ("none", "dense")) for word in words]
    mixer, feed = plan(shape)[-1]
    return [("full" if mixer in RECURRENT else mixer, feed)]


def irregular_layers(shape: Shape) -> list[LayerGroup]:
    """One group per layer or part of it; none where the layers are regular."""
    if shape.model_type == "longcat_flash":
        return _doubled(shape)
    # `block_configs` names the parts of each layer [Puzzle].
    return [
        _irregular_layer(shape, block, i) for i, block in enumerate(shape.f.rows("block_configs"))
    ]


def _doubled(shape: Shape) -> list[LayerGroup]:
    """Two attentions and two dense parts per layer, with experts beside them [LongCat-Flash]."""
    half = LayerGroup(
        n_layers=2,
        mixer=latent_part(shape, layer=0).mixer,
        feed_forward=dense_part(shape),
        caches=latent_part(shape, layer=0).caches,
        n_norm_params=2 * shape.norm(shape.hidden),
    )
    experts, n_zero = experts_part(shape), shape.f.whole("zero_expert_num")
    routed = experts.n_experts
    n_active = max(1, round(experts.n_active * routed / (routed + n_zero)))
    if n_zero:
        why = f"{n_zero} of the router's choices do nothing; {experts.n_active} are made"
        shape.f.notes.assume("experts at work", n_active, why)
    experts = replace(
        experts,
        n_active=n_active,
        n_router_params=(routed + n_zero) * shape.hidden,
        n_other_params=routed + n_zero,
    )
    beside = LayerGroup(n_layers=1, feed_forward=experts)
    return [half, beside] * shape.n_layers


def _irregular_layer(shape: Shape, block: Fields, index: int) -> LayerGroup:
    attention, feed = block.child("attention"), block.child("ffn")
    part = _attention(shape, attention, index)
    dense, n_bare = _feed(shape, feed)
    n_norms = (1 if part.mixer or part.n_extra_params else 0) + (1 if dense or n_bare else 0)
    return LayerGroup(
        n_layers=1,
        mixer=part.mixer,
        feed_forward=dense,
        caches=part.caches,
        n_norm_params=n_norms * shape.norm(shape.hidden) + part.n_extra_params + n_bare,
    )


def _attention(shape: Shape, config: Fields | None, index: int) -> Part:
    if config is None or config.flag("no_op"):
        return Part()
    if config.flag("replace_with_linear"):
        return Part(n_extra_params=shape.hidden * shape.hidden)
    share = config.count("n_heads_in_group", default=1)
    if shape.n_heads % share:
        config.bad("n_heads_in_group", f"got {share}", f"must divide {shape.n_heads} heads")
        share = 1
    return attention_part(replace(shape, n_kv_heads=shape.n_heads // share), "full", layer=index)


def _feed(shape: Shape, config: Fields | None) -> tuple[FeedForward | None, int]:
    if config is None or config.flag("no_op"):
        return None, 0
    if config.flag("replace_with_linear"):
        return None, shape.hidden * shape.hidden
    if config.given("intermediate_size"):
        return dense_part(shape, config.count("intermediate_size")), 0
    width = int(2 * config.number("ffn_mult", default=1.0) * shape.hidden / 3)
    return dense_part(shape, max(1, -(-width // WIDTH_STEP) * WIDTH_STEP)), 0


def n_norms(shape: Shape) -> int:
    """Norms of hidden width in a layer."""
    f, count = shape.f, shape.family.n_norms
    if shape.model_type == "falcon":
        return _falcon_norms(shape)
    if shape.model_type == "stablelm" and f.flag("use_parallel_residual"):
        return 1
    return count


def _falcon_norms(shape: Shape) -> int:
    f = shape.f
    if is_new_falcon(f, shape.n_heads):
        return f.count("num_ln_in_parallel_attn", default=2)
    return 1 if f.flag("parallel_attn", default=True) else 2


def layer_params(shape: Shape, feed: str) -> int:
    """Parameters of one layer that stand beside its parts."""
    total = _per_layer_gate(shape)
    if shape.model_type == GEMMA3N:
        total += _altup(shape)
    if shape.model_type == "bitnet":
        total += shape.hidden + shape.f.count(*INNER)  # norms within the parts
    if shape.model_type in ("gemma4_text", "gemma4_unified_text") and feed == "moe":
        total += 3 * shape.hidden
    return total


def _per_layer_gate(shape: Shape) -> int:
    width = shape.f.whole("hidden_size_per_layer_input") if shape.model_type in PER_LAYER else 0
    return 2 * shape.hidden * width + shape.hidden if width else 0


def _altup(shape: Shape) -> int:
    """Alternating updates and the learned residual of Gemma 3n."""
    hidden, f = shape.hidden, shape.f
    streams, rank = f.count("altup_num_inputs"), f.count("laurel_rank")
    altup = streams**2 + streams**3 + streams * hidden + 2 * hidden
    return altup + 2 * hidden * rank + hidden


def special_params(shape: Shape) -> int:
    """Parameters of the network that stand beside its layers."""
    f, hidden = shape.f, shape.hidden
    total = 0
    if shape.model_type == "bloom":
        total += shape.norm(hidden)  # the embedding is normalized
    if shape.model_type == "opt":
        total += _opt(shape)
    if shape.model_type in PER_LAYER:
        total += _per_layer_table(shape)
    if shape.model_type == GEMMA3N:
        total += 2 * (f.count("altup_num_inputs") - 1) * hidden * hidden
    streams = f.whole("hc_mult")
    if streams:
        total += streams * streams * hidden + streams + 1
    return total


def _opt(shape: Shape) -> int:
    """A narrow embedding is projected; norms after the parts leave none at the end."""
    width = shape.f.count("word_embed_proj_dim", default=shape.hidden)
    total = 2 * width * shape.hidden if width != shape.hidden else 0
    is_before = shape.f.flag("do_layer_norm_before", default=True)
    return total - (0 if is_before else shape.norm(shape.hidden))


def _per_layer_table(shape: Shape) -> int:
    """A second embedding with a slice for every layer, and its projection."""
    width = shape.f.whole("hidden_size_per_layer_input")
    if not width:
        return 0
    rows = shape.f.count("vocab_size_per_layer_input", *VOCAB)
    return shape.n_layers * width * (rows + shape.hidden) + width
