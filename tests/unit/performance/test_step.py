import itertools

import numpy as np
import pytest

from fakes.models import FFN, HEAD_DIM, HIDDEN, N_HEADS, VOCAB, device, model, moe_group
from fakes.steps import IDEAL, USUAL, work
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.performance.kernels.step import (
    StepLoad,
    limit_s,
    n_touched,
    overlapped,
    step_parts,
    step_time_s,
)

N_LAYERS = 4
# q and o, k and v of 2 heads, gate up down; all in one layer.
LAYER_PARAMS = 2 * HIDDEN * N_HEADS * HEAD_DIM + 2 * HIDDEN * 2 * HEAD_DIM + 3 * HIDDEN * FFN
PEAK, RATE = 989.4e12, 3.35e12


def test_single_stream_decode_reads_every_weight_once():
    # Trap: bandwidth over model size is the speed of one stream, not the throughput.
    bytes_read = 2 * (N_LAYERS * LAYER_PARAMS + VOCAB * HIDDEN)
    one = step_time_s(work(), IDEAL, StepLoad(0.0, 0.0, 0.0, 1.0, 0.0))
    assert one == pytest.approx(bytes_read / RATE, rel=1e-6)
    many = step_time_s(work(), IDEAL, StepLoad(0.0, 0.0, 0.0, 64.0, 0.0))
    assert many == pytest.approx(one)  # so 64 sequences give 64 times the tokens


def test_long_prefill_is_arithmetic_and_causal_attention():
    n = 100_000.0
    matrices = 2 * n * N_LAYERS * LAYER_PARAMS + 2 * VOCAB * HIDDEN
    scores = 2 * N_HEADS * 2 * HEAD_DIM * N_LAYERS * n * n / 2
    found = step_time_s(work(), IDEAL, StepLoad(n, n / 2, 1.0, 0.0, 0.0))
    # The head has one row: it is bound by its bytes.
    head = 2 * VOCAB * HIDDEN / RATE
    assert found == pytest.approx((matrices + scores) / PEAK + head, rel=1e-3)


def test_decode_attention_reads_keys_and_values_of_the_context():
    bare = step_time_s(work(), IDEAL, StepLoad(0.0, 0.0, 0.0, 4.0, 0.0))
    full = step_time_s(work(), IDEAL, StepLoad(0.0, 0.0, 0.0, 4.0, 1000.0))
    cache_bytes = 4 * 1000 * N_LAYERS * 2 * 2 * HEAD_DIM * 2
    assert full - bare == pytest.approx(cache_bytes / RATE, rel=1e-6)


@pytest.mark.parametrize("n_tokens", [1.0, 4.0, 32.0, 400.0])
def test_even_routing_touches_what_theory_says(n_tokens):
    experts = work(model(moe_group())).experts
    # Poisson limit of N(1 - (1 - k/N)^n) beyond the first token, which visits exactly k.
    expected = 2 + 6 * (1 - np.exp(-2 / 8 * (n_tokens - 1)))
    assert n_touched(experts, n_tokens, 1e9) == pytest.approx(expected, rel=1e-5)


def test_touched_experts_grow_from_the_active_to_all():
    experts = work(model(moe_group(n_experts=128))).experts
    counts = [n_touched(experts, float(n), 0.5) for n in (1, 2, 8, 64, 4096, 1e7)]
    assert counts[0] == pytest.approx(2)
    assert all(a < b for a, b in itertools.pairwise(counts))
    assert counts[-1] == pytest.approx(128, rel=0.05)


def test_parts_make_the_whole():
    load = StepLoad(512.0, 256.0, 1.0, 16.0, 700.0)
    parts = step_parts(work(layout=ServingLayout(tp=2)), USUAL, load)
    total = sum(parts[:7])
    assert step_time_s(work(layout=ServingLayout(tp=2)), USUAL, load) == pytest.approx(total)


def test_no_constants_undercut_the_hardware():
    magic = USUAL._replace(gemm_compute_frac=50.0, gemm_read_frac=50.0, cache_read_frac=50.0,
                           attention_compute_frac=50.0, host_s=0.0, host_sequence_s=0.0,
                           operator_s=0.0, slowdown_frac=0.01)  # fmt: skip
    load = StepLoad(4096.0, 2048.0, 2.0, 64.0, 2000.0)
    assert step_time_s(work(), magic, load) == limit_s(work(), load, magic.expert_evenness)


def test_columns_equal_numbers():
    counts = np.array([1.0, 7.0, 300.0])
    context = np.array([10.0, 2000.0, 90.0])
    network = work(model(moe_group()), layout=ServingLayout(tp=4))
    together = step_time_s(network, USUAL, StepLoad(64.0, 32.0, 1.0, counts, context))
    alone = [
        step_time_s(network, USUAL, StepLoad(64.0, 32.0, 1.0, float(n), float(c)))
        for n, c in zip(counts, context, strict=True)
    ]
    assert together.tolist() == alone


