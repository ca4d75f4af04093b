"""Validation of serving tables: a row to its prediction, a table to errors of held-out rows."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpuplan.calibration.inference.ranges import errors_by_split
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.runs.given import NEEDED
from gpuplan.domain.calibration.validation import MetricErrors, PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.errors import InputError, Problem
from gpuplan.studies.inference.predict import metric_estimates, predict_inference
from gpuplan.studies.measured.inference import Row, number_in, serving_setup
from gpuplan.studies.power.serving import POWER_METRICS, serving_power
from gpuplan.studies.validation.figures import METRICS, rejected_figures
from gpuplan.studies.validation.fit_inference import fit_study, held_out_splits, study
from gpuplan.studies.validation.inference_table import benchmark_of, read_table

INFERENCE_COLUMNS = frozenset(
    {"accelerator", "model", "regime", "input_tokens", "output_tokens", "engine"}
)
GROUPS = ("regime", "accelerator", "model", "source", "engine")


def predicted_serving(row: Row) -> PredictedRow:
    """One row of a serving table beside its prediction."""
    setup = serving_setup(row)
    prediction = predict_inference(setup, benchmark=benchmark_of(row))
    power = serving_power(setup, prediction, note=row.get("layout_note", ""))
    return beside(row, {**metric_estimates(prediction), **power})


def rejected_run(row: Row) -> dict[str, str]:
    """As `rejected_figures`, of what a benchmark tool wrote: lengths and load are not guessed."""
    load = {"poisson": ("request_rate_per_s",), "max_load": ()}.get(
        row.get("regime", ""), ("batch",)
    )
    missing = [key for key in (*NEEDED, *load) if not row.get(key)]
    if missing:
        problem = Problem(", ".join(missing), "not in the file", f"--map {missing[0]}:=VALUE")
        raise InputError(row.get("id", "row"), [problem])
    return rejected_figures(row)


def beside(row: Row, predicted: Mapping[str, Estimate]) -> PredictedRow:
    """What was predicted for a row beside every figure that it measures."""
    metrics = (*METRICS, *POWER_METRICS)
    found = {metric: number_in(row, f"measured_{metric}") for metric in metrics}
    return PredictedRow(
        id=row.get("id", ""),
        groups={group: row.get(group, "") for group in GROUPS},
        predicted=predicted,
        measured={metric: value for metric, value in found.items() if value is not None},
    )


def cross_inference(rows: Sequence[Row]) -> dict[str, dict[str, MetricErrors]]:
    """The errors of rows whose source or model was held out (takes minutes)."""
    of = study(read_table(list(rows)))
    near = fit_study(of, np.ones(len(of.observed.row), dtype=bool)).constants
    return errors_by_split(held_out_splits(of, near), inference_calibration().ranges)


def stored_cross() -> Mapping[str, Mapping[str, MetricErrors]]:
    """The errors of the package's own held-out rows, as its fit stored them."""
    return inference_calibration().held_out
