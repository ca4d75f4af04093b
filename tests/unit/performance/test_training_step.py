"""The step formula against arithmetic that a reader can redo by hand."""

from dataclasses import replace

import pytest

from fakes.models import HIDDEN, VOCAB, dense_group, device, model, moe_group
from fakes.training import alone, calibrated, fabric, perfect, setup
from gpuplan.calibration.training.models import Dimensions, model_from
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.training.setup import ATTENTION_TARGETS, LoRA, ParallelLayout, StateBytes
from gpuplan.performance.training.basis import bubble_ratio, peak_flop_per_s
from gpuplan.performance.training.step import network_bytes_per_step, training_step

GPT = model_from(
    "gpt-175b", Dimensions(n_layers=96, hidden=12288, n_heads=96, n_vocab=51200), source="test"
)
SMALL = model_from(
    "gpt-1.7b", Dimensions(n_layers=24, hidden=2304, n_heads=18, n_vocab=51200), source="test"
)


def step(found=SMALL, *, job=None, layout=None, links=None, constants=None, on=None):
    return training_step(
        found,
        on or device(),
        job or setup(),
        layout or alone(),
        links or fabric(),
        constants or perfect(),
    )


def test_a_perfect_machine_reaches_its_peak():
    found = step(job=setup(n_micro_batches=1))
    assert found.mfu_frac == pytest.approx(1.0)
    assert found.hfu_frac == pytest.approx(1.0)


def test_megatron_flop_formula_of_the_papers():
    # 72 B s l h^2 (1 + s/6h + V/12lh), whole square of attention [Narayanan2021].
    h, n, s, v = 12288, 96, 2048, 51200
    forward_backward = 72 * s * n * h**2 * (1 + s / (6 * h) + v / (12 * n * h))
    causal = 72 * s * n * h**2 * (1 + s / (12 * h) + v / (12 * n * h))
    found = step(GPT, job=setup(n_micro_batches=1))
    assert found.step_s * peak_flop_per_s(device(), "bf16") == pytest.approx(causal, rel=1e-3)
    assert causal < forward_backward


def test_recompute_is_paid_and_seen_by_hfu_alone():
    plain = step(job=setup(n_micro_batches=1))
    again = step(job=setup(n_micro_batches=1, recompute="full"))
    head_frac = 6 * 2304 * 51200 * 2048 / (plain.step_s * 989.4e12)
    assert again.step_s / plain.step_s == pytest.approx(1 + (1 - head_frac) / 3)
    assert again.hfu_frac == pytest.approx(1.0)
    assert again.mfu_frac == pytest.approx(plain.step_s / again.step_s)


def test_selective_recompute_repeats_attention_alone():
    long = {"sequence_tokens": 16384, "n_micro_batches": 1, "attention": "math"}
    plain, again = step(job=setup(**long)), step(job=setup(recompute="selective", **long))
    attention = dict(plain.parts_s)["attention"]
    assert again.step_s - plain.step_s == pytest.approx(attention / 3)


def test_selective_recompute_is_free_with_flash_attention():
    plain, again = step(), step(job=setup(recompute="selective"))
    assert again.step_s == plain.step_s
    assert again.hfu_frac == plain.hfu_frac


@pytest.mark.parametrize(
    ("p", "v", "m", "expected"), [(8, 1, 8, 7 / 8), (8, 4, 64, 7 / 256), (1, 1, 4, 0)]
)
def test_bubble_of_the_interleaved_schedule(p, v, m, expected):
    assert bubble_ratio(ParallelLayout(pp=p, n_virtual=v), m) == pytest.approx(expected)


def test_pipeline_waits_for_fill_and_drain():
    four = ParallelLayout(pp=4)
    found = step(layout=four, constants=perfect(p2p_exposed_ratio=0.0))
    parts = dict(found.parts_s)
    head = 3 * 2 * 2048 * 2304 * 51200 * 8 / peak_flop_per_s(device(), "bf16")
    stages = parts["matrix products"] + parts["attention"] - head
    assert parts["pipeline bubble"] == pytest.approx(stages * 3 / 8)


