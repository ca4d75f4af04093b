"""Reading configurations: what is said, what is assumed, what is refused."""

import pytest

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.errors import InputError

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
    "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip


def _without(*names: str) -> dict[str, object]:
    return {name: value for name, value in LLAMA.items() if name not in names}


def test_llama_3_8b_is_read_without_assumptions():
    model = read_model(LLAMA, name="Llama-3-8B")
    assert model.n_params == 8_030_261_248
    assert model.max_context_tokens == 8192
    assert model.assumptions == ()


def test_an_unknown_type_reads_as_llama_and_says_so():
    model = read_model({**LLAMA, "model_type": "novel"}, name="novel")
    assert model.n_params == 8_030_261_248
    assert any(a.what == "architecture" and "Llama" in a.value for a in model.assumptions)


def test_every_missing_size_is_named_at_once():
    with pytest.raises(InputError) as caught:
        read_model(_without("hidden_size", "num_hidden_layers", "vocab_size"), name="x")
    places = {problem.where for problem in caught.value.problems}
    assert places == {"hidden_size", "num_hidden_layers", "vocab_size"}


def test_a_bare_type_is_no_network():
    with pytest.raises(InputError):
        read_model({"model_type": "llama"}, name="x")


def test_a_nested_part_may_leave_out_what_is_usual():
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240}
    text |= {"num_hidden_layers": 34, "sliding_window": 1024}
    vision = {"model_type": "siglip_vision_model", "hidden_size": 1152, "patch_size": 14}
    vision |= {"intermediate_size": 4304, "num_hidden_layers": 27, "image_size": 896}
    vision |= {"num_attention_heads": 16, "vision_use_head": False}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": vision}
    model = read_model(config, name="google/gemma-3-4b-it")
    assert model.n_params == 4_300_079_472  # as published
    assumed = {a.what for a in model.assumptions}
    assert {"text_config.num_attention_heads", "text_config.vocab_size"} <= assumed


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"hidden_size": 1e30}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"num_attention_heads": 31}, "num_attention_heads"),
        ({"num_key_value_heads": 5}, "num_key_value_heads"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"vocab_size": [1, 2]}, "vocab_size"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types"),
        ({"layer_types": [0] * 5000}, "layer_types"),
        ({"num_local_experts": 4, "num_experts_per_tok": 8}, "num_experts_per_tok"),
        ({"attention_bias": "yes"}, "attention_bias"),
        ({"quantization_config": 7}, "quantization_config"),
    ],
)
def test_a_bad_figure_is_named(change, where):
    with pytest.raises(InputError) as caught:
        read_model({**LLAMA, **change}, name="x")
    assert where in {problem.where for problem in caught.value.problems}


def test_tied_tables_are_counted_once():
    apart = read_model(LLAMA, name="x")
    tied = read_model({**LLAMA, "tie_word_embeddings": True}, name="x")
    assert apart.n_params - tied.n_params == 128256 * 4096
    assert apart.embedding.n_head_matrix_params == tied.embedding.n_head_matrix_params


def test_mtp_layers_stand_apart():
    model = find_model("deepseek-ai/DeepSeek-V3")
    assert model.n_params == pytest.approx(671.03e9, rel=1e-4)
    assert model.n_mtp_params == pytest.approx(11.6e9, rel=0.01)


def test_towers_are_part_of_the_count():
    model = find_model("Qwen/Qwen3-VL-2B-Instruct")
    towers = [stack for stack in model.stacks if stack.role == "vision"]
    assert model.kind == "vision-language"
    assert model.main.role == "text"
    assert towers[0].n_params == pytest.approx(0.407e9, rel=0.01)


def test_a_tower_that_cannot_be_read_is_told_not_refused():
    config = {**LLAMA, "model_type": "novel_vl", "vision_config": {"model_type": "novel", "x": 1}}
    model = read_model(config, name="x")
    assert model.n_params == 8_030_261_248
    assert any(a.what == "vision_config" for a in model.assumptions)


def test_searched_layers_differ_one_by_one():
    model = find_model("nvidia/Llama-3_3-Nemotron-Super-49B-v1")
    assert model.n_params == pytest.approx(49.87e9, rel=0.001)
    assert sum(n for n, _c in model.caches()) < model.main.n_layers


@pytest.mark.parametrize("name", ["deepseek-ai/DeepSeek-V2", "Qwen/Qwen3-8B", "openai/gpt-oss-20b"])
def test_share_of_matrices_that_make_keys_and_values_is_a_share(name):
    for group in find_model(name).main.groups:
        mixer = group.mixer
        share = getattr(mixer, "n_kv_matrix_params", None) or mixer.n_down_matrix_params
        assert 0 < share < mixer.n_matrix_params
