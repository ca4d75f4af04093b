"""Networks whose layers were searched one by one: `block_configs` names each layer's parts."""

from dataclasses import replace

from gpuplan.catalog.architectures.attention import Part, attention_part
from gpuplan.catalog.architectures.feed import dense_part
from gpuplan.catalog.architectures.fields import Fields
from gpuplan.catalog.architectures.shape import Shape
from gpuplan.domain.layers import FeedForward, LayerGroup

WIDTH_STEP = 256


def searched_layers(shape: Shape) -> list[LayerGroup]:
    """One group per layer, or none where the layers are regular [Puzzle]."""
    return [_layer(shape, block, i) for i, block in enumerate(shape.f.rows("block_configs"))]


def _layer(shape: Shape, block: Fields, index: int) -> LayerGroup:
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
