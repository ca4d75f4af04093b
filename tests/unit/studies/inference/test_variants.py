"""Accelerators ranked and precisions compared: order, deciding specification, risk."""

import pytest

from gpuplan.domain.model.precision import FORMATS, quality_risk
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.errors import InputError
from gpuplan.studies.inference.configuration import predict
from gpuplan.studies.inference.variants import compare_precisions, rank

MODEL = "Llama-3.1-8B"
ONE = PredictRequest(load=LoadRequest(n_concurrent=1, input_tokens=200, output_tokens=200))


def test_the_ranking_is_what_predict_says_fastest_first():
    found = rank(MODEL, ["L4", "H100"], ONE)
    assert [row.accelerator for row in found.rows] == ["h100-sxm", "l4"]
    single = predict(MODEL, "L4", ONE)
    assert found.rows[1].tokens_per_s == single.served.output_tokens_per_s.value
    assert found.rows[1].decides == "memory bandwidth"  # one sequence reads all weights a token


def test_long_prompts_and_short_outputs_are_decided_by_compute():
    load = LoadRequest(n_concurrent=8, input_tokens=16000, output_tokens=2)
    (row,) = rank(MODEL, ["L4"], PredictRequest(load=load)).rows
    assert row.decides == "tensor FLOP/s"


def test_what_does_not_fit_is_decided_by_memory():
    (row,) = rank("Llama-3.3-70B", ["L4"], ONE).rows
    assert (row.decides, row.found, row.tokens_per_s) == ("memory capacity", None, 0.0)


def test_names_that_nobody_knows_are_errors():
    with pytest.raises(InputError):
        rank(MODEL, ["H1000000"], ONE)
    with pytest.raises(InputError):
        compare_precisions(MODEL, "H100", ["fp5"], ONE)


def test_precisions_widest_first_with_ratios_to_the_widest():
    found = compare_precisions(MODEL, "H100", ["fp8", "bf16"], ONE)
    assert [row.precision for row in found.rows] == ["bf16", "fp8"]
    wide, narrow = found.rows
    assert wide.speed_ratio == 1.0
    served = [row.found.served.output_tokens_per_s.value for row in found.rows]
    assert narrow.speed_ratio == pytest.approx(served[1] / served[0])


def test_a_precision_that_the_device_lacks_has_its_reason():
    found = compare_precisions(MODEL, "A100", ["bf16", "fp4"], ONE)
    assert found.rows[1].found is None
    assert "A100" in found.rows[1].reason


@pytest.mark.parametrize(
    ("name", "level"),
    [("bf16", ""), ("fp8", "low"), ("int8", "moderate"), ("int4", "moderate"), ("nvfp4", "high")],
)
def test_narrower_formats_risk_more(name, level):
    assert quality_risk(FORMATS[name]).partition(":")[0] == level
