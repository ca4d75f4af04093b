"""Image networks by their published figures."""

import pytest

from gpuplan.catalog.vision import vision_named, vision_networks


def test_resnet50_at_224():
    (network,) = [n for n in vision_networks() if n.name == "resnet50" and n.image_px == 224]
    assert network.n_params == pytest.approx(25.56e6)
    assert network.flop_per_sample == pytest.approx(2 * 4.11e9)
    assert network.activation_elements == pytest.approx(11.11e6)


def test_figures_are_sound_and_unique():
    networks = vision_networks()
    assert len({(n.name, n.image_px) for n in networks}) == len(networks) > 40
    for network in networks:
        assert min(network.n_params, network.flop_per_sample, network.activation_elements) > 0
        assert 64 <= network.image_px <= 1333  # detectors take 800 x 1333
        assert network.source


@pytest.mark.parametrize("typed", ["yolo11m", "YOLO11m.pt", "Ultralytics/yolo11m"])
def test_detectors_are_found_as_people_type_them(typed):
    [network] = vision_named(typed)
    assert (network.n_params, network.image_px) == (20_100_000, 640)
    assert network.flop_per_sample == pytest.approx(68.0e9)
    assert "estimated" in network.source


def test_segment_anything_is_its_image_encoder():
    base, large, huge = (
        vision_named(f"facebook/sam-vit-{s}")[0] for s in ("base", "large", "huge")
    )
    assert base.flop_per_sample < large.flop_per_sample < huge.flop_per_sample


@pytest.mark.parametrize(
    "typed", ["SAM 2 large", "sam2-hiera-large", "facebook/sam2.1-hiera-large", "SAM2.1 large"]
)
def test_segment_anything_2_is_its_image_encoder(typed):
    [network] = vision_named(typed)
    assert (network.n_params, network.image_px) == (212_150_000, 1024)


def test_larger_images_cost_more():
    sizes = sorted(
        (n.image_px, n.flop_per_sample) for n in vision_networks() if n.name == "resnet50"
    )
    assert sizes == sorted(sizes, key=lambda pair: pair[1])


def test_a_name_of_several_means_the_much_used_one():
    [network] = {n.name for n in vision_named("swin base")}
    assert network == "swin_base_patch4_window7_224"
    assert {n.name for n in vision_named("convnextv2 large")} == {"convnextv2_large"}


def test_segformer_has_the_parameters_and_arithmetic_of_its_paper():
    [b0] = vision_named("segformer-b0")
    assert b0.n_params == pytest.approx(3.8e6, rel=0.02)
    assert b0.flop_per_sample == pytest.approx(2 * 8.4e9, rel=0.01)
