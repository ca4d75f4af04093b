"""Which layer is of which kind: the many ways in which configurations say it, as one list.

Mixers: full, sliding, chunked, latent, compressed, linear, mamba, conv, lightning, parallel, none.
Feed-forward parts: dense, moe, none.
"""

from collections.abc import Callable

from gpuplan.catalog.architectures.shape import ATTENTION_FREE, Shape
from gpuplan.csv_rows import meanings, words

WORDS = meanings("catalog", "layer_kind")
LETTERS = {"M": "mamba", "*": "full", "-": "none", "E": "none"}
EXPERTS = words("catalog", "experts")


def mixer_kinds(shape: Shape) -> list[str]:
    """The kind of mixer of each layer, by the first statement that the configuration makes."""
    rules: list[Callable[[Shape], list[str]]] = [
        _from_words,
        _from_letters,
        _from_lists,
        _from_intervals,
        _from_windows,
    ]
    for rule in rules:
        kinds = rule(shape)
        if kinds:
            return _checked(shape, [_native(shape, kind) for kind in kinds])
    return [shape.family.mixer] * shape.n_layers


# What "linear attention" is in families that have another one than the gated delta rule.
LINEAR = meanings("catalog", "linear_attention_of_family")


def _native(shape: Shape, kind: str) -> str:
    if kind == "linear":
        return LINEAR.get(shape.model_type, kind)
    # Where the family has an attention of its own, a "full" layer is that one.
    if kind in ("full", "sliding") and shape.family.mixer in ("latent", "compressed"):
        return shape.family.mixer
    return kind


def _checked(shape: Shape, kinds: list[str]) -> list[str]:
    if len(kinds) >= shape.n_layers:
        return kinds[: shape.n_layers]
    shape.f.bad(
        "layer_types", f"names {len(kinds)} layers", f"the network has {shape.n_layers}: name all"
    )
    return [shape.family.mixer] * shape.n_layers


