"""Calibration to a site: a user's benchmark outputs in, the package's constants moved out."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from gpuplan.calibration.inference.site import (
    measured_here,
    moves,
    user_document,
)
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.runs.detect import read_runs
from gpuplan.calibration.runs.fields import COLUMNS, Row
from gpuplan.calibration.runs.given import assumptions, check_given, split_count, with_given
from gpuplan.catalog.update.store import write_whole
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.calibration.runs import CalibrationOutcome, Verdict
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.errors import CatalogError, InputError, Problem
from gpuplan.performance.kernels.regimes import sequence_bytes
from gpuplan.performance.memory.layouts import layout_problems
from gpuplan.studies.inference.user_calibration import file_content
from gpuplan.studies.measured.mlperf_rules import MLPERF_TOKENS
from gpuplan.studies.validation.fit_inference import Study, study
from gpuplan.studies.validation.inference_table import InferenceTable, read_table
from gpuplan.studies.validation.report import errors_by_metric
from gpuplan.studies.validation.site_fit import (
    LEAST_CONDITIONS,
    Refit,
    Site,
    conditions,
    held_out_rows,
    own_figures,
    own_misses,
    pooled_ape,
    predicted,
    refit,
    refitted,
    site_of,
    widened,
)

BETTER_RATIO = 0.95  # a smaller gain is inside the noise of repeated runs
MOST_FILES = 1000
MOST_ROWS = 5000


def calibrate(
    paths: Sequence[Path],
    *,
    given: Mapping[str, str] | None = None,
    package: InferenceCalibration | None = None,
) -> CalibrationOutcome:
    """The constants moved to these runs, with the errors of held-out runs before and after."""
    known = package or inference_calibration()
    rows, remarks = read_files(paths, given or {})
    of = _study(rows)
    site = site_of(of, known)
    found = refit(site, np.ones(len(of.observed.row), dtype=bool))
    version = f"{known.version}+user-{_fingerprint(of.table.rows)}"
    before = [predicted(of, i, known) for i in range(len(of.table.rows))]
    verdict, after, moved = _judged(site, found, before, version=version)
    return CalibrationOutcome(
        calibration=moved,
        verdict=verdict,
        n_rows=len(of.table.rows),
        n_conditions=len(set(conditions(of))),
        before=errors_by_metric(before),
        after=errors_by_metric(after),
        moved=moves(known.constants, moved.constants, of.table.labels),
        rows=tuple(of.table.rows),
        refused=tuple(of.table.refused),
        remarks=(*remarks, *_odd_layouts(of), *_outliers(of, found)),
        assumptions=assumptions([dict(row) for row in of.table.rows]),
    )


def _judged(
    site: Site, found: Refit, before: Sequence[PredictedRow], *, version: str
) -> tuple[Verdict, list[PredictedRow], InferenceCalibration]:
    """The verdict of held-out rows, those rows, and the calibration with ranges to match."""
    of, moved = site.of, refitted(site, found, version=version)
    own = [run for of_row in own_figures(site) for run in of_row]
    if len(set(conditions(of))) < LEAST_CONDITIONS:
        return "too few rows", [], measured_here(moved, own)
    after = held_out_rows(site, found)
    missed = own_misses(of, after, site.package)
    after = widened(of, after, missed)
    moved = measured_here(moved, own, [miss for row in missed for miss in row])
    is_better = pooled_ape(after) < BETTER_RATIO * pooled_ape(before)
    return "better" if is_better else "no better", after, moved


def _outliers(of: Study, found: Refit) -> list[str]:
    """The figures that the refit does not use, one sentence each."""
    remarks = []
    for at in np.flatnonzero(found.outliers).tolist():
        name = of.table.rows[of.observed.row[at]].get("id", "")
        ratio = math.exp(-found.fit.residual[at])
        remarks.append(
            f"{name}: {of.observed.metric[at]} is {ratio:.2g} times what the other runs predict; "
            "not used, check whether that run was disturbed"
        )
    return remarks


def read_files(paths: Sequence[Path], given: Mapping[str, str]) -> tuple[list[Row], list[str]]:
    """Rows of all files with what the user gave beside them; every fault at once."""
    given = split_count(given)
    check_given(given)
    if not paths or len(paths) > MOST_FILES:
        what, fix = f"{len(paths)} files", f"give 1 to {MOST_FILES} files of benchmark output"
        raise InputError("calibrate", [Problem("files", what, fix)])
    rows: list[Row] = []
    remarks: list[str] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            read = read_runs(file_content(path), str(path))
            filled, replaced = with_given(read, given, where=str(path), lengths_known=MLPERF_TOKENS)
        except InputError as error:
            problems += [
                Problem(f"{error.source} {p.where}", p.what, p.fix) for p in error.problems
            ]
            continue
        rows += filled
        remarks += [*read.remarks, *replaced]
    if len(rows) > MOST_ROWS:
        problems.append(Problem("rows", f"{len(rows)}", f"give at most {MOST_ROWS}"))
    if problems:
        raise InputError("calibrate", problems)
    return rows, remarks


def _study(rows: Sequence[Row]) -> Study:
    """The rows that have a prediction, ready for fits, and the others with the reason."""
    table = read_table(rows, is_new=True)
    reasons = {i: reason for i in range(len(table.rows)) if (reason := _obstacle(table, i))}
    usable = table.without(reasons)
    if not usable.rows:
        fix = "give --model and --on as the catalog names them"
        texts = dict.fromkeys(" ".join(reason.split())[:200] for _, reason in usable.refused)
        raise InputError("calibrate", [Problem("rows", text, fix) for text in texts][:10])
    return study(usable)


def _obstacle(table: InferenceTable, i: int) -> str:
    """Why a run has no prediction though its names are known; empty where it has one."""
    setup = table.setups[i]
    tokens = setup.load.input_tokens + setup.load.output_tokens
    if sequence_bytes(table.works[i], tokens) <= 0:
        return f"{setup.model.name} keeps no KV cache between tokens: it does not generate"
    found = re.search(r"\bngl=(\d{1,6})\b", table.rows[i].get("layout_note", ""))
    n_layers = setup.model.main.n_layers
    if found is not None and int(found[1]) < n_layers:
        return f"only {found[1]} of {n_layers} layers were on the accelerator"
    return ""


def _odd_layouts(of: Study) -> list[str]:
    """Layouts that our rules refuse: the run shows that its engine found a way, or a slip."""
    found: dict[str, str] = {}
    for row, setup in zip(of.table.rows, of.table.setups, strict=True):
        for problem in layout_problems(setup.model, setup.storage, setup.layout):
            line = f"{problem.where} {problem.what}; the run is used, check its conditions"
            found.setdefault(line, f"{row.get('id', '')}: {line}")
    return list(found.values())


def _fingerprint(rows: Sequence[Mapping[str, str]]) -> str:
    text = json.dumps([dict(row) for row in rows], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def write_calibration(
    outcome: CalibrationOutcome, path: Path, *, package: InferenceCalibration | None = None
) -> None:
    """The refit as a file that predictions can load; whole or not at all."""
    figures = {
        "verdict": outcome.verdict,
        "n_rows": outcome.n_rows,
        "n_conditions": outcome.n_conditions,
        "before": {metric: asdict(errors) for metric, errors in outcome.before.items()},
        "after_left_out": {metric: asdict(errors) for metric, errors in outcome.after.items()},
    }
    document = user_document(
        package or inference_calibration(),
        outcome.calibration,
        rows=[{name: row.get(name, "") for name in COLUMNS} for row in outcome.rows],
        figures=figures,
    )
    content = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    try:
        write_whole(path, content.encode())
    except CatalogError as error:
        raise InputError(
            "calibrate", [Problem("--out", p.what, p.fix) for p in error.problems]
        ) from error
