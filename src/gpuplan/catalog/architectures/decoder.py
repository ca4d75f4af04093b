"""A decoder's layers, one by one from the configuration, then gathered into groups of equals."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from gpuplan.catalog.architectures.attention import Part, attention_part
from gpuplan.catalog.architectures.feed import dense_part, experts_part
from gpuplan.catalog.architectures.latent import latent_part
from gpuplan.catalog.architectures.pattern import feed_kinds, mixer_kinds
from gpuplan.catalog.architectures.shape import VOCAB, Shape
from gpuplan.domain.layers import Experts, FeedForward, LayerGroup
from gpuplan.domain.model import Embedding, Stack


def grouped(layers: Sequence[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Equal layers counted together, in order of first appearance."""
    counts = Counter(layers)
    return tuple(replace(layer, n_layers=n * layer.n_layers) for layer, n in counts.items())


def text_stack(shape: Shape) -> Stack:
    """The decoder."""
    layers = [_layer(shape, i, mixer, feed) for i, (mixer, feed) in enumerate(plan(shape))]
    final = shape.norm(shape.hidden)
    return Stack(
        role="text", hidden_size=shape.hidden, groups=grouped(layers), n_other_params=final
    )


def plan(shape: Shape) -> list[tuple[str, str]]:
    """Kind of mixer and of feed-forward part, layer by layer."""
    return list(zip(mixer_kinds(shape), feed_kinds(shape), strict=False))


def _layer(shape: Shape, index: int, mixer: str, feed: str) -> LayerGroup:
    part = mixer_part(shape, mixer, index)
    return LayerGroup(
        n_layers=1,
        mixer=part.mixer,
        cross=part.cross,
        feed_forward=feed_part(shape, feed),
        caches=part.caches,
        states=part.states,
        n_norm_params=shape.family.n_norms * shape.norm(shape.hidden) + part.n_extra_params,
    )


def mixer_part(shape: Shape, kind: str, index: int) -> Part:
    """The mixer of one layer."""
    if kind == "latent" or (kind == "full" and shape.f.given("kv_lora_rank")):
        return latent_part(shape, layer=index)
    if kind == "none":
        return Part()
    return attention_part(shape, kind, layer=index)


def feed_part(shape: Shape, kind: str) -> FeedForward | Experts | None:
    """The feed-forward part of one layer."""
    if kind == "none":
        return None
    return experts_part(shape) if kind == "moe" else dense_part(shape)


def embedding(shape: Shape, *, is_tied: bool) -> Embedding:
    """Token tables, and positions where they are learned."""
    n_vocab = shape.f.count(*VOCAB)
    width = shape.f.count("word_embed_proj_dim", default=shape.hidden)
    table = n_vocab * width
    rows = shape.family.position_rows
    positions = 0 if rows is None else (rows + (shape.max_context or 0)) * shape.hidden
    bias = n_vocab if shape.biases("h") else 0
    return Embedding(
        n_vocab=n_vocab,
        n_input_params=table,
        n_output_params=0 if is_tied else table + bias,
        n_position_params=positions,
        is_tied=is_tied,
        n_head_matrix_params=table,
    )
