"""Common names, sizes alone, and families without a generation each stand for one model."""

import csv
from importlib.resources import files

import pytest

from gpuplan.catalog.model_names import meant_by
from gpuplan.catalog.models import find_model, may_be_model, models_in_catalog

ALIASES = list(
    csv.DictReader(
        files("gpuplan.catalog").joinpath("data/aliases.csv").read_text("utf-8").splitlines()
    )
)


@pytest.mark.parametrize("row", ALIASES, ids=lambda row: row["alias"])
def test_every_alias_is_a_model_of_the_catalog_and_is_told(row):
    assert row["id"] in models_in_catalog()
    found = find_model(row["alias"])
    assert found.name == row["id"]
    told = [note.why for note in found.assumptions if note.what == "model"]
    assert row["why"] in " ".join(told)


def test_no_alias_is_given_twice():
    keys = [row["alias"].replace(" ", "") for row in ALIASES]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("llama 70b", "meta-llama/Llama-3.3-70B-Instruct"),
        ("Llama-70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama 405B", "meta-llama/Meta-Llama-3.1-405B-Instruct"),
        ("qwen 235b", "Qwen/Qwen3-235B-A22B"),
        ("qwen coder 32b", "Qwen/Qwen2.5-Coder-32B-Instruct"),
        ("gemma 27b", "google/gemma-3-27b-it"),
        ("llama 3b", "meta-llama/Llama-3.2-3B-Instruct"),
    ],
)
def test_a_family_and_a_size_stand_for_the_newest_generation(typed, meant):
    found = find_model(typed)
    assert found.name == meant
    assert any("newest generation" in note.why for note in found.assumptions)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("whisper-base", "openai/whisper-base"),
        ("Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"),
        ("Qwen-7B", "Qwen/Qwen-7B"),
        ("phi-2", "microsoft/phi-2"),
    ],
)
def test_a_name_as_published_stands_for_itself(typed, meant):
    found = find_model(typed)
    assert found.name == meant
    assert not [note for note in found.assumptions if note.what == "model"]


@pytest.mark.parametrize(
    "names",
    [
        ("SDXL", "sd-xl", "stable diffusion xl", "stable-diffusion-xl-base-1.0"),
        ("flux", "FLUX.1-dev", "flux dev", "black-forest-labs/FLUX.1-dev"),
        ("whisper", "whisper large", "whisper large-v3", "openai/whisper-large-v3"),
        ("bge-reranker", "bge-reranker-v2-m3", "BAAI/bge-reranker-v2-m3"),
        ("70B", "llama 70b", "llama 3.3", "Llama-3.3-70B"),
    ],
)
def test_all_names_of_a_model_are_one_model(names):
    assert len({find_model(name).name for name in names}) == 1


def test_a_precision_beside_a_common_name_is_kept():
    assert find_model("llama 70b fp8").checkpoint.format_of("attention").name == "fp8"


def test_a_family_that_nobody_publishes_is_meant_by_nothing():
    assert meant_by("zebra 70b") is None


@pytest.mark.parametrize("text", ["bge 0b", "phi4:0b", "bge0"])
def test_a_size_of_nothing_is_nobodys(text):
    assert may_be_model(text) in (True, False)


@pytest.mark.parametrize(
    ("typed", "base"),
    [
        ("cognitivecomputations/Dolphin3.0-Llama3.1-8B", "meta-llama/Meta-Llama-3.1-8B"),
        ("acme-support-qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"),
    ],
)
def test_a_fine_tune_has_the_layers_of_the_model_that_its_name_ends_with(typed, base):
    found = find_model(typed)
    assert found.name == base
    assert any("made of this" in note.why for note in found.assumptions)


@pytest.mark.parametrize(
    "typed", ["EAGLE3-LLaMA3.1-8B", "draft-llama-3.2-1b", "llava-llama-3.2-3b", "a day llama-3-8b"]
)
def test_drafts_towers_and_sentences_are_no_fine_tunes(typed):
    assert not may_be_model(typed)


def test_a_generation_and_a_size_are_no_other_size():
    assert find_model("gemma3:1b").name == "google/gemma-3-1b-it"


