"""How measured tables write numbers, precisions and layouts: text in, values of ours out.

A text that names no known format is refused: taking it for 16 bits would be a guess.
"""

import re

from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.precision import FORMATS, NumberFormat, format_named
from gpuplan.errors import InputError, Problem

Formats = tuple[NumberFormat | None, NumberFormat | None]

EMPTY = frozenset({"", "-", "–", "n/a"})  # what people write into a cell that says nothing
UNSAID = EMPTY | {"na", "none", "null", "nan", "unknown", "unstated", "auto", "default", "native"}
# Words of studies that say how many bits, not which format.
BITS = {"16-bit": "bf16", "mixed": "bf16", "8-bit": "int8", "4-bit": "int4"}
_FORM = r"(fp8_e4m3|fp8_e5m2|fp8|int8|nvfp4|fp4|bf16|fp16)"
CACHE = (
    re.compile(rf"\bkv(?:[ _-]?cache)?(?:[ _-]?dtype)?\s*[=:]?\s*{_FORM}"),
    re.compile(rf"{_FORM}[ _-]*kv(?:[ _-]?cache)?\b"),
)
# Mixes of llama.cpp that differ by their last letters; the middle one stands for all.
MIXES = re.compile(r"^(?:ud-)?(q[2-6]_k)(?:_[a-z]+)?$")
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
SPREAD = re.compile(r"attention_dp=(\d+) moe_tp=(\d+) moe_ep=(\d+)")
DEALT = re.compile(r"DEP(\d+)")
RANKS = re.compile(r"\b(tp|pp|ep|dp)(?:[ _-]?size)?[ _]?[=:]?[ _]?(\d+)\b")


def whole_text(text: str) -> str | None:
    """A count as plain digits: `1,024` is 1024, a cell that says nothing is empty; else None."""
    plain = text.strip()
    if plain.lower() in EMPTY:
        return ""
    if THOUSANDS.fullmatch(plain):
        return plain.replace(",", "")
    return plain if NUMBER.fullmatch(plain) else None


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


def noted_layout(note: str, n: int, *, tp: int, pp: int) -> ServingLayout | None:
    """What a note says in one of the ways that sources write it; None where it says nothing.

    `tp` is 0 where its column is empty; columns win over words.
    """
    spread, expert_group = SPREAD.search(note), DEALT.search(note)
    if spread:
        dp = int(spread[1])
        each = tp if tp > 1 and dp == 1 else max(1, n // dp // pp)
        return ServingLayout(tp=each, pp=pp, dp=dp, ep=int(spread[3]))
    if expert_group or "attention-DP" in note:
        n_ranks = int(expert_group[1]) if expert_group else n
        return ServingLayout(tp=1, dp=n_ranks, ep=n_ranks)
    if "Pipeline" in note and tp <= 1:
        return ServingLayout(tp=1, pp=n)
    ranks = {word: int(size) for word, size in RANKS.findall(note.lower())}
    return _in_words(ranks, n, tp=tp, pp=pp)


def _in_words(ranks: dict[str, int], n: int, *, tp: int, pp: int) -> ServingLayout | None:
    """`TP4 PP2`, `tp=8 ep=8`, `DP8 EP8`; copies without shared experts are replicas."""
    ep = ranks.get("ep", 1)
    dp = ranks.get("dp", 1) if ep > 1 else 1
    stages = pp if pp > 1 else ranks.get("pp", 1)
    named = tp or ranks.get("tp", 0)
    if ep > 1:
        # Sources that name experts' ranks leave the tensor ranks at 1: all devices hold a part.
        each = tp if tp > 1 and dp == 1 else max(1, n // stages // dp)
        return ServingLayout(tp=each, pp=stages, dp=dp, ep=ep)
    if "tp" not in ranks and "pp" not in ranks:
        return None
    return ServingLayout(tp=named or max(1, n // stages), pp=stages)
