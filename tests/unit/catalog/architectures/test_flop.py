"""Arithmetic per token, against counts by hand."""

import pytest

from gpuplan.catalog.models import find_model


def test_llama_3_8b_by_hand():
    model = find_model("meta-llama/Llama-3.1-8B-Instruct")
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    matrices = 32 * layer + 128256 * 4096  # the head works, the lookup does not
    attention = 32 * 2 * 32 * (128 + 128) * 1000
    assert model.forward_flop_per_token(1000) == 2 * matrices + attention


def test_a_prompt_sees_half_of_the_square():
    model = find_model("meta-llama/Llama-3.1-8B-Instruct")
    n_tokens = 4096
    flat = n_tokens * model.forward_flop_per_token(0)
    pairs = n_tokens * (n_tokens + 1) / 2
    assert model.prefill_flop(n_tokens) == pytest.approx(flat + 32 * 2 * 32 * 256 * pairs)


def test_training_is_three_forwards():
    model = find_model("meta-llama/Llama-3.1-8B-Instruct")
    assert model.training_flop_per_token(2048) == 3 * model.forward_flop_per_token(2049 / 2)


def test_only_active_experts_work():
    model = find_model("deepseek-ai/DeepSeek-V3")
    active = model.n_active_params - model.embedding.n_input_params
    assert model.forward_flop_per_token(0) == pytest.approx(2 * active, rel=0.001)


def test_window_limits_what_is_seen():
    model = find_model("mistralai/Mistral-7B-v0.1")
    assert model.forward_flop_per_token(4096) == model.forward_flop_per_token(100_000)


def test_sparse_attention_limits_what_is_seen():
    model = find_model("deepseek-ai/DeepSeek-V3.2")
    assert model.forward_flop_per_token(2048) == model.forward_flop_per_token(100_000)


def test_compressed_attention_sees_entries_and_its_window():
    model = find_model("deepseek-ai/DeepSeek-V4-Flash")
    width = 64 * 2 * (512 + 512)
    more = model.forward_flop_per_token(128_000) - model.forward_flop_per_token(0)
    # 2 layers see the window, 21 also 512 selected entries, 20 also one entry per 128 tokens.
    seen = 43 * 128 + 21 * 512 + 20 * 1000 - (41 - 41) * 128
    assert more == pytest.approx(width * seen)


def test_recurrence_costs_the_same_at_any_context():
    model = find_model("Qwen/Qwen3-Next-80B-A3B-Instruct")
    grows = model.forward_flop_per_token(2000) - model.forward_flop_per_token(1000)
    assert grows == 12 * 2 * 16 * (256 + 256) * 1000


def test_an_image_token_passes_its_own_stream_alone():
    model = find_model("black-forest-labs/FLUX.1-dev/transformer")
    hidden = 3072
    joint, single = 19 * 12 * hidden**2, 38 * 12 * hidden**2
    assert model.forward_flop_per_token(0) == 2 * (joint + single)
