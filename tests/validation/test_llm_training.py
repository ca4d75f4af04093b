"""Training step time against published rows: errors outside the fit, and the stored fit itself."""

import numpy as np
import pytest
from fits.training import calibrate

from gpuplan.calibration.tables import read_constants, read_rows
from gpuplan.calibration.training.constants import FILE, read_calibration
from gpuplan.calibration.training.rows import TrainingRow, shipped_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.csv_rows import read_csv_rows
from gpuplan.studies.training.calibration import (
    TRAINING,
    errors_by_case,
    model_of,
    source_of,
    usable,
)
from gpuplan.studies.training.cases import cases_of
from gpuplan.studies.training.predict import predict_training
from gpuplan.studies.validation.report import predicted_rows
from gpuplan.studies.validation.training import (
    cross_training,
    predicted_training,
    stored_cross_training,
)
from shared_data import shared_file

# Median error of rows outside the fit may only fall.
BUDGET_SOURCE = 0.08
BUDGET_MODEL = 0.07
BUDGET_ONE_SOURCE = 0.12
BUDGET_FINE_TUNING = 0.12
BUDGET_ONE_SCRIPT = 0.15
SCRIPTS = ("litgpt", "torchtune", "qwen")
OWN_RUN = {
    "id": "mine", "source": "our cluster", "framework": "NeMo", "date": "2025-06",
    "model": "Llama-3.1-70B", "accelerator": "H100", "n_accelerators": "64", "precision": "bf16",
    "seq_len": "8192", "global_batch": "128", "micro_batch": "1", "tp": "4", "pp": "4", "vp": "5",
}  # fmt: skip


@pytest.fixture(scope="module")
def cases():
    found, refused = cases_of(shipped_rows(), read_catalog())
    assert not refused
    return usable(found)


def ape(errors):
    return np.abs(np.expm1(errors))


def median(values):
    return float(np.median(values))


def test_stored_fit_is_what_the_rows_give(cases):
    errors = TRAINING.errors(cases, TRAINING.fit(cases))
    stored = TRAINING.errors(cases, read_calibration().fitted)
    assert stored == pytest.approx(errors, abs=0.004)


def test_errors_with_the_source_left_out(cases):
    folds = TRAINING.folds(source_of, cases)
    errors = np.concatenate(list(folds.values()))
    assert median(ape(errors)) <= BUDGET_SOURCE
    medians = {name: median(ape(found)) for name, found in folds.items() if len(found) > 5}
    assert max(found for name, found in medians.items() if name not in SCRIPTS) <= BUDGET_ONE_SOURCE
    assert max(medians[name] for name in SCRIPTS) <= BUDGET_ONE_SCRIPT


def test_errors_with_the_model_left_out(cases):
    errors = errors_by_case(cases, model_of)
    assert median(ape(errors)) <= BUDGET_MODEL
    tuned = [case.row.regime == "fine-tuning" for case in cases]
    assert sum(tuned) > 40
    assert median(ape(errors[tuned])) <= BUDGET_FINE_TUNING


def test_ranges_hold_about_four_of_five_rows_outside_the_fit():
    scores = read_constants(FILE)["scores"]
    for left_out in ("source", "model", "fold"):
        assert 0.76 <= scores[f"coverage left out by {left_out}"] <= 0.84


def test_every_shipped_row_is_predicted():
    rows = [dict(row.cells) for row in shipped_rows()]
    found, refused = predicted_rows(rows, predicted_training)
    assert len(found) == len(rows)
    assert not refused
    ratios = [
        one.predicted["step_s"].value / one.measured["step_s"]
        for one in found
        if "step_s" in one.measured
    ]
    assert median(np.abs(np.array(ratios) - 1)) < 0.06
    for one in found:
        estimate = one.predicted["step_s"]
        assert 0 < estimate.low < estimate.value < estimate.high


def test_constants_stay_physical():
    fitted = read_calibration().fitted
    labels = {
        "stack": "megatron", "kernels": "fused", "flash": "vendor", "program": "",
        "links": "hidden",
        "family": "Hopper", "architecture": "dense",
    }  # fmt: skip
    values = fitted.values(labels)
    for name in ("reach16_ratio", "reach8_ratio", "reach4_ratio", "flash_frac", "dp_overlap_frac"):
        assert 0 < values[name] <= 1, name


@pytest.mark.shared
def test_table_of_the_package_is_the_published_one():
    published = map(TrainingRow, read_csv_rows(shared_file("measured/llm_training.csv")))
    ours = {row.text("id"): row for row in shipped_rows() if row.text("id").startswith("trn")}
    same = [row for row in published if row.text("id") in ours]
    assert len(same) == len(ours)
    assert all(ours[row.text("id")].measured == row.measured for row in same)


def test_own_runs_pull_the_constants():
    plain = predict_training(OWN_RUN).step_s.value
    slow = TrainingRow(OWN_RUN | {"measured_step_s": f"{1.4 * plain}"})
    cases, _ = cases_of([*shipped_rows(), *[slow] * 10], read_catalog())
    fresh = calibrate(cases)
    assert predict_training(OWN_RUN, calibration=fresh).step_s.value > 1.05 * plain
    assert fresh.fitted.n_rows == read_calibration().fitted.n_rows + 10


# Tokens/s/GPU of runs outside the fit: strong scaling on A100 [NeMo-Framework-Launcher README].
SCALING = [
    ({"model": "gpt3-5b", "tp": "1", "pp": "1", "micro_batch": "2", "global_batch": "2560"},
     {8: 4957.5, 16: 4923.1, 40: 4831.4, 80: 4793.8, 160: 4539.9}),
    ({"model": "GPT3-175B", "tp": "8", "pp": "8", "vp": "12", "micro_batch": "1",
      "global_batch": "1536"},
     {64: 117.2, 128: 116.8, 256: 115.4, 512: 113.7, 1024: 107.1}),
]  # fmt: skip


@pytest.mark.parametrize(("job", "measured"), SCALING, ids=["5B", "175B"])
def test_strong_scaling_of_runs_outside_the_fit(job, measured):
    """The batch is assumed, so that the shape of the curve is judged, and the level loosely."""
    base = {
        "id": "s", "source": "launcher", "framework": "NeMo-Megatron (launcher)",
        "date": "2022-06", "accelerator": "A100 80GB", "precision": "bf16", "seq_len": "2048",
        "recompute": "selective",
    }  # fmt: skip
    found = {
        n: predict_training(base | job | {"n_accelerators": str(n)}).tokens_per_s_per_accelerator
        for n in measured
    }
    first = min(measured)
    for n, rate in measured.items():
        kept = found[n].value / found[first].value
        assert kept == pytest.approx(rate / measured[first], abs=0.04)
        assert found[n].value == pytest.approx(rate, rel=0.2)


def test_cross_validation_prints_every_split_and_source():
    rows = [dict(row) for row in read_rows("llm_training.csv")[::4]]
    found = cross_training(rows)
    assert set(found) == {"source", "model", "accelerator"}
    errors = found["source"]["training step_s"]
    assert errors.n > 100
    assert errors.median_ape < 0.12
    assert "llm-foundry step_s" in found["model"]


def test_stored_cross_validation_covers_pre_training_and_fine_tuning():
    found = stored_cross_training()
    for split in ("source", "model"):
        assert found[split]["pre-training step_s"].median_ape <= 0.08
        assert 0.72 <= found[split]["training step_s"].range_coverage <= 0.86
    assert found["model"]["fine-tuning step_s"].median_ape <= 0.15
