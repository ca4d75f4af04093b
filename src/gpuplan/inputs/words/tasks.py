"""Phrases of intent: what is to be done, and what is usual for it where nothing is said."""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from gpuplan.csv_rows import packaged_rows
from gpuplan.inputs.scenario.assumptions import ACTIVE_FRAC, REQUESTS_PER_USER_PER_H
from gpuplan.inputs.words.phrases import number_words
from gpuplan.inputs.words.tables import rules_of
from gpuplan.units import MS


class Asking(NamedTuple):
    """How often people ask at the peak; demand is proportional to it."""

    active_frac: float = ACTIVE_FRAC
    requests_per_user_per_h: float = REQUESTS_PER_USER_PER_H
    why: str = "a planning figure: one request in six minutes"


# Agents of one developer work side by side and without pause.
OF_AGENTS = Asking(0.4, 720.0, "a turn every 5 s: 24 turns/s of 300 engineers at the peak")
OF_TYPING = Asking(0.3, 180.0, "a planning figure: a suggestion every 20 s of typing")


class Use(NamedTuple):
    """What is usual for a use case; assumptions, not measurements."""

    input_tokens: int
    output_tokens: int
    slo: Mapping[str, float]
    prefix_hit_frac: float
    model: str
    keys: Mapping[str, float]  # further keys of a request
    asking: Asking


def _pairs(text: str) -> dict[str, float]:
    """Numbers by their names: ttft_p95_ms=2000 tpot_p95_ms=50."""
    pairs = (pair.split("=") for pair in text.split())
    return {name: int(n) if n.isdigit() else float(n) for name, n in pairs}


def _use(row: dict[str, str]) -> Use:
    return Use(
        int(row["input_tokens"]),
        int(row["output_tokens"]),
        _pairs(row["slo"]),
        float(row["prefix_hit_frac"]),
        row["model"],
        _pairs(row["keys"]),
        {"agents": OF_AGENTS, "typing": OF_TYPING, "": Asking()}[row["asking"]],
    )


# The first that the words name is meant: a RAG chatbot is RAG.
USES = {row["use"]: _use(row) for row in packaged_rows("gpuplan.inputs", "data/uses.csv")}

# Tokens of a document by the noun that counts it: 500 words a page, 180 pages a book.
NOUNS = number_words("noun")
THINK_S = 30.0  # of people; from question to question half take 39 s or less [RAGPulse]
THINK_WHY = (
    "people read and type: half of them ask again within 39 s, the response included [RAGPulse]; "
    "0 is as many requests always in flight"
)
SPEECH_S = 10.0
SPEECH_WHY = "callers listen and speak between responses; 0 is as many requests always in flight"
TOKENS_PER_S = 4000.0  # of a prompt longer than usual, that a person waits for
OF_PIECE = ("audio_s", "image_width_px", "image_height_px", "frames", "steps")


def patience(usual: Use, key: str, request: Mapping[str, Any]) -> tuple[float, str]:
    """How many times the usual target a larger request may take, and what to say of it."""
    pieces = [float(request[name]) / usual.keys[name] for name in OF_PIECE if name in usual.keys]
    if pieces:
        ratio = max(1.0, prod(pieces))
        return ratio, f", {ratio:.3g} times as much for a larger piece" if ratio > 1.0 else ""
    hit = float(request.get("prefix_hit_frac", 0.0))
    extra = float(request["input_tokens"]) * (1.0 - hit) - usual.input_tokens * (
        1.0 - usual.prefix_hit_frac
    )
    if extra <= 0:
        return 1.0, ""
    seconds = extra / TOKENS_PER_S
    if key.startswith("tpot"):
        # Who waits long for the first token may read the rest as slowly.
        whole_ms = usual.slo.get("ttft_p95_ms", 0.0) + seconds / MS
        ratio = whole_ms / max(1.0, float(request["output_tokens"])) / usual.slo[key]
        why = ", more for a long prompt: the output may take as long as its first token"
        return (ratio, why) if ratio > 1.0 else (1.0, "")
    if key.startswith("ttft"):
        why = f", and 1 s for every {TOKENS_PER_S:,.0f} tokens that the prompt is longer"
        return 1.0 + seconds / (usual.slo[key] * MS), why
    ratio = float(request["input_tokens"]) / usual.input_tokens
    return ratio, f", {ratio:.3g} times as much for a longer input"


TASKS = rules_of("tasks")
