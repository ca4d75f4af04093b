"""How measured tables write precisions: text in, formats of weights and cache out.

A text that names no known format is refused: taking it for 16 bits would be a guess.
"""

import re

from gpuplan.domain.model.precision import FORMATS, NumberFormat, format_named
from gpuplan.errors import InputError, Problem

Formats = tuple[NumberFormat | None, NumberFormat | None]

UNSAID = frozenset({"", "-", "–", "n/a", "na", "none", "null", "nan", "unknown", "unstated",
                    "auto", "default", "native"})  # fmt: skip
# Words of studies that say how many bits, not which format.
BITS = {"16-bit": "bf16", "mixed": "bf16", "8-bit": "int8", "4-bit": "int4"}
_FORM = r"(fp8_e4m3|fp8_e5m2|fp8|int8|nvfp4|fp4|bf16|fp16)"
CACHE = (
    re.compile(rf"\bkv(?:[ _-]?cache)?(?:[ _-]?dtype)?\s*[=:]?\s*{_FORM}"),
    re.compile(rf"{_FORM}[ _-]*kv(?:[ _-]?cache)?\b"),
)
# Mixes of llama.cpp that differ by their last letters; the middle one stands for all.
MIXES = re.compile(r"^(?:ud-)?(q[2-6]_k)(?:_[a-z]+)?$")


def formats_of(text: str) -> Formats:
    """Formats of weights and of the cache, None where the text does not say."""
    low = text.strip().lower()
    if low in UNSAID:
        return None, None
    cache, rest = _cache(low)
    for start, name in BITS.items():
        if rest.startswith(start):
            return FORMATS[name], cache
    weights = _weights(rest)
    if weights is None and cache is not None and not re.search(r"\w", rest):
        return cache, cache  # `FP8-KV` names weights and cache at once
    if weights is None:
        known = "bf16, fp16, fp8, mxfp8, int8, w8a16, int4, nvfp4, mxfp4, q4_k_m"
        raise InputError("precision", [Problem(text, "is no known format", f"use {known} …")])
    return weights, cache


def _cache(low: str) -> tuple[NumberFormat | None, str]:
    for pattern in CACHE:
        found = pattern.search(low)
        if found:
            return format_named(found[1]), low[: found.start()] + low[found.end() :]
    return None, low


def _weights(low: str) -> NumberFormat | None:
    words = [word for word in re.split(r"[\s,;/+()=]+", low) if word]
    if "fp8" in words and "w8a8" in words:
        return FORMATS["fp8"]  # eight bits on both sides, and which eight
    for word in words:
        mix = MIXES.match(word)
        found = format_named(f"{mix[1]}_m" if mix and mix[1] != "q6_k" else word)
        if found is None and mix:
            found = format_named(mix[1])
        parts = word.split("-") if found is None else ()
        found = found or next((f for f in map(format_named, parts) if f is not None), None)
        if found is not None:
            return found
    return None
