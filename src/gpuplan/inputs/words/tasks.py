"""Phrases of intent: what is to be done, and what is usual for it where nothing is said."""

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from gpuplan.inputs.scenario.assumptions import ACTIVE_FRAC, REQUESTS_PER_USER_PER_H
from gpuplan.inputs.words.phrases import Rule, means
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


_ALL = (
    r"(?:\s+(?:service|workload|pipeline|system|app(?:lication)?|model|tasks?|jobs?|api|backend))?"
)
_APIS = r"(?:(?:azure\s+)?open\s?ai|anthropic|claude|gemini|bedrock|gpt-?\d[\w.-]*)(?:'s)?"
TASKS: tuple[Rule, ...] = (
    means(
        r"\b(?:replac(?:e|ing|ement\s+(?:of|for))|instead\s+of|mov(?:e|ing)\s+(?:away\s+)?(?:from|off)"
        rf"|migrat(?:e|ing)\s+(?:away\s+)?(?:from|off)|alternative\s+to)\s+(?:the\s+|our\s+)?{_APIS}"
        r"(?:\s+(?:apis?|usage|calls|models?|bill))*",
        kind="online",
    ),
    means(
        r"\b(?:(?:private|own|internal|in-house|local|secure|company)\s+)*chat\s?gpt(?:\s*-?\s*(?:like|style|clone"
        r"|alternative|replacement|equivalent|competitor|service))*\b",
        use="chat",
    ),
    means(
        r"\b(?:(?:private|own|internal|in-house|local)\s+)*(?:(?:github\s+)?copilot|cursor|claude\s+code)"
        r"(?:\s*-?\s*(?:like|style|clone|alternative|replacement|equivalent))*\b",
        use="agents",
    ),
    means(r"\b(?:an?|the|our|my|with)\s+fine-?\s?tuned\b"),  # what was tuned is not to be tuned
    means(r"\bqlora\b", kind="finetuning", method="qlora"),
    means(r"\bq-lora\b", kind="finetuning", method="qlora"),
    means(
        r"\blora\b(?:[\s-]*fine-?\s?tun(?:e|ing))?(?:\s+adapters?)?",
        kind="finetuning",
        method="lora",
    ),
    means(
        r"\bfull(?:[\s-]+(?:parameter|weight))?[\s-]*(?:fine-?\s?tun(?:e|ing)|ft|sft)\b",
        kind="finetuning",
        method="full",
    ),
    means(
        r"\b(?:supervised\s+)?(?:fine-?\s?tun(?:e|es|ed|ing)s?|finetun(?:e|es|ed|ing)|sft"
        r"|instruction[\s-]tun(?:e|ing)|post-?training|dpo|orpo|kto|preference[\s-](?:tuning|optimi[sz]ation))\b",
        kind="finetuning",
    ),
    means(r"\bdistil(?:l|ls|ling|lation)?\b", kind="distillation"),
    means(
        r"\b(?:rlhf|rlvr|grpo|ppo|reinforcement[\s-]learning|rl)\b(?:[\s-]+(?:post-?)?train(?:ing)?)?",
        kind="reinforcement",
    ),
    means(
        r"\b(?:continu(?:ed?|al|ous|ing)\s+)?pre-?\s?train(?:s|ed|ing)?\b(?:\s+from\s+scratch)?",
        kind="pretraining",
    ),
    means(
        r"\bfull(?:[\s-]+(?:parameters?|weights?))?\b(?!\s*[\s-](?:context|day|time|load|text|length"
        r"|precision|page|document|prompt)s?\b)",
        full=True,
    ),
    means(r"\b(?:nightly|(?:every|each|at|by)\s+night|during\s+the\s+night)\b", nightly=True),
    means(r"\b(?:re-?)?train(?:s|ing)?\b(?:\s+from\s+scratch)?(?:\s+run)?", kind="training"),
    means(r"\bfrom\s+scratch\b", kind="pretraining"),
    means(
        r"\b(?:batch|offline|bulk|back-?fill|asynchronous(?:ly)?|async)\b(?:\s+(?:inference|jobs?|processing))?",
        kind="batch",
    ),
    means(
        r"\b(?:online|real[\s-]?time|interactive|live|streaming|low[\s-]latency)\b", kind="online"
    ),
    means(
        r"\b(?:rag|retrieval[\s-]augmented(?:[\s-]generation)?|(?:documents?|docs?)\s+(?:q\s*&\s*a|qa)"
        rf"|knowledge[\s-]base|(?:enterprise|documents?|docs?)\s+search){_ALL}\b",
        use="rag",
    ),
    means(
        r"\b(?:semantic|vector|similarity|nearest[\s-]neighbou?r)\s+search\b",
        use="embeddings",
        searched=True,
    ),
    means(rf"\bsearch(?:\s+engine)?{_ALL}\b", use="search"),
    means(
        rf"\b(?:coding|code|software)\s+(?:agents?|assistants?)|\bagent(?:s|ic)?{_ALL}\b",
        use="agents",
    ),
    means(r"\bre-?rank(?:s|er|ers|ing)?\b", use="reranking"),
    means(
        rf"\b(?:text\s+)?embed(?:s|ded|der|ding|dings)?{_ALL}\b|\bvectori[sz](?:e|ing)\b|\bvectors\b",
        use="embeddings",
    ),
    means(
        rf"\b(?:text[\s-]to[\s-]speech|tts|(?:speech|voice)\s+(?:synthesis|generation)){_ALL}\b",
        use="speech",
    ),
    means(
        rf"\b(?:transcri(?:be|bes|bing|ption|ptions)|speech[\s-]to[\s-]text|speech\s+recognition|asr|stt)"
        rf"{_ALL}\b",
        use="transcription",
    ),
    means(
        rf"\b(?:(?:image|picture|photo|visual)\s+)?(?:caption(?:s|ing)?|descri(?:be|bing|ption)s?){_ALL}\b",
        use="captioning",
    ),
    means(
        r"\b(?:text[\s-]to[\s-]video|video\s+generation|generate\s+videos?|videos?|clips)\b",
        use="video",
    ),
    means(
        r"\b(?:recommenders?(?:\s+(?:systems?|models?|engines?))?"
        r"|recommendation\s+(?:systems?|models?|engines?)|ctr\s+prediction)\b",
        use="recommender",
    ),
    means(
        r"\b(?:image\s+classification|classify\s+(?:images?|pictures?)|(?:computer\s+)?vision)\b",
        use="vision",
    ),
    means(
        rf"\b(?:text[\s-]to[\s-]image|image\s+generation|generate\s+(?:images?|pictures?)|images?|pictures?)"
        rf"{_ALL}\b",
        use="images",
    ),
    means(rf"\bsummar(?:i[sz]e|i[sz]es|i[sz]ing|i[sz]ation|y|ies){_ALL}\b", use="summarization"),
    means(rf"\btranslat(?:e|es|ing|ion|ions){_ALL}\b", use="translation"),
    means(
        rf"\b(?:classif(?:y|ies|ying|ication)|label(?:l?ing)?|tag(?:ging)?|moderat(?:e|ion)|sentiment)"
        rf"{_ALL}\b",
        use="classification",
    ),
    means(rf"\bocr{_ALL}\b", use="ocr"),
    means(rf"\b(?:extract(?:s|ing|ion)?|pars(?:e|ing)){_ALL}\b", use="extraction"),
    means(
        rf"\b(?:code[\s-]+completions?|auto-?complet(?:e|ion)|copilot|completion){_ALL}\b",
        use="completion",
    ),
    means(r"\breasoning\b", use="reasoning"),
    means(
        rf"\b(?:chat(?:bots?|ting|s)?|assistants?|conversations?|conversational|customer\s+support|support\s+bot"
        rf"|q\s*&\s*a|question[\s-]answering){_ALL}\b",
        use="chat",
    ),
    means(r"\b(?:coding|code)\b", use="agents"),
    means(r"\b(?:process|score|generate|run\s+through|analy[sz]e)\b", kind="process"),
)
