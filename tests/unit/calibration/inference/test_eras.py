import pytest

from gpuplan.calibration.inference.eras import (
    ERAS,
    engine_family,
    era_of,
    generation_of,
    version_pair,
)
from gpuplan.calibration.inference.labels import nearest_era
from gpuplan.calibration.tables import priors


@pytest.mark.parametrize(
    ("text", "family"),
    [("TensorRT-LLM", "trtllm"), ("vLLM (ROCm)", "vllm"), ("PyTorch vLLM", "vllm"),
     ("TensorRT 10.2.0, CUDA 12.4", "trtllm"), ("Deepspeed-MII", "deepspeed-mii"),
     ("Deepspeed", "deepspeed"), ("SGLang", "sglang"), ("SomethingNew 3", "somethingnew")],
)  # fmt: skip
def test_engines_are_known_by_many_names(text, family):
    assert engine_family(text) == family


@pytest.mark.parametrize(
    ("engine", "version", "pair"),
    [("vllm", "0.11.1", (0, 11)), ("trtllm", "1.2.0rc6.post2", (1, 2)), ("vllm", "2024", (0, 3)),
     ("sglang", "0.0.0.dev1+g93fca0bbc", None), ("trtllm", "", None),
     ("trtllm", "TensorRT 10.14, CUDA 13.1", (1, 2)), ("trtllm", "TensorRT 9.3.0", (0, 8)),
     ("sglang", "nightly-dev-20260216", None)],
)  # fmt: skip
def test_versions_are_read_as_written(engine, version, pair):
    assert version_pair(engine, version) == pair


def test_a_version_newer_than_all_takes_the_newest_era():
    assert era_of("vllm", "0.99.0") == "vllm-0.13"
    assert era_of("trtllm", "3.0") == "trtllm-1.2"
    assert era_of("nobody", "1.0") == "nobody"


def test_eras_of_an_engine_are_in_order():
    for engine in {era.engine for era in ERAS}:
        borders = [era.since for era in ERAS if era.engine == engine]
        assert borders == sorted(set(borders))


def test_an_unseen_era_takes_its_neighbour_never_another_engine():
    assert nearest_era("vllm-0.8", {"vllm-0.6", "vllm-0.13", "trtllm-1.0"}) == "vllm-0.6"
    assert nearest_era("vllm-0.8", {"trtllm-1.0"}) == "vllm-0.8"


def test_generations_of_an_engine_never_go_back():
    for engine in {era.engine for era in ERAS}:
        years = [era.generation for era in ERAS if era.engine == engine]
        assert years == sorted(years)


def test_engines_without_eras_have_a_generation():
    assert generation_of("vllm-0.13") == "2026"
    assert generation_of("deepspeed") == "2024"
    assert generation_of("nobody") == "2025"


def test_what_is_known_of_eras_beforehand_names_eras():
    named = {era.label for era in ERAS} | {"deepspeed", "deepspeed-mii"}
    labels: dict[str, set[str]] = {"era": set(), "release": set(), "generation": set()}
    for constant in priors("inference"):
        for effect in constant.effects:
            if effect.kinds[0] in labels and len(effect.kinds) == 1:
                labels[effect.kinds[0]] |= {label for label, _ in effect.prior}
    assert labels["era"] | labels["release"] <= named | {"llamacpp"}
    assert {"vllm-0.1", "vllm-0.13"} <= labels["era"] | labels["release"]
    assert labels["generation"] <= {era.generation for era in ERAS}