def test_interleaving_shortens_the_bubble_by_its_chunks():
    plain = dict(step(layout=ParallelLayout(pp=4)).parts_s)["pipeline bubble"]
    chunks = dict(step(layout=ParallelLayout(pp=4, n_virtual=3)).parts_s)["pipeline bubble"]
    assert chunks == pytest.approx(plain / 3)


def test_adapters_save_the_weight_gradients():
    lora = LoRA(rank=16, targets=ATTENTION_TARGETS, states=StateBytes())
    short = setup(sequence_tokens=128, n_micro_batches=1)
    full = step(job=short)
    tuned = step(job=replace(short, task="lora", adapter=lora))
    assert tuned.step_s / full.step_s == pytest.approx(2 / 3, rel=0.03)


def test_unpacking_four_bit_weights_costs_time():
    lora = LoRA(rank=16, targets=ATTENTION_TARGETS, states=StateBytes())
    packed = replace(lora, base=FORMATS["nf4"])
    constants = perfect(dequantize_ratio=2.5)
    job = setup(n_micro_batches=1)
    plain = step(job=replace(job, task="lora", adapter=lora), constants=constants)
    slow = step(job=replace(job, task="qlora", adapter=packed), constants=constants)
    n_params = 24 * 12 * 2304**2
    expected = 2 * 2.5 * n_params * (FORMATS["nf4"].stored_bytes + 2) / 3.35e12
    assert slow.step_s - plain.step_s == pytest.approx(expected, rel=1e-6)


def test_gradients_cross_the_fabric_once_per_step():
    sixteen = ParallelLayout(dp=16)
    found = dict(step(layout=sixteen, constants=perfect()).parts_s)["data parallel"]
    n_params = 24 * 12 * 2304**2 + 2304 * 51200
    # Two islands: half of the message leaves, over eight adapters at 90 % of 50 GB/s, both ways.
    wire_s = 2 * n_params * 2 * (1 / 2) / (8 * 45e9)
    inside_s = 2 * n_params * 2 * (7 / 8) / 360e9
    assert found == pytest.approx(max(wire_s, inside_s), rel=0.02)


def test_overlap_hides_what_fits_behind_compute():
    sixteen = ParallelLayout(dp=16)
    hidden = dict(step(layout=sixteen, constants=perfect(dp_overlap_frac=1.0)).parts_s)
    plain = dict(step(layout=sixteen).parts_s)
    assert hidden["data parallel"] < 0.1 * plain["data parallel"]


def test_sharded_weights_are_gathered_twice_and_gradients_scattered_every_micro_batch():
    slow = fabric(outside_bytes_per_s=1e9)
    found = step(layout=ParallelLayout(dp=16, sharding="zero3"), links=slow)
    n_params = 24 * 12 * 2304**2 + 2304 * 51200
    traffic_s = 8 * 3 * n_params * 2 * (1 / 2) / (8 * 0.9e9)
    assert found.step_s == pytest.approx(traffic_s, rel=0.02)


def test_tensor_parallel_splits_products_and_pays_reductions():
    job, quick = setup(n_micro_batches=1), fabric(alpha_s=0.0)
    one, eight = step(job=job), step(job=job, layout=ParallelLayout(tp=8), links=quick)
    products = dict(one.parts_s)["matrix products"] / dict(eight.parts_s)["matrix products"]
    assert products == pytest.approx(8)
    message = 2 * 2048 * 2304
    reductions_s = 24 * 2 * 2 * 2 * (7 / 8) * message / 360e9
    assert dict(eight.parts_s)["tensor parallel"] == pytest.approx(reductions_s)


def test_experts_compute_for_active_tokens_only():
    moe = model(moe_group(n_experts=8))
    found = step(moe, job=setup(sequence_tokens=64, n_micro_batches=1))
    active = 4 * (2 * 64 * 64 + 2 * 64 * 16 + 2 * 3 * 64 * 128 + 64 * 8) + VOCAB * HIDDEN
    attention = 4 * 2 * 64 * 2 * (64 / 2)
    flop = 3 * 64 * (2 * active + attention)
    narrow = 4 * 2 * 64 * 2 * (64 / 2) * ((1 + 64 / 8) / 1.5 - 1)
    expected = (flop + 3 * 64 * narrow) / 989.4e12
    assert found.step_s == pytest.approx(expected, rel=1e-6)


