"""Names in published tables that the catalog writes otherwise: same shapes, another name."""

import re

from gpuplan.catalog.models import find_model
from gpuplan.domain.model import Model
from gpuplan.errors import InputError

# Only networks of equal shape; a fine-tuned model runs as fast as its base.
SAME_SHAPE = {
    "mistral-7b": "mistralai/Mistral-7B-v0.1",
    "llama-3-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "llama-3-70b": "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama-3-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama-3-70b": "meta-llama/Llama-3.1-70B-Instruct",
    "llama-7b": "meta-llama/Llama-2-7b-hf",
    "llama-65b": "meta-llama/Llama-2-70b-hf",
    "bloom-176b": "bigscience/bloom",
    "codellama-70b-hf": "meta-llama/Llama-2-70b-hf",
    "codegemma-7b": "google/gemma-7b",
    "llama3-llava-next-8b-hf": "meta-llama/Llama-3.1-8B-Instruct",
    "phi-3-vision-128k-instruct": "microsoft/Phi-3-mini-128k-instruct",
    "qwen2.5-vl-72b-instruct": "Qwen/Qwen2.5-72B-Instruct",
    "qwen2.5-vl-7b-instruct": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-omni-30b-a3b-instruct": "Qwen/Qwen3-30B-A3B",
    "qwen3-omni-30b-a3b-thinking": "Qwen/Qwen3-30B-A3B",
    "qwen3-coder-30b-a3b-instruct": "Qwen/Qwen3-30B-A3B",
    "nvidia-nemotron-nano-12b-v2-vl-bf16": "nvidia/NVIDIA-Nemotron-Nano-12B-v2-Base",
    "nvidia-nemotron-3-nano-30b-a3b-$dtype": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4",
    "nemotron-3-nano-omni-30b-a3b-reasoning-bf16": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4",
}
# A release date or a purpose in the name changes the weights, not the shape.
RELEASE = re.compile(r"-(?:\d{4}|thinking|instruct|chat|hf|it|base)(?=-|$)", re.IGNORECASE)


def find_measured_model(text: str) -> Model:
    """The catalog's model of this name or of the same shape."""
    name = text.rpartition("/")[2]
    for wanted in (text, SAME_SHAPE.get(name.lower(), ""), RELEASE.sub("", name)):
        if not wanted:
            continue
        try:
            return find_model(wanted)
        except InputError:
            continue
    return find_model(text)
