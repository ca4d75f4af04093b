"""Quantization blocks: which part is stored in which format."""

import pytest

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.domain.model.network import Checkpoint
from gpuplan.errors import InputError

DENSE = {
    "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8,
    "intermediate_size": 1024, "vocab_size": 1000, "torch_dtype": "bfloat16",
}  # fmt: skip
MOE = {**DENSE, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}


def _stored(block: dict[str, object], config: dict[str, object] = DENSE) -> Checkpoint:
    return read_model({**config, "quantization_config": block}, name="x").checkpoint


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4-g32z"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "nf4"),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True,
             "bnb_4bit_use_double_quant": True},
            "nf4-dq",
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
    ],
)  # fmt: skip
def test_methods(block, name):
    stored = _stored(block)
    assert stored.quantized is not None
    assert stored.quantized.name == name
    assert stored.parts == ("attention", "feed_forward")


def _group(**weights: object) -> dict[str, object]:
    return {"g": {"targets": ["Linear"], "weights": weights}}


@pytest.mark.parametrize(
    ("weights", "name"),
    [
        ({"num_bits": 8, "type": "float", "strategy": "channel"}, "fp8"),
        ({"num_bits": 8, "type": "float", "strategy": "block"}, "fp8-block"),
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, "int8"),
        ({"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}, "int4-g128"),
        ({"num_bits": 4, "type": "float", "group_size": 16}, "nvfp4"),
        ({"num_bits": 4, "type": "float", "group_size": 32}, "mxfp4"),
    ],
)
def test_compressed_tensors(weights, name):
    block = {"quant_method": "compressed-tensors", "config_groups": _group(**weights)}
    stored = _stored({**block, "ignore": ["lm_head"]})
    assert stored.quantized is not None
    assert stored.quantized.name == name


@pytest.mark.parametrize(
    "ignored",
    [
        ["re:.*self_attn.*", "lm_head"],
        [f"model.layers.{i}.self_attn" for i in range(8)] + ["lm_head"],
        ["model.layers.*.self_attn", "lm_head"],
        [f"language_model.model.layers.{i}.self_attn*" for i in range(8)] + ["x.lm_head"],
    ],
)
def test_exceptions_as_patterns_globs_and_paths(ignored):
    block = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ignored}
    assert _stored(block, MOE).parts == ("experts",)


def test_a_split_within_a_part_goes_with_most_layers_and_is_told():
    ignored = ["model.layers.0.self_attn", "model.layers.7.self_attn"]
    block = {"quant_method": "fp8", "modules_to_not_convert": ignored}
    model = read_model({**DENSE, "quantization_config": block}, name="x")
    assert "attention" in model.checkpoint.parts
    assert any("attention" in a.what and "25%" in a.why for a in model.assumptions)


def test_a_pattern_that_could_run_for_ever_is_not_run():
    block = {"quant_method": "fp8", "ignore": [r"re:(\w+\.?)+$x"]}
    assert any("ignored" in a.value for a in read_model(
        {**DENSE, "quantization_config": block}, name="x").assumptions)  # fmt: skip


def test_a_broken_pattern_is_an_input_error():
    with pytest.raises(InputError):
        _stored({"quant_method": "fp8", "ignore": ["re:("]})


def test_gpt_oss_stores_only_experts_in_4_bits():
    stored = find_model("openai/gpt-oss-120b").checkpoint
    assert stored.parts == ("experts",)
    assert stored.format_of("experts").name == "mxfp4"
    assert stored.format_of("attention").name == "bf16"


def test_two_formats_in_one_checkpoint():
    stored = find_model("deepseek-ai/DeepSeek-V4-Flash").checkpoint
    assert stored.format_of("experts").name == "mxfp4"
    assert stored.format_of("attention").name == "fp8-block"
    assert stored.format_of("head").name == "bf16"


@pytest.mark.parametrize(
    ("name", "cache"),
    [
        ("nvidia/Kimi-K2.5-NVFP4", "fp8"),
        ("Qwen/Qwen3-32B-FP8-Static-PerTensor", "fp8"),
        ("deepseek-ai/DeepSeek-V3", None),
    ],
)
def test_cache_precision_that_the_checkpoint_asks_for(name, cache):
    stored = find_model(name).checkpoint.cache
    assert (stored.name if stored else None) == cache


@pytest.mark.parametrize(
    ("name", "base"),
    [("BAAI/bge-m3", "fp32"), ("allenai/OLMo-2-1124-7B", "fp32"), ("gpt2", "bf16")],
)
def test_base_precision(name, base):
    assert find_model(name).checkpoint.base.name == base
