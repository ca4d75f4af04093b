"""Commands of engines: every flag says what the plan was simulated with."""

import shlex
from dataclasses import replace

import pytest

from fakes.deployed import SETTINGS, deployed, deployed_pool, served_model, spread_pool
from gpuplan.domain.inference.serving import LoraSlots
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.render.commands.engine import (
    command_of,
    engine_scripts,
    image_of,
    precision_notes,
    wrapped,
)


def flags(one):
    words = command_of(one.shape, one.served)
    found = {}
    for i, word in enumerate(words):
        if word.startswith("--"):
            is_last = i + 1 == len(words) or words[i + 1].startswith("--")
            found[word] = True if is_last else words[i + 1]
    return words, found


def test_vllm_is_started_with_the_settings_of_the_simulation():
    words, found = flags(deployed_pool())
    assert words[:3] == ["vllm", "serve", "org/model"]
    assert found["--tensor-parallel-size"] == "2"
    assert found["--max-num-seqs"] == "256"
    assert found["--max-num-batched-tokens"] == "8192"
    assert found["--max-model-len"] == "32768"
    assert found["--gpu-memory-utilization"] == "0.9"
    assert found["--quantization"] == "fp8"


def test_a_single_stage_asks_for_no_pipeline():
    _, found = flags(deployed_pool())
    absent = {"--pipeline-parallel-size", "--data-parallel-size", "--enable-expert-parallel"}
    assert not absent & set(found)


def test_ranks_of_experts_are_asked_for():
    _, found = flags(spread_pool(PoolLayout(tp=1, pp=2, dp=8, ep=8)))
    assert found["--data-parallel-size"] == "8"
    assert found["--pipeline-parallel-size"] == "2"
    assert found["--enable-expert-parallel"] is True


def test_weights_as_published_are_not_quantized_again():
    one = deployed_pool(served=served_model(is_published_precision=True))
    assert "--quantization" not in flags(one)[1]


def test_a_narrow_cache_is_asked_for():
    one = deployed_pool(served=served_model(cache_precision="fp8"))
    assert flags(one)[1]["--kv-cache-dtype"] == "fp8"


def test_without_a_limit_the_model_decides_its_context():
    one = deployed_pool(served=served_model(max_context_tokens=None))
    assert "--max-model-len" not in flags(one)[1]


def test_adapters_get_their_slots():
    settings = replace(SETTINGS, lora=LoraSlots(n_slots=4, max_rank=32))
    _, found = flags(deployed_pool(served=served_model(settings=settings)))
    assert (found["--max-loras"], found["--max-lora-rank"]) == ("4", "32")
    _, found = flags(deployed_pool(served=served_model("sglang", "0.5.9", settings=settings)))
    assert (found["--max-loras-per-batch"], found["--max-lora-rank"]) == ("4", "32")


def test_sglang_counts_ranks_of_data_parallelism_within_its_tensor_size():
    one = spread_pool(PoolLayout(tp=2, pp=1, dp=4, ep=8), served=served_model("sglang", "0.5.9"))
    words, found = flags(one)
    assert words[:5] == ["python3", "-m", "sglang.launch_server", "--model-path", "org/model"]
    assert (found["--tp-size"], found["--dp-size"], found["--ep-size"]) == ("8", "4", "8")
    assert found["--enable-dp-attention"] is True
    assert found["--chunked-prefill-size"] == "8192"


def test_tensorrt_llm_has_names_of_its_own():
    words, found = flags(deployed_pool(served=served_model("trtllm", "1.1.0")))
    assert words[0] == "trtllm-serve"
    assert (found["--tp_size"], found["--max_num_tokens"]) == ("2", "8192")


@pytest.mark.parametrize(
    ("engine", "version", "card", "image"),
    [
        ("vllm", "0.15", "h100-sxm", "vllm/vllm-openai:v0.15.0"),
        ("vllm", "0.15.1", "h100-sxm", "vllm/vllm-openai:v0.15.1"),
        ("vllm", "0.15", "mi300x", "vllm/vllm-openai-rocm:v0.15.0"),
        ("vllm", "", "h100-sxm", "vllm/vllm-openai:latest"),
        ("sglang", "0.5.9", "h100-sxm", "lmsysorg/sglang:v0.5.9"),
    ],
)
def test_the_image_is_that_of_the_version(engine, version, card, image):
    served = served_model(engine, version)
    assert image_of(deployed_pool(card), served) == image


def test_a_format_that_no_engine_makes_needs_a_checkpoint():
    one = deployed_pool()
    narrow = replace(one, pool=replace(one.pool, precision="int4"))
    assert "not published in int4" in next(precision_notes(narrow, narrow.served))
    assert not list(precision_notes(one, one.served))


def test_a_wrapped_command_is_the_same_command():
    one = deployed_pool(model="org/model with 'quotes'")
    words = shlex.split(wrapped(one, one.served).replace("\\\n", " "))
    assert words == command_of(one.shape, one.served)


def test_scripts_are_written_for_the_engine_that_serves():
    whole = deployed(deployed_pool())
    (script,) = engine_scripts(whole, "vllm")
    assert script.path == "serve-chat.sh"
    assert script.content.startswith(b"#!/usr/bin/env bash\n# Rendered by gpuplan")
    assert b"ttft p95: 400 ms predicted, 2000 ms allowed" in script.content
    assert not list(engine_scripts(whole, "sglang"))


def test_a_name_from_outside_cannot_leave_its_comment():
    one = deployed_pool()
    evil = replace(one, pool=replace(one.pool, workload="chat\nrm -rf /"))
    (script,) = engine_scripts(deployed(evil), "vllm")
    assert b"\nrm -rf" not in script.content
