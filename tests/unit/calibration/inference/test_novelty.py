"""What a setup brings that no fitted row had, and whose residuals speak for it."""

import pytest

from gpuplan.calibration.inference.novelty import (
    model_family,
    novelty,
    novelty_labels,
    unknown,
    version_label,
)

LABELS = {"family": "hopper", "precision": "fp8", "engine": "vllm", "era": "vllm-0.13"}
KNOWN = {
    kind: frozenset({label})
    for kind, label in novelty_labels(LABELS, model="Llama-3.1-8B", version="0.15").items()
}


def missing(model: str = "Llama-3.1-8B", version: str = "0.15", **changes: str) -> tuple[str, ...]:
    return unknown(KNOWN, {**LABELS, **changes}, model=model, version=version)


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


def test_an_engine_without_a_version_stands_alone():
    assert version_label("vllm", "0.15.1") == "vllm-0.15"
    assert version_label("vllm", "unknown") == "vllm"


def test_what_was_fitted_is_not_new():
    assert missing() == ()
    assert novelty(missing()) == "row"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"model": "gemma-3-27b"}, "model"),
        ({"version": "0.16"}, "version"),
        ({"precision": "bf16"}, "source"),  # other hardware, as its label counts the precision
        ({"era": "vllm-0.10", "version": "0.10"}, "source"),
        ({"model": "gemma-3-27b", "version": "0.16"}, "version"),
    ],
)
def test_the_greatest_novelty_decides_whose_residuals_speak(changes: dict[str, str], kind: str):
    assert missing(**changes)
    assert novelty(missing(**changes)) == kind
