"""Phrases of intent: what is to be done, and what is usual for it where nothing is said."""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from gpuplan.inputs.scenario.assumptions import ACTIVE_FRAC, REQUESTS_PER_USER_PER_H
from gpuplan.inputs.words.tables import rules_of
from gpuplan.units import MS

LARGE = "meta-llama/Llama-3.3-70B-Instruct"
SMALL = "meta-llama/Llama-3.1-8B-Instruct"
CODING = "Qwen/Qwen3-Coder-30B-A3B-Instruct"
SEEING = "Qwen/Qwen2.5-VL-7B-Instruct"


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
    prefix_hit_frac: float = 0.0
    model: str = LARGE
    keys: Mapping[str, float] = {}  # further keys of a request
    asking: Asking = Asking()


# The first that the words name is meant: a RAG chatbot is RAG.
USES = {
    "rag": Use(4000, 300, {"ttft_p95_ms": 3000, "tpot_p95_ms": 50}),
    "agents": Use(
        30000, 500, {"ttft_p95_ms": 4000, "tpot_p95_ms": 50}, 0.9, CODING, asking=OF_AGENTS
    ),
    "reranking": Use(512, 0, {"e2e_p95_s": 0.5}, model="BAAI/bge-reranker-v2-m3"),
    "embeddings": Use(256, 0, {"e2e_p95_s": 0.2}, model="BAAI/bge-m3"),
    "transcription": Use(
        4, 100, {"e2e_p95_s": 5.0}, model="openai/whisper-large-v3", keys={"audio_s": 30}
    ),
    "video": Use(
        77,
        0,
        {"e2e_p95_s": 900.0},
        model="Wan-AI/Wan2.1-T2V-14B",
        keys={"image_width_px": 832, "image_height_px": 480, "frames": 81, "steps": 50},
    ),
    "images": Use(
        77,
        0,
        {"e2e_p95_s": 20.0},
        model="stabilityai/stable-diffusion-xl-base-1.0",
        keys={"image_width_px": 1024, "image_height_px": 1024, "steps": 28},
    ),
    "vision": Use(1, 0, {"e2e_p95_s": 0.2}, model="google/vit-base-patch16-224"),
    "recommender": Use(1, 0, {"e2e_p95_s": 0.1}, model="mlcommons/dlrm-v2", keys={"texts": 270}),
    "summarization": Use(6000, 400, {"ttft_p95_ms": 5000, "tpot_p95_ms": 60}, model=SMALL),
    "translation": Use(800, 800, {"ttft_p95_ms": 2000, "tpot_p95_ms": 50}, model=SMALL),
    "classification": Use(600, 10, {"e2e_p95_s": 2.0}, model=SMALL),
    "captioning": Use(1000, 100, {"ttft_p95_ms": 3000, "tpot_p95_ms": 60}, model=SEEING),
    "ocr": Use(1500, 800, {"ttft_p95_ms": 5000, "tpot_p95_ms": 60}, model=SEEING),
    "extraction": Use(2000, 200, {"ttft_p95_ms": 5000, "tpot_p95_ms": 60}, model=SMALL),
    "completion": Use(2000, 50, {"ttft_p95_ms": 500, "tpot_p95_ms": 50}, asking=OF_TYPING),
    "reasoning": Use(1000, 4000, {"ttft_p95_ms": 2000, "tpot_p95_ms": 50}),
    "chat": Use(2000, 300, {"ttft_p95_ms": 2000, "tpot_p95_ms": 50}),
}

THINK_S = 30.0  # of people; from question to question half take 39 s or less [RAGPulse]
THINK_WHY = (
    "people read and type: half of them ask again within 39 s, the response included [RAGPulse]; "
    "0 is as many requests always in flight"
)
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
