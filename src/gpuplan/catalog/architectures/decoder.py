"""A decoder's layers, one by one from the configuration, then gathered into groups of equals."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gpuplan.catalog.architectures.attention import Part, attention_part, cross_part
from gpuplan.catalog.architectures.feed import dense_part, experts_part, inner_size
from gpuplan.catalog.architectures.hybrid import (
    recurrent_part,
    zamba_stored_once,
)
from gpuplan.catalog.architectures.irregular import irregular_layers
from gpuplan.catalog.architectures.latent import compressed_part, latent_part
from gpuplan.catalog.architectures.pattern import feed_kinds, mixer_kinds
from gpuplan.catalog.architectures.shape import VOCAB, Shape
from gpuplan.catalog.architectures.special import layer_params, n_norms, special_params
from gpuplan.domain.model.layers import Experts, FeedForward, LayerGroup
from gpuplan.domain.model.network import Embedding, LayerStack

MTP = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
    "mtp_num_layers",
    "num_mtp_layers",
    "n_mtp_layers",
)
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
