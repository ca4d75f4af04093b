"""Names as people type them: nearly all of twelve tables of them mean what their authors meant.

`meant` holds the ids that are right, apart by `|`, or `?` where asking back is.
"""

import csv
from pathlib import Path

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.place_names import find_cloud
from gpuplan.catalog.regions import find_region
from gpuplan.errors import InputError
from gpuplan.studies.naming import model_named

# Scored before anything was mended: the third 233 of 273, the fifth 181 of 202 (19 asked back,
# 2 wrong); after its rules were mended and before its models were added: the fourth 113 of 115,
# the sixth 84 of 101 (16 asked back, 1 wrong). The seventh 200 of 235 (35 asked back, none wrong),
# the eighth, after models were added and by the same hand, 102 of 103 (1 wrong). The ninth 284 of
# 409 (122 asked back, 3 wrong), the tenth, with rules mended, 106 of 136 (29 asked back, 1 wrong).
# The eleventh 119 of 221 (101 asked back, 1 wrong), the last, after models were added and by the
# same hand, 125 of 128 (3 asked back).
TABLES = (
    "typed.csv",
    "typed_again.csv",
    "typed_blind.csv",
    "typed_held.csv",
    "typed_fourth.csv",
    "typed_fourth_held.csv",
    "typed_fifth.csv",
    "typed_fifth_held.csv",
    "typed_sixth.csv",
    "typed_sixth_held.csv",
    "typed_seventh.csv",
    "typed_seventh_held.csv",
)
WANTED_FRAC = 0.95
FINDERS = {
    "model": lambda text: model_named(text).name,
    "accelerator": lambda text: str(find_accelerator(text, read_catalog()).accelerator.id),
    "cloud": find_cloud,
    "region": lambda text: find_region(text)[0].id,
}


def answer(row):
    try:
        return FINDERS[row["kind"]](row["typed"])
    except InputError:
        return "?"


@pytest.mark.parametrize("table", TABLES)
def test_nearly_all_names_mean_what_they_meant(table):
    text = Path(__file__).with_name(table).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    answers = [(row, answer(row)) for row in rows]
    wrong = [(row["typed"], a) for row, a in answers if a not in row["meant"].split("|")]
    assert len(rows) >= 100
    assert len(wrong) <= (1 - WANTED_FRAC) * len(rows), wrong


@pytest.mark.parametrize("typed", ["llama 3.1 9b", "qwen3:7b", "h1000", "meta-llama/Llama-3.3-8B"])
def test_what_is_unknown_is_never_a_neighbour_and_at_most_three_are_named(typed):
    kind = "accelerator" if typed == "h1000" else "model"
    with pytest.raises(InputError) as caught:
        FINDERS[kind](typed)
    assert caught.value.problems[0].fix.count(", ") <= 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("llama3.1:8b", "Llama 3.1 8B"),
        ("mixtral:8x7b", "Mixtral8x7B"),
        ("gpt-oss:120b", "gptoss 120b"),
        ("qwen2-5 32b", "qwen2.5:32b"),
        ("deepseek-v3", "Deep Seek V3"),
    ],
)
def test_spellings_of_one_name_are_one_model(one, other):
    assert find_model(one).name == find_model(other).name


def test_a_file_type_in_a_tag_is_the_stored_precision():
    assert find_model("llama3.3:70b-instruct-q4_K_M").checkpoint.quantized.name == "q4_k_m"


def test_a_whole_id_keeps_its_published_precision():
    model = find_model("Qwen/Qwen3.6-27B")
    assert model.name == "Qwen/Qwen3.6-27B"
    assert model.checkpoint.quantized is None
    assert model.checkpoint.cache is None


@pytest.mark.parametrize(
    ("typed", "accelerator", "n"),
    [
        ("p5.48xlarge", "h100-sxm", 8),
        ("Standard_ND96isr_H100_v5", "h100-sxm", 8),
        ("a2-highgpu-1g", "a100-sxm-40gb", 1),
        ("p5", "h100-sxm", 1),
        ("ND H100 v5", "h100-sxm", 1),
    ],
)
def test_a_machine_of_a_cloud_means_what_it_carries(typed, accelerator, n):
    choice = find_accelerator(typed, read_catalog())
    assert (choice.accelerator.id, choice.n_accelerators) == (accelerator, n)
    assert any("carries" in note.why for note in choice.assumptions)


@pytest.mark.parametrize(
    "typed", ["Standard", "gpu", "8", "12", "v6", "16g", "12 rps", "xlarge", "p5 g6e"]
)
def test_words_of_many_machines_mean_none(typed):
    with pytest.raises(InputError):
        find_accelerator(typed, read_catalog())


@pytest.mark.parametrize(
    ("one", "other"),
    [("qwen25 7b", "qwen2.5 7b"), ("gpt oss 120", "gpt-oss-120b"), ("falcon 7b", "falcon-7b")],
)
def test_a_point_a_unit_or_a_separator_left_out_changes_nothing(one, other):
    assert find_model(one).name == find_model(other).name


def test_a_cloud_that_only_a_survey_prices_can_be_named():
    assert find_cloud("Core Weave") == "coreweave"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("quen 3 8b", "qwen3 8b"), ("lama 3.1 8b", "llama 3.1 8b"), ("misrtal 7b", "mistral 7b")],
)
def test_a_letter_apart_is_the_same_name(typed, meant):
    assert find_model(typed).stacks == find_model(meant).stacks


