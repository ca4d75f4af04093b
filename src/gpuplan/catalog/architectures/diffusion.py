"""Denoisers of images and video: diffusion transformers by class name, and the UNet.

The main stack is what an image token passes. What works once per image or on the text beside it
(modulation, the text stream of joint layers) stands in a second stack: resident, not per token.

Parameters of the conditional UNet of Stable Diffusion, block by block.
"""

from dataclasses import replace
from math import prod
from typing import NamedTuple

from gpuplan.catalog.architectures.blocks import Block, attention_of, layers_of
from gpuplan.catalog.architectures.shape import Fields
from gpuplan.domain.model.layers import Attention, FeedForward, LayerGroup
from gpuplan.domain.model.network import LayerStack
from gpuplan.domain.noun import dataclass

KERNEL = 9  # 3 x 3
DEFAULT_DOWN = ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",)
DEFAULT_UP = ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3


class Sizes(NamedTuple):
    """Figures that every block needs."""

    widths: tuple[int, ...]
    n_layers: tuple[int, ...]  # residual blocks per resolution
    depths: tuple[int, ...]  # transformer layers per attention
    context: int
    time: int


TIME_WIDTH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Traits of two streams, image and text, that meet in attention."""

    n_signals: int = 6  # shifts, scales and gates per stream and layer
    is_shared: bool = False  # one set of signals for all layers
    is_gated: bool = False
    bias: str = "qkvom"
    has_qk_norm: bool = True
    is_packed: bool = False  # takes channels that are patches already


JOINT = {
    "AuraFlowTransformer2DModel": Joint(has_qk_norm=False),
    "ChromaTransformer2DModel": Joint(n_signals=0, is_packed=True),
    "Flux2Transformer2DModel": Joint(is_shared=True, is_gated=True, bias="", is_packed=True),
    "FluxTransformer2DModel": Joint(is_packed=True),
    "HunyuanImageTransformer2DModel": Joint(),
    "HunyuanVideoTransformer3DModel": Joint(),
    "QwenImageTransformer2DModel": Joint(is_packed=True),
    "SD3Transformer2DModel": Joint(),
}
UNET = "UNet2DConditionModel"


def is_diffusion(class_name: str) -> bool:
    """Whether a configuration of this class describes a denoiser."""
    return class_name == UNET or class_name.endswith(("Transformer2DModel", "Transformer3DModel"))


def diffusion_stacks(f: Fields, class_name: str) -> tuple[LayerStack, ...]:
    """The denoiser, and what conditions it."""
    if class_name == UNET:
        n_params = unet_params(f)
        widths = f.wholes("block_out_channels") or (1,)
        f.notes.assume("arithmetic of the UNet", "not counted", "convolutions have no tokens")
        # One group without matrices: resident, and no arithmetic per token.
        group = LayerGroup(n_layers=1, n_norm_params=n_params)
        return (LayerStack(role="denoiser", hidden_size=widths[-1], groups=(group,)),)
    if class_name in JOINT:
        return _joint(f, class_name)
    is_joint = f.given("num_single_layers", "joint_attention_dim")
    if class_name not in ("WanTransformer3DModel", "PixArtTransformer2DModel"):
        kind = "two joint streams" if is_joint else "self- and cross-attention"
        f.notes.assume("denoiser", kind, f"unknown class {class_name!r}")
    return _joint(f, class_name) if is_joint else _crossed(f)


def _hidden(f: Fields) -> tuple[int, int]:
    heads = f.count("num_attention_heads", "n_heads")
    if f.given("hidden_size", "dim"):
        return f.count("hidden_size", "dim"), heads
    return heads * f.count("attention_head_dim"), heads


def _modulation(hidden: int, n_layers: int, n_signals: int, *, has_bias: bool = True) -> LayerGroup:
    """Matrices from the time step to shifts and scales, one set per layer."""
    part = FeedForward(
        intermediate_size=n_signals * hidden,
        is_gated=False,
        n_matrix_params=n_signals * hidden * hidden,
        n_other_params=n_signals * hidden if has_bias else 0,
    )
    return LayerGroup(n_layers=n_layers, feed_forward=part)


def _joint(f: Fields, class_name: str) -> tuple[LayerStack, ...]:
    hidden, heads = _hidden(f)
    n_joint = f.count("num_layers", "num_mmdit_layers")
    n_single = f.whole("num_single_layers", "num_single_dit_layers")
    traits = JOINT.get(class_name, Joint())
    norm = 2 * max(1, hidden // heads) if _has_qk_norm(f, class_name) else 0
    block = Block(
        hidden=hidden,
        n_heads=heads,
        inner=int(f.number("mlp_ratio", default=4.0) * hidden),
        norm_terms=0,
        n_extra_params=norm,
        is_gated=traits.is_gated,
        bias=traits.bias,
    )
    groups, more = _attending_twice(layers_of(block, n_joint), f, hidden)
    beside = [layers_of(block, n_joint), *_signals(hidden, traits, n_joint, n_single), *more]
    if n_single:
        groups.append(_single(block, n_single))
    image = LayerStack(
        role="denoiser", hidden_size=hidden, groups=tuple(groups), n_other_params=_edges(f, hidden)
    )
    side = LayerStack(
        role="encoder",
        hidden_size=hidden,
        groups=tuple(beside),
        n_other_params=_conditions(f, hidden) - _last_text(class_name, hidden),
    )
    return image, side


def _attending_twice(
    once: LayerGroup, f: Fields, hidden: int
) -> tuple[list[LayerGroup], list[LayerGroup]]:
    """The joint layers, those of SD3.5 that attend a second time apart; signals more of those."""
    n_twice = len(f.wholes("dual_attention_layers"))
    if not n_twice or not isinstance(once.mixer, Attention):
        return [once], []
    apart = replace(once, n_layers=n_twice, cross=once.mixer)
    rest = replace(once, n_layers=once.n_layers - n_twice)
    return [rest, apart], [_modulation(hidden, n_twice, 3)]


def _signals(hidden: int, traits: Joint, n_joint: int, n_single: int) -> list[LayerGroup]:
    if not traits.n_signals:
        return []
    if traits.is_shared:
        return [_modulation(hidden, 1, 2 * traits.n_signals + 3, has_bias=False)]
    groups = [_modulation(hidden, n_joint, 2 * traits.n_signals)]
    return [*groups, _modulation(hidden, n_single, 3)] if n_single else groups


def _has_qk_norm(f: Fields, class_name: str) -> bool:
    if class_name == "SD3Transformer2DModel":
        return f.given("qk_norm")
    return JOINT.get(class_name, Joint()).has_qk_norm


def _last_text(class_name: str, hidden: int) -> int:
    """The last joint layer of SD3 drops the text: no output, no feed-forward, two signals."""
    if class_name != "SD3Transformer2DModel":
        return 0
    return hidden * hidden + hidden + 8 * hidden * hidden + 5 * hidden + 4 * (hidden + 1) * hidden


def _single(block: Block, n_layers: int) -> LayerGroup:
    """Attention and feed-forward part side by side with one output matrix."""
    group = layers_of(block, n_layers)
    fused = block.hidden if "o" in block.bias else 0  # the two output biases are one
    return LayerGroup(
        n_layers=n_layers,
        mixer=attention_of(block),
        feed_forward=group.feed_forward,
        n_norm_params=block.n_extra_params - fused,
    )


def _edges(f: Fields, hidden: int) -> int:
    """Into the network by patches and out again, the last norm modulated."""
    sides = f.wholes("patch_size", "all_patch_size") or (1,)
    area = prod(sides)
    if len(sides) == 1:
        area = 1 if _is_packed(f) else sides[0] ** 2 * f.count("patch_size_t", default=1)
    n_in = f.count("in_channels") * area
    n_out = _out_channels(f) * (sides[0] ** 2 if _is_packed(f) and sides else area)
    return n_in * hidden + hidden + hidden * n_out + n_out + 2 * (hidden + 1) * hidden


def _is_packed(f: Fields) -> bool:
    return JOINT.get(f.text("_class_name"), Joint()).is_packed


def _out_channels(f: Fields) -> int:
    return f.count("out_channels", default=f.count("in_channels"))


def _conditions(f: Fields, hidden: int) -> int:
    """Time step, guidance, pooled text, text tokens to the hidden width, layers of text alone."""
    step = TIME_WIDTH * hidden + hidden + hidden * hidden + hidden
    total = step * (2 if f.flag("guidance_embeds") else 1)
    pooled = f.maybe("pooled_projection_dim", least=1)
    if pooled is not None:
        total += pooled * hidden + hidden + hidden * hidden + hidden
    text = f.count("joint_attention_dim", "text_embed_dim", "caption_channels", default=hidden)
    norm = text if f.text("_class_name") == "QwenImageTransformer2DModel" else 0
    n_refiners = f.whole("num_refiner_layers")  # HunyuanVideo: plain layers with two signals
    if n_refiners:
        total += n_refiners * (14 * hidden + 15) * hidden + step + (text + hidden + 2) * hidden
    return total + text * hidden + hidden + norm


def _crossed(f: Fields) -> tuple[LayerStack, ...]:
    hidden, heads = _hidden(f)
    n_layers = f.count("num_layers", "n_layers")
    is_normed = f.raw("qk_norm")[1] == "rms_norm_across_heads"
    block = Block(
        hidden=hidden,
        n_heads=heads,
        inner=f.count("ffn_dim", default=4 * hidden),
        norm_terms=0,
        n_extra_params=6 * hidden
        + (4 * hidden if is_normed else 0)
        + (2 * hidden if f.flag("cross_attn_norm") else 0),
    )
    group = LayerGroup(
        n_layers=n_layers,
        mixer=attention_of(block),
        cross=attention_of(block),
        feed_forward=layers_of(block, 1).feed_forward,
        n_norm_params=block.n_extra_params,
    )
    text = f.count("text_dim", "caption_channels", "cross_attention_dim", default=hidden)
    step = f.count("freq_dim", default=TIME_WIDTH) * hidden + hidden + hidden * hidden + hidden
    words = text * hidden + hidden + hidden * hidden + hidden if text != hidden else 0
    signals = 6 * hidden * hidden + 6 * hidden
    edges = _edges(f, hidden) - 2 * (hidden + 1) * hidden + 2 * hidden
    stack = LayerStack(
        role="denoiser",
        hidden_size=hidden,
        groups=(group,),
        n_other_params=edges + step + words + signals,
    )
    return (stack,)


def unet_params(f: Fields) -> int:
    """All parameters."""
    sizes = _sizes(f)
    first, n_in = sizes.widths[0], f.count("in_channels", default=4)
    n_out = f.count("out_channels", default=n_in)
    edges = n_in * first * KERNEL + first + 2 * first + first * n_out * KERNEL + n_out
    time = first * sizes.time + sizes.time + sizes.time**2 + sizes.time
    if f.text("addition_embed_type") == "text_time":
        entry = f.count("projection_class_embeddings_input_dim")
        time += entry * sizes.time + sizes.time + sizes.time**2 + sizes.time
    last = sizes.widths[-1]
    middle = 2 * _residual(last, last, sizes.time) + _attention(sizes, len(sizes.widths) - 1)
    if not f.text("mid_block_type", default="UNetMidBlock2DCrossAttn"):
        middle = 0
    return edges + time + _down(f, sizes) + middle + _up(f, sizes)


def _sizes(f: Fields) -> Sizes:
    widths = f.wholes("block_out_channels") or (320, 640, 1280, 1280)
    if len(widths) > 16 or not all(widths):
        f.bad("block_out_channels", f"got {len(widths)} widths", "at most 16, none zero")
        widths = (1,)
    context = f.count("cross_attention_dim", default=1280)
    return Sizes(
        widths=widths,
        n_layers=_each(f, "layers_per_block", len(widths), usual=2),
        depths=_each(f, "transformer_layers_per_block", len(widths), usual=1),
        context=context,
        time=4 * widths[0],
    )


def _each(f: Fields, name: str, n: int, *, usual: int) -> tuple[int, ...]:
    values = f.wholes(name) or (usual,)
    if len(values) == 1:
        return values * n
    if len(values) != n:
        f.bad(name, f"names {len(values)} values", f"name one, or {n}")
        return (usual,) * n
    return values


def _residual(n_in: int, n_out: int, time: int) -> int:
    first = 2 * n_in + n_in * n_out * KERNEL + n_out
    second = 2 * n_out + n_out * n_out * KERNEL + n_out
    shortcut = n_in * n_out + n_out if n_in != n_out else 0
    return first + second + time * n_out + n_out + shortcut


def _attention(sizes: Sizes, level: int) -> int:
    width, context = sizes.widths[level], sizes.context
    own = 4 * width * width + width
    cross = 2 * width * width + 2 * context * width + width
    feed = 8 * width * width + 8 * width + 4 * width * width + width
    layer = own + cross + feed + 6 * width
    return 2 * width + 2 * (width * width + width) + sizes.depths[level] * layer


def _down(f: Fields, sizes: Sizes) -> int:
    kinds = f.texts("down_block_types") or DEFAULT_DOWN
    total, before = 0, sizes.widths[0]
    for level, width in enumerate(sizes.widths):
        has_attention = level < len(kinds) and "CrossAttn" in kinds[level]
        for i in range(sizes.n_layers[level]):
            total += _residual(before if i == 0 else width, width, sizes.time)
            total += _attention(sizes, level) if has_attention else 0
        if level < len(sizes.widths) - 1:
            total += width * width * KERNEL + width
        before = width
    return total


def _up(f: Fields, sizes: Sizes) -> int:
    kinds = f.texts("up_block_types") or DEFAULT_UP
    total, before = 0, sizes.widths[-1]
    for step, level in enumerate(reversed(range(len(sizes.widths)))):
        width, lower = sizes.widths[level], sizes.widths[max(0, level - 1)]
        has_attention = step < len(kinds) and "CrossAttn" in kinds[step]
        n_blocks = sizes.n_layers[level] + 1
        for i in range(n_blocks):
            skip = lower if i == n_blocks - 1 else width
            total += _residual((before if i == 0 else width) + skip, width, sizes.time)
            total += _attention(sizes, level) if has_attention else 0
        if level:
            total += width * width * KERNEL + width
        before = width
    return total
