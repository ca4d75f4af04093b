"""Layouts that cannot run are refused with the reason; those that run badly are told."""

import dataclasses

from fakes import models
from gpuplan.catalog.models import find_model
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.memory.layouts import allowed_tp, layout_cautions, layout_problems
from gpuplan.performance.memory.storage import storage_of

STORAGE, _ = storage_of(models.model(), None, None)


def whats(model, layout, storage=STORAGE):
    return [problem.what for problem in layout_problems(model, storage, layout)]


def test_heads_must_divide():
    assert any("8 attention heads" in what for what in whats(models.model(), ServingLayout(tp=3)))
    assert whats(models.model(), ServingLayout(tp=4)) == []


def test_key_value_heads_divide_or_are_copied():
    three = models.model(models.dense_group(n_kv_heads=3))
    assert any("3 KV heads" in what for what in whats(three, ServingLayout(tp=2)))


def test_experts_must_divide_and_exist():
    moe = models.model(models.moe_group())
    assert whats(moe, ServingLayout(dp=4, ep=4)) == []
    assert any("8 experts" in what for what in whats(moe, ServingLayout(dp=3, ep=3)))
    assert any("no experts" in what for what in whats(models.model(), ServingLayout(dp=4, ep=4)))
    assert any("of a stage" in what for what in whats(moe, ServingLayout(tp=4, ep=8)))


def test_quantization_groups_are_not_cut_through():
    """Blocks of 128 columns survive two ways of a 256-wide matrix, not four."""
    storage, _ = storage_of(models.model(), FORMATS["fp8-block"], None)
    assert whats(models.model(), ServingLayout(tp=2), storage) == []
    assert any("128-wide" in what for what in whats(models.model(), ServingLayout(tp=4), storage))


def test_no_more_stages_than_layers():
    assert any("4 layers" in what for what in whats(models.model(), ServingLayout(pp=5)))


def test_allowed_ways_are_powers_of_two_that_divide():
    assert allowed_tp(models.model(), STORAGE, most=8) == [1, 2, 4, 8]
    assert allowed_tp(models.model(models.dense_group(n_kv_heads=3)), STORAGE, most=8) == [1]


def test_leaving_the_island_is_told():
    device = models.device()
    assert layout_cautions(ServingLayout(tp=8), device) == []
    assert "domain of 8" in layout_cautions(ServingLayout(tp=16), device)[0]
    alone = dataclasses.replace(device, scale_up=None)
    assert "no scale-up link" in layout_cautions(ServingLayout(tp=2), alone)[0]


def test_padded_experts_may_be_cut_through_their_groups_and_others_not():
    oss = find_model("openai/gpt-oss-120b")
    storage, _ = storage_of(oss, None, None)
    assert layout_problems(oss, storage, ServingLayout(tp=8)) == []
    int4, _ = storage_of(oss, FORMATS["int4"], None)
    refused = layout_problems(oss, int4, ServingLayout(tp=8))
    assert any("360 columns" in problem.what for problem in refused)
