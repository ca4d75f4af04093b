"""Which engines draw up an iteration while one runs, and how that is told."""

from dataclasses import replace

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation.batching import BatchPolicy
from gpuplan.domain.simulation.simulation import EngineRequest
from gpuplan.studies.inference.admission import admission_of, assumed_admission
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.naming import model_named


def setup(engine: str, version: str | None, **layout: int) -> ServingSetup:
    load = LoadRequest(regime="poisson", input_tokens=600, output_tokens=200, requests_per_s=1.0)
    asked = PredictRequest(engine=engine, engine_version=version, load=load, **layout)
    choice = find_accelerator("H100", read_catalog())
    return setup_of(model_named("Llama-3.1-8B", None), choice, replace(asked, tp=1))[0]


@pytest.mark.parametrize(
    ("engine", "version", "is_ahead"),
    [("vllm", "0.13.0", False), ("vllm", "0.14.0", True), ("vllm", "0.19", True),
     ("vllm", None, True), ("sglang", "0.5", False)],
)  # fmt: skip
def test_the_version_decides_where_nobody_asks(engine: str, version: str | None, is_ahead: bool):
    of, asked = setup(engine, version), EngineRequest()
    found = admission_of(of, asked)
    assert found.is_ahead is is_ahead
    assert len(assumed_admission(of, found, asked)) == is_ahead


@pytest.mark.parametrize("is_ahead", [True, False])
def test_what_was_asked_for_is_taken_and_not_told(is_ahead: bool):
    of, asked = setup("vllm", "0.19"), EngineRequest(is_ahead=is_ahead)
    found = admission_of(of, asked)
    assert found.is_ahead is is_ahead
    assert assumed_admission(of, found, asked) == []


def test_stages_and_fixed_batches_are_not_scheduled_ahead():
    assert not admission_of(setup("vllm", "0.19", pp=2), EngineRequest()).is_ahead
    fixed = EngineRequest(is_ahead=None, batching=BatchPolicy(max_batch=8, max_delay_s=0.0))
    assert not admission_of(setup("vllm", "0.19"), fixed).is_ahead
