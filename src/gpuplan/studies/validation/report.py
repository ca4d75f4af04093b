"""Validation: a measured table in, predictions beside its rows and their errors out.

A kind of table is its columns, a function that predicts one of its rows, and what cross-validates
the whole; everything else is the same for all kinds. What a benchmark tool wrote are serving rows.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuplan.calibration.residuals import metric_errors
from gpuplan.calibration.runs.detect import is_output, read_runs, table_in_json
from gpuplan.calibration.runs.given import check_given, filled, split_count
from gpuplan.calibration.tables import read_rows
from gpuplan.csv_rows import csv_rows, read_text
from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.domain.calibration.validation import MetricErrors, PredictedRow, ValidationReport
from gpuplan.errors import InputError, PlannerError, Problem
from gpuplan.inputs.llama_matrix import MATRIX_COLUMNS, serving_rows
from gpuplan.inputs.published import (
    FINE_TUNING_COLUMNS,
    FIRST_TOKEN_COLUMNS,
    PHASE_COLUMNS,
    POD_COLUMNS,
    SCALING_COLUMNS,
    fine_tuning_rows,
    first_token_rows,
    phase_rows,
    pod_rows,
    scaling_rows,
)
from gpuplan.studies.validation import networks
from gpuplan.studies.validation.figures import is_unstated, rejected_figures, without
from gpuplan.studies.validation.inference import (
    GROUPS,
    INFERENCE_COLUMNS,
    cross_inference,
    predicted_serving,
    rejected_run,
    stored_cross,
)
from gpuplan.studies.validation.mlperf import MLPERF_COLUMNS, predicted_submission
from gpuplan.studies.validation.training import (
    TRAINING_COLUMNS,
    cross_training,
    predicted_training,
    rejected_memory,
    stored_cross_training,
)

Row = dict[str, str]
Rows = Sequence[Row]
Errors = dict[str, MetricErrors]
Cross = Mapping[str, Mapping[str, MetricErrors]]  # errors of held-out rows, by split


class TableKind(NamedTuple):
    """How one kind of measured table is recognized, predicted and cross-validated."""

    columns: frozenset[str]
    predict: Callable[[Row], PredictedRow]
    cross: Callable[[Rows], Cross] | None = None
    # Rows held out of the package's own fits: computed when the fit was stored, not again.
    stored_cross: Callable[[], Cross] | None = None
    rows: Callable[[Rows], Rows] | None = None  # in the columns that `predict` reads
    # Figures of a row that cannot be right, with the reason.
    rejected: Callable[[Row], Mapping[str, str]] | None = None


SERVING = TableKind(INFERENCE_COLUMNS, predicted_serving, rejected=rejected_figures)
RUNS = SERVING._replace(rejected=rejected_run)  # of benchmark tools
KINDS = {
    "llm_inference": SERVING._replace(cross=cross_inference, stored_cross=stored_cross),
    "llm_training": TableKind(
        TRAINING_COLUMNS,
        predicted_training,
        cross_training,
        stored_cross_training,
        rejected=rejected_memory,
    ),
    "llama.cpp": TableKind(
        MATRIX_COLUMNS, predicted_serving, rows=serving_rows, rejected=rejected_figures
    ),
    "phases": TableKind(
        PHASE_COLUMNS, predicted_serving, rows=phase_rows, rejected=rejected_figures
    ),
    "first_token": TableKind(
        FIRST_TOKEN_COLUMNS, predicted_serving, rows=first_token_rows, rejected=rejected_figures
    ),
    "scaling": TableKind(SCALING_COLUMNS, predicted_training, rows=scaling_rows),
    "fine-tuning": TableKind(
        FINE_TUNING_COLUMNS, predicted_training, rows=fine_tuning_rows, rejected=rejected_memory
    ),
    "pods": TableKind(POD_COLUMNS, predicted_training, rows=pod_rows),
    "mlperf_inference": TableKind(MLPERF_COLUMNS, predicted_submission),
    "vision": TableKind(networks.VISION_COLUMNS, networks.predicted_vision),
    "vision_training": TableKind(
        networks.VISION_TRAINING_COLUMNS, networks.predicted_vision_training
    ),
    "encoder": TableKind(networks.ENCODER_COLUMNS, networks.predicted_encoder),
    "diffusion": TableKind(networks.DIFFUSION_COLUMNS, networks.predicted_diffusion),
}


def validate_file(
    path: Path, *, cross: bool = False, columns: Sequence[str] = ()
) -> ValidationReport:
    """The errors of the predictions for a measured table, or for what a benchmark tool wrote.

    `columns` say what others call them, and conditions that the file does not state.
    """
    text, where = read_text(path), str(path)
    written = table_in_json(text, where) if is_output(text) else csv_rows(text, source=where)
    if written is None:
        return _validate_runs(read_runs(text.encode(), where), columns, where=where)
    rows = renamed(written, columns, where=where)
    named = [row for row in rows if not is_unstated(row)]
    report = validate_rows(named, where=where, cross=cross, is_new=True)
    unstated = [
        (row.get("id") or str(at), f"accelerator: {row['accelerator']!r} names no one device")
        for at, row in enumerate(rows)
        if is_unstated(row)
    ]
    return replace(report, n_rows=len(rows), refused=(*report.refused, *unstated))


def _validate_runs(read: RunsRead, columns: Sequence[str], *, where: str) -> ValidationReport:
    """The errors for a tool's runs; what is given wins over names that its server was told."""
    given = split_count(dict(text.split(":=", 1) for text in columns if ":=" in text))
    check_given(given)
    rows, replaced = filled(read, given)
    rows = renamed(rows, [text for text in columns if ":=" not in text], where=where)
    stated = [{key: cell for key, cell in row.items() if cell} for row in rows]
    return replace(
        _report(read.tool, RUNS, stated, is_new=True), remarks=(*read.remarks, *replaced)
    )


