"""What a setup brings that no fitted row had, and the word for it."""

import pytest

from gpuplan.calibration.inference.novelty import (
    model_family,
    novelty_labels,
    novelty_of,
)

LABELS = {
    "family": "Hopper", "precision": "fp8", "engine": "vllm", "era": "vllm-0.13",
    "accelerator": "h100-sxm",
}  # fmt: skip
MODEL, REGIME = "Llama-3.1-8B", "poisson"
KNOWN = {
    kind: frozenset({label})
    for kind, label in novelty_labels(LABELS, model=MODEL, regime=REGIME).items()
}


def new(model: str = MODEL, regime: str = REGIME, **changes: str):
    return novelty_of(KNOWN, {**LABELS, **changes}, model=model, regime=regime)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-8b"),
        ("llama-3-8b", "llama-8b"),
        ("CodeLlama-70B", "llama-70b"),
        ("qwen2-72b", "llama-70b"),  # one design under several names
        ("Qwen/Qwen3-235B-A22B", "qwen3-235b"),
        ("owner/Something-New", "something-new"),
    ],
)
def test_sizes_of_one_design_are_one_family(name: str, family: str):
    assert model_family(name) == family


def test_what_was_fitted_was_measured_elsewhere():
    assert new() == ("same configuration", ())


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"model": "gemma-3-27b"}, "new model"),
        ({"regime": "max_load"}, "known model and accelerator"),
        ({"precision": "bf16"}, "known model and accelerator"),
        ({"accelerator": "h200-sxm"}, "new accelerator"),
        ({"era": "vllm-0.10"}, "new engine"),
        ({"engine": "sglang"}, "new engine"),
        ({"model": "gemma-3-27b", "accelerator": "h200-sxm"}, "new accelerator"),
    ],
)
def test_the_gravest_novelty_is_stated(changes: dict[str, str], kind: str):
    assert new(**changes).kind == kind


def test_what_is_missing_is_named_without_the_mix_of_known_parts():
    assert new(regime="max_load").missing == ()
    assert new(model="gemma-3-27b").missing == ("model gemma",)
