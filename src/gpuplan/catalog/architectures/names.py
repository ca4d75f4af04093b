"""Types of model for configurations that do not name one: derived tables and reduced figures."""

import re

from gpuplan.catalog.architectures.fields import Fields

# Published name -> type of model, first match wins.
BY_NAME = (
    (r"gemma-3n", "gemma3n_text"),
    (r"gemma-3", "gemma3_text"),
    (r"gemma-2-", "gemma2"),
    (r"gemma", "gemma"),
    (r"falcon3", "llama"),
    (r"falcon", "falcon"),
    (r"distill-llama", "llama"),
    (r"qwen3-\d+b-a\d+b", "qwen3_moe"),
    (r"qwen3", "qwen3"),
    (r"qwen|qwq", "qwen2"),
    (r"phi-3|phi-4|phi3", "phi3"),
    (r"phi", "phi"),
    (r"stablelm-(3b|zephyr)|stable-code-3b", "stablelm"),
    (r"pythia|stablelm|stablecode|neox|dolly|redpajama", "gpt_neox"),
    (r"mixtral", "mixtral"),
    (r"mistral|mathstral|ministral", "mistral"),
    (r"olmo-2", "olmo2"),
    (r"olmo", "olmo"),
    (r"bloom", "bloom"),
    (r"opt-", "opt"),
    (r"bert|minilm|bge|e5", "bert"),
    (r"gpt-neo", "gpt_neo"),
    (r"gpt-?2|gpt-?3|megatron|mt-nlg|turing", "gpt2"),
    (r"llama|yi-|vicuna|nemotron|platypus|freewilly|salamandra|smollm", "llama"),
)
BY_FEED = {"LLaMAMLP": "llama", "GptNeoxMLP": "gpt_neox", "GemmaMLP": "gemma"}
# The published checkpoints of these share the input table with the head.
TIED = (
    r"qwen2\.5-(coder-|math-)?(0\.5|1\.5|3)b|qwen3-(0\.6|1\.7|4)b|gemma|falcon-(7|40|180)b"
    r"|phi-4-mini|llama-3\.2|smollm|olmo-1b"
)


def named_type(f: Fields, name: str) -> str:
    """The type of model that this name or its feed-forward part belongs to; empty if unknown."""
    low = name.lower()
    for pattern, kind in BY_NAME:
        if re.search(pattern, low):
            f.notes.assume("type of model", kind, "the configuration names none; by its name")
            return kind
    kind = BY_FEED.get(f.text("mlp_class"), "")
    if kind:
        f.notes.assume("type of model", kind, "by its feed-forward part")
    return kind


def is_named_tied(name: str) -> bool:
    """Whether the published checkpoint of this name has one table for input and output."""
    return re.search(TIED, name.lower()) is not None
