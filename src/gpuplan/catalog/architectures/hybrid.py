"""Mixers with a constant state: state-space, linear attention, gated delta rule, short convolution.

Two things are kept per sequence: the recurrent state, and the last inputs of the short
convolution (kernel - 1 of them, as serving engines store it). Arithmetic of the recurrence is
counted per element of the state and token: decay, write and read.
"""

from dataclasses import replace
from math import ceil

from gpuplan.catalog.architectures.attention import Part, attention_part
from gpuplan.catalog.architectures.shape import Shape
from gpuplan.domain.model.layers import Attention, Cache, Recurrence, State
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.noun import dataclass

FP32_BYTES, BF16_BYTES = 4.0, 2.0
# Per element of the state: decay 1 (exponential 1), write 2, read 2.
SCAN_FLOP = 6.0
# The delta rule also reads before it writes: 2 more.
DELTA_FLOP = 8.0
# Families whose state-space layers have no norm before the output projection.
KDA = ("kimi_linear", "kimi_k3")
NO_INNER_NORM = ("falcon_h1",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Heads and widths of a recurrent mixer."""

    kind: str
    n_heads: int
    state_elements: int
    conv_channels: int
    kernel: int
    flop_per_element: float = SCAN_FLOP


def recurrent_part(shape: Shape, kind: str, *, layer: int) -> Part:
    """The constant-state mixer of one layer."""
    if kind == "hybrid":
        is_shared = shape.model_type == "zamba2"
        return zamba_part(shape) if is_shared else parallel_part(shape, layer=layer)
    if kind == "linear":
        return _kda(shape) if shape.model_type in KDA else _gated_delta(shape)
    plain = {"conv": _short_conv, "lightning": _lightning, "recurrent": _griffin}
    if kind in plain:
        return plain[kind](shape)
    return _mamba1(shape) if _is_mamba1(shape) else _mamba2(shape)


def parallel_part(shape: Shape, *, layer: int) -> Part:
    """Attention and state-space side by side in one layer; their matrices count together."""
    attention, mamba = attention_part(shape, "full", layer=layer), _mamba2(shape)
    mixer, other = attention.mixer, mamba.mixer
    if not isinstance(mixer, Attention) or other is None:
        return attention
    both = replace(
        mixer,
        n_matrix_params=mixer.n_matrix_params + other.n_matrix_params,
        n_other_params=mixer.n_other_params + other.n_other_params,
    )
    return Part(mixer=both, caches=attention.caches, states=mamba.states)


def _is_mamba1(shape: Shape) -> bool:
    return shape.model_type in ("mamba", "falcon_mamba", "jamba", "zamba")


def _part(shape: Shape, sizes: Sizes, n_matrix: int, n_other: int) -> Part:
    conv_flop = 2.0 * sizes.kernel * sizes.conv_channels
    mixer = Recurrence(
        kind=sizes.kind,
        n_heads=sizes.n_heads,
        scan_flop_per_token=sizes.flop_per_element * sizes.state_elements + conv_flop,
        n_matrix_params=n_matrix,
        n_other_params=n_other,
    )
    return Part(mixer=mixer, states=_states(shape, sizes))


def _states(shape: Shape, sizes: Sizes) -> tuple[State, ...]:
    retained = []
    if sizes.state_elements:
        size = State(
            n_heads=sizes.n_heads,
            n_elements=sizes.state_elements,
            element_bytes=_state_bytes(shape),
        )
        retained.append(size)
    if sizes.kernel > 1:
        n_elements = (sizes.kernel - 1) * sizes.conv_channels
        retained.append(
            State(n_heads=sizes.n_heads, n_elements=n_elements, element_bytes=BF16_BYTES)
        )
    return tuple(retained)


def _state_bytes(shape: Shape) -> float:
    named = shape.f.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    found = format_named(named.removeprefix("torch.")) if named else None
    if found is not None:
        return found.element_bytes
    shape.f.notes.assume(
        "precision of the recurrent state",
        "fp32, convolution inputs bf16",
        "the configuration names none",
        change="mamba_ssm_dtype",
    )
    return FP32_BYTES


def _mamba1(shape: Shape) -> Part:
    f, hidden = shape.f, shape.hidden
    inner = f.maybe("intermediate_size", least=1) if shape.model_type != "jamba" else None
    expand = f.number("expand", "mamba_expand", default=2.0)
    inner = int(expand * hidden) if shape.model_type in ("jamba", "zamba") or not inner else inner
    state = f.count("state_size", "mamba_d_state", default=16)
    kernel = f.count("conv_kernel", "mamba_d_conv", default=4)
    name, value = f.raw("time_step_rank", "mamba_dt_rank")
    rank = f.count(name) if isinstance(value, int) else ceil(hidden / 16)
    matrix = hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden
    has_conv_bias = f.flag("use_conv_bias", "mamba_conv_bias", default=True)
    other = inner * (kernel + has_conv_bias) + inner + inner * state + inner  # step bias, A, D
    if f.flag("use_bias", "mamba_proj_bias"):
        other += 2 * inner + hidden
    if shape.model_type == "jamba":
        other += rank + 2 * state
    sizes = Sizes(
        kind="mamba1",
        n_heads=inner,
        state_elements=inner * state,
        conv_channels=inner,
        kernel=kernel,
    )
    return _part(shape, sizes, matrix, other)


def _mamba2(shape: Shape) -> Part:
    f, hidden = shape.f, shape.hidden
    heads = f.count("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    inner = _mamba2_inner(shape, heads)
    state = f.count("ssm_state_size", "mamba_d_state", "state_size")
    groups = f.count("n_groups", "mamba_n_groups", "mamba_ngroups", default=1)
    kernel = f.count("conv_kernel", "mamba_d_conv", default=4)
    channels = inner + 2 * groups * state
    matrix = hidden * (inner + channels + heads) + inner * hidden
    has_norm = shape.model_type not in NO_INNER_NORM or f.flag("mamba_rms_norm")
    has_bias = f.flag("use_bias", "mamba_proj_bias", "add_bias_linear")
    bias = inner + channels + heads + hidden if has_bias else 0
    conv_bias = channels if f.flag("use_conv_bias", "mamba_conv_bias", default=True) else 0
    other = channels * kernel + conv_bias + 3 * heads + (inner if has_norm else 0) + bias
    sizes = Sizes(
        kind="mamba2",
        n_heads=heads,
        state_elements=inner * state,
        conv_channels=channels,
        kernel=kernel,
    )
    return _part(shape, sizes, matrix, other)


def _mamba2_inner(shape: Shape, heads: int) -> int:
    f = shape.f
    if f.given("mamba_d_ssm") or shape.model_type == "falcon_h1":
        return f.count("mamba_d_ssm")
    expand = f.number("expand", "mamba_expand", default=2.0)
    name, head = f.raw("mamba_head_dim", "mamba_d_head", "mamba_headdim")
    if isinstance(head, str) or head is None:  # "auto"
        if shape.model_type == "mamba2" and f.raw("head_dim")[1] is not None:
            return heads * f.count("head_dim")
        return int(expand * shape.hidden)
    return heads * f.count(name)


def _gated_delta(shape: Shape) -> Part:
    f, hidden = shape.f, shape.hidden
    k_heads, v_heads = f.count("linear_num_key_heads"), f.count("linear_num_value_heads")
    k_dim, v_dim = f.count("linear_key_head_dim"), f.count("linear_value_head_dim")
    kernel = f.count("linear_conv_kernel_dim", default=4)
    keys, values = k_heads * k_dim, v_heads * v_dim
    channels = 2 * keys + values
    matrix = hidden * (2 * keys + 2 * values) + hidden * 2 * v_heads + values * hidden
    other = channels * kernel + 2 * v_heads + v_dim
    sizes = Sizes(
        kind="gated-delta",
        n_heads=v_heads,
        state_elements=v_heads * k_dim * v_dim,
        conv_channels=channels,
        kernel=kernel,
        flop_per_element=DELTA_FLOP,
    )
    return _part(shape, sizes, matrix, other)


def _kda(shape: Shape) -> Part:
    """Kimi delta attention: per-channel decay made by a low-rank gate [Kimi-Linear]."""
    hidden, config = shape.hidden, shape.f.child("linear_attn_config") or shape.f
    is_nested = config is not shape.f
    heads = config.count("num_heads" if is_nested else "linear_num_heads")
    dim = config.count("head_dim" if is_nested else "linear_head_dim")
    kernel = config.count("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    width = heads * dim
    low_rank = hidden * dim + dim * width
    gate = hidden * width if config.flag("use_full_rank_gate") else low_rank
    matrix = 4 * hidden * width + low_rank + gate + hidden * heads
    other = 3 * width * kernel + width + heads + dim
    sizes = Sizes(
        kind="kda",
        n_heads=heads,
        state_elements=heads * dim * dim,
        conv_channels=3 * width,
        kernel=kernel,
        flop_per_element=DELTA_FLOP,
    )
    return _part(shape, sizes, matrix, other)


def _lightning(shape: Shape) -> Part:
    width = shape.n_heads * shape.head_dim
    matrix = shape.hidden * 4 * width + width * shape.hidden
    sizes = Sizes(
        kind="lightning",
        n_heads=shape.n_heads,
        state_elements=width * shape.head_dim,
        conv_channels=0,
        kernel=1,
        flop_per_element=5.0,
    )
    return _part(shape, sizes, matrix, width)


def _short_conv(shape: Shape) -> Part:
    hidden, kernel = shape.hidden, shape.f.count("conv_L_cache", default=3)
    bias = 5 * hidden if shape.f.flag("conv_bias") else 0
    sizes = Sizes(
        kind="short-conv", n_heads=1, state_elements=0, conv_channels=hidden, kernel=kernel
    )
    return _part(shape, sizes, 4 * hidden * hidden, hidden * kernel + bias)


def _griffin(shape: Shape) -> Part:
    """Gated linear recurrence of RecurrentGemma [Griffin]."""
    f, hidden = shape.f, shape.hidden
    width = f.count("lru_width", default=hidden)
    kernel, heads = f.count("conv1d_width", default=4), shape.n_heads
    matrix = 3 * hidden * width + 2 * width * width // heads
    other = 2 * width + hidden + width * (kernel + 1) + 3 * width
    sizes = Sizes(
        kind="rg-lru", n_heads=heads, state_elements=width, conv_channels=width, kernel=kernel
    )
    return _part(shape, sizes, matrix, other)


def zamba_part(shape: Shape) -> Part:
    """A state-space layer joined by a transformer block that all such layers share [Zamba2].

    The block works in every hybrid layer and is stored once: `zamba_stored_once` takes back what
    is counted more than once.
    """
    mamba, hidden = _mamba2(shape), shape.hidden
    block = _zamba_block(shape)
    adapters = _zamba_adapters(shape)
    cache = Cache(n_heads=shape.n_kv_heads, elements_per_head=2 * _zamba_dim(shape))
    return Part(
        mixer=mamba.mixer,
        cross=replace(block, n_matrix_params=block.n_matrix_params + hidden * hidden + adapters),
        caches=(cache,),
        states=mamba.states,
    )


def _zamba_dim(shape: Shape) -> int:
    return shape.f.count("attention_head_dim", default=max(1, 2 * shape.hidden // shape.n_heads))


def _zamba_block(shape: Shape) -> Attention:
    """Attention over hidden state and embedding side by side, and its feed-forward part."""
    hidden, inner = shape.hidden, shape.f.count("intermediate_size")
    dim, wide = _zamba_dim(shape), 2 * hidden
    keys = 2 * wide * shape.n_kv_heads * dim
    return Attention(
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        qk_head_dim=dim,
        v_head_dim=dim,
        n_matrix_params=keys + shape.n_heads * dim * (wide + hidden) + 3 * hidden * inner,
        n_kv_matrix_params=keys,
        n_other_params=wide + hidden,
    )


def _zamba_adapters(shape: Shape) -> int:
    f, hidden = shape.f, shape.hidden
    rank = f.count("adapter_rank", default=128)
    total = rank * (hidden + 2 * f.count("intermediate_size"))
    if f.flag("use_shared_attention_adapter"):
        total += 3 * rank * (2 * hidden + shape.n_heads * _zamba_dim(shape))
    return total


def zamba_stored_once(shape: Shape, n_hybrid: int) -> int:
    """Parameters to take off because blocks are shared between layers."""
    block = _zamba_block(shape)
    n_blocks = min(n_hybrid, shape.f.count("num_mem_blocks", default=1))
    return (n_hybrid - n_blocks) * (block.n_matrix_params + block.n_other_params)