def renamed(rows: Rows, columns: Sequence[str], *, where: str) -> list[Row]:
    """Rows with columns under our names: theirs=ours, or ours:=value where no row says it."""
    if not columns:
        return list(rows)
    fixed = dict(text.split(":=", 1) for text in columns if ":=" in text)
    names = dict(text.split("=", 1) for text in columns if ":=" not in text and "=" in text)
    known = set(rows[0]) if rows else set()
    problems = [
        Problem("--map", f"{text!r} is no map", "write column=meaning, or meaning:=value")
        for text in columns
        if "=" not in text
    ]
    problems += [
        Problem("--map", f"there is no column {name!r}", f"use one of {', '.join(sorted(known))}")
        for name in names
        if name not in known
    ]
    if problems:
        raise InputError(where, problems)
    return [{**fixed, **{names.get(key, key): text for key, text in row.items()}} for row in rows]


def validate_package(kind: str = "llm_inference", *, cross: bool = False) -> ValidationReport:
    """The errors of the predictions for the package's own table of this kind."""
    report = validate_rows([dict(row) for row in read_rows(f"{kind}.csv")], where=kind)
    stored = KINDS[kind].stored_cross
    return replace(report, cross=stored()) if cross and stored else report


def validate_rows(
    rows: Rows, *, where: str, cross: bool = False, is_new: bool = False
) -> ValidationReport:
    """The errors of the predictions for rows already read; figures of new ones are checked."""
    name = table_kind(rows, where)
    kind = KINDS[name]
    report = _report(name, kind, rows, is_new=is_new)
    return replace(report, cross=kind.cross(rows)) if cross and kind.cross else report


def _report(name: str, kind: TableKind, rows: Rows, *, is_new: bool) -> ValidationReport:
    found = kind.rows(rows) if kind.rows else rows
    predicted, refused = predicted_rows(found, kind.predict, kind.rejected if is_new else None)
    return ValidationReport(
        kind=name,
        n_rows=len(rows),
        n_covered=len(predicted),
        metrics=errors_by_metric(predicted),
        by={group: _by_value(predicted, group) for group in GROUPS},
        rows=tuple(predicted),
        refused=tuple(refused),
    )


