"""Layers that follow no plain plan: searched one by one, or with their parts doubled."""

from dataclasses import replace

from gpuplan.catalog.architectures.attention import Part, attention_part
from gpuplan.catalog.architectures.feed import dense_part, experts_part
from gpuplan.catalog.architectures.fields import Fields
from gpuplan.catalog.architectures.latent import latent_part
from gpuplan.catalog.architectures.shape import Shape
from gpuplan.domain.model.layers import FeedForward, LayerGroup

WIDTH_STEP = 256


def irregular_layers(shape: Shape) -> list[LayerGroup]:
    """One group per layer or part of it; none where the layers are regular."""
    if shape.model_type == "longcat_flash":
        return _doubled(shape)
    return _searched(shape)


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


def _searched(shape: Shape) -> list[LayerGroup]:
    """`block_configs` names the parts of each layer [Puzzle]."""
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