@pytest.mark.parametrize("typed", ["samba 2.8b", "gemini 2.5 pro", "claude sonnet 4"])
def test_another_word_is_no_misspelling(typed):
    with pytest.raises(InputError):
        model_named(typed)


def test_of_a_strange_name_the_nearest_have_its_size():
    with pytest.raises(InputError) as caught:
        model_named("ourfinetune-13b")
    assert caught.value.problems[0].fix.lower().count("13b") == 3


def test_another_build_lends_no_cache_format():
    assert find_model("unsloth/Kimi-K2.7-Code-FP8").checkpoint.cache is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("ViT-B/16", "vit_base_patch16_224"), ("swin-t", "swin_tiny_patch4_window7_224")],
)
def test_an_image_network_by_its_short_name(typed, meant):
    assert model_named(typed).name == meant


def test_a_family_of_image_networks_is_asked_back():
    with pytest.raises(InputError, match="yolov8l, yolov8m, yolov8n"):
        model_named("yolov8")


def test_a_retired_board_is_said_to_be_retired():
    with pytest.raises(InputError, match="p100 is retired"):
        find_accelerator("Tesla P100", read_catalog())


@pytest.mark.parametrize(
    ("typed", "meant"), [("Londres", "aws:eu-west-2"), ("Zürich", "aws:eu-central-2")]
)
def test_a_place_in_another_language(typed, meant):
    assert FINDERS["region"](typed) == meant


def test_memory_with_what_is_kept_back_is_the_same_board():
    assert FINDERS["accelerator"]("B200 192GB") == "b200-sxm"
    with pytest.raises(InputError):
        find_accelerator("H100 96GB", read_catalog())


@pytest.mark.parametrize(
    ("typed", "stored", "cache"),
    [
        ("unsloth/gpt-oss-20b-BF16", None, None),
        ("cyankiwi/Qwen3.5-9B-AWQ-BF16-INT8", "int8", None),
        ("lmstudio-community/Qwen3-4B-MLX-4bit", "int4", None),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-unsloth-bnb-4bit", "nf4", None),
        ("ocicek/Qwen3.6-27B-NVFP4", "nvfp4", None),
        ("nvidia/Qwen3.6-27B-NVFP4", "nvfp4", "fp8"),
        ("gemma3:4b-it-qat", "q4_0", None),
        ("google/gemma-3-27b-it-qat-q4_0-unquantized", None, None),
    ],
)
def test_a_build_is_stored_as_its_name_says_and_only_its_own_cache_counts(typed, stored, cache):
    checkpoint = find_model(typed).checkpoint
    assert (checkpoint.quantized and checkpoint.quantized.name) == stored
    assert (checkpoint.cache and checkpoint.cache.name) == cache


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gcp frankfurt", "gcp:europe-west3"),
        ("Virginia AWS", "aws:us-east-1"),
        ("azure west europe", "azure:westeurope"),
        ("google cloud london", "gcp:europe-west2"),
        ("amazon ireland", "aws:eu-west-1"),
        ("us central", "gcp:us-central1"),
        ("aws oregon", "aws:us-west-2"),
    ],
)
def test_a_cloud_and_a_place_are_one_region(typed, meant):
    assert find_region(typed)[0].id == meant


@pytest.mark.parametrize(
    ("typed", "near"), [("hopper", "h100"), ("blackwell 6000", "rtx-pro-6000")]
)
def test_an_architecture_is_asked_back_with_its_own_boards(typed, near):
    with pytest.raises(InputError) as caught:
        find_accelerator(typed, read_catalog())
    assert caught.value.problems[0].fix.count(near) == 3


@pytest.mark.parametrize(
    ("typed", "card", "n"),
    [
        ("8x 4090", "rtx-4090", 8),
        ("4x3090s", "rtx-3090", 4),
        ("2 x 4080 super", "rtx-4080-super", 2),
        ("4 5090s", "rtx-5090", 4),
        ("16x 4060 ti", "rtx-4060-ti", 16),
        ("3090 ti", "rtx-3090-ti", 1),
    ],
)
def test_boards_named_by_a_number_alone_are_counted(typed, card, n):
    choice = find_accelerator(typed, read_catalog())
    assert (choice.accelerator.id, choice.n_accelerators) == (card, n)


def test_two_boards_are_no_count():
    with pytest.raises(InputError):
        find_accelerator("3090 4090", read_catalog())


def test_a_gguf_repository_says_that_its_file_is_not_named():
    notes = find_model("unsloth/DeepSeek-R1-GGUF").assumptions
    assert any("GGUF" in note.why and note.change == "--precision" for note in notes)
    assert not any("GGUF" in note.why for note in find_model("deepseek-r1").assumptions)


@pytest.mark.parametrize("typed", ["MI300x 8x", "mi300x x8", "8 MI300X", "MI300X:8"])
def test_a_count_may_stand_on_either_side(typed):
    choice = find_accelerator(typed, read_catalog())
    assert (choice.accelerator.id, choice.n_accelerators) == ("mi300x", 8)


def test_a_tower_before_a_language_model_is_not_that_model_alone():
    with pytest.raises(InputError):
        find_model("Salesforce/blip2-opt-2.7b")
