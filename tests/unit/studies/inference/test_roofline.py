"""Where prefill and decode sit under the peaks: laws that any roofline obeys."""

import pytest

from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.errors import InputError
from gpuplan.studies.inference.roofline import DECODE_BATCHES, roofline
from gpuplan.studies.inference.user_calibration import read_user_calibration

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def points(**load):
    found = roofline(LLAMA, "h100-sxm", PredictRequest(load=LoadRequest(**load)))
    return found.points[0], found.points[1:]


def test_prefill_comes_first_and_then_growing_batches():
    prefill, decodes = points(input_tokens=2048, output_tokens=256)
    assert (prefill.phase, prefill.n_tokens) == ("prefill", 2048)
    assert [point.n_tokens for point in decodes] == list(DECODE_BATCHES)


def test_the_asked_batch_is_among_them():
    _, decodes = points(n_concurrent=48)
    assert 48 in [point.n_tokens for point in decodes]


def test_a_step_is_never_shorter_than_its_limits():
    prefill, decodes = points()
    for point in (prefill, *decodes):
        assert point.step_s >= max(point.compute_s, point.memory_s)


def test_decoding_alone_reads_the_weights_once_and_is_bound_by_memory():
    """16 GB of weights at 3.35 TB/s are 4.8 ms; two flop per parameter are next to nothing."""
    _, [alone, *_] = points(input_tokens=16, output_tokens=16)
    assert alone.traffic_bytes == pytest.approx(2 * 7.5e9, rel=0.05)
    assert alone.memory_s > 50 * alone.compute_s


def test_prefill_is_bound_by_arithmetic():
    prefill, _ = points(input_tokens=4096)
    assert prefill.compute_s > prefill.memory_s
    assert prefill.flop == pytest.approx(2 * 7.5e9 * 4096, rel=0.15)


def test_a_calibration_that_is_none_is_an_error(tmp_path):
    path = tmp_path / "mine.json"
    with pytest.raises(InputError):
        read_user_calibration(path)
    path.write_text("{ no json")
    with pytest.raises(InputError, match="cannot be read"):
        read_user_calibration(path)
