"""Feed-forward parts: dense, and mixtures of experts with their shared ones."""

from gpuplan.catalog.architectures.pattern import EXPERTS, n_experts
from gpuplan.catalog.architectures.shape import FOURFOLD, INNER, Shape
from gpuplan.csv_rows import meanings, words
from gpuplan.domain.model.layers import Experts, FeedForward

ACTIVE = words("catalog", "active_experts")
EXPERT_INNER = words("catalog", "expert_width")
SHARED_INNER = words("catalog", "shared_expert_width")
SHARED_COUNT = words("catalog", "shared_experts")
# Their shared expert has a gate of its own.
SHARED_GATE = ("qwen2_moe", "qwen3_next", "qwen3_5_moe_text")
ACTIVATION_PARAMS = {"apertus": 2}


def inner_size(shape: Shape, layer: int = 0) -> int:
    """Inner width of a dense layer."""
    f, kind = shape.f, shape.model_type
    if isinstance(f.values.get("intermediate_size"), list | tuple):
        widths = f.wholes("intermediate_size") or (1,)
        return max(1, widths[min(layer, len(widths) - 1)])
    if kind in ("mpt", "falcon") and not f.given(*INNER):
        return int(f.number("expansion_ratio", default=4.0) * shape.hidden)
    if kind in FOURFOLD:
        return f.count(*INNER, default=4 * shape.hidden)
    name = OWN_NAME.get(kind)
    width = f.count(name, *INNER) if name else f.count(*INNER)
    return _special_width(shape, width, layer)


# Families that name the dense width differently.
OWN_NAME = meanings("catalog", "dense_width_of_family")


def _special_width(shape: Shape, width: int, layer: int) -> int:
    f, kind = shape.f, shape.model_type
    if kind == "gemma4_text" and f.flag("use_double_wide_mlp"):
        is_shared = layer >= shape.n_layers - f.whole("num_kv_shared_layers")
        return width * (2 if is_shared else 1)
    if kind in ("lfm2", "lfm2_moe") and f.flag("block_auto_adjust_ff_dim"):
        return _adjusted(shape, width)
    # These name the width of both gated halves together.
    return width // 2 if kind in ("recurrent_gemma", "qwen") else width


def _adjusted(shape: Shape, width: int) -> int:
    """Two thirds, scaled, rounded up to a multiple."""
    scaled = int(shape.f.number("block_ffn_dim_multiplier", default=1.0) * int(2 * width / 3))
    step = shape.f.count("block_multiple_of", default=1)
    return -(-scaled // step) * step


def dense_part(shape: Shape, inner: int | None = None) -> FeedForward:
    """The dense feed-forward part, of the usual width or this one."""
    width = inner_size(shape) if inner is None else inner
    extra = ACTIVATION_PARAMS.get(shape.model_type, 0)
    is_gated = shape.family.is_gated
    bias = width * (2 if is_gated else 1) + shape.hidden if shape.biases("m") else 0
    return FeedForward(
        intermediate_size=width,
        is_gated=is_gated,
        n_matrix_params=(3 if is_gated else 2) * shape.hidden * width,
        n_other_params=bias + extra,
    )


def experts_part(shape: Shape, layer: int = 0) -> Experts:
    """Routed experts, their router and the shared ones."""
    f = shape.f
    count, active = n_experts(shape), _n_active(shape)
    if active > count:
        f.bad(ACTIVE[0], f"got {active}", f"cannot exceed the {count} experts")
        active = count
    inner = _expert_inner(shape)
    entry = f.count("moe_latent_size", "routed_expert_hidden_size", default=shape.hidden)
    is_gated = shape.family.is_gated
    return Experts(
        n_experts=count,
        n_active=active,
        intermediate_size=inner,
        is_gated=is_gated,
        n_expert_matrix_params=(3 if is_gated else 2) * entry * inner,
        n_expert_other_params=_expert_bias(shape, inner),
        n_router_params=count * shape.hidden,
        shared=_shared(shape, inner, layer),
        n_other_params=_router_other(shape, count, entry),
    )


def _n_active(shape: Shape) -> int:
    config = shape.f.child("ffn_config")
    if config is not None and config.given("moe_top_k"):
        return config.count("moe_top_k")
    return max((1, *shape.f.wholes(*ACTIVE))) if shape.f.raw(*ACTIVE)[1] else shape.f.count(*ACTIVE)


def _expert_inner(shape: Shape) -> int:
    config = shape.f.child("ffn_config")
    if config is not None and config.given("ffn_hidden_size"):
        return config.count("ffn_hidden_size")
    sizes = shape.f.wholes(*EXPERT_INNER)
    return sizes[0] if sizes and sizes[0] else shape.f.count(*INNER)


def _expert_bias(shape: Shape, inner: int) -> int:
    if shape.model_type == "gpt_oss":
        return 2 * inner + shape.hidden
    return 0


def _router_other(shape: Shape, count: int, entry: int) -> int:
    total = 0
    if shape.f.flag(
        "use_routing_bias", "use_moe_router_bias", default=shape.family.has_router_bias
    ):
        total += count
    if shape.model_type in SHARED_GATE:
        total += shape.hidden
    if shape.model_type == "gemma4_text":
        total += shape.hidden + count  # scales of the router
    if entry != shape.hidden:  # experts in a smaller space: down before, up after
        total += 2 * shape.hidden * entry
        total += entry if shape.f.flag("latent_moe_use_norm") else 0
    return total


def _shared(shape: Shape, inner: int, layer: int) -> FeedForward | None:
    f = shape.f
    width = f.whole(*SHARED_INNER)
    if shape.model_type == "llama4_text":
        width = inner
    if shape.model_type == "gemma4_text":
        width = inner_size(shape, layer)  # its dense part stands beside the experts
    counts = f.wholes(*SHARED_COUNT)
    if not width and counts:
        width = counts[0] * inner
    return dense_part(shape, width) if width else None


__all__ = ["EXPERTS", "dense_part", "experts_part", "inner_size"]