def test_expert_parallel_deals_experts_and_sends_tokens():
    moe = model(moe_group(n_experts=8))
    layout = ParallelLayout(dp=8, ep=8)
    found = dict(step(moe, layout=layout, constants=perfect()).parts_s)
    assert found["expert parallel"] > 0
    assert dict(step(moe).parts_s)["expert parallel"] == 0


def test_imbalance_slows_the_busiest_expert():
    moe = model(moe_group(n_experts=8))
    even = step(moe).step_s
    assert step(moe, constants=perfect(imbalance_ratio=2.0)).step_s > even


def test_slow_hosts_set_the_pace_of_small_layers():
    tiny = model(dense_group(n_layers=4))
    found = step(tiny, constants=perfect(layer_s=1e-3), job=setup(n_micro_batches=1))
    assert found.step_s == pytest.approx(2 * 4 * 1e-3, rel=1e-3)


def test_input_shows_only_where_it_is_slower_than_the_step():
    fast = step(job=replace(setup(), input_s=0.01))
    slow = step(job=replace(setup(), input_s=10.0))
    assert dict(fast.parts_s)["input"] < 1e-3 * fast.step_s
    assert slow.step_s == pytest.approx(10.0, rel=1e-3)


def test_parts_add_up_and_name_the_cause():
    found = step(
        GPT,
        layout=ParallelLayout(tp=8, pp=8, dp=8, has_sequence_parallel=True),
        constants=calibrated(device()),
    )
    assert sum(seconds for _, seconds in found.parts_s) == pytest.approx(found.step_s)
    assert found.tokens_per_s_per_accelerator == pytest.approx(8 * 8 * 2048 / found.step_s / 512)
    assert found.cause in dict(found.parts_s)


def test_what_the_hardware_cannot_runs_wider():
    without = replace(device(), peak_flop_per_s={"bf16": 312e12})
    assert peak_flop_per_s(without, "fp8") == 312e12
    job = setup(n_micro_batches=1, compute="fp8")
    assert step(on=without, job=job).mfu_frac == pytest.approx(1.0)


def test_heads_that_miss_the_matrix_units_are_slow_without_flash():
    def gpt(n_heads):
        return model_from(
            "gpt", Dimensions(n_layers=2, hidden=13824, n_heads=n_heads, n_vocab=51200), source=""
        )

    def attention(n_heads, kernel):
        return dict(step(gpt(n_heads), job=setup(attention=kernel)).parts_s)["attention"]

    assert attention(128, "math") == pytest.approx(8 * attention(96, "math"))
    assert attention(128, "flash") < 1.2 * attention(96, "flash")


@pytest.mark.parametrize(
    ("layout", "per_server"),
    [
        # Weights twice, gradients once: seven of eight parts go to other servers.
        (ParallelLayout(dp=64, sharding="zero3"), 3 * 7 / 8),
        (ParallelLayout(dp=64), 2 * 7 / 8),  # an all-reduce passes the gradients twice
        (ParallelLayout(dp=8, sharding="zero3"), 0.0),  # one server
        (ParallelLayout(tp=8, dp=8), 2 * 7 / 8),  # tensor parallelism stays inside
    ],
)
def test_bytes_between_servers_are_those_of_the_collectives(layout, per_server):
    job = setup(n_micro_batches=1)
    sent = network_bytes_per_step(SMALL, device(), job, layout=layout, fabric=fabric())
    # Two bytes a parameter, of weights as of gradients.
    assert 8 * sent == pytest.approx(per_server * 2.0 * SMALL.n_params, rel=0.02, abs=1e3)


def test_bytes_between_servers_do_not_depend_on_the_network():
    layout, job = ParallelLayout(dp=16, sharding="zero3"), setup()
    slow = replace(fabric(), outside=replace(fabric().outside, bytes_per_s=1e6))
    sent = [
        network_bytes_per_step(SMALL, device(), job, layout=layout, fabric=links)
        for links in (fabric(), slow)
    ]
    assert sent[0] == sent[1] > 0
