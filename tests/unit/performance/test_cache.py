"""Cache bytes of one sequence, in whole blocks."""

from dataclasses import replace

import pytest

from fakes import models
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.layers import Cache, LayerGroup, State
from gpuplan.performance.memory.cache import block_bytes, resident_entries, sequence_bytes
from gpuplan.performance.serving.engines import vllm_settings

ENGINE = vllm_settings(models.device())
# 4 layers x 2 heads x (8 key + 8 value) x 2 bytes
TOKEN_BYTES = 4 * 2 * 16 * 2


def one_sequence(model, context, *, tp=1, pp=1, form="bf16"):
    return sequence_bytes(
        models.deployment(model, context, layout=ServingLayout(tp=tp, pp=pp), cache=form)
    )


def test_per_token_bytes_count_key_value_heads_not_query_heads():
    assert models.model().kv_bytes_per_token() == TOKEN_BYTES


@pytest.mark.parametrize(("context", "n_blocks"), [(1, 1), (16, 1), (17, 2), (100, 7)])
def test_cache_comes_in_blocks(context, n_blocks):
    assert one_sequence(models.model(), context) == n_blocks * 16 * TOKEN_BYTES


def test_tensor_parallel_divides_heads_until_each_rank_has_one():
    whole = one_sequence(models.model(), 160)
    assert one_sequence(models.model(), 160, tp=2) == whole / 2
    assert one_sequence(models.model(), 160, tp=8) == whole / 2


def test_pipeline_divides_layers():
    assert one_sequence(models.model(), 160, pp=2) == one_sequence(models.model(), 160) / 2


def test_fp8_cache_is_half():
    assert one_sequence(models.model(), 160, form="fp8") == one_sequence(models.model(), 160) / 2


def test_window_caps_the_cache_with_one_block_to_spare():
    local = Cache(n_heads=1, elements_per_head=16, window_tokens=64)
    assert resident_entries(local, 48, ENGINE) == 48
    assert resident_entries(local, 4096, ENGINE) == 64 + 16


def test_vllm_keeps_chunks_of_local_attention_whole():
    chunked = Cache(n_heads=1, elements_per_head=16, window_tokens=64, is_chunked=True)
    assert resident_entries(chunked, 4096, replace(ENGINE, name="vllm 0.32")) == 4096
    assert resident_entries(chunked, 4096, replace(ENGINE, name="vllm 0.9")) == 64 + 16
    assert resident_entries(chunked, 4096, replace(ENGINE, name="sglang")) == 64 + 16


def test_mixed_layers_add_up():
    mixed = models.model(models.dense_group(2), models.dense_group(2, window_tokens=64))
    full, local = 2 * 64, 2 * 64  # bytes per token of two layers
    assert one_sequence(mixed, 1024) == 1024 * full + 80 * local


def test_vllm_pays_for_whole_groups_of_layers():
    """Two full layers and five with a window: groups of two, of which one is half empty."""
    mixed = models.model(models.dense_group(2), models.dense_group(5, window_tokens=64))
    vllm, other = replace(ENGINE, name="vllm 0.32"), replace(ENGINE, name="sglang")
    old = replace(ENGINE, name="vllm 0.8")
    at = models.deployment(mixed, 1024)
    need = [sequence_bytes(replace(at, engine=engine)) for engine in (vllm, other, old)]
    assert need[0] - need[1] == 80 * 64
    assert need[1] == need[2]


def test_compressed_cache_keeps_one_entry_for_several_tokens():
    squeezed = Cache(n_heads=1, elements_per_head=16, tokens_per_entry=4)
    assert squeezed.elements_per_token == 4
    assert resident_entries(squeezed, 1024, ENGINE) == 256


def test_state_does_not_grow():
    group = LayerGroup(n_layers=3, states=(State(n_heads=4, n_elements=100, element_bytes=4.0),))
    model = models.model(group)
    assert one_sequence(model, 16) == one_sequence(model, 4096) == 3 * 100 * 4
    assert one_sequence(model, 16, tp=2) == 3 * 100 * 4 / 2


def test_block_bytes_leave_windows_out():
    mixed = models.model(models.dense_group(2), models.dense_group(2, window_tokens=64))
    assert block_bytes(models.deployment(mixed)) == 16 * 2 * 64
