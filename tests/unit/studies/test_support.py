"""What devices and engines cannot run is refused by all verbs alike, with what would run."""

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.inference.serving import StorageFormats
from gpuplan.domain.model.precision import FORMATS, format_named
from gpuplan.domain.requests.requests import FitRequest, LoadRequest, PredictRequest
from gpuplan.errors import InputError
from gpuplan.studies.fit import fit, survey
from gpuplan.studies.inference.configuration import predict
from gpuplan.studies.naming import one_format
from gpuplan.studies.support import engine_problem, format_problem, nearest, support_problems

CARDS = {str(name): card for name, card in read_catalog().accelerators.items()}
MODEL = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("card", "form", "engine", "runs"),
    [
        # Arithmetic of its own.
        ("h100-sxm", "fp8", "vllm", True),
        ("l4", "fp8", "trtllm", True),
        ("mi300x", "fp8", "vllm", True),
        ("b200-sxm", "nvfp4", "vllm", True),
        ("mi355x", "mxfp4", "vllm", True),
        ("tpu-v6e", "fp8", "vllm", True),
        # Weights alone, unpacked to 16 bits.
        ("a100-sxm-80gb", "fp8", "vllm", True),
        ("a100-sxm-80gb", "fp8-block", "vllm", True),
        ("h100-sxm", "mxfp4", "vllm", True),
        ("h100-sxm", "int4", "vllm", True),
        ("cpu-xeon-8480", "q4_k_m", "llama.cpp", True),
        ("v100-pcie-32gb", "bf16", "vllm", True),
        # Neither.
        ("a100-sxm-80gb", "fp8", "trtllm", False),
        ("v100-pcie-32gb", "fp8", "vllm", False),
        ("mi210", "fp8", "vllm", False),
        ("h100-sxm", "nvfp4", "vllm", False),
        ("mi300x", "nvfp4", "vllm", False),
        ("b200-sxm", "int8", "vllm", False),
        ("tpu-v5p", "fp8", "vllm", False),
        ("tpu-v5p", "int4", "vllm", False),
        ("cpu-xeon-8480", "fp8", "vllm", False),
    ],
)
def test_formats_need_units_or_kernels_that_unpack_them(card, form, engine, runs):
    found = format_problem(CARDS[card], FORMATS[form], engine)
    assert (found is None) == runs
    if found:
        assert form in found.what
        instead = found.fix.removeprefix("use ").split(" or ")
        assert all(format_problem(CARDS[card], FORMATS[name], engine) is None for name in instead)


def test_the_nearest_is_the_narrowest_that_is_no_narrower():
    assert nearest(CARDS["h100-sxm"], FORMATS["nvfp4"], "vllm") == ["int4", "fp8"]
    assert nearest(CARDS["v100-pcie-32gb"], FORMATS["fp8"], "vllm") == ["fp16", "fp32"]
    assert nearest(CARDS["b200-sxm"], FORMATS["int8"], "vllm") == ["fp8", "bf16"]


@pytest.mark.parametrize(
    ("card", "engine", "runs"),
    [
        ("h100-sxm", "trtllm", True), ("a10g", "trtllm", True), ("t4", "trtllm", False),
        ("mi300x", "trtllm", False), ("tpu-v6e", "trtllm", False), ("gaudi3", "trtllm", False),
        ("mi300x", "vllm", True), ("mi300x", "sglang", True), ("tpu-v6e", "vllm", True),
        ("v100-pcie-32gb", "vllm", True), ("h100-sxm", "some-engine", True),
    ],
)  # fmt: skip
def test_engines_run_where_they_are_built_for(card, engine, runs):
    found = engine_problem(CARDS[card], engine)
    assert (found is None) == runs
    if found:
        assert "does not run on" in found.what
        assert found.fix == "use vllm"


def test_all_problems_come_at_once():
    storage = StorageFormats(
        base=FORMATS["bf16"], quantized=FORMATS["nvfp4"], parts=(), cache=FORMATS["bf16"]
    )
    found = support_problems(CARDS["mi300x"], storage, "trtllm")
    assert [problem.where for problem in found] == ["--engine", "--precision"]


def test_unknown_formats_are_refused_with_the_nearest():
    assert one_format("fit", "--precision", "FP8") == FORMATS["fp8"]
    with pytest.raises(InputError, match="use int") as error:
        one_format("plan", "w.precision", "int1")
    assert "int1" in str(error.value)


@pytest.mark.parametrize(
    ("card", "precision", "engine", "words"),
    [
        ("h100", "nvfp4", "vllm", "use int4 or fp8"),
        ("v100", "fp8", "vllm", "use fp16 or fp32"),
        ("mi300x", None, "trtllm", "use vllm"),
        ("h100", "int1", "vllm", "int4"),
    ],
)
def test_predict_simulate_and_fit_refuse_alike(card, precision, engine, words):
    load = LoadRequest(n_concurrent=1, input_tokens=100, output_tokens=10)
    request = PredictRequest(precision=precision, engine=engine, load=load)
    with pytest.raises(InputError, match=words):
        predict(MODEL, card, request)
    if engine == "vllm":
        with pytest.raises(InputError, match=words):
            fit(MODEL, card, FitRequest(precision=precision))


def test_tensor_parallelism_that_does_not_divide_is_refused_by_both():
    for ask in (
        lambda: predict(MODEL, "3xh100", PredictRequest(tp=3)),
        lambda: fit(MODEL, "3xh100", FitRequest(tp=3)),
    ):
        with pytest.raises(InputError, match="does not divide the 32 attention heads"):
            ask()


def test_a_survey_says_where_a_format_does_not_run():
    found = survey(MODEL, FitRequest(precision="nvfp4"))
    refused = {str(card.id): why for card, why in found.refused}
    assert "has no nvfp4" in refused["h100-sxm"]
    assert {str(each.deployment.accelerator.id) for each in found.fits} >= {"b200-sxm"}


def test_a_published_format_runs_where_its_makers_say():
    """MXFP4 checkpoints are served on Hopper with weights unpacked; nothing is refused."""
    found = fit("openai/gpt-oss-120b", "h100", FitRequest())
    assert found.deployment.storage.quantized == format_named("mxfp4")
