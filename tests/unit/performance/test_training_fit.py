"""Training verdicts: suggestions hold, the largest micro-batch is largest, words are checked."""

import dataclasses

import pytest

from fakes import models
from gpuplan.domain.requests.requests import TrainingRequest
from gpuplan.domain.training.run import TrainingJob
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.errors import InputError
from gpuplan.performance.memory.training.fit import measure_training, suggest_training
from gpuplan.performance.memory.training.peak import likely_bytes, memory_range
from gpuplan.performance.memory.training.setups import setup_of
from gpuplan.units import GIB, MIB


def job(visible_bytes=8 * GIB, *, layout=None, **asked):
    setup, _ = setup_of(TrainingRequest(**{"task": "full", **asked}))
    return TrainingJob(
        model=models.model(models.dense_group(32)),
        accelerator=models.device(visible_bytes),
        setup=setup,
        layout=layout or ParallelLayout(),
    )


def with_batch(asked, n):
    return dataclasses.replace(asked, setup=dataclasses.replace(asked.setup, micro_batch=n))


def test_largest_micro_batch_is_the_largest():
    asked = job(4 * GIB)
    most = measure_training(asked).max_micro_batch
    assert most > 0
    assert measure_training(with_batch(asked, most)).fits
    assert not measure_training(with_batch(asked, most + 1)).fits


def test_range_holds_the_peak_and_tells_when_it_is_close():
    answer = measure_training(job())
    assert answer.peak.low < answer.peak.value < answer.peak.high
    assert measure_training(job(answer.peak.value * 1.01)).is_tight
    assert not measure_training(job(answer.peak.high * 1.01)).is_tight
    assert not measure_training(job(answer.memory.least_bytes * 0.99)).fits


def test_the_probability_of_fitting_follows_the_range_of_measured_peaks():
    least = measure_training(job()).memory.least_bytes
    low, high = memory_range(1.0)
    expected = {low: 0.1, 1.0: 0.5, high: 0.9}
    for ratio, share in expected.items():
        answer = measure_training(job(least * ratio))
        assert answer.fit_probability_frac == pytest.approx(share, abs=1e-6)
        assert answer.fits == (ratio >= 1)
        assert likely_bytes(answer.memory, max(share, 0.5)) <= max(1.0, ratio) * least * 1.001


@pytest.mark.parametrize("visible_bytes", [1400 * MIB, 1700 * MIB, 2 * GIB])
def test_every_suggestion_is_enough(visible_bytes):
    asked = job(visible_bytes, micro_batch=64, recompute="none")
    answer = measure_training(asked)
    assert not answer.fits
    others = [models.device(64 * GIB, name="big")]
    found = list(suggest_training(answer, others))
    assert found
    assert all(suggestion.headroom_bytes >= 0 for suggestion in found)


def test_nothing_alone_is_enough_but_all_together():
    asked = job(1400 * MIB, micro_batch=64, recompute="none")
    hows = [suggestion.how for suggestion in suggest_training(measure_training(asked), [])]
    assert all("micro-batch" in how or "recompute" in how or "--on" in how for how in hows)


@pytest.mark.parametrize(
    ("asked", "flag"),
    [
        ({"task": "dream"}, "--task"),
        ({"task": "full", "framework": "abacus"}, "--framework"),
        ({"task": "full", "recompute": "maybe"}, "--recompute"),
        ({"task": "full", "optimizer": "hope"}, "--optimizer"),
    ],
)
def test_unknown_words_are_refused_with_the_known(asked, flag):
    with pytest.raises(InputError) as refused:
        setup_of(TrainingRequest(**asked))
    assert refused.value.problems[0].where == flag
    assert "use one of" in refused.value.problems[0].fix


def test_all_unknown_words_are_told_at_once():
    with pytest.raises(InputError) as refused:
        setup_of(TrainingRequest(task="dream", optimizer="hope"))
    assert len(refused.value.problems) == 2


def test_defaults_are_recorded():
    _, assumed = setup_of(TrainingRequest(task="qlora"))
    assert {a.what for a in assumed} == {"framework", "activation recomputation", "adapter"}
    _, assumed = setup_of(TrainingRequest(task="full", framework="megatron", recompute="full"))
    assert assumed == ()
