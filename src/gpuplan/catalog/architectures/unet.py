"""Parameters of the conditional UNet of Stable Diffusion, block by block."""

from typing import NamedTuple

from gpuplan.catalog.architectures.fields import Fields

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
