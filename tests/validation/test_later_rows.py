"""Rows of later releases, rounds and boards: all predicted, none in a fit, errors only fall."""

import csv
from pathlib import Path

import numpy as np
import pytest
from fits.networks import read_network_rows

from gpuplan.calibration.training.constants import read_calibration
from gpuplan.calibration.training.rows import shipped_rows
from gpuplan.studies.validation.networks import (
    predicted_diffusion,
    predicted_vision,
    predicted_vision_training,
)
from gpuplan.studies.validation.report import predicted_rows
from gpuplan.studies.validation.training import predicted_training

FOLDER = Path(__file__).parent / "never_seen"
TABLES = ("llm_training_later", "vision_later", "vision_training_later", "diffusion_later")
METRICS = ("step_s", "tokens_per_s_per_accelerator", "infer_samples_per_s", "train_samples_per_s",
           "batch_latency_s")  # fmt: skip


def rows_of(name):
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def judged(found):
    """Relative error of the first measured metric, and whether its range holds it."""
    metric = next(name for name in METRICS if name in found.measured)
    estimate, measured = found.predicted[metric], found.measured[metric]
    error = abs(estimate.value / measured - 1)
    return error, estimate.low <= measured <= estimate.high


def figures(found):
    errors, inside = zip(*map(judged, found), strict=True)
    return float(np.median(errors)), float(np.mean(inside))


@pytest.fixture(scope="module")
def training():
    found, refused = predicted_rows(rows_of("llm_training_later"), predicted_training)
    assert not refused
    return found


@pytest.mark.parametrize("table", TABLES)
def test_every_row_names_where_it_was_published(table):
    rows = rows_of(table)
    assert all(row["reference"] for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)


def test_no_training_row_is_part_of_the_fit():
    fitted = {row.text("id") for row in shipped_rows()}
    rows = rows_of("llm_training_later")
    assert len(rows) > 190
    assert not fitted & {row["id"] for row in rows}
    later = {row["source"] for row in rows} - {"qwen"}
    assert not later & set(read_calibration().fitted.sources)


def test_no_board_or_source_of_networks_is_part_of_the_fit():
    boards = {row.device_name for row in read_network_rows("vision")}
    assert not boards & {row["device"] for row in rows_of("vision_later")}
    assert {row.source for row in read_network_rows("denoiser")} == {"mlenergy_v3_diffusion"}


@pytest.mark.parametrize(("regime", "most"), [("pre-training", 0.13), ("fine-tuning", 0.10)])
def test_errors_of_training(training, regime, most):
    median, _ = figures([row for row in training if row.groups["regime"] == regime])
    assert median <= most


@pytest.mark.parametrize(
    ("source", "most"),
    [("mlperf-training:v5.1", 0.11), ("megatron-bridge:26.04.01", 0.08), ("maxtext", 0.08)],
)
def test_errors_of_known_software_on_newer_machines(training, source, most):
    median, _ = figures([row for row in training if row.groups["source"] == source])
    assert median <= most


def test_ranges_of_training_hold_about_four_of_five(training):
    _, inside = figures(training)
    assert 0.74 <= inside <= 0.86


@pytest.mark.parametrize(
    ("table", "predict", "most", "least_inside"),
    [
        ("vision_later", predicted_vision, 0.10, 0.76),
        ("vision_training_later", predicted_vision_training, 0.35, 0.76),
        ("diffusion_later", predicted_diffusion, 0.35, 0.70),
    ],
)
def test_networks_on_boards_and_software_never_seen(table, predict, most, least_inside):
    found, refused = predicted_rows(rows_of(table), predict)
    assert not refused
    median, inside = figures(found)
    assert median <= most
    assert inside >= least_inside
