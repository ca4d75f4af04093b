"""How families of decoders differ: one line each, in constants that a configuration leaves unsaid.

Sizes always come from the configuration. Here stands what the modelling code fixes: whether the
feed-forward part is gated, which projections have biases, how many norms a layer has. Checked
against the parameter counts that the `transformers` library builds (tests hold the figures).
"""

from dataclasses import replace
from typing import Literal

from gpuplan.domain.noun import dataclass

Window = Literal["none", "all", "even", "fourth", "sixth", "upper", "unknown"]
QkNorm = Literal["", "head", "width", "shared-width", "heads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Traits of a decoder family."""

    is_gated: bool = True
    norm_terms: int = 1  # parameters per channel: 1 scale, 2 scale and bias, 0 none
    n_norms: int = 2  # of hidden width, per layer
    qk_norm: QkNorm = ""  # one vector per head size, per full width, or per head and size
    bias: str = ""  # always there: letters of q, k, v, o, m (feed-forward), h (head)
    flags: tuple[tuple[str, str], ...] = (("attention_bias", "qkvo"), ("mlp_bias", "m"))
    position_rows: int | None = None  # learned positions: rows beyond the context length
    window: Window = "none"  # which layers sliding_window binds when no list says so
    mixer: str = "full"  # what a plain layer mixes with
    is_known: bool = True


LLAMA = Family()
PLAIN = Family(flags=(("attention_bias", "qkvo"),))  # no bias in the feed-forward part
GPT = Family(is_gated=False, norm_terms=2, bias="qkvom", flags=())
NEO = replace(GPT, bias="om")
QWEN2 = Family(bias="qkv", flags=(), window="upper")
QWEN3 = Family(qk_norm="head", flags=(("attention_bias", "qkvo"),), window="upper")
GLM = Family(flags=(("attention_bias", "qkv"),))
GEMMA2 = replace(PLAIN, n_norms=4, window="even")
GEMMA3 = replace(PLAIN, n_norms=4, qk_norm="head", window="sixth")
OLMO2 = replace(PLAIN, qk_norm="width")
COHERE = Family(n_norms=1, flags=(("attention_bias", "qkvo"),))
COHERE2 = replace(COHERE, window="fourth")
LATENT = Family(mixer="latent", flags=(("attention_bias", "o"),))
UNKNOWN = Family(window="unknown", is_known=False)

FAMILIES: dict[str, Family] = {
    "afmoe": replace(GEMMA3, flags=(), window="fourth"),
    "apertus": replace(PLAIN, is_gated=False, qk_norm="head"),
    "arcee": Family(is_gated=False),
    "aria_text": LLAMA,
    "axk1": replace(LATENT, n_norms=3),
    "bailing_moe": Family(flags=(("use_qkv_bias", "qkv"), ("use_bias", "om"))),
    "bailing_moe_v2": Family(qk_norm="head", flags=(("use_qkv_bias", "qkv"), ("use_bias", "om"))),
    "bamba": LLAMA,
    "biogpt": replace(GPT, position_rows=2),
    "bitnet": PLAIN,
    "bloom": GPT,
    "chatglm": Family(flags=(("add_qkv_bias", "qkv"), ("add_bias_linear", "om"))),
    "codegen": replace(NEO, n_norms=1, bias="mh"),
    "cohere": COHERE,
    "cohere2": COHERE2,
    "cohere2_moe": COHERE2,
    "cwm": Family(flags=()),
    "dbrx": Family(flags=()),
    "decilm": LLAMA,
    "deepseek": LLAMA,
    "deepseek_ref": replace(LATENT, mixer="compressed"),
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "deepseek_v32": LATENT,
    "deepseek_v4": replace(LATENT, mixer="compressed"),
    "diffllama": PLAIN,
    "dots1": replace(QWEN3, window="upper"),
    "ernie4_5": Family(flags=(("use_bias", "qkvom"),)),
    "ernie4_5_moe": Family(flags=(("use_bias", "qkvom"),)),
    "exaone": Family(flags=()),
    "exaone4": Family(qk_norm="head", flags=(), window="fourth"),
    "exaone_moe": Family(qk_norm="head", flags=()),
    "falcon": Family(is_gated=False, norm_terms=2, flags=(("bias", "qkvom"),)),
    "falcon_h1": replace(LLAMA, mixer="hybrid"),
    "flex_olmo": OLMO2,
    "gemma": PLAIN,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "gemma3n_text": GEMMA3,
    "gemma4_text": GEMMA3,
    "gemma4_unified_text": GEMMA3,
    "glm": GLM,
    "glm4": replace(GLM, n_norms=4),
    "glm4_moe": replace(GLM, qk_norm="head"),
    "glm4_moe_lite": LATENT,
    "glm4v_text": replace(GLM, n_norms=4, bias="qkv", flags=()),
    "glm4v_moe_text": GLM,
    "glm_moe_dsa": LATENT,
    "gpt2": replace(GPT, position_rows=0),
    "gpt_bigcode": replace(GPT, position_rows=0),
    "gpt_neo": replace(NEO, position_rows=0),
    "gpt_neox": Family(is_gated=False, norm_terms=2, bias="m", flags=(("attention_bias", "qkvo"),)),
    "gpt_oss": Family(bias="", flags=(("attention_bias", "qkvo"),), window="even"),
    "gptj": replace(NEO, n_norms=1, bias="mh"),
    "granite": LLAMA,
    "granite_swa": LLAMA,
    "granitemoe": LLAMA,
    "granitemoe_swa": LLAMA,
    "granitemoehybrid": LLAMA,
    "granitemoeshared": LLAMA,
    "helium": LLAMA,
    "hunyuan_v1_dense": replace(LLAMA, qk_norm="head"),
    "hunyuan_v1_moe": replace(LLAMA, qk_norm="head"),
    "hy_v3": replace(LLAMA, qk_norm="head", flags=()),
    "hyperclovax": replace(LLAMA, n_norms=4),
    "internlm2": Family(flags=(("bias", "qkvo"),)),
    "internlm3": Family(flags=(("qkv_bias", "qkv"), ("bias", "om"))),
    "jais2": replace(GPT, flags=(("attention_bias", "qkvo"), ("mlp_bias", "m")), bias=""),
    "jamba": Family(flags=()),
    "kimi_k2": LATENT,
    "kimi_linear": replace(LATENT, flags=()),
    "mamba": Family(n_norms=1, flags=(), mixer="mamba"),
    "mamba2": Family(n_norms=1, flags=(), mixer="mamba"),
    "falcon_mamba": Family(n_norms=1, flags=(), mixer="mamba"),
    "recurrent_gemma": Family(bias="om", flags=(("attention_bias", "qkv"),), mixer="recurrent"),
    "lfm2": Family(qk_norm="head", flags=()),
    "lfm2_moe": Family(qk_norm="head", flags=()),
    "llama": LLAMA,
    "llama4_text": Family(flags=(("attention_bias", "qkvo"),)),
    "longcat_flash": replace(LATENT, n_norms=4),
    "mimo": replace(QWEN2, flags=(("attention_bias", "qkv"),), bias=""),
    "mimo_v2_flash": Family(flags=(("attention_bias", "qkv"),)),
    "minicpm": LLAMA,
    "minicpm3": LATENT,
    "minimax": Family(flags=()),
    "minimax_m1": Family(flags=()),
    "minimax_m2": Family(qk_norm="width", flags=()),
    "minimax_m3": Family(qk_norm="head", flags=()),
    "minimax_text_01": Family(flags=()),
    "ministral": Family(flags=()),
    "ministral3": Family(flags=(), window="all"),
    "mistral": Family(flags=(), window="all"),
    "mistral4": LATENT,
    "mixtral": Family(flags=(), window="all"),
    "mllama_text_model": Family(flags=()),
    "mpt": Family(is_gated=False, flags=()),
    "nanochat": Family(is_gated=False, norm_terms=0),
    "nemotron": Family(is_gated=False, norm_terms=2),
    "nemotron-nas": LLAMA,
    "nemotron_h": Family(is_gated=False, n_norms=1),
    "olmo": Family(norm_terms=0, flags=(("attention_bias", "qkvo"),)),
    "olmo2": OLMO2,
    "olmo3": replace(OLMO2, window="fourth"),
    "olmoe": OLMO2,
    "olmo_hybrid": OLMO2,
    "opt": replace(GPT, position_rows=2, bias="", flags=(("enable_bias", "qkvom"),)),
    "persimmon": replace(GPT, qk_norm="head"),
    "orion": Family(norm_terms=2, flags=()),
    "phi": replace(GPT, n_norms=1, bias="qkvomh"),
    "phi3": Family(flags=(), window="all"),
    "phimoe": Family(norm_terms=2, flags=(("attention_bias", "qkvo"), ("lm_head_bias", "h"))),
    "qwen": Family(bias="qkv", flags=()),
    "qwen2": QWEN2,
    "qwen2_moe": Family(flags=(("qkv_bias", "qkv"),), window="upper"),
    "qwen3": QWEN3,
    "qwen3_5_moe_text": QWEN3,
    "qwen3_5_text": QWEN3,
    "qwen3_moe": QWEN3,
    "qwen3_next": QWEN3,
    "qwen3_vl_moe_text": QWEN3,
    "qwen3_vl_text": QWEN3,
    "seed_oss": Family(
        flags=(("attention_bias", "qkv"), ("attention_out_bias", "o"), ("mlp_bias", "m"))
    ),
    "smollm3": LLAMA,
    "solar_open": Family(flags=(("attention_bias", "qkv"),)),
    "stablelm": Family(norm_terms=2, flags=(("use_qkv_bias", "qkv"),)),
    "starcoder2": Family(
        is_gated=False, norm_terms=2, flags=(("use_bias", "qkvom"),), window="all"
    ),
    "step3p5": Family(qk_norm="head", flags=()),
    "step3p7": Family(qk_norm="head", flags=()),
    "vaultgemma": replace(PLAIN, window="even"),
    "zamba2": Family(n_norms=1, flags=(), mixer="mamba"),
    "xglm": replace(GPT, flags=()),
    "youtu": LATENT,
}

ALIASES = {
    "MiniMaxText01": "minimax",
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "Yi": "llama",
    "aquila": "llama",
    "baichuan": "llama",
    "bailing_moe_v2_5": "bailing_moe_v2",
    "code_llama": "llama",
    "deci": "nemotron-nas",
    "deepseek_v31": "deepseek_v3",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "glm4v": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "gpt-neox": "gpt_neox",
    "grok-1": "llama",
    "hunyuan": "hunyuan_v1_moe",
    "internlm": "llama",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "llama4": "llama4_text",
    "mellum": "qwen3_moe",
    "minicpmv": "qwen2",
    "minimax_m3_vl": "minimax_m3",
    "minimax_m3_vl_text": "minimax_m3",
    "mllama": "mllama_text_model",
    "moonlight": "deepseek_v3",
    "phi-msft": "phi",
    "phi3_v": "phi3",
    "phi4_multimodal": "phi3",
    "phi4mm": "phi3",
    "qwen2_5_omni_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_omni_moe_text": "qwen3_moe",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "refact": "gpt_bigcode",
    "stablelm_epoch": "stablelm",
    "starcoder": "gpt_bigcode",
    "telechat": "llama",
    "xverse": "llama",
    "yi": "llama",
}


def family_of(model_type: str) -> Family:
    """The family that this type of model belongs to; an unknown type reads as Llama-like."""
    return FAMILIES.get(ALIASES.get(model_type, model_type), UNKNOWN)


def canonical(model_type: str) -> str:
    """The name that this type of model is listed under."""
    return ALIASES.get(model_type, model_type)
