"""Tables of llama.cpp runs on many cards, in: rows as published; out: rows of serving tables.

Published are tokens per second of one stream: prefill of n tokens, or decode of n tokens from an
empty context. Several cards are pipeline stages, which run in turn.
"""

import re
from collections.abc import Mapping, Sequence

from gpuplan.units import MS

Row = Mapping[str, str]
MATRIX_COLUMNS = frozenset({"gpu", "model", "phase", "tokens", "tok_s"})
SEVERAL = re.compile(r"^(?P<card>.*?)\s*\*\s*(?P<n>\d+)$")
MODEL = re.compile(r"^LLaMA (?P<version>\d(?:\.\d)?) (?P<size>\d+B) (?P<form>\S+)$")
SIXTEEN_BIT = {"F16": "fp16", "BF16": "bf16"}


def serving_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The same measurements under the names of serving tables; rows without a rate are left."""
    return [_serving_row(row, f"lc-{at:04d}") for at, row in enumerate(rows) if row.get("tok_s")]


def _serving_row(row: Row, id_: str) -> dict[str, str]:
    card, n = _cards(row["gpu"])
    model, precision = _model(row["model"])
    tokens, rate = row["tokens"], float(row["tok_s"])
    is_decode = row["phase"] == "decode"
    ttft_ms = float(tokens) / rate / MS
    measured = {"measured_ttft_mean_ms": f"{ttft_ms:.6g}"}
    if is_decode:
        measured = {"measured_output_tokens_per_s": f"{rate:g}"}
    return {
        "id": row.get("id") or id_,
        "source": row.get("source_repo", "") or "llama.cpp matrix",
        "accelerator": card,
        "n_accelerators": str(n),
        "model": model,
        "precision": precision,
        "engine": "llama.cpp",
        "engine_version": _version(row.get("engine", "")),
        "tp": "1",
        "pp": str(n),
        "batch": row.get("batch") or "1",
        "regime": "static_batch" if is_decode else "single request prefill",
        "input_tokens": "1" if is_decode else tokens,
        "output_tokens": tokens if is_decode else "1",
        **measured,
    }


def _cards(text: str) -> tuple[str, int]:
    """`4090 24GB * 2` is two of RTX 4090: GeForce cards are published by their number."""
    several = SEVERAL.match(text)
    card, n = (several["card"], int(several["n"])) if several else (text, 1)
    if "A100" not in card:  # two sizes of one name; of the others the name says the size
        card = re.sub(r"\s+\d+\s?GB$", "", card)
    return (f"RTX {card}" if re.match(r"[345]0\d0\b", card) else card), n


def _model(text: str) -> tuple[str, str]:
    """`LLaMA 3 8B Q4_K_M`: a name of the catalog, and how weights are kept."""
    found = MODEL.match(text)
    if found is None:
        return text, ""
    form = found["form"]
    return f"Llama-{found['version']}-{found['size']}", SIXTEEN_BIT.get(form, form)


def _version(engine: str) -> str:
    """`llama.cpp (May 2024)` is of 2024."""
    found = re.search(r"20\d\d", engine)
    return found.group(0) if found else ""
