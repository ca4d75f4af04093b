"""Finding a model by the names that people type, or by its file."""

import json

import pytest

from gpuplan.catalog.models import _entries, find_model, models_in_catalog, take_apart
from gpuplan.errors import InputError

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("META-LLAMA/llama-3.1-70b-instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("Llama 3.3 70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
        ("  qwen3-32b ", "Qwen/Qwen3-32B"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("DeepSeek_R1", "deepseek-ai/DeepSeek-R1"),
        ("gpt2", "openai-community/gpt2"),
        ("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"),
        ("qwen3-235b", "Qwen/Qwen3-235B-A22B"),
        ("llama-2-7b-chat", "meta-llama/Llama-2-7b-chat-hf"),
        ("llama-2-7b", "meta-llama/Llama-2-7b-hf"),
        ("llama-3-8b", "meta-llama/Meta-Llama-3-8B"),
        ("Mixtral 8x22B", "mistralai/Mixtral-8x22B-v0.1"),
        ("bloom-176b", "bigscience/bloom"),
        ("qwen3-32b-fp8", "Qwen/Qwen3-32B-FP8"),
        ("gpt-oss-20b", "openai/gpt-oss-20b"),
        ("whisper-large-v3", "openai/whisper-large-v3"),
    ],
)
def test_names_as_people_type_them(text, name):
    assert find_model(text).name == name


def test_equal_figures_under_several_names_are_chosen_and_told():
    model = find_model("llama-3.1-70b")
    assert model.n_params == 70_553_706_496
    assert any(a.what == "model" and a.value == model.name for a in model.assumptions)


def test_the_precision_in_a_name_is_the_stored_one():
    model = find_model("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic")
    assert model.name == "meta-llama/Llama-3.3-70B-Instruct"
    assert model.checkpoint.format_of("feed_forward").name == "fp8"
    assert model.checkpoint.format_of("head").name == "bf16"
    assert any(a.what == "stored precision" for a in model.assumptions)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "int4"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "int8"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "nf4"),
        ("casperhansen/llama-3.3-70b-instruct-awq", "int4"),
        ("nvidia/Llama-3.3-70B-Instruct-NVFP4", "nvfp4"),
        ("LLaMA 3 8B Q4_K_M", "q4_k_m"),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "fp8"),  # in the catalog, without a block
    ],
)
def test_precisions_as_publishers_write_them(text, stored):
    assert find_model(text).checkpoint.format_of("attention").name == stored


def test_ambiguity_is_told_with_the_choices():
    with pytest.raises(InputError, match="could be several") as caught:
        find_model("olmo-2-1124")
    assert "allenai/OLMo-2-1124-7B" in str(caught.value)


def test_a_typo_gets_the_nearest_names():
    with pytest.raises(InputError, match="nearest") as caught:
        find_model("lxma-3.1-70b")
    assert "Llama-3.1-70B" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "   ", "x" * 400, "a\x00b", "no such thing at all", "../..", "-"]
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(InputError):
        find_model(text)


def test_a_file_and_its_folder(tmp_path):
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    for place in (folder, folder / "config.json"):
        model = find_model(str(place))
        assert model.n_params == 8_030_261_248
        assert model.name == "my-llama"
        assert model.source == str(folder / "config.json")


def test_a_diffusers_folder(tmp_path):
    (tmp_path / "transformer").mkdir()
    values = {"_class_name": "FluxTransformer2DModel", "num_layers": 19, "num_single_layers": 38}
    values |= {"num_attention_heads": 24, "attention_head_dim": 128, "in_channels": 64}
    values |= {"joint_attention_dim": 4096, "pooled_projection_dim": 768, "guidance_embeds": True}
    (tmp_path / "transformer/config.json").write_text(json.dumps(values), "utf-8")
    assert find_model(str(tmp_path)).n_params == 11_901_408_320


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff\xfe\x00", b"[" * 100_000, b'{"a": 1}'])
def test_a_bad_file_is_an_input_error(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        find_model(str(path))


def test_an_empty_folder_and_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"no config\.json"):
        find_model(str(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        find_model(str(tmp_path / "gone.json"))


def test_a_name_is_taken_apart():
    taken = take_apart("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic")
    assert (taken.owner, taken.words) == ("redhatai", ("llama", "3.3", "70b"))
    assert (taken.quiet, taken.precision) == (("instruct",), "fp8")


def test_every_model_of_the_catalog_is_found_under_its_own_id():
    assert len(models_in_catalog()) > 190
    for name in models_in_catalog():
        assert find_model(name).name == name


def test_every_entry_names_its_source_and_licence():
    for entry in _entries():
        row = json.loads(entry.line)
        assert row["source"]
        assert row["licence"]
        assert row["kind"]


def test_finding_one_does_not_parse_all(monkeypatch):
    parsed = []
    monkeypatch.setattr(json, "loads", lambda text, load=json.loads: parsed.append(1) or load(text))
    find_model("meta-llama/Llama-3.1-8B-Instruct")
    assert len(parsed) <= 5


@pytest.mark.parametrize("text", ["~0", "~nobody-of-this-name", "~/no-such-folder"])
def test_a_home_that_nobody_has_is_no_model(text):
    with pytest.raises(InputError):
        find_model(text)


def test_a_name_may_stop_before_the_sizes_but_not_inside_a_number():
    assert find_model("Llama4-Maverick").name == "meta-llama/Llama-4-Maverick-17B-128E-Instruct"
    with pytest.raises(InputError, match="not in the catalog"):
        find_model("Llama-3.1-4")  # no 405B


def test_norms_over_the_full_width_are_told_from_those_of_a_head():
    wide, narrow = find_model("MiniMaxAI/MiniMax-M2.5"), find_model("Qwen/Qwen3-32B")
    assert all(g.mixer.is_normed_across_heads for g in wide.main.groups)
    assert not any(g.mixer.is_normed_across_heads for g in narrow.main.groups)


def test_an_indexer_has_its_heads():
    groups = find_model("zai-org/GLM-5").main.groups
    heads = {c.n_index_heads for g in groups for c in g.caches if c.role == "indexer"}
    assert heads == {32}


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("Qwen/Qwen3.6-27B", "bf16"),
        ("Gemma-4-31B-IT", "bf16"),
        ("Kimi-K2.6", "int4-g32"),  # its maker trains in four bits
        ("nvidia/Qwen3.6-27B-NVFP4", "nvfp4"),
        ("DeepSeek-V3.1", "fp8-block"),
    ],
)
def test_a_name_without_a_precision_is_as_its_maker_published_it(typed, stored):
    checkpoint = find_model(typed).checkpoint
    assert (checkpoint.quantized or checkpoint.base).name == stored
