"""Training rows that no fit reads: later releases, rounds, other software and other makers."""

import pytest

from gpuplan.calibration.tables import read_rows as package_rows
from gpuplan.calibration.training_constants import read_calibration
from gpuplan.calibration.training_rows import UNSEEN, shipped_rows, unseen_rows
from gpuplan.pipeline.validate_training import unseen_training, validate_rows


@pytest.fixture(scope="module")
def errors():
    return unseen_training()


def test_every_row_names_where_it_was_published():
    rows = package_rows(UNSEEN)
    assert len(rows) > 190
    assert all(row["reference"] for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)


def test_no_row_is_part_of_the_fit():
    fitted = {(row.origin.source, row.origin.id) for row in shipped_rows()}
    assert not fitted & {(row.origin.source, row.origin.id) for row in unseen_rows()}
    sources = read_calibration().fitted.sources
    later = {row.origin.source for row in unseen_rows()} - {"qwen"}
    assert not later & set(sources)


def test_every_row_is_predicted():
    found = validate_rows(unseen_rows())
    assert not found.refused
    assert len(found.forecasts) == found.n_rows


@pytest.mark.parametrize(
    ("what", "most"),
    [("training", 0.12), ("pre-training step_s", 0.13), ("fine-tuning step_s", 0.10)],
)
def test_errors_may_only_fall(errors, what, most):
    assert errors[what].median_ape <= most


def test_ranges_hold_about_four_of_five(errors):
    assert 0.74 <= errors["training"].range_coverage <= 0.86


def test_known_software_on_newer_machines_keeps_its_error(errors):
    assert errors["mlperf-training:v5.1"].median_ape <= 0.11
    assert errors["megatron-bridge:26.04.01"].median_ape <= 0.08
