"""Fit of training constants: cases by hand, held-out sources, coverage of their ranges."""

import numpy as np
import pytest

from gpuplan.calibration.training.constants import (
    NEW_FAMILY_WIDENS,
    UNSEEN_WIDENS,
    Known,
    read_calibration,
    tier_of,
    training_labels,
    with_traits,
)
from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.calibration.training.stacks import STACKS
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.studies.training.calibration import (
    KINDS,
    TRAINING,
    errors_by_case,
    fold_of,
    is_covered,
    model_of,
    source_of,
    usable,
)
from gpuplan.studies.training.cases import case_of, cases_of, kind_of
from gpuplan.studies.training.predict import forecast

JOB = {
    "id": "mine",
    "source": "dgxc",
    "framework": "NeMo",
    "model": "Llama-3.1-8B",
    "accelerator": "H100",
    "n_accelerators": "8",
    "precision": "bf16",
    "seq_len": "8192",
    "global_batch": "128",
    "micro_batch": "1",
    "measured_step_s": "12.5",
}


def case(**changed: str):
    return case_of(TrainingRow(JOB | changed), read_catalog())


def planted(factor: float, source: str, batch: int):
    """A case that runs so many times as long as predicted."""
    plain = case(source=source, global_batch=str(batch))
    seconds = factor * forecast(plain).step_s.value
    return case(source=source, global_batch=str(batch), measured_step_s=f"{seconds:.8g}")


def test_tokens_of_a_step_are_shared_by_all_accelerators() -> None:
    assert case().tokens_per_accelerator == 128 * 8192 / 8
    assert case(tp="2").tokens_per_accelerator == 128 * 8192 / 8


def test_a_measured_rate_is_a_measured_step() -> None:
    by_rate = case(measured_step_s="", measured_tokens_per_s_per_accelerator="10000")
    assert by_rate.measured_step_s == pytest.approx(128 * 8192 / 8 / 10_000)
    assert case().measured_step_s == pytest.approx(12.5)
    assert case(measured_step_s="").measured_step_s is None


def test_cases_without_a_length_or_a_measured_step_are_not_fitted() -> None:
    rows = [JOB, {**JOB, "seq_len": ""}, {**JOB, "measured_step_s": ""}]
    cases, refused = cases_of([TrainingRow(row) for row in rows], read_catalog())
    assert (len(cases), refused) == (3, [])
    assert usable(cases) == cases[:1]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, "dense"),
        ({"model": "Qwen3-30B-A3B"}, "sparse"),
        ({"framework": "torchtune", "task": "lora"}, "script"),
    ],
)
def test_kinds_of_cases_have_ranges_of_their_own(changed: dict[str, str], kind: str) -> None:
    assert kind_of(case(**changed)) == kind
    assert kind in KINDS


def test_held_out_sources_are_predicted_by_the_others() -> None:
    cases = [planted(1.0, "a", 64 * i) for i in (1, 2, 3)]
    cases += [planted(1.2, "b", 64 * i) for i in (1, 2, 3)]
    errors = errors_by_case(cases, source_of)
    folds = TRAINING.folds(source_of, cases)
    assert errors[:3].tolist() == folds["a"].tolist()
    assert errors[3:].tolist() == folds["b"].tolist()
    # The other source runs at another pace: a is predicted slower than b.
    assert np.median(errors[:3]) - np.median(errors[3:]) > 0.1


def test_one_large_source_does_not_drown_others() -> None:
    cases = [case(source="large", global_batch=str(8 * i)) for i in range(1, 41)]
    weight = TRAINING.measured([*cases, case(source="small")]).observed.weight
    assert weight[:-1].sum() == pytest.approx(25.0)
    assert weight[-1] == 2.5


def test_errors_are_logs_of_predicted_over_measured() -> None:
    cases = [planted(factor, "a", 64) for factor in (1.0, 2.0, 0.5)]
    errors = TRAINING.errors(cases, read_calibration().fitted)
    assert errors == pytest.approx(-np.log([1.0, 2.0, 0.5]), abs=1e-6)


def test_repeated_runs_of_one_configuration_share_a_fold() -> None:
    assert fold_of(case(id="a")) == fold_of(case(id="b", measured_step_s="99"))
    assert model_of(case()) == model_of(case(accelerator="A100"))


def test_a_case_beyond_the_spread_of_the_others_is_not_covered() -> None:
    cases = [case(source=f"s{i}", global_batch=str(8 * (i + 1))) for i in range(30)]
    errors = np.random.default_rng(2).normal(0.0, 0.05, 30)
    errors[7] = 1.0
    inside = is_covered(cases, source_of, errors)
    assert not inside[7]
    assert inside.mean() > 0.7


def test_what_is_new_to_the_fit_widens_the_range() -> None:
    calibration = read_calibration()
    known = Known(is_program=True, is_model=True, is_family=True)
    narrow = calibration.spread("dense", known)
    stored = calibration.spreads["dense|known"]
    assert narrow == stored
    new_chip = calibration.spread("dense", known._replace(is_family=False))
    assert new_chip.high == pytest.approx(stored.high**NEW_FAMILY_WIDENS)
    program = known._replace(is_program=False)
    wide = calibration.spreads["dense|new program"]
    assert calibration.spread("dense", program).low == pytest.approx(wide.low**UNSEEN_WIDENS)
    assert (tier_of(known), tier_of(known._replace(is_family=False))) == ("fitted", "estimated")


def test_traits_of_the_software_multiply_the_fitted_constants() -> None:
    card = find_accelerator("H100", read_catalog()).accelerator
    plain = {"dp_overlap_frac": 0.8, "layer_s": 1e-3, "accumulate_bytes_per_param": 5.0}
    old = with_traits(plain, card, STACKS["megatron-deepspeed"])
    assert old["dp_overlap_frac"] == 0.0  # it does not overlap gradients
    assert old["accumulate_bytes_per_param"] == pytest.approx(5.0 * 2.4)
    script = with_traits(plain, card, STACKS["finetune"])
    assert script["layer_s"] == pytest.approx(3e-3)
    assert script["best16_frac"] == 0.803


def test_labels_are_those_that_priors_depend_on() -> None:
    labels = training_labels(STACKS["fsdp"], family="Hopper", architecture="dense")
    kinds = {kind for c in TRAINING.constants() for e in c.effects for kind in e.kinds}
    assert kinds <= set(labels)
    assert case().configuration.labels == training_labels(
        STACKS["megatron"], family="Hopper", architecture="dense", program="dgxc"
    )
