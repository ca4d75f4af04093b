"""Names in published tables that the catalog writes otherwise: same shapes, another name."""

import re
from dataclasses import replace
from functools import lru_cache

from gpuplan.calibration.training.models import known_model
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.units import TB

# Only networks of equal shape; a fine-tuned model runs as fast as its base.
SAME_SHAPE = {
    "llama3-llava-next-8b-hf": "meta-llama/Llama-3.1-8B-Instruct",
    "phi-3-vision-128k-instruct": "microsoft/Phi-3-mini-128k-instruct",
    "qwen3-omni-30b-a3b-instruct": "Qwen/Qwen3-30B-A3B",
    "qwen3-omni-30b-a3b-thinking": "Qwen/Qwen3-30B-A3B",
    "nvidia-nemotron-nano-12b-v2-vl-bf16": "nvidia/NVIDIA-Nemotron-Nano-12B-v2-Base",
    "nvidia-nemotron-3-nano-30b-a3b-$dtype": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4",
    "magistral-small-2509": "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
    "pixtral-large-instruct-2411": "mistralai/Mistral-Large-Instruct-2411",
    "minimax-m1-80k": "MiniMaxAI/MiniMax-Text-01",
    "minimax-m1-40k": "MiniMaxAI/MiniMax-Text-01",
    "ring-1t": "inclusionAI/Ling-1T",
    "chatglm2-6b": "THUDM/chatglm3-6b",
    "llama-3_3-nemotron-super-49b-v1_5": "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "llama-3.3-nemotron-super-49b-v1.5": "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "phi-3.5-vision-instruct": "microsoft/Phi-3.5-mini-instruct",
    "phi-4-multimodal-instruct": "microsoft/Phi-4-mini-instruct",
    "phi-3-mini": "microsoft/Phi-3-mini-4k-instruct",
    "llama-guard-3-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "command-r-v01": "CohereForAI/c4ai-command-r-v01",
    "jamba-1.5-large": "ai21labs/AI21-Jamba-1.5-Large",
    "nemotron-3-nano-omni-30b-a3b-reasoning-bf16": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4",
}
# A release date, a purpose or a revision in the name changes the weights, not the shape.
RELEASE = re.compile(
    r"-(?:\d{4}|thinking|instruct|chat|hf|it|base|exp|terminus|speciale)(?=-|$)", re.IGNORECASE
)
REVISION = re.compile(r"(?<=\w)-v\d+(?:\.\d+)?$", re.IGNORECASE)
SPOKEN_VERSION = re.compile(r"(?<=[a-z])[ -]v(?=\d)", re.IGNORECASE)  # `LLaMA v3.3 70B`
# Families whose name at the end of another tells what was tuned: `Hermes-3-Llama-3.1-405B`.
BASES = re.compile(
    r"(?<=-)(?:meta-)?(?:llama|mistral|mixtral|qwen|gemma|phi|yi|falcon)(?=[-\d])", re.I
)

# Names in tables that the catalog knows under another one.
ALIASES = (
    (r"^llama-?3[- ](8b|70b)$", r"meta-llama/Meta-Llama-3.1-\1"),
    (r"^llama_?31?[_ -](8b|70b|405b)$", r"meta-llama/Meta-Llama-3.1-\1"),
    (r"^nemotron-?(?:h|5)[_ -]56b$", "nvidia/Nemotron-H-56B-Base-8K"),
    (r"^llama-?4 maverick.*", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
    (r"^llama-?4 scout.*", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
    (r"^mixtral 8[x×](\d+)b", r"mistralai/Mixtral-8x\1B-v0.1"),
    (r"^deepseek[- ]?v3.*", "deepseek-ai/DeepSeek-V3"),
)
OTHER_SIZE = 0.02  # share of the parameters
BARE_SIZE = re.compile(r"\d+(\.\d+)?\s*[bmt]", re.IGNORECASE)  # 5B: of which network?


def find_measured_model(text: str) -> Model:
    """The catalog's model of this name or of the same shape."""
    name = text.rpartition("/")[2]
    for wanted in dict.fromkeys((text, *_other_spellings(name))):
        if not wanted:
            continue
        try:
            return find_model(wanted)
        except InputError:
            continue
    return find_model(text)


def _other_spellings(name: str) -> tuple[str, ...]:
    plain = RELEASE.sub("", name)
    tuned = BASES.search(name)
    base = name[tuned.start() :] if tuned else ""
    return (
        SAME_SHAPE.get(name.lower(), ""),
        plain,
        REVISION.sub("", plain),
        SPOKEN_VERSION.sub(" ", name),
        base,
        RELEASE.sub("", base),
    )


def check_named(name: str) -> None:
    """InputError where a row names no model, or a size that many networks share."""
    fix = "give the model's name, or n_layers, hidden, heads and vocab (--map n_layers:=24)"
    if not name:
        raise one(InputError, "row", "model", "is missing", fix)
    if BARE_SIZE.fullmatch(name):
        raise one(InputError, "row", "model", f"{name} is a size, not a network", fix)


def accelerator_of(text: str, catalog: Catalog) -> Accelerator:
    """The accelerator that a table means; a stated bandwidth replaces the sheet's."""
    head = re.sub(r"\s*\d+\s*gb$", "", re.split(r",| hbm| \(", text.lower())[0])
    # Some tables give the family first and the part in brackets: "Blackwell GPU (B200-SXM)".
    inside = re.search(r"\((.+)\)", text)
    for name in (text, head, re.sub(r"-\d+gb$", "", inside[1].lower()) if inside else head):
        try:
            accelerator = find_accelerator(name, catalog).accelerator
            break
        except PlannerError as error:
            refusal = error
    else:
        raise refusal
    stated = re.search(r"(\d+(?:\.\d+)?)\s*tb/s", text.lower())
    if stated is None:
        return accelerator
    memory = replace(accelerator.memory, bytes_per_s=float(stated[1]) * TB)
    return replace(accelerator, memory=memory)


@lru_cache(maxsize=512)
def named_model(name: str) -> Model:
    """By catalog or alias; by the dimensions of papers where the catalog has another size."""
    for pattern, better in ALIASES:
        if re.search(pattern, name.lower()):
            name = re.sub(pattern, better, name.lower())
            break
    known = known_model(name)
    try:
        found = find_measured_model(name)
    except PlannerError:
        if known is None:
            raise
        return known
    is_other = known is not None and abs(found.n_params / known.n_params - 1) > OTHER_SIZE
    return known if known is not None and is_other else found
