"""Which engines draw up an iteration while one runs, and how that is told."""

from dataclasses import replace

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation.batching import BatchPolicy
from gpuplan.domain.simulation.simulation import AdmissionRequest, EngineRequest, ReplicaRequest
from gpuplan.studies.inference.admission import admission_of, assumed_admission
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.inference.deployment import evaluated
from gpuplan.studies.naming import model_named


def setup(engine: str, version: str | None, **layout: int) -> ServingSetup:
    load = LoadRequest(regime="poisson", input_tokens=600, output_tokens=200, requests_per_s=1.0)
    asked = PredictRequest(engine=engine, engine_version=version, load=load, **layout)
    choice = find_accelerator("H100", read_catalog())
    return setup_of(model_named("Llama-3.1-8B", None), choice, replace(asked, tp=1))[0]


@pytest.mark.parametrize(
    ("engine", "version", "rules"),
    # ahead, whole prompt reserved, bare blocks first, a lone long prompt whole, prefix caching
    [("vllm", "0.7.3", (0, 0, 0, 0, 0)), ("vllm", "0.13.0", (0, 0, 0, 0, 1)),
     ("vllm", "0.15.1", (1, 0, 0, 0, 1)), ("vllm", "0.19", (1, 1, 0, 0, 1)),
     ("vllm", "0.23.0", (1, 1, 1, 0, 1)), ("vllm", "0.32.0", (1, 1, 1, 1, 1)),
     ("vllm", None, (1, 1, 1, 1, 1)), ("trtllm", "1.0", (0, 1, 1, 1, 1))],
)  # fmt: skip
def test_the_version_decides_where_nobody_asks(
    engine: str, version: str | None, rules: tuple[int, ...]
):
    limits = evaluated(setup(engine, version)).limits
    of = limits.admission
    found = (of.is_ahead, of.reserves_prompt, of.blocks.reuses_bare_first, of.lone_prompt_is_whole)
    assert (*found, limits.caches_prefixes) == rules


def test_every_rule_that_nobody_asked_for_is_told_with_its_flag():
    of, asked = setup("vllm", "0.32"), EngineRequest(long_prefill_tokens=512)
    told = assumed_admission(of, admission_of(of, asked), asked)
    assert [one.change for one in told] == [
        "--no-async-scheduling", "--no-reserve-full-isl", "--no-ignore-eos", "--engine-version",
    ]  # fmt: skip
    assert all("vllm 0.32" in one.why for one in told)


@pytest.mark.parametrize("is_on", [True, False])
def test_what_was_asked_for_is_taken_and_not_told(is_on: bool):
    rules = AdmissionRequest(is_ahead=is_on, reserves_prompt=is_on, ignores_eos=not is_on)
    of, asked = setup("vllm", "0.19"), EngineRequest(admission=rules)
    found = admission_of(of, asked)
    assert (found.is_ahead, found.reserves_prompt, found.ends_by_eos) == (is_on,) * 3
    assert assumed_admission(of, found, asked) == []


def test_a_watermark_counts_the_null_block():
    asked = EngineRequest(n_blocks=999, admission=AdmissionRequest(watermark_frac=0.01))
    assert (
        evaluated(setup("vllm", "0.32"), scheduler=asked).limits.admission.blocks.watermark_blocks
        == 10
    )


def test_stages_and_fixed_batches_are_not_scheduled_ahead():
    assert not admission_of(setup("vllm", "0.19", pp=2), EngineRequest()).is_ahead
    fixed = EngineRequest(batching=BatchPolicy(max_batch=8, max_delay_s=0.0))
    assert not admission_of(setup("vllm", "0.19"), fixed).is_ahead


@pytest.mark.parametrize(
    ("version", "is_ahead", "knows_ends", "is_longest_first"),
    [("0.5", True, True, False), ("0.5.21", True, False, False), ("0.3.0", False, False, True)],
)
def test_sglang_has_rules_of_its_own(
    version: str, is_ahead: bool, knows_ends: bool, is_longest_first: bool
):
    of = setup("sglang", version)
    found = admission_of(of, EngineRequest())
    assert found.prefill_first is not None
    assert found.is_ahead is is_ahead
    assert found.prefill_first.knows_ends is knows_ends
    assert found.prefill_first.is_longest_first is is_longest_first
    assert found.prefill_first.chunk_tokens == of.settings.max_batch_tokens == 8192


def test_sglang_is_told_with_what_requests_ask_for():
    of, asked = setup("sglang", "0.5"), EngineRequest()
    told = assumed_admission(of, admission_of(of, asked), asked)
    assert [one.what for one in told] == ["SGLang's scheduler", "max_tokens"]
    asked = EngineRequest(scheduling="lpm", replica=ReplicaRequest(max_tokens=512))
    found = admission_of(of, asked)
    assert found.prefill_first is not None
    assert found.prefill_first.max_tokens == 512
    assert "longest prefix first" in assumed_admission(of, found, asked)[0].value
    assert len(assumed_admission(of, found, asked)) == 1


def test_sglang_with_stages_does_not_overlap_and_fixed_batches_are_not_sglang():
    assert not admission_of(setup("sglang", "0.5", pp=2), EngineRequest()).is_ahead
    assert admission_of(
        setup("sglang", "0.5", pp=2), EngineRequest(admission=AdmissionRequest(is_ahead=True))
    ).is_ahead
    fixed = EngineRequest(batching=BatchPolicy(max_batch=8, max_delay_s=0.0))
    assert admission_of(setup("sglang", "0.5"), fixed).prefill_first is None


def test_a_deployment_of_sglang_has_its_own_limits():
    limits = evaluated(setup("sglang", "0.5")).limits
    assert limits.caches_prefixes
    assert limits.block_tokens == 1
    # 131,072 tokens of context: the cache holds about three of them.
    assert limits.max_sequences == 2048
    assert limits.max_batch_tokens == 8192
    off = EngineRequest(caches_prefixes=False)
    assert not evaluated(setup("sglang", "0.5"), scheduler=off).limits.caches_prefixes
