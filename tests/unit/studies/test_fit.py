"""Fits by name: hand arithmetic of weights and cache, and suggestions that hold once taken."""

import pytest

from gpuplan.domain.requests.requests import FitRequest
from gpuplan.errors import InputError
from gpuplan.studies.fit import fit, survey

LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"


def test_weights_and_cache_of_a_known_model():
    """8.03 G parameters in 16 bits; 32 layers x 8 KV heads x 2 x 128 x 2 bytes a token."""
    found = fit(LLAMA_8B, "h100-sxm", FitRequest(context_tokens=8192))
    assert found.fits
    assert found.memory.weights_bytes == pytest.approx(2 * 8.03e9, rel=0.01)
    assert found.memory.sequence_bytes == pytest.approx(8192 * 32 * 8 * 2 * 128 * 2, rel=0.01)


def test_named_accelerators_become_tensor_parallelism():
    found = fit(LLAMA_70B, "2xh100-sxm", FitRequest())
    assert found.deployment.layout.tp == 2
    assert "tensor parallel" in {note.what for note in found.assumptions}
    asked = fit(LLAMA_70B, "4xh100-sxm", FitRequest(tp=4))
    assert "tensor parallel" not in {note.what for note in asked.assumptions}


def test_every_suggestion_fits_once_taken():
    found = fit(LLAMA_70B, "h100-sxm", FitRequest(context_tokens=4096))
    assert not found.fits
    assert found.suggestions
    for suggestion in found.suggestions:
        assert suggestion.headroom_bytes >= 0
    [tensor] = [s for s in found.suggestions if s.how.startswith("--tp")]
    n = int(tensor.how.split()[1])
    again = fit(LLAMA_70B, "h100-sxm", FitRequest(context_tokens=4096, tp=n))
    assert again.fits
    assert again.headroom_bytes == pytest.approx(tensor.headroom_bytes)
    fewer = fit(LLAMA_70B, "h100-sxm", FitRequest(context_tokens=4096, tp=n // 2))
    assert not fewer.fits


def test_a_layout_that_cuts_heads_is_an_error():
    with pytest.raises(InputError, match="3"):
        fit(LLAMA_8B, "h100-sxm", FitRequest(tp=3))


def test_a_survey_takes_the_fewest_of_each_and_names_the_rest():
    found = survey(LLAMA_70B, FitRequest(context_tokens=4096))
    tp = {str(f.deployment.accelerator.id): f.deployment.layout.tp for f in found.fits}
    assert tp["h200-sxm"] < tp["h100-sxm"] or tp["h200-sxm"] == 2
    assert all(f.fits for f in found.fits)
    names = {str(card.id) for card, _ in found.refused}
    assert not names & set(tp)
    assert all(why.startswith("not on") for _, why in found.refused)
