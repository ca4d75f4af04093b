"""Verdicts and suggestions: each suggestion, once taken, really fits."""

import dataclasses

import pytest

from fakes import models
from gpuplan.domain.inference.fit import Deployment
from gpuplan.domain.inference.serving import SequenceLoad, ServingLayout
from gpuplan.performance.memory.fit import fewest, measure, suggest
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import vllm_settings
from gpuplan.units import GIB, MIB


def deployment(visible_bytes=2 * GIB, *, context=1024, n_sequences=1, layout=ServingLayout()):  # noqa: B008
    model = models.model()
    device = models.device(visible_bytes)
    storage, _ = storage_of(model, None, None)
    return Deployment(
        model=model,
        accelerator=device,
        storage=storage,
        layout=layout,
        engine=vllm_settings(device, max_sequences=64),
        load=SequenceLoad(context_tokens=context, n_sequences=n_sequences),
    )


def on_other(here, other):
    return dataclasses.replace(here, accelerator=other)


def test_headroom_is_what_is_left_after_the_load():
    answer = measure(deployment())
    assert answer.fits
    assert answer.headroom_bytes == answer.memory.cache_bytes - answer.memory.needed_bytes


def test_one_more_than_the_largest_concurrency_does_not_fit():
    most = measure(deployment()).max_concurrency
    assert measure(deployment(n_sequences=most)).fits
    assert not measure(deployment(n_sequences=most + 1)).fits


def test_longest_context_is_the_longest():
    n_sequences = 4 * measure(deployment(context=4096)).max_concurrency
    answer = measure(deployment(n_sequences=n_sequences, context=4096))
    longest = answer.max_context_tokens
    assert 0 < longest < 4096
    assert measure(deployment(n_sequences=n_sequences, context=longest)).fits
    assert not measure(deployment(n_sequences=n_sequences, context=longest + 16)).fits


def test_context_beyond_the_model_does_not_fit():
    answer = measure(deployment(context=5000))
    assert not answer.fits
    assert "made for 4096" in answer.cautions[0]


@pytest.mark.parametrize(("n_sequences", "visible"), [(1, 150 * MIB), (5000, 320 * MIB)])
def test_every_suggestion_is_enough(n_sequences, visible):
    tight = deployment(visible, n_sequences=n_sequences)
    answer = measure(tight)
    assert not answer.fits
    others = [models.device(8 * GIB, name="big"), models.device(100 * MIB, name="small")]
    found = list(suggest(answer, others, on_other))
    assert found, "something always helps"
    assert all(suggestion.headroom_bytes >= 0 for suggestion in found)
    assert any(suggestion.how == "--on big" for suggestion in found)
    assert not any(suggestion.how == "--on small" for suggestion in found)


def test_nothing_is_suggested_in_silence_about_quality():
    answer = measure(deployment(320 * MIB))
    for suggestion in suggest(answer, [], on_other):
        if "precision" in suggestion.how:
            assert "quality" in suggestion.caveat


def test_fewest_is_the_smallest_group():
    too_many_for_one = measure(deployment(2 * GIB)).max_concurrency + 1
    found = fewest(deployment(2 * GIB, n_sequences=too_many_for_one))
    assert found is not None
    assert found.deployment.layout.tp == 2
    assert fewest(deployment(2 * GIB)).deployment.layout.tp == 1
    assert fewest(deployment(10 * MIB)) is None