def predicted_rows(
    rows: Rows,
    predict: Callable[[Row], PredictedRow],
    rejected: Callable[[Row], Mapping[str, str]] | None = None,
) -> tuple[list[PredictedRow], list[tuple[str, str]]]:
    """The predictions of rows that name something known; other rows and figures with reasons."""
    found, refused = [], []
    for at, row in enumerate(rows):
        name = row.get("id") or row.get("submission_id") or str(at)
        try:
            wrong = rejected(_Conditions(row)) if rejected else {}
            found.append(replace(predict(_Conditions(without(row, wrong))), id=name))
            refused += [(name, why) for why in wrong.values()]
        except PlannerError as error:
            refused.append((name, str(error)))
    return found, refused


class _Conditions(dict[str, str]):
    """A row that says which column it lacks."""

    def __missing__(self, key: str) -> str:
        fix = f"--map COLUMN={key}, or --map {key}:=VALUE where all rows share it"
        raise InputError(self.get("id", "row"), [Problem(key, "there is no such column", fix)])


def table_kind(rows: Rows, where: str) -> str:
    """The kind whose columns the table has; InputError where it is none."""
    present = set(rows[0]) if rows else set()
    for name, kind in KINDS.items():
        if kind.columns <= present:
            return name
    columns = {name: kind.columns for name, kind in KINDS.items()}
    likest = max(columns, key=lambda name: len(columns[name] & present) / len(columns[name]))
    missing = ", ".join(sorted(columns[likest] - present))
    others = "; ".join(f"{k}: {', '.join(sorted(c))}" for k, c in columns.items() if k != likest)
    problem = Problem(
        "columns",
        f"{len(present)} columns, of no known table; most like {likest}, which has also {missing}",
        f"add them, or give a table of another kind: {others}",
    )
    raise InputError(where, [problem])


def errors_by_metric(rows: Iterable[PredictedRow]) -> Errors:
    """The errors of every metric that some row measures."""
    ratios: dict[str, list[tuple[float, bool]]] = {}
    for row in rows:
        for metric, measured in row.measured.items():
            estimate = row.predicted.get(metric)
            if estimate is None or measured <= 0:
                continue
            inside = estimate.low <= measured <= estimate.high
            ratios.setdefault(metric, []).append((estimate.value / measured - 1.0, inside))
    return {
        metric: metric_errors(
            np.array([error for error, _ in found]), [inside for _, inside in found]
        )
        for metric, found in ratios.items()
    }


def _by_value(rows: Sequence[PredictedRow], group: str) -> dict[str, Errors]:
    found: dict[str, list[PredictedRow]] = {}
    for row in rows:
        found.setdefault(row.groups.get(group, ""), []).append(row)
    return {value: errors_by_metric(some) for value, some in sorted(found.items())}


def predictions_csv(report: ValidationReport, *, is_whole: bool = False) -> str:
    """Every prediction as `id, METRIC, METRIC_low, METRIC_high …, tier`."""
    metrics = sorted(
        {
            metric
            for row in report.rows
            for metric in row.predicted
            if is_whole or metric in row.measured
        }
    )
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")  # ids may hold commas
    parts = ("", "_low", "_high")
    table.writerow(["id", *(f"{m}{part}" for m in metrics for part in parts), "tier"])
    for row in report.rows:
        cells = [row.id]
        for metric in metrics:
            estimate = row.predicted.get(metric)
            values = () if estimate is None else (estimate.value, estimate.low, estimate.high)
            cells += [f"{value:.6g}" for value in values] or ["", "", ""]
        tier = next((e.tier for e in row.predicted.values()), "")
        table.writerow([*cells, tier])
    return text.getvalue()