def _from_words(shape: Shape) -> list[str]:
    f = shape.f
    names = ("layer_types", "layers_block_type", "block_types", "_block_types")
    if not f.given(*names) and shape.model_type != "recurrent_gemma":
        return []
    words = f.texts(*names)
    if words and not f.given("layer_types") and len(words) < shape.n_layers:
        words = (words * (shape.n_layers // len(words) + 1))[: shape.n_layers]
    unknown = sorted({word for word in words if word not in WORDS})
    if unknown:
        f.notes.assume("kind of layer", "full attention", f"unknown kinds {', '.join(unknown[:4])}")
    return [WORDS.get(word, "full") for word in words]


def _from_letters(shape: Shape) -> list[str]:
    pattern = shape.f.text("hybrid_override_pattern")
    return [LETTERS.get(letter, "full") for letter in pattern]


def _from_lists(shape: Shape) -> list[str]:
    f, layers = shape.f, range(shape.n_layers)
    if shape.model_type == "mllama_text_model":
        chosen = set(f.wholes("cross_attention_layers"))
        return ["cross" if i in chosen else "full" for i in layers]
    # Lists with one sign per layer: what zero and one mean.
    for name, zero, one in (
        ("hybrid_layer_pattern", "full", "sliding"),
        ("attn_type_list", "lightning", "full"),
    ):
        if f.given(name):
            return [one if sign else zero for sign in f.wholes(name)]
    # Lists of the layers that have full attention, and what the rest has.
    for name, here, rest in (
        ("attn_layer_indices", "full", "mamba"),
        ("full_attn_idxs", "full", "conv"),
        ("hybrid_layer_ids", "hybrid", "mamba"),
    ):
        if f.given(name):
            chosen = set(f.wholes(name))
            return [here if i in chosen else rest for i in layers]
    linear = f.child("linear_attn_config")
    if linear is not None:
        chosen = set(linear.wholes("full_attn_layers"))  # counted from one
        return ["full" if i + 1 in chosen else "linear" for i in layers]
    return ["mamba"] * shape.n_layers if shape.model_type == "bamba" else []


def _from_intervals(shape: Shape) -> list[str]:
    f, layers = shape.f, range(shape.n_layers)
    if shape.model_type in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"):
        every = f.count("full_attention_interval", default=4)
        return ["linear" if (i + 1) % every else "full" for i in layers]
    if f.maybe("attn_layer_period") is not None:
        period, offset = f.count("attn_layer_period"), f.whole("attn_layer_offset")
        return ["full" if i % period == offset else "mamba" for i in layers]
    if shape.model_type == "llama4_text":
        return _llama4(shape)
    if shape.model_type == "minimax":
        return ["lightning" if i % 2 else "full" for i in layers]
    return []


def _llama4(shape: Shape) -> list[str]:
    rope = shape.f.wholes("no_rope_layers")
    every = shape.f.count("no_rope_layer_interval", default=4)
    if len(rope) != shape.n_layers:
        rope = tuple(int((i + 1) % every != 0) for i in range(shape.n_layers))
    return ["chunked" if uses_rope else "full" for uses_rope in rope]


def _from_windows(shape: Shape) -> list[str]:
    f, layers = shape.f, range(shape.n_layers)
    if f.maybe("sliding_window") in (None, 0) or not f.flag("use_sliding_window", default=True):
        return []
    every = _every_nth(shape)
    if every:
        return ["sliding" if (i + 1) % every else "full" for i in layers]
    rule = shape.family.window
    if rule == "upper":
        start = f.whole("max_window_layers", default=shape.n_layers)
        return ["sliding" if i >= start else "full" for i in layers]
    period = {"even": 2, "fourth": 4, "sixth": 6}.get(rule)
    if period:
        return ["sliding" if (i + 1) % period else "full" for i in layers]
    if rule == "unknown":
        f.notes.assume(
            "sliding window",
            "not applied",
            "which layers it applies to is not given",
            change="layer_types",
        )
    return ["sliding"] * shape.n_layers if rule == "all" else []


def _every_nth(shape: Shape) -> int:
    name, value = shape.f.raw(
        "sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"
    )
    if isinstance(value, str):
        return len(value) if value.endswith("G") and set(value[:-1]) == {"L"} else 0
    if value is None:
        return 0
    return shape.f.whole(name)


def feed_kinds(shape: Shape) -> list[str]:
    """The kind of feed-forward part of each layer."""
    f, layers = shape.f, range(shape.n_layers)
    if shape.model_type in (*ATTENTION_FREE, "zamba2"):
        return ["none"] * shape.n_layers
    if f.given("layers_block_type", "layer_types") and shape.model_type == "nemotron_h":
        named = {"moe": "moe", "mlp": "dense"}
        words = f.texts("layers_block_type", "layer_types")
        return [named.get(word, "none") for word in words][: shape.n_layers]
    if f.given("hybrid_override_pattern"):
        letters = {"-": "dense", "E": "moe"}
        return [letters.get(c, "none") for c in f.text("hybrid_override_pattern")][: shape.n_layers]
    if n_experts(shape) < 2 or not f.flag("enable_moe_block", default=True):
        return ["dense"] * shape.n_layers
    rule = _moe_rule(shape)
    return ["moe" if rule(i) else "dense" for i in layers]


def n_experts(shape: Shape) -> int:
    """Routed experts of a layer that has them; 0 for a dense network."""
    config = shape.f.child("ffn_config")
    if config is not None and config.given("moe_num_experts"):
        return config.whole("moe_num_experts")
    return max((0, *shape.f.wholes(*EXPERTS)))


def _moe_rule(shape: Shape) -> Callable[[int], bool]:
    f = shape.f
    if f.given("mlp_layer_types"):
        words = f.texts("mlp_layer_types")
        return lambda i: i < len(words) and words[i] != "dense"
    for name in ("moe_layers", "moe_layers_enum"):
        if f.given(name):
            return set(_indices(shape, name)).__contains__
    return _moe_by_period(shape)


def _indices(shape: Shape, name: str) -> tuple[int, ...]:
    value = shape.f.raw(name)[1]
    if isinstance(value, str):  # "3,4,5" in some configurations
        parts = value.split(",")[:4096]
        return tuple(int(part) for part in parts if part.strip().isdecimal())
    return shape.f.wholes(name)


def _moe_by_period(shape: Shape) -> Callable[[int], bool]:
    f = shape.f
    frequency = f.wholes("moe_layer_freq")
    usual = 1 if shape.model_type in ("glm4_moe_lite", "hy_v3") else 0
    names = ("first_k_dense_replace", "num_dense_layers", "moe_first_k_dense")
    first = f.whole(*names, default=usual)
    if len(frequency) > 1:
        return lambda i: i < len(frequency) and frequency[i] > 0
    if f.maybe("decoder_sparse_step") is not None:
        step, dense = f.count("decoder_sparse_step"), set(f.wholes("mlp_only_layers"))
        return lambda i: i not in dense and (i + 1) % step == 0
    if f.maybe("expert_layer_period") is not None:
        period, offset = f.count("expert_layer_period"), f.whole("expert_layer_offset")
        return lambda i: i % period == offset
    if f.maybe("interleave_moe_layer_step") is not None:
        step = f.count("interleave_moe_layer_step")
        return lambda i: (i + 1) % step == 0
    if f.maybe("moe_layer_interval") is not None:
        return _ernie(shape)
    step = max(1, frequency[0]) if frequency else 1
    return lambda i: i >= first and i % step == 0


def _ernie(shape: Shape) -> Callable[[int], bool]:
    f = shape.f
    starts = f.wholes("moe_layer_start_index")
    start = min(starts) if starts else 0
    is_open = f.raw("moe_layer_end_index")[1] in (None, -1)
    end = shape.n_layers - 1 if is_open else max((0, *f.wholes("moe_layer_end_index")))
    step = f.count("moe_layer_interval")
    return lambda i: (i + 1) % step == 0 and start <= i <= end
