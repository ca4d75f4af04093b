"""The quantization block of a configuration, reduced to which parts are stored in which format.

Lists of exceptions name modules, layer by layer, as plain paths, globs or regular expressions.
A part counts as quantized when most of its layers are; a split within a part is told.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import cast, get_args

from gpuplan.catalog.architectures.shape import Fields
from gpuplan.csv_rows import by_meaning
from gpuplan.domain.model.network import Checkpoint, Part
from gpuplan.domain.model.precision import FORMATS, NumberFormat, format_named

MAX_ENTRIES = 200_000
PARTS: tuple[Part, ...] = get_args(Part)
IGNORED = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "exclude")
# Module names by which published checkpoints call each part, below a layer.
IN_LAYER = cast("dict[Part, tuple[str, ...]]", by_meaning("catalog", "module_in_layer"))
# Gemma 4 has its experts beside the dense part, not within it.
GEMMA4: dict[Part, tuple[str, ...]] = {
    **IN_LAYER,
    "experts": ("experts.0.down_proj",),
    "shared_experts": ("mlp.down_proj",),
}
OUTSIDE = cast("dict[Part, tuple[str, ...]]", by_meaning("catalog", "module_outside"))
# Their converters leave the head alone without being told.
HEAD_STAYS = ("fp8", "awq", "gptq", "bitsandbytes", "mxfp4", "fbgemm_fp8", "auto-round")
KV_FORMATS = {"FP8": "fp8", "NVFP4": "nvfp4", "INT8": "int8"}


def read_checkpoint(top: Fields, text: Fields, *, n_layers: int) -> Checkpoint:
    """Precision of the published weights."""
    base = _base(top, text)
    block = top.child("quantization_config") or text.child("quantization_config")
    if block is None:
        return Checkpoint(base=base)
    names = GEMMA4 if "gemma4" in text.text("model_type") else IN_LAYER
    formats = _with_expert_type(text, block, _formats_by_part(block, n_layers, names))
    formats = {part: form for part, form in formats.items() if form != base}
    if not formats:
        return Checkpoint(base=base, cache=_cache(block))
    main = _main_format(formats)
    return Checkpoint(
        base=base,
        quantized=main,
        parts=tuple(part for part in PARTS if formats.get(part) == main),
        cache=_cache(block),
        others=tuple((part, formats[part]) for part in PARTS if formats.get(part, main) != main),
    )


def _base(top: Fields, text: Fields) -> NumberFormat:
    for part in (text, top):
        if part.given("dtype", "torch_dtype"):
            named = part.text("dtype", "torch_dtype").removeprefix("torch.")
            found = format_named(named)
            if found is not None and not found.is_quantized:
                return found
            top.notes.assume("precision of unquantized weights", "bf16", f"{named!r} is not one")
            return FORMATS["bf16"]
    top.notes.assume("precision of unquantized weights", "bf16", "the configuration names none")
    return FORMATS["bf16"]


def _main_format(formats: Mapping[Part, NumberFormat]) -> NumberFormat:
    # Most bytes lie in the experts where there are any.
    for part in ("experts", "feed_forward", "attention"):
        if part in formats:
            return formats[part]
    return next(iter(formats.values()))


def _with_expert_type(
    text: Fields, block: Fields, formats: dict[Part, NumberFormat]
) -> dict[Part, NumberFormat]:
    if block.text("quant_method") != "fp8" or block.given("quantized_layers"):
        return formats
    if text.text("expert_dtype") in ("fp4", "mxfp4") and "experts" in formats:
        return {**formats, "experts": FORMATS["mxfp4"]}
    return formats


def _formats_by_part(
    block: Fields, n_layers: int, names: Mapping[Part, tuple[str, ...]]
) -> dict[Part, NumberFormat]:
    if block.text("quant_method") == "parts":
        return _from_parts(block)
    listed = block.values.get("quantized_layers")
    if isinstance(listed, Mapping) and 0 < len(listed) <= MAX_ENTRIES:
        return {**_beside_listing(block), **_from_listing(listed)}
    groups = _groups(block)
    skipped = _Names(block, _entries(block))
    found: dict[Part, NumberFormat] = {}
    for part in PARTS if groups else ():
        layers = _module_names(names, part, n_layers)
        form = _part_format(block, part, groups, skipped=skipped, layers=layers)
        if form is not None:
            found[part] = form
    return found


def _beside_listing(block: Fields) -> dict[Part, NumberFormat]:
    """A checkpoint in fp8 blocks of which only the listed modules were quantized again."""
    if not block.given("weight_block_size"):
        return {}
    parts: tuple[Part, ...] = ("attention", "feed_forward", "experts", "shared_experts")
    return dict.fromkeys(parts, FORMATS["fp8-block"])


def _from_parts(block: Fields) -> dict[Part, NumberFormat]:
    """Our own reduced form: the format of each part by name."""
    stored = block.child("parts")
    names = {part: stored.text(part) for part in PARTS if stored and stored.given(part)}
    found = {part: stored_format(name) for part, name in names.items()}
    for part, form in found.items():
        if form is None:
            block.bad(f"parts.{part}", f"got {names[part]!r}", "must be a known format")
    return {part: form for part, form in found.items() if form is not None}


def stored_format(name: str) -> NumberFormat | None:
    """A format by name; `int4-g32` and `int4-g32z` are groups of 32 without and with zeros."""
    found = re.fullmatch(r"int([1-8])(?:-g([1-9][0-9]{0,5}))?(z?)", name)
    if name in FORMATS or not found:
        return FORMATS.get(name)
    group = int(found[2]) if found[2] else None
    return integer_format(int(found[1]), group, has_zero=bool(found[3]))


def _part_format(
    block: Fields,
    part: Part,
    groups: list[tuple[NumberFormat, "_Names"]],
    *,
    skipped: "_Names",
    layers: list[list[str]],
) -> NumberFormat | None:
    if part == "embedding" or (part == "head" and _head_stays(block)):
        return None
    for form, targets in groups:
        if not targets.share(layers):
            continue
        share = skipped.share(layers)
        if 0 < share < 1:
            block.notes.assume(
                f"stored format of {part}",
                form.name if share < 0.5 else "unquantized",
                f"{share:.0%} of its layers are excepted from quantization",
            )
        return form if share < 0.5 else None
    return None


def _head_stays(block: Fields) -> bool:
    return block.text("quant_method") in HEAD_STAYS or not _entries(block)


def _module_names(
    names: Mapping[Part, tuple[str, ...]], part: Part, n_layers: int
) -> list[list[str]]:
    """For each layer the names that this part may have there."""
    if part in OUTSIDE:
        return [list(OUTSIDE[part])]
    return [[f"layers.{i}.{name}" for name in names.get(part, ())] for i in range(n_layers)]


def _entries(block: Fields) -> list[str]:
    found: list[str] = []
    for name in IGNORED:
        value = block.values.get(name)
        if isinstance(value, list | tuple) and len(value) <= MAX_ENTRIES:
            found += [item for item in value if isinstance(item, str)]
    return found


class _Names:
    """Module names that a list of entries covers."""

    def __init__(self, block: Fields, entries: Iterable[str]) -> None:
        self.plain: set[str] = set()
        self.globs: list[str] = []
        self.patterns: list[re.Pattern[str]] = []
        self.covers_all = False
        for entry in entries:
            self._add(block, entry)

    def _add(self, block: Fields, entry: str) -> None:
        if entry in ("Linear", "re:.*", "*"):
            self.covers_all = True
        elif entry.startswith("re:"):
            pattern = _compiled(block, entry[3:])
            if pattern is not None:
                self.patterns.append(pattern)
        elif "*" in entry:
            self.globs.append(_from_layers(entry))
        else:
            self.plain.add(_from_layers(entry))

    def share(self, layers: list[list[str]]) -> float:
        """Which part of these layers is covered, by any of the names."""
        n_covered = sum(any(self._covers(name) for name in names) for names in layers)
        return n_covered / max(1, len(layers))

    def _covers(self, name: str) -> bool:
        if self.covers_all or any(path in self.plain for path in _paths(name)):
            return True
        if any(_glob_covers(glob, name) for glob in self.globs):
            return True
        full = f"model.{name}" if name.startswith("layers.") else name
        return any(p.match(full) or p.match(f"language_model.{full}") for p in self.patterns)


def _glob_covers(glob: str, name: str) -> bool:
    return (
        fnmatchcase(name, glob) or fnmatchcase(name, f"{glob}.*") or fnmatchcase(name, f"*.{glob}")
    )


def _compiled(block: Fields, pattern: str) -> re.Pattern[str] | None:
    # A repeated group can take exponential time; no published list needs one.
    if len(pattern) > 400 or re.search(r"\)[*+{]", pattern):
        block.notes.assume("exceptions from quantization", "one ignored", f"{pattern[:40]!r}")
        return None
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        block.bad("ignore", f"{pattern[:40]!r} is no regular expression", "fix it")
        return None


def _from_layers(entry: str) -> str:
    """The path from `layers.` on, whatever a checkpoint puts before it."""
    if "visual" in entry or "vision" in entry:
        return entry.removeprefix("model.").removesuffix(".")
    if entry.endswith("lm_head") or entry == "head":
        return "lm_head"
    at = entry.find("layers.")
    return (entry[at:] if at > 0 else entry).removesuffix(".")


def _paths(name: str) -> Iterable[str]:
    words = name.split(".")
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            yield ".".join(words[start:end])


def _groups(block: Fields) -> list[tuple[NumberFormat, _Names]]:
    listed = block.child("config_groups")
    everything = _Names(block, ["Linear"])
    if listed is None or not listed.values:
        form = _by_method(block)
        return [] if form is None else [(form, everything)]
    groups = []
    for name in list(listed.values)[:64]:
        group = listed.child(name)
        weights = group.child("weights") if group is not None else None
        if group is None or weights is None:
            continue
        form = _by_weights(weights, group.text("format") or block.text("format"))
        groups.append((form, _Names(block, group.texts("targets") or ("Linear",))))
    return groups


def _by_weights(weights: Fields, layout: str) -> NumberFormat:
    bits, group = weights.count("num_bits", default=8), weights.maybe("group_size")
    if weights.text("type", default="int") == "float":
        if bits == 4:
            return FORMATS["mxfp4" if "mxfp4" in layout or group == 32 else "nvfp4"]
        return FORMATS["fp8-block" if weights.text("strategy") == "block" else "fp8"]
    return integer_format(bits, group, has_zero=not weights.flag("symmetric", default=True))


def integer_format(bits: int, group: int | None, *, has_zero: bool) -> NumberFormat:
    """Integers with a 16-bit scale per group, and a zero point where there is one."""
    if bits == 8 and not group:
        return FORMATS["int8"]
    if bits == 4 and group == 128 and has_zero:
        return FORMATS["int4"]
    name = f"int{bits}" if not group else f"int{bits}-g{group}{'z' if has_zero else ''}"
    scale = 2 + (bits / 8 if has_zero else 0)
    return NumberFormat(
        name=name,
        element_bytes=bits / 8,
        group_size=group or None,
        group_bytes=scale if group else 0.0,
        compute="fp16",
    )


def _by_method(block: Fields) -> NumberFormat | None:
    method = block.text("quant_method").lower().replace("_", "-")
    if method in ("fp8", "fbgemm-fp8", "finegrained-fp8"):
        return FORMATS["fp8-block" if block.given("weight_block_size") else "fp8"]
    if method == "mxfp4":
        return FORMATS["mxfp4"]
    if method in ("awq", "gptq", "auto-round", "gptqmodel", "auto-gptq", "intel/auto-round"):
        return _grouped_integers(block)
    if method == "bitsandbytes" or block.given("load_in_4bit"):
        return _bitsandbytes(block)
    if method.startswith("modelopt") or block.given("quant_algo"):
        return _modelopt(block.text("quant_algo"))
    guess = format_named(method)
    if guess is None:
        block.notes.assume("stored precision", "unquantized", f"unknown method {method!r}")
    return guess


def _grouped_integers(block: Fields) -> NumberFormat:
    bits = block.count("bits", "w_bit", default=4)
    value = block.raw("group_size", "q_group_size")[1]
    group = 128 if value is None else value
    if not isinstance(group, int) or isinstance(group, bool) or group <= 0:
        return integer_format(bits, None, has_zero=False)  # -1: one scale per column
    return integer_format(bits, group, has_zero=True)


def _bitsandbytes(block: Fields) -> NumberFormat:
    if not block.flag("load_in_4bit"):
        return FORMATS["int8"]
    return FORMATS["nf4-dq" if block.flag("bnb_4bit_use_double_quant") else "nf4"]


def _modelopt(algorithm: str) -> NumberFormat | None:
    name = algorithm.upper()
    if "NVFP4" in name:
        return FORMATS["nvfp4"]
    if name.startswith(("MXFP8", "MXFP4")):
        return FORMATS[name[:5].lower()]
    if "FP8_PB" in name or "BLOCK" in name:
        return FORMATS["fp8-block"]
    if name.startswith("FP8"):
        return FORMATS["fp8"]
    if name.startswith(("W4A16", "W4A8", "INT4")):
        return FORMATS["int4"]
    return FORMATS["int8"] if name.startswith(("W8A8", "INT8")) else FORMATS["fp8"]


def _from_listing(listed: Mapping[object, object]) -> dict[Part, NumberFormat]:
    counts: dict[Part, Counter[NumberFormat]] = defaultdict(Counter)
    for name, value in listed.items():
        algorithm = value.get("quant_algo") if isinstance(value, Mapping) else None
        form = _modelopt(algorithm) if isinstance(algorithm, str) else None
        if form is not None and isinstance(name, str):
            counts[_part_of(name)][form] += 1
    return {part: counter.most_common(1)[0][0] for part, counter in counts.items()}


def _part_of(name: str) -> Part:
    words: dict[str, Part] = {
        "shared_expert": "shared_experts",
        "share_expert": "shared_experts",
        "expert": "experts",
        "visi": "tower",
        "visual": "tower",
        "lm_head": "head",
        "embed": "embedding",
        "attn": "attention",
        "attention": "attention",
        "mixer": "attention",
    }
    return next((part for word, part in words.items() if word in name), "feed_forward")


def _cache(block: Fields) -> NumberFormat | None:
    named = block.values.get("kv_cache_quant_algo") or block.values.get("kv_cache_scheme")
    if isinstance(named, str):
        return FORMATS.get(KV_FORMATS.get(named.upper(), named))
    scheme = block.child("kv_cache_scheme")
    if scheme is None or not scheme.values:
        return None
    return FORMATS["fp8" if scheme.text("type", default="float") == "float" else "int8"]
