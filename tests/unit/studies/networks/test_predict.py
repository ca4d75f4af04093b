"""Networks that are no language models, by name: work by hand, and laws of batches."""

import pytest

from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.errors import InputError
from gpuplan.studies.naming import model_named
from gpuplan.studies.networks.predict import from_layers, predict_network


def predicted(name, on="h100-sxm", **asked):
    return predict_network(name, on, NetworkRequest(**asked))


def test_resnet_has_the_arithmetic_of_its_model_card():
    """ResNet-50: 4.1 GMAC per image of 224 px, 25.6 M parameters in 16 bits."""
    found = predicted("resnet50", batch=8)
    assert found.kind == "vision"
    assert found.work.flop / 8 == pytest.approx(2 * 4.1e9, rel=0.03)
    assert found.work.weight_bytes == pytest.approx(2 * 25.6e6, rel=0.01)


def test_four_times_the_pixels_are_four_times_the_arithmetic():
    small, large = (predicted("resnet50", image_px=px, batch=64) for px in (224, 448))
    assert large.work.flop == pytest.approx(4 * small.work.flop, rel=0.01)
    assert large.work.weight_bytes == small.work.weight_bytes
    assert large.batch_s.value > small.batch_s.value


def test_larger_batches_take_longer_and_carry_more():
    found = [predicted("resnet50", batch=n) for n in (1, 8, 64)]
    times = [each.batch_s.value for each in found]
    rates = [each.samples_per_s.value for each in found]
    assert times == sorted(times)
    assert rates == sorted(rates)
    for each in found:
        assert each.batch_s.low < each.batch_s.value < each.batch_s.high


def test_an_encoder_multiplies_its_layers_and_attends_to_the_square():
    """BERT-large: 24 layers of 1024: 12 x 24 x 1024^2 matrix parameters."""
    found = predicted("bert-large-uncased", n_tokens=384, batch=2)
    n_matrix = 12 * 24 * 1024**2
    assert found.kind == "encoder"
    assert found.work.flop == pytest.approx(2 * n_matrix * 384 * 2)
    assert found.work.attention_flop == pytest.approx(4 * 24 * 1024 * 384**2 * 2)


def test_more_denoising_steps_take_longer_in_proportion():
    few, many = (predicted("black-forest-labs/FLUX.1-dev", n_steps=n) for n in (10, 50))
    assert many.work.flop == pytest.approx(5 * few.work.flop)
    assert many.batch_s.value == pytest.approx(5 * few.batch_s.value, rel=0.01)


def test_a_benchmark_is_carried_over_by_the_speed_of_its_board():
    fast, slow = (predicted("bert-99", on=on) for on in ("h100-sxm", "l4"))
    assert fast.kind == slow.kind == "pipeline"
    assert fast.work is None
    assert fast.batch_s.value < slow.batch_s.value
    assert fast.batch_s.low < fast.batch_s.value < fast.batch_s.high


def test_a_language_model_is_sent_to_predict():
    with pytest.raises(InputError, match="gpuplan predict"):
        predicted("meta-llama/Llama-3.1-8B-Instruct")


def test_an_unknown_name_gets_near_ones():
    with pytest.raises(InputError) as caught:
        predicted("resnet5O")
    assert "resnet50" in caught.value.problems[0].fix


def test_a_cpu_has_constants_of_its_own_and_launches_no_kernels():
    found = predicted("bert-large-uncased", on="cpu-xeon-8480", n_tokens=128)
    assert (found.kind, found.work.n_kernels) == ("vision-cpu", 1.0)
    assert any("CPU" in note.why for note in found.assumptions)
    fast = predicted("bert-large-uncased", n_tokens=128)
    assert fast.batch_s.value < found.batch_s.value


def test_training_a_network_takes_longer_than_running_it():
    forward = predicted("resnet50", batch=32)
    training = predicted("resnet50", batch=32, is_training=True)
    assert training.kind == "vision-training"
    assert training.batch_s.value > forward.batch_s.value


def test_what_was_assumed_is_said():
    noted = {note.what for note in predicted("resnet50").assumptions}
    assert {"software", "picture"} <= noted


def test_a_network_time_is_never_below_its_roofline():
    found = predicted("resnet50", batch=128)
    peak = found.accelerator.peak_flop_per_s["fp16"]
    assert found.batch_s.value > found.work.flop / peak


@pytest.mark.parametrize(
    ("hub", "plain"),
    [
        ("microsoft/resnet-50", "resnet50"),
        ("google/vit-base-patch16-224", "vit_base_patch16_224"),
        ("timm/resnet50.a1_in1k", "resnet50"),
        ("facebook/convnext-base-224", "convnext_base"),
    ],
)
def test_one_image_network_costs_the_same_under_all_its_names(hub, plain):
    assert predicted(hub, batch=64).batch_s == predicted(plain, batch=64).batch_s


def test_a_vision_transformer_by_its_layers_has_the_arithmetic_of_its_model_card():
    network = from_layers(model_named("google/vit-base-patch16-224"))
    assert network.flop_per_sample == pytest.approx(2 * 17.58e9, rel=0.01)
    assert network.n_params == pytest.approx(86.4e6, rel=0.01)


def test_a_single_picture_waits_for_its_launches():
    one, many = (predicted("resnet50", batch=n).batch_s.value for n in (1, 256))
    assert one == pytest.approx(0.003)
    assert many > 4 * one


@pytest.mark.parametrize(
    ("model", "flop"),
    [
        ("FLUX.2-dev", 7.9e15),  # 56 blocks of 13 x 6144^2 over 4,608 tokens, 28 steps, one pass
        ("Qwen-Image", 3.95e15),  # 60 blocks of 12 x 3072^2 over 4,224 tokens, 28 steps, two passes
        ("stabilityai/sdxl-turbo", 1.84e14),  # half of SDXL's: no guidance
        ("SG161222/RealVisXL_V5.0", 3.68e14),  # SDXL's own U-Net
    ],
)
def test_pipelines_cost_what_a_token_passes(model, flop):
    """Of two streams a token passes one; distilled guidance is one pass (FLUX.2 was twice that)."""
    found = predict_network(model, "H100", NetworkRequest(n_steps=28))
    assert found.work.flop + found.work.attention_flop == pytest.approx(flop, rel=0.02)
