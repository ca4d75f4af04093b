"""How tables write numbers, layouts, models and accelerators."""

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.errors import InputError, PlannerError
from gpuplan.studies.measured.names import accelerator_of, find_measured_model, named_model
from gpuplan.studies.measured.notation import formats_of, noted_layout, whole_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1024", "1024"),
        (" 1,024 ", "1024"),
        ("12,345,678", "12345678"),
        ("-", ""),
        ("n/a", ""),
        ("", ""),
        ("1e3", "1e3"),
        ("8k", None),
        ("12,34", None),
        ("~64", None),
    ],
)
def test_counts_are_read_as_people_write_them(text: str, expected: str | None) -> None:
    assert whole_text(text) == expected


@pytest.mark.parametrize(
    ("note", "n", "tp", "pp", "expected"),
    [
        ("attention_dp=8 moe_tp=1 moe_ep=8", 8, 0, 1, ServingLayout(tp=1, dp=8, ep=8)),
        ("attention_dp=1 moe_tp=2 moe_ep=4", 8, 8, 1, ServingLayout(tp=8, dp=1, ep=4)),
        ("DEP16", 16, 0, 1, ServingLayout(tp=1, dp=16, ep=16)),
        ("attention-DP on", 8, 0, 1, ServingLayout(tp=1, dp=8, ep=8)),
        ("Pipeline of layers", 4, 1, 1, ServingLayout(tp=1, pp=4)),
        ("TP4 PP2", 8, 0, 1, ServingLayout(tp=4, pp=2)),
        ("tp=8 ep=8", 8, 8, 1, ServingLayout(tp=8, ep=8)),
        ("DP8 EP8", 8, 0, 1, ServingLayout(tp=1, dp=8, ep=8)),
        ("tp_size: 2", 8, 0, 1, ServingLayout(tp=2)),
        ("PP2", 8, 4, 1, ServingLayout(tp=4, pp=2)),
    ],
)
def test_layouts_are_read_from_notes(note, n, tp, pp, expected) -> None:
    assert noted_layout(note, n, tp=tp, pp=pp) == expected


@pytest.mark.parametrize("note", ["", "max_num_seqs 64", "a step of 8", "dp2"])
def test_notes_without_a_layout_leave_it_to_the_columns(note: str) -> None:
    assert noted_layout(note, 8, tp=4, pp=1) is None


@pytest.mark.parametrize(
    ("text", "weights", "cache"),
    [
        ("FP8, fp8 kv", "fp8", "fp8"),
        ("bf16 (kv_cache_dtype=fp8)", "bf16", "fp8"),
        ("w4a16", "int4", None),
        ("fp8 w8a8", "fp8", None),
        ("16-bit", "bf16", None),
    ],
)
def test_weights_and_cache_have_formats_of_their_own(text, weights, cache) -> None:
    found = formats_of(text)
    assert found[0] is not None
    assert found[0].name.startswith(weights)
    assert (found[1].name if found[1] else None) == cache


def test_an_unknown_format_is_refused_and_a_blank_is_none() -> None:
    assert formats_of("unknown") == (None, None)
    with pytest.raises(InputError, match="no known format"):
        formats_of("q9_z")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("somebody/Ring-1T", "Ling-1T"),
        ("NousResearch/Hermes-3-Llama-3.1-405B", "Llama-3.1-405B"),
        ("LLaMA v3.3 70B", "Llama-3.3-70B"),
    ],
)
def test_models_of_the_same_shape_are_found_under_other_names(text: str, name: str) -> None:
    assert name.rpartition("/")[2].lower() in find_measured_model(text).name.lower()


def test_models_of_papers_and_recipes_are_found_by_alias() -> None:
    assert named_model("llama3 70b").n_params == pytest.approx(70.6e9, rel=0.01)
    assert named_model("Mixtral 8x7B").n_params == pytest.approx(46.7e9, rel=0.01)
    assert named_model("Nemotron4 340b").n_params == pytest.approx(341e9, rel=0.01)
    with pytest.raises(PlannerError):
        named_model("no such network")


def test_a_stated_bandwidth_replaces_that_of_the_sheet() -> None:
    plain = accelerator_of("H100 80GB HBM3", read_catalog())
    stated = accelerator_of("H100 96GB HBM2e 2.4TB/s", read_catalog())
    assert stated.id == plain.id
    assert stated.memory.bytes_per_s == pytest.approx(2.4e12)
    with pytest.raises(PlannerError):
        accelerator_of("abacus (wooden)", read_catalog())