@pytest.mark.parametrize(
    ("typed", "base", "stored"),
    [
        ("acme/Qwen3-8B-Support-Distill-v2", "Qwen/Qwen3-8B", "bf16"),
        ("acme/Qwen3-8B-Support-Distill-v2-AWQ", "Qwen/Qwen3-8B", "int4"),
        ("acme/Llama-3.1-Storm-8B", "meta-llama/Meta-Llama-3.1-8B", "bf16"),
        ("acme/L3.3-70B-Tales-v2.3", "meta-llama/Llama-3.3-70B-Instruct", "bf16"),
        ("acme/Tales-L2-13b", "meta-llama/Llama-2-13b-hf", "bf16"),
        ("acme/Qwen3-30B-A3B-Agent", "Qwen/Qwen3-30B-A3B", "bf16"),
        ("dolphin-mixtral:8x7b", "mistralai/Mixtral-8x7B-v0.1", "bf16"),
        ("lmstudio-community/gpt-oss-20b-MLX-6bit", "openai/gpt-oss-20b", "q6_k"),
    ],
)
def test_another_publishers_fine_tune_has_its_bases_layers(typed, base, stored):
    found = find_model(typed)
    layers = found.checkpoint.format_of("attention" if "oss" not in typed else "experts")
    assert (found.stacks, layers.name) == (find_model(base).stacks, stored)
    assert any(note.what == "model" for note in found.assumptions)


@pytest.mark.parametrize(
    "typed",
    [
        "Qwen/Qwen3-Aligned-0.6B",  # the publisher's own: another product
        "acme/Qwen3-8B-DFlash",
        "acme/tiny-random-Llama-3.1-8B",
        "acme/Qwen3-8B-TQ3",  # bits that no table knows
        "acme/Qwen3-8B-4.75bit-vllm",
        "acme/Qwen3-8B-to-4B",
        "acme/glm-4-9b-chat-1m",  # has twice the KV heads
        "acme/Qwen3-Omni-8B",
    ],
)
def test_drafts_strange_bits_and_other_sizes_are_no_fine_tunes(typed):
    assert not may_be_model(typed)


@pytest.mark.parametrize(
    ("typed", "base"),
    [
        ("mistralai/Mistral-Nemo-Base-2407", "mistralai/Mistral-Nemo-Instruct-2407"),
        ("ibm-granite/granite-4.0-h-tiny-base", "ibm-granite/granite-4.0-h-tiny"),
        ("XiaomiMiMo/MiMo-7B-RL", "XiaomiMiMo/MiMo-7B-Base"),
    ],
)
def test_a_stage_of_training_changes_no_layers(typed, base):
    assert find_model(typed).stacks == find_model(base).stacks


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("deepseekr1", "deepseek-ai/DeepSeek-R1"), ("gtp-oss 120b", "openai/gpt-oss-120b")],
)
def test_joined_words_and_swapped_letters_are_read(typed, meant):
    assert find_model(typed).name == meant


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("unsloth/Qwen3-8B-GGUF:Q4_K_XL", "q4_k_m"),
        ("Qwen3-8B-IQ3_XS.gguf", "q3_k_m"),
        ("Qwen3-8B-IQ1_S.gguf", "q2_k"),
        ("acme/Qwen3-8B-GPTQ-4b-128g", "int4"),
        ("ollama run qwen3:8b", "bf16"),
    ],
)
def test_file_types_without_a_format_of_their_own_have_as_many_bits(typed, stored):
    found = find_model(typed)
    assert found.name == "Qwen/Qwen3-8B"
    assert found.checkpoint.format_of("attention").name == stored


@pytest.mark.parametrize(
    ("tag", "meant"),
    [("gemma:2b", "google/gemma-2b"), ("gemma2:2b", "google/gemma-2-2b"), ("qwen:72b", "Qwen-72B")],
)
def test_a_tag_that_is_a_published_name_is_that_model(tag, meant):
    assert meant in find_model(tag).name


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("01-ai/Yi-1.5-9B-Chat-16K", "01-ai/Yi-1.5-9B"),
        ("acme/qwen1.5_7b_chat", "Qwen/Qwen1.5-7B"),
        ("TheBloke/Mistral-7B-Instruct-v0.1-AWQ", "mistralai/Mistral-7B-Instruct-v0.1"),
    ],
)
def test_longer_contexts_underscores_and_instruct_lead_to_the_same_layers(typed, meant):
    assert find_model(typed).stacks == find_model(meant).stacks


@pytest.mark.parametrize("text", ["embed 1", "guard 8"])
def test_a_count_after_a_common_word_is_no_size(text):
    assert not may_be_model(text)
