"""Peaks, reserves and what is left, against sums made by hand."""

import pytest

from fakes import models
from gpuplan.domain.inference.fit import Deployment
from gpuplan.domain.inference.serving import LoraSlots, SequenceLoad, ServingLayout, StorageFormats
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.memory.inference import (
    activation_bytes,
    communication_bytes,
    inference_memory,
    lora_bytes,
)
from gpuplan.performance.serving.engines import vllm_settings
from gpuplan.units import GIB, MIB

BF16 = StorageFormats(base=FORMATS["bf16"], quantized=None, parts=(), cache=FORMATS["bf16"])


def memory_on(device, *, layout=ServingLayout(), n_sequences=1, **engine):  # noqa: B008
    deployment = Deployment(
        model=models.model(),
        accelerator=device,
        storage=BF16,
        layout=layout,
        engine=vllm_settings(device, **engine),
        load=SequenceLoad(context_tokens=1024, n_sequences=n_sequences),
    )
    return inference_memory(deployment)


def test_parts_and_cache_fill_the_engines_share():
    memory = memory_on(models.device(), version=(0, 20))
    parts = memory.weights_bytes + memory.activation_bytes + memory.communication_bytes
    parts += memory.context_bytes + memory.lora_bytes + memory.cache_bytes
    assert parts == pytest.approx(0.9 * 79.18 * GIB)


def test_newer_engines_count_graphs_inside_their_share():
    memory = memory_on(models.device(), version=(0, 21))
    parts = memory.weights_bytes + memory.activation_bytes + memory.context_bytes
    assert parts + memory.graphs_bytes + memory.cache_bytes == pytest.approx(0.92 * 79.18 * GIB)


def test_graphs_outside_the_share_still_need_room():
    """With the whole device given to the engine, nothing is left beside it."""
    device = models.device()
    whole, most = (
        memory_on(device, version=(0, 20), memory_use_frac=share) for share in (1.0, 0.9)
    )
    gained = whole.cache_bytes - most.cache_bytes
    assert gained == pytest.approx(0.1 * 79.18 * GIB - whole.graphs_bytes)


def test_sampling_is_not_divided_by_tensor_parallelism():
    engine = vllm_settings(models.device())
    want = 1024 * models.VOCAB * engine.sampler_bytes_per_logit
    for tp in (1, 2, 8):
        model = models.model()
        layout = ServingLayout(tp=tp)
        assert activation_bytes(model, layout, engine) >= want
    alone = activation_bytes(models.model(), ServingLayout(tp=8), engine)
    assert alone == pytest.approx(want)


def test_small_devices_and_the_a100_get_small_batches():
    assert vllm_settings(models.device()).max_sequences == 1024
    assert vllm_settings(models.device(22 * GIB)).max_sequences == 256
    assert vllm_settings(models.device(name="a100-sxm-80gb")).max_batch_tokens == 2048


def test_communication_needs_company():
    assert communication_bytes(ServingLayout()) == 0
    assert communication_bytes(ServingLayout(tp=2)) == 342 * MIB


def test_data_parallel_attention_shares_the_sequences():
    one = memory_on(models.device(), n_sequences=8)
    four = memory_on(models.device(), n_sequences=8, layout=ServingLayout(dp=4))
    assert four.needed_bytes == one.needed_bytes / 4


def test_adapters_are_sized_by_the_largest_rank():
    """q, k, v, o and three feed-forward matrices; each adds in + out per unit of rank."""
    hidden, q, kv, ffn = 64, 64, 16, 256
    per_layer = (hidden + q) + 2 * (hidden + kv) + (q + hidden) + 3 * (hidden + ffn)
    slots = LoraSlots(n_slots=4, max_rank=32)
    want = 4 * 32 * 4 * per_layer * 2
    assert lora_bytes(models.model(), slots, BF16, layout=ServingLayout()) == want
    assert lora_bytes(models.model(), None, BF16, layout=ServingLayout()) == 0


def test_more_memory_never_leaves_less():
    small, large = models.device(40 * GIB), models.device(60 * GIB)
    left = [memory_on(device).cache_bytes for device in (small, large)]
    assert left[1] > left[0]
