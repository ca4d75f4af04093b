from dataclasses import replace

import pytest

from fakes.models import HEAD_DIM, cache, dense_group, deployment, device, model, moe_group
from fakes.steps import BF16, work
from gpuplan.domain.inference.serving import ServingLayout, StorageFormats
from gpuplan.domain.model.layers import Cache, LatentAttention, LayerGroup, Recurrence, State
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.memory.cache import sequence_bytes as held_bytes
from gpuplan.performance.serving.work import UNLIMITED_TOKENS, peak_flop_per_s


def latent_group(*, selected_tokens: int | None = None) -> LayerGroup:
    return LayerGroup(
        n_layers=2,
        mixer=LatentAttention(
            n_heads=8, q_rank=16, kv_rank=32, qk_nope_dim=8, qk_rope_dim=4, v_head_dim=8,
            n_matrix_params=10_000, n_down_matrix_params=2_000, selected_tokens=selected_tokens,
        ),
        caches=(Cache(n_heads=1, elements_per_head=36),),
    )  # fmt: skip


def test_tensor_parallelism_halves_matrices_but_copies_scarce_heads():
    one, four = work(), work(layout=ServingLayout(tp=4))
    assert four.matrices.head_flop == one.matrices.head_flop / 4
    # 2 key-value heads on 4 ranks: cut in two, then copied.
    assert four.mixing.cache_bytes == one.mixing.cache_bytes / 2
    assert four.mixing.decode_flop == one.mixing.decode_flop / 4


def test_latent_cache_is_whole_on_every_rank_and_decode_works_on_the_latent():
    one, two = work(model(latent_group())), work(model(latent_group()), layout=ServingLayout(tp=2))
    assert two.mixing.cache_bytes == one.mixing.cache_bytes == 2 * 36 * 2
    assert one.mixing.decode_flop == 2 * 2 * 8 * (2 * 32 + 4)
    assert one.mixing.prefill_flop == 2 * 2 * 8 * (8 + 4 + 8)


def test_windows_and_selection_limit_what_is_read():
    windowed = work(model(dense_group(window_tokens=128))).mixing
    assert windowed.cache_bytes == 0
    assert windowed.limit_tokens == 128
    assert work(model(latent_group(selected_tokens=64))).mixing.limit_tokens == 64
    assert work().mixing.limit_tokens == UNLIMITED_TOKENS


def test_recurrence_reads_and_writes_its_state_and_keeps_no_cache():
    group = LayerGroup(
        n_layers=3,
        mixer=Recurrence(kind="mamba2", n_heads=4, scan_flop_per_token=10.0, n_matrix_params=100),
        states=(State(n_heads=4, n_elements=50, element_bytes=2.0),),
    )
    mixing = work(model(group)).mixing
    assert mixing.state_bytes == 2 * 3 * 50 * 2
    assert mixing.cache_bytes == 0
    assert mixing.scan_flop == 30.0


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_cache_agrees_with_the_memory_room(tp):
    # The bytes that a step reads are the bytes that the memory room holds, block for block.
    layout = ServingLayout(tp=tp)
    held = held_bytes(deployment(model(), 1600, layout=layout))
    assert work(layout=layout).mixing.cache_bytes * 1600 == pytest.approx(held)


def test_formats_the_chip_lacks_compute_in_16_bits():
    chip = device()
    assert peak_flop_per_s(chip, FORMATS["fp8"]) == 1979e12
    assert peak_flop_per_s(chip, FORMATS["nvfp4"]) == 989.4e12
    assert peak_flop_per_s(chip, FORMATS["int4"]) == 989.4e12


def test_quantized_parts_shrink_bytes_and_keep_arithmetic():
    form = FORMATS["fp8"]
    low = StorageFormats(base=FORMATS["bf16"], quantized=form, parts=("attention", "feed_forward"),
                  cache=form)  # fmt: skip
    plain, small = work(storage=BF16), work(storage=low)
    assert small.matrices.quantized_bytes == plain.matrices.base_bytes / 2
    assert small.matrices.quantized_flop == plain.matrices.base_flop
    assert small.matrices.head_bytes == plain.matrices.head_bytes  # the head stays
    assert small.mixing.cache_bytes == plain.mixing.cache_bytes / 2


def test_experts_are_cut_or_dealt_to_the_same_share():
    cut = work(model(moe_group()), layout=ServingLayout(tp=4)).experts
    dealt = work(model(moe_group()), layout=ServingLayout(tp=4, ep=4)).experts
    assert cut.expert_bytes == dealt.expert_bytes
    assert cut.uneven_ranks == 0
    assert dealt.uneven_ranks == 0.75


def test_cache_of_two_heads_counts_keys_and_values():
    assert cache().elements_per_token == 2 * 2 * HEAD_DIM


def test_an_index_scores_the_whole_context_on_every_rank():
    chosen = latent_group(selected_tokens=64)
    index = Cache(n_heads=1, elements_per_head=16, role="indexer", n_index_heads=4)
    indexed = replace(chosen, caches=(*chosen.caches, index))
    layouts = (ServingLayout(), ServingLayout(tp=2))
    plain, one = work(model(chosen)), work(model(indexed), layout=layouts[0])
    two = work(model(indexed), layout=layouts[1])
    # Two layers, a product and a sum over 4 x 16, at twice the rate of 16 bits.
    assert one.mixing.decode_flop == one.mixing.prefill_flop == 2 * 2 * 4 * 16 / 2
    assert two.mixing.decode_flop == one.mixing.decode_flop
    assert plain.mixing.decode_flop == 0.0
    assert one.exchange.n_operators > plain.exchange.n_operators


def test_norms_across_heads_are_added_up_by_the_ranks_that_share_them():
    group = dense_group()
    shared = replace(group, mixer=replace(group.mixer, is_normed_across_heads=True))
    assert work(model(shared)).exchange.n_norm_reduces == 0.0
    assert work(model(group), layout=ServingLayout(tp=2)).exchange.n_norm_reduces == 0.0
    assert work(model(shared), layout=ServingLayout(tp=2)).exchange.n_norm_reduces == 4.0
