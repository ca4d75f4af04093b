"""Speech models by measured real-time factors; one model has one cost under all its names."""

from itertools import pairwise

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.errors import InputError
from gpuplan.studies.naming import model_named
from gpuplan.studies.networks.predict import model_label, predict_network, vision_named
from gpuplan.studies.networks.speech import benchmarked_board, board_figures, sixteen_bits

CARDS = read_catalog().accelerators


@pytest.mark.parametrize(
    "names",
    [
        ("SDXL", "stable-diffusion-xl", "stabilityai/stable-diffusion-xl-base-1.0"),
        ("flux", "FLUX.1-dev", "black-forest-labs/FLUX.1-dev/transformer"),
        ("whisper", "whisper large", "openai/whisper-large-v3"),
    ],
)
def test_one_model_has_one_cost_under_all_its_names(names):
    times = {predict_network(n, "h100-sxm", NetworkRequest()).batch_s.value for n in names}
    assert len(times) == 1


def test_pictures_cost_by_their_pixels_and_steps():
    def seconds(**keys):
        return predict_network("SDXL", "h100-sxm", NetworkRequest(batch=8, **keys)).batch_s.value

    small = seconds(n_steps=20, height_px=512, width_px=512)
    assert seconds(n_steps=20) > 3.5 * small
    assert seconds(n_steps=40) == pytest.approx(2 * seconds(n_steps=20), rel=0.01)


def test_whisper_runs_at_the_published_real_time_factor():
    full = predict_network("whisper", "a100-sxm-80gb", NetworkRequest(batch=24))
    assert 30 * full.samples_per_s.value == pytest.approx(91.84, rel=0.01)
    alone = predict_network("whisper", "a100-sxm-80gb", NetworkRequest(batch=1))
    assert 1.5 < alone.batch_s.value < 4.0


def test_longer_recordings_take_longer():
    short, long = (
        predict_network("whisper", "h100-sxm", NetworkRequest(audio_s=s)).batch_s.value
        for s in (30.0, 300.0)
    )
    assert long > short


def test_a_larger_batch_takes_longer_and_carries_more():
    found = [
        predict_network("whisper", "l4", NetworkRequest(batch=batch)) for batch in (1, 2, 8, 24)
    ]
    assert all(a.batch_s.value < b.batch_s.value for a, b in pairwise(found))
    assert all(a.samples_per_s.value < b.samples_per_s.value for a, b in pairwise(found))


def test_smaller_models_are_faster():
    names = ("whisper-large-v3", "whisper-large-v3-turbo", "whisper-small", "whisper-tiny")
    times = [predict_network(n, "h100-sxm", NetworkRequest(batch=24)).batch_s.value for n in names]
    assert times == sorted(times, reverse=True)


def test_the_range_of_a_speech_forecast_holds_its_value():
    found = predict_network("whisper", "l40s", NetworkRequest())
    assert found.kind == "speech"
    assert found.batch_s.low < found.batch_s.value < found.batch_s.high
    assert any(note.what == "audio" for note in found.assumptions)


def test_a_board_that_was_measured_has_its_measured_rate():
    found = predict_network("bert-99", "a100-sxm-80gb", NetworkRequest())
    assert found.kind == "pipeline"
    assert found.samples_per_s.value == pytest.approx(3511, rel=0.05)


def test_boards_are_known_as_benchmarks_use_them():
    card = CARDS["h100-sxm"]
    assert benchmarked_board(card) == board_figures()["h100-sxm"]
    assert sixteen_bits(card) in ("fp16", "bf16")


def test_labels_are_what_measurements_call_a_model():
    assert model_label(model_named("flux")) == "FLUX.1-dev"
    assert model_label(model_named("sdxl")) == "stable-diffusion-xl-base-1.0"
    assert vision_named("resnet50.a1_in1k")
    assert not vision_named("flux")


def test_a_language_model_is_sent_to_its_own_verb():
    with pytest.raises(InputError, match="predict"):
        predict_network("Qwen3-8B", "h100-sxm", NetworkRequest())


def test_a_second_of_sound_is_a_dozen_frames_of_a_conformer():
    found = predict_network("parakeet-tdt-0.6b-v2", "a100-80", NetworkRequest(audio_s=40.0))
    layer = 4 * 1024**2 + 4 * 1024 * 4096 + 4 * 1024**2  # attention, two halves, convolutions
    assert found.work.flop == 2 * 24 * layer * 40 * 12.5
    assert found.work.attention_flop == 4 * 24 * 1024 * (40 * 12.5) ** 2


# Published on the same board and not used: 2,390, more than 1,200, 235 times real time.
@pytest.mark.parametrize(
    ("name", "times"),
    [("parakeet-tdt-1.1b", 2390), ("canary-180m-flash", 1200), ("canary-1b", 235)],
)
def test_other_sizes_run_within_the_range_of_what_is_published(name, times):
    request = NetworkRequest(batch=128, audio_s=30.0)
    time = predict_network(name, "a100-80", request).batch_s
    assert time.low < 128 * 30.0 / times < time.high
