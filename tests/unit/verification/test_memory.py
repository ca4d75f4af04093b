"""Memory by hand: Llama-3.1-8B has 8.03e9 parameters and 131,072 bytes of KV cache a token."""

from dataclasses import replace

import pytest

from gpuplan.domain.scenario.workload import Training
from gpuplan.units import GB
from gpuplan.verification.physics import (
    _training_bytes,
    element_bytes,
    kv_bytes,
    longest_tokens,
    memory_checks,
)

PARAMS = 8.03e9


def with_request(facts, **changes):
    """The facts of a service whose requests are of another shape."""
    [work] = facts.scenario.workloads
    request = replace(work.work.request, **changes)
    served = replace(work, work=replace(work.work, request=request))
    return replace(facts, scenario=replace(facts.scenario, workloads=(served,)))


def test_weights_and_the_longest_request_on_one_card(document, facts):
    [check] = memory_checks(document, facts)
    by_hand = (PARAMS * 2 + 950 * 131072) / GB
    assert check.ok
    assert check.claimed == pytest.approx(by_hand, rel=1e-3)
    assert check.found == pytest.approx(85.0, abs=1.0)  # an H100 of 79.18 GiB


def test_a_slice_that_is_too_small_is_found(document, pool, facts, failed):
    pool["share"] = "1g.10gb"
    assert failed(memory_checks(document, facts)) == ["memory of assistant: one accelerator"]
    pool["share"] = "1/8"
    assert failed(memory_checks(document, facts))
    pool["share"] = "1/2"
    assert not failed(memory_checks(document, facts))


def test_tensor_parallelism_splits_what_is_held(document, pool, facts):
    [alone] = memory_checks(document, facts)
    pool["tp"] = 2
    [split] = memory_checks(document, facts)
    assert split.claimed == pytest.approx(alone.claimed / 2)


def test_kv_cache_by_layers_heads_and_width(facts):
    model = facts.models["assistant"]
    assert kv_bytes(model, 1000, "") == 1000 * 32 * 8 * 2 * 128 * 2
    assert kv_bytes(model, 1000, "fp8") == 1000 * 32 * 8 * 2 * 128


def test_the_longest_request_is_the_scenarios(facts):
    assert longest_tokens(facts.scenario.workloads[0]) == 950


def test_unknown_formats_are_taken_as_the_narrowest():
    assert element_bytes("bf16") == 2.0
    assert element_bytes("q2_k") == 0.25


def run(method="pretraining"):
    return Training(method=method, n_tokens=1e9, n_samples=None, n_epochs=1.0, sequence_tokens=4096)


@pytest.mark.parametrize(
    ("method", "sharding", "each"),
    [
        ("full", "fsdp", 12 / 8),  # weights 2, gradients 2, moments 8, over all
        ("full", "zero1", 4 + 8 / 8),  # weights and gradients whole
        ("lora", "fsdp", 2 / 8),
        ("lora", "ddp", 2),
        ("qlora", "ddp", 0.5),
    ],
)
def test_states_of_a_run_by_their_sharding(facts, method, sharding, each):
    pool = {"n_accelerators": 8, "tp": 1, "pp": 1, "sharding": sharding, "precision": "bf16"}
    found = _training_bytes(pool, facts.models["assistant"], run(method))
    assert found == pytest.approx(PARAMS * each, rel=1e-3)


def test_slots_of_adapters_take_their_room(document, pool, facts):
    [bare] = memory_checks(document, facts)
    adapted = with_request(facts, n_adapters=100, lora_rank=64)
    pool["max_loras"] = 100
    [slots] = memory_checks(document, adapted)
    # Four vectors of 4,096 in each of 32 layers, 64 times, two bytes each: 67 MB an adapter.
    assert slots.claimed - bare.claimed == pytest.approx(100 * 0.0671, rel=1e-3)
    pool["max_loras"] = 2000
    assert not next(memory_checks(document, adapted)).ok
