"""Names as people type them: nearly all of two tables of them mean what their authors meant.

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

TABLES = ("typed.csv", "typed_again.csv")  # the second was written after the resolver
WANTED_FRAC = 0.95
FINDERS = {
    "model": lambda text: find_model(text).name,
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
    assert len(rows) >= 200
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
