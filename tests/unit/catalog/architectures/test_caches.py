"""What a sequence keeps, layer by layer, against the published layouts."""

import pytest

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.domain.model.layers import Cache
from gpuplan.domain.model.network import Model

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
}  # fmt: skip


def _windows(model: Model) -> dict[int | None, int]:
    """Layers by window of their key-value cache."""
    found: dict[int | None, int] = {}
    for n_layers, cache in model.caches():
        if cache.role == "kv":
            found[cache.window_tokens] = found.get(cache.window_tokens, 0) + n_layers
    return found


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", 327_680),
        ("meta-llama/Llama-3.1-8B-Instruct", 131_072),
        ("deepseek-ai/DeepSeek-V3", 70_272),
        ("deepseek-ai/DeepSeek-V2", 69_120),
        ("moonshotai/Kimi-K2-Instruct", 70_272),
        ("Qwen/Qwen3-8B", 147_456),  # head_dim 128 is given
        ("Qwen/Qwen3-0.6B", 114_688),  # 16 heads of 128 on 1024 channels
        ("google/gemma-2b", 18_432),  # one head of 256
        ("tiiuae/falcon-7b", 8_192),  # one head of 64
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 24_576),  # 12 of 48 layers
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 6_144),  # 6 of 52 layers
        ("moonshotai/Kimi-K3", 27_648),  # 24 latent layers
        ("BAAI/bge-m3", 0),
        ("black-forest-labs/FLUX.1-dev/transformer", 0),
    ],
)
def test_key_value_bytes_per_token_in_16_bits(name, kv_bytes):
    assert find_model(name).kv_bytes_per_token() == kv_bytes


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("google/gemma-2-9b-it", {4096: 21, None: 21}),
        ("google/gemma-3-27b-it", {1024: 52, None: 10}),
        ("google/gemma-3-1b-it", {512: 22, None: 4}),
        ("openai/gpt-oss-120b", {128: 18, None: 18}),
        ("mistralai/Mistral-7B-v0.1", {4096: 32}),
        ("mistralai/Mistral-7B-Instruct-v0.3", {None: 32}),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", {8192: 36, None: 12}),
        ("XiaomiMiMo/MiMo-V2-Flash", {128: 39, None: 9}),
        ("microsoft/Phi-3.5-mini-instruct", {None: 32}),  # wider than the context
        ("Qwen/Qwen2.5-7B-Instruct", {None: 28}),  # use_sliding_window is false
        ("stepfun-ai/Step-3.7-Flash", {512: 33, None: 12}),
        ("google/gemma-4-26B-A4B", {1024: 25, None: 5}),
    ],
)
def test_windows_bind_the_layers_they_should(name, windows):
    assert _windows(find_model(name)) == windows


def test_local_layers_may_have_heads_of_their_own():
    caches = {c.window_tokens: c for _n, c in find_model("XiaomiMiMo/MiMo-V2-Flash").caches()}
    assert caches[128] == Cache(n_heads=8, elements_per_head=192 + 128, window_tokens=128)
    assert caches[None] == Cache(n_heads=4, elements_per_head=192 + 128)


def test_latent_cache_is_kept_whole_by_every_rank():
    caches = list(find_model("deepseek-ai/DeepSeek-V3").caches())
    assert {cache for _n, cache in caches} == {Cache(n_heads=1, elements_per_head=576)}
    assert sum(n for n, _cache in caches) == 61


@pytest.mark.parametrize(
    ("name", "n_layers"),
    [("deepseek-ai/DeepSeek-V3.2", 61), ("zai-org/GLM-5", 78), ("zai-org/GLM-5.2", 21)],
)
def test_indexer_keeps_132_bytes_per_token_and_layer(name, n_layers):
    kept = [(n, c) for n, c in find_model(name).caches() if c.role == "indexer"]
    assert sum(n for n, _c in kept) == n_layers
    sizes = {c.elements_per_token * (c.fixed_element_bytes or 0) for _n, c in kept}
    assert sizes == {132.0}


def test_compressed_attention_keeps_one_entry_for_several_tokens():
    model = find_model("deepseek-ai/DeepSeek-V4-Flash")
    kept = {}
    for n, cache in model.caches():
        key = (cache.role, cache.tokens_per_entry, cache.window_tokens)
        kept[key] = kept.get(key, 0) + n
    assert kept == {
        ("kv", 1, 128): 43,
        ("kv", 4, None): 21,
        ("kv", 128, None): 20,
        ("indexer", 4, None): 21,
    }


def test_shared_key_value_layers_keep_nothing():
    config = {
        "model_type": "gemma3n_text", "hidden_size": 512, "num_hidden_layers": 10,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1000,
        "vocab_size_per_layer_input": 900, "hidden_size_per_layer_input": 64,
        "intermediate_size": 1024, "num_kv_shared_layers": 4,
    }  # fmt: skip
    model = read_model(config, name="small")
    assert sum(n for n, _c in model.caches()) == 6


def test_cross_attention_keeps_the_encoder_side_once():
    model = find_model("openai/whisper-large-v3")
    cross = [(n, c) for n, c in model.caches() if c.role == "cross"]
    assert cross == [
        (32, Cache(n_heads=20, elements_per_head=128, window_tokens=1500, role="cross"))
    ]
    assert model.kv_bytes_per_token() == 32 * 2 * 1280 * 2


def test_image_cross_attention_sees_every_tile():
    vision = {
        "hidden_size": 1280, "num_hidden_layers": 32, "num_global_layers": 8,
        "attention_heads": 16, "intermediate_size": 5120, "image_size": 560, "patch_size": 14,
        "max_num_tiles": 4, "vision_output_dim": 7680,
    }  # fmt: skip
    text = {
        **LLAMA,
        "num_hidden_layers": 40,
        "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
    }
    text["model_type"] = "mllama_text_model"
    config = {"model_type": "mllama", "text_config": text, "vision_config": vision}
    model = read_model(config, name="Llama-3.2-11B-Vision")
    assert model.n_params == pytest.approx(10.67e9, rel=0.005)
    cross = [(n, c.window_tokens) for n, c in model.caches() if c.role == "cross"]
    assert cross == [(8, 4 * 1601)]
    assert model.kv_bytes_per_token() == 131_072


def test_recurrent_state_has_a_precision_of_its_own():
    model = find_model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    # 23 layers: 64 heads x 64 x 128 in fp32, and 3 inputs of 4096 + 2 x 8 x 128 channels in bf16.
    assert model.state_bytes_per_sequence() == 23 * (64 * 64 * 128 * 4 + 3 * 6144 * 2)


def test_gated_delta_state():
    model = find_model("Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert model.state_bytes_per_sequence() == 36 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)
    assert any("recurrent state" in a.what for a in model.assumptions)


def test_an_unknown_window_is_told_and_not_applied():
    model = read_model({**LLAMA, "model_type": "novel", "sliding_window": 1024}, name="novel")
    assert _windows(model) == {None: 32}
    assert any(a.what == "sliding window" for a in model.assumptions)
