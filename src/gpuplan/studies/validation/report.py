"""Validate: a measured table -> predictions beside it and their errors. One file per table kind."""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np

from gpuplan.calibration.tables import read_rows
from gpuplan.csv_rows import read_csv_rows
from gpuplan.domain.calibration.validation import MetricErrors, PredictedRow, ValidationReport
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.llama_matrix import MATRIX_COLUMNS, serving_rows
from gpuplan.studies.training.forecast import (
    TRAINING_COLUMNS,
    cross_training,
    stored_cross_training,
    training_rows,
)
from gpuplan.studies.validation.inference import (
    INFERENCE_COLUMNS,
    cross_inference,
    inference_rows,
    stored_cross,
)
from gpuplan.studies.validation.mlperf import MLPERF_COLUMNS, mlperf_rows
from gpuplan.studies.validation.networks import (
    DIFFUSION_COLUMNS,
    ENCODER_COLUMNS,
    VISION_COLUMNS,
    VISION_TRAINING_COLUMNS,
    diffusion_rows,
    encoder_rows,
    vision_rows,
    vision_training_rows,
)

Rows = Sequence[dict[str, str]]
Answer = tuple[list[PredictedRow], list[tuple[str, str]]]
GROUPS = ("regime", "accelerator", "model", "source", "engine")

# Table kind -> columns that tell it, rows -> predictions, rows -> errors of rows left out.
Cross = Callable[[Rows], dict[str, dict[str, MetricErrors]]]
KINDS: dict[str, tuple[frozenset[str], Callable[[Rows], Answer], Cross | None]] = {
    "llm_inference": (INFERENCE_COLUMNS, inference_rows, cross_inference),
    "llm_training": (TRAINING_COLUMNS, training_rows, cross_training),
    "llama.cpp": (MATRIX_COLUMNS, lambda rows: inference_rows(serving_rows(rows)), None),
    "mlperf_inference": (MLPERF_COLUMNS, mlperf_rows, None),
    "vision": (VISION_COLUMNS, vision_rows, None),
    "vision_training": (VISION_TRAINING_COLUMNS, vision_training_rows, None),
    "encoder": (ENCODER_COLUMNS, encoder_rows, None),
    "diffusion": (DIFFUSION_COLUMNS, diffusion_rows, None),
}
# Rows left out of the package's own fits: computed when the fit was stored, not again.
STORED_CROSS: dict[str, Callable[[], dict[str, dict[str, MetricErrors]]]] = {
    "llm_inference": stored_cross,
    "llm_training": stored_cross_training,
}


def validate_file(path: Path, *, cross: bool = False) -> ValidationReport:
    """Errors of the predictions for a measured table of any known kind."""
    return validate_rows(read_csv_rows(path), where=str(path), cross=cross)


def validate_package(kind: str = "llm_inference", *, cross: bool = False) -> ValidationReport:
    """As `validate_file`, for the package's own table of this kind."""
    rows = [dict(row) for row in read_rows(f"{kind}.csv")]
    report = validate_rows(rows, where=kind)
    return replace(report, cross=STORED_CROSS[kind]()) if cross else report


def validate_rows(rows: Rows, *, where: str, cross: bool = False) -> ValidationReport:
    """As `validate_file`, for rows already read."""
    kind = table_kind(rows, where)
    _, predict, cross_of = KINDS[kind]
    predicted, refused = predict(rows)
    return ValidationReport(
        kind=kind,
        n_rows=len(rows),
        n_covered=len(predicted),
        metrics=errors_by_metric(predicted),
        by={group: _by_value(predicted, group) for group in GROUPS},
        rows=tuple(predicted),
        refused=tuple(refused),
        cross=cross_of(rows) if cross and cross_of else None,
    )


def table_kind(rows: Rows, where: str) -> str:
    """The kind whose columns the table has; InputError where it is none."""
    present = set(rows[0]) if rows else set()
    for kind, (needed, _, _) in KINDS.items():
        if needed <= present:
            return kind
    likest = max(KINDS, key=lambda kind: len(KINDS[kind][0] & present) / len(KINDS[kind][0]))
    missing = ", ".join(sorted(KINDS[likest][0] - present))
    others = "; ".join(f"{k}: {', '.join(sorted(v[0]))}" for k, v in KINDS.items() if k != likest)
    problem = Problem(
        "columns",
        f"{len(present)} columns, of no known table; most like {likest}, which has also {missing}",
        f"add them, or give a table of another kind: {others}",
    )
    raise InputError(where, [problem])


def errors_by_metric(rows: Iterable[PredictedRow]) -> dict[str, MetricErrors]:
    """Errors of every metric that some row measures."""
    ratios: dict[str, list[tuple[float, bool]]] = {}
    for row in rows:
        for metric, measured in row.measured.items():
            estimate = row.predicted.get(metric)
            if estimate is None or measured <= 0:
                continue
            inside = estimate.low <= measured <= estimate.high
            ratios.setdefault(metric, []).append((estimate.value / measured - 1.0, inside))
    return {metric: metric_errors(found) for metric, found in ratios.items()}


def metric_errors(found: Sequence[tuple[float, bool]]) -> MetricErrors:
    """The six figures of one metric."""
    errors = np.array([error for error, _ in found])
    size = np.abs(errors)
    return MetricErrors(
        n=len(found),
        median_ape=float(np.median(size)),
        mape=float(size.mean()),
        p90_ape=float(np.quantile(size, 0.9)),
        bias=float(np.median(errors)),
        range_coverage=float(np.mean([inside for _, inside in found])),
    )


def _by_value(rows: Sequence[PredictedRow], group: str) -> dict[str, dict[str, MetricErrors]]:
    found: dict[str, list[PredictedRow]] = {}
    for row in rows:
        found.setdefault(row.groups.get(group, ""), []).append(row)
    return {value: errors_by_metric(some) for value, some in sorted(found.items())}


def predictions_csv(report: ValidationReport, *, is_whole: bool = False) -> str:
    """Every prediction as `id, METRIC, METRIC_low, METRIC_high …, tier`."""
    metrics = sorted({metric for row in report.rows for metric in row.predicted
                      if is_whole or metric in row.measured})  # fmt: skip
    header = ["id", *(f"{m}{part}" for m in metrics for part in ("", "_low", "_high")), "tier"]
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")  # ids may hold commas
    table.writerow(header)
    for row in report.rows:
        cells = [row.id]
        for metric in metrics:
            estimate = row.predicted.get(metric)
            values = () if estimate is None else (estimate.value, estimate.low, estimate.high)
            cells += [f"{value:.6g}" for value in values] or ["", "", ""]
        tier = next((e.tier for e in row.predicted.values()), "")
        table.writerow([*cells, tier])
    return text.getvalue()
