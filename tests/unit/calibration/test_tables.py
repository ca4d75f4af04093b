"""Shipped priors and stored fits: sound by themselves, and each made for the other."""

import math

import pytest
from fits.networks import KINDS

from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.tables import priors, read_constants, stored_fit
from gpuplan.domain.calibration.constants import effect_key
from gpuplan.performance.kernels.regimes import RegimeConstants
from gpuplan.performance.kernels.step import StepConstants

MODELS = [
    *((model, "constants") for model in ("inference", "training", "power", "links")),
    *(("networks", kind) for kind in KINDS),
]


@pytest.mark.parametrize(("model", "section"), MODELS)
def test_priors_are_positive_and_below_their_bounds(model, section):
    for constant in priors(model, section):
        assert constant.value > 0
        assert constant.log_sd > 0
        assert constant.most is None or constant.value < constant.most * 1.5
        for effect in constant.effects:
            assert 0 < effect.log_sd <= 1.0, constant.name
            for label, deviation in effect.prior:
                assert label.count("|") >= len(effect.kinds) - 1, (constant.name, label)
                assert abs(deviation) < 2, (constant.name, label)


@pytest.mark.parametrize(("model", "section"), MODELS)
def test_effects_of_a_constant_are_told_apart(model, section):
    for constant in priors(model, section):
        keys = [effect_key(constant.name, effect) for effect in constant.effects]
        assert len(keys) == len(set(keys))


def test_inference_has_a_prior_for_every_number_of_the_formulas():
    names = {constant.name for constant in priors("inference")}
    assert {*StepConstants._fields, *RegimeConstants._fields} <= names


def test_the_stored_fit_of_inference_holds_its_priors_constants():
    fitted = inference_calibration().constants
    assert set(fitted.log_value) == {constant.name for constant in fitted.constants}
    keys = {effect_key(c.name, e) for c in fitted.constants for e in c.effects}
    assert set(fitted.deviation) <= keys


@pytest.mark.parametrize("kind", KINDS)
def test_the_stored_fits_of_networks_stay_within_four_widths_of_their_priors(kind):
    stored = read_constants("other_networks.json")["kinds"][kind]
    fitted = stored_fit(stored, priors("networks", kind))
    for constant in fitted.constants:
        moved = fitted.log_value[constant.name] - math.log(constant.value)
        assert abs(moved) <= 4 * constant.log_sd, constant.name


def test_a_label_never_seen_takes_its_prior_deviation():
    fitted = inference_calibration().constants
    compute = next(c for c in fitted.constants if c.name == "gemm_compute_frac")
    assert compute.effects[0].kinds == ("family", "precision")
    assert compute.effects[0].prior_of("Hopper|16") == 0.16
    assert compute.effects[0].prior_of("no such chip|16") == 0.0
