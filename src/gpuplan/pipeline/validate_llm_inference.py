"""Validate tables of LLM serving: rows -> predictions; rows -> errors of what is left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.ranges import tails
from gpuplan.domain.validation import MetricErrors, PredictedRow
from gpuplan.errors import PlannerError
from gpuplan.pipeline.calibrate_inference import (
    Study,
    by_model,
    by_source,
    by_version,
    cross_residuals,
    study,
)
from gpuplan.pipeline.inference_table import METRICS, benchmark_of, read_table
from gpuplan.pipeline.measured_inference import Row, serving_setup
from gpuplan.pipeline.predict import metric_estimates, predict_inference

Floats = NDArray[np.float64]

INFERENCE_COLUMNS = frozenset(
    {"accelerator", "model", "regime", "input_tokens", "output_tokens", "engine"}
)
GROUPS = ("regime", "accelerator", "model", "source", "engine")
CROSS_SPLITS = {"source": (by_source, 14), "model": (by_model, 16), "version": (by_version, 10)}


def inference_rows(rows: Sequence[Row]) -> tuple[list[PredictedRow], list[tuple[str, str]]]:
    """Predictions of all rows that name something known, and the others with the reason."""
    found, refused = [], []
    for row in rows:
        try:
            found.append(_predicted(row))
        except PlannerError as error:
            refused.append((row.get("id", ""), str(error)))
    return found, refused


def _predicted(row: Row) -> PredictedRow:
    prediction = predict_inference(serving_setup(row), benchmark=benchmark_of(row))
    return PredictedRow(
        id=row.get("id", ""),
        groups={group: row.get(group, "") for group in GROUPS},
        predicted=metric_estimates(prediction),
        measured=_measured(row),
    )


def _measured(row: Row) -> dict[str, float]:
    texts = {metric: row.get(f"measured_{metric}", "") for metric in METRICS}
    return {metric: float(text) for metric, text in texts.items() if text}


def cross_inference(rows: Sequence[Row]) -> dict[str, dict[str, MetricErrors]]:
    """Errors of rows whose source, model or engine version a fit has not seen."""
    of = study(read_table(list(rows)))
    found = {}
    for name, (fold_of, n_folds) in CROSS_SPLITS.items():
        residual = cross_residuals(of, fold_of, n_folds=n_folds)
        found[name] = _errors(of, residual)
    return found


def _errors(of: Study, residual: Floats) -> dict[str, MetricErrors]:
    groups: dict[str, list[float]] = {}
    for i, metric, value in zip(of.seen.row, of.seen.metric, residual, strict=True):
        regime = of.table.setups[i].load.regime
        groups.setdefault(f"{regime} {metric}", []).append(float(value))
    return {key: _figures(values) for key, values in sorted(groups.items())}


def _figures(log_errors: list[float]) -> MetricErrors:
    errors = np.expm1(np.array(log_errors))
    size = np.abs(errors)
    # The range of a left-out row comes from the other rows left out; this is its leave-one-out.
    spread = tails([-value for value in log_errors])
    inside = [spread.log_low <= -value <= spread.log_high for value in log_errors]
    return MetricErrors(
        n=len(size),
        median_ape=float(np.median(size)),
        mape=float(size.mean()),
        p90_ape=float(np.quantile(size, 0.9)),
        bias=float(np.median(errors)),
        range_coverage=float(np.mean(inside)),
    )