def test_overlap_hides_all_or_nothing_of_the_shorter():
    assert overlapped(3.0, 2.0, 0.0) == 3.0
    assert overlapped(3.0, 2.0, 1.0) == 5.0


def test_data_parallel_attention_leaves_experts_the_whole_batch():
    alone = work(model(moe_group()))
    dealt = work(model(moe_group()), layout=ServingLayout(dp=2, ep=2))
    load = StepLoad(0.0, 0.0, 0.0, 64.0, 100.0)
    # Half of the sequences each, so half of the cache; half of the experts each.
    assert step_parts(dealt, IDEAL, load).attention_s == pytest.approx(
        step_parts(alone, IDEAL, load).attention_s / 2
    )
    assert dealt.experts.expert_bytes == alone.experts.expert_bytes / 2


def test_more_accelerators_never_help_for_free():
    device_ = device()
    load = StepLoad(0.0, 0.0, 0.0, 1.0, 100.0)
    one = step_parts(work(accelerator=device_), USUAL, load)
    two = step_parts(work(accelerator=device_, layout=ServingLayout(tp=2)), USUAL, load)
    assert one.exchange_s == 0.0
    assert two.exchange_s >= 2 * N_LAYERS * USUAL.reduce_sync_s
    assert two.matrices_s < one.matrices_s


def test_a_host_that_plans_ahead_shows_only_where_the_device_is_quicker():
    load = StepLoad(0.0, 0.0, 0.0, 4.0, 100.0)
    device_s = step_time_s(work(), IDEAL, load)
    waiting = IDEAL._replace(host_s=3 * device_s)
    ahead = waiting._replace(host_hidden_frac=1.0)
    assert step_time_s(work(), waiting, load) == pytest.approx(4 * device_s)
    assert step_time_s(work(), ahead, load) == pytest.approx(3 * device_s)
    hidden = IDEAL._replace(host_s=0.5 * device_s, host_hidden_frac=1.0)
    assert step_time_s(work(), hidden, load) == pytest.approx(device_s)


def test_experts_do_not_inherit_what_dense_matrices_reach():
    routed = work(model(moe_group()))
    slow = USUAL._replace(gemm_read_frac=0.4, gemm_compute_frac=0.3)
    load = StepLoad(0.0, 0.0, 0.0, 4.0, 128.0)
    parts, slower = step_parts(routed, USUAL, load), step_parts(routed, slow, load)
    assert slower.experts_s == parts.experts_s
    assert slower.matrices_s > parts.matrices_s


def test_experts_read_at_their_share_of_the_memory():
    routed = work(model(moe_group()))
    k = IDEAL._replace(expert_read_frac=0.5)
    load = StepLoad(0.0, 0.0, 0.0, 1.0, 128.0)
    read_s = routed.experts.n_active * routed.experts.expert_bytes / routed.memory_bytes_per_s
    assert step_parts(routed, k, load).experts_s == pytest.approx(read_s / 0.5)


def test_a_step_that_reads_a_prompt_is_not_quicker_than_its_launching():
    slow_host = USUAL._replace(launch_s=1e-3)
    n_operators = work().exchange.n_operators
    prompt, decode = StepLoad(16.0, 8.0, 1.0, 4.0, 100.0), StepLoad(0.0, 0.0, 0.0, 4.0, 100.0)
    assert step_time_s(work(), slow_host, prompt) >= 1e-3 * n_operators
    # Graphs hold decoding: it is launched at once.
    assert step_time_s(work(), slow_host, decode) == step_time_s(work(), USUAL, decode)


def test_launching_hides_behind_a_long_prompt():
    long = StepLoad(100_000.0, 50_000.0, 1.0, 0.0, 0.0)
    slow_host = USUAL._replace(launch_s=1e-5)
    assert step_time_s(work(), slow_host, long) == step_time_s(work(), USUAL, long)


def test_choosing_a_token_costs_by_rows_and_by_words():
    slow = IDEAL._replace(sample_s=1e-5)
    load = StepLoad(0.0, 0.0, 0.0, 64.0, 0.0)
    extra = step_parts(work(), slow, load).matrices_s - step_parts(work(), IDEAL, load).matrices_s
    assert extra == pytest.approx(64 * VOCAB / 1e5 * 1e-5)


def test_norms_across_heads_cost_a_small_exchange_per_layer():
    tp = work(layout=ServingLayout(tp=2))
    shared = tp._replace(exchange=tp.exchange._replace(n_norm_reduces=4.0))
    load = StepLoad(0.0, 0.0, 0.0, 8.0, 100.0)
    plain_s, shared_s = (step_parts(w, USUAL, load).exchange_s for w in (tp, shared))
    # Of 2 numbers a token: a synchronisation and little else, so less than a vector's.
    assert 4 * USUAL.reduce_sync_s < shared_s - plain_s < 4 * plain_s / tp.exchange.n_reduces
