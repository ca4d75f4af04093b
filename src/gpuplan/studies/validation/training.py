"""Validation of training tables: a row to its prediction, a table to errors of held-out rows."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpuplan.calibration.residuals import metric_errors
from gpuplan.calibration.tables import read_constants
from gpuplan.calibration.training.constants import FILE
from gpuplan.calibration.training.rows import DEGREES, TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.calibration.validation import MetricErrors, PredictedRow
from gpuplan.errors import InputError, Problem
from gpuplan.performance.training.basis import peak_flop_per_s
from gpuplan.performance.training.step import published_flop
from gpuplan.studies.measured.notation import whole_text
from gpuplan.studies.training.calibration import (
    Key,
    accelerator_of,
    errors_by_case,
    is_covered,
    model_of,
    source_of,
    usable,
)
from gpuplan.studies.training.cases import case_of, cases_of
from gpuplan.studies.training.predict import forecast

TRAINING_COLUMNS = frozenset(
    {"accelerator", "n_accelerators", "model", "seq_len", "global_batch", "micro_batch"}
)
CONDITIONS = ("n_layers", "hidden", "heads", "vocab", "n_accelerators", "seq_len", "global_batch")
COUNTED = (*CONDITIONS, "micro_batch", *DEGREES, "lora_rank")
GROUP_COLUMNS = {
    "source": "source",
    "model": "model",
    "accelerator": "accelerator",
    "engine": "framework",
}
CROSS_SPLITS: dict[str, Key] = {
    "source": source_of,
    "model": model_of,
    "accelerator": accelerator_of,
}


def predicted_training(cells: Mapping[str, str]) -> PredictedRow:
    """One row of a training table beside its prediction."""
    case = case_of(TrainingRow(_counted(cells)), read_catalog())
    row, found, prediction = case.row, case.configuration, forecast(case)
    setup, step = found.setup, prediction.step
    tokens = (row.count("global_batch") or 0) * setup.sequence_tokens or step.tokens_per_step
    flop_frac = published_flop(found.model, setup) / peak_flop_per_s(
        found.accelerator, setup.execution.compute
    )
    rate = prediction.tokens_per_s_per_accelerator
    return PredictedRow(
        id=row.text("id"),
        groups={
            **{group: row.text(column) for group, column in GROUP_COLUMNS.items()},
            "regime": row.regime,
        },
        predicted={
            "step_s": prediction.step_s.scaled(tokens / step.tokens_per_step),
            "tokens_per_s_per_accelerator": rate,
            "mfu_pct": rate.scaled(100.0 * flop_frac),
        },
        measured=row.measured,
    )


def _counted(row: Mapping[str, str]) -> dict[str, str]:
    """The row with plain numbers; InputError where a condition is none: blank would be a guess."""
    plain, problems = dict(row), []
    for column in COUNTED:
        text = row.get(column) or ""
        count = whole_text(text)
        if count is None:
            problems.append(Problem(column, f"got {text!r}", "use a number, or leave it empty"))
        else:
            plain[column] = count
    if problems:
        raise InputError(row.get("id", "row"), problems)
    return plain


def cross_training(rows: Sequence[Mapping[str, str]]) -> dict[str, dict[str, MetricErrors]]:
    """The errors of step time of rows whose source, model or accelerator was held out."""
    cases, _ = cases_of([TrainingRow(row) for row in rows], read_catalog())
    used = usable(cases)
    regimes = np.array([case.row.regime for case in used])
    sources = np.array([source_of(case) for case in used])
    members = {
        "training step_s": np.ones(len(used), dtype=bool),
        **{f"{kind} step_s": regimes == kind for kind in ("pre-training", "fine-tuning")},
        **{f"{source} step_s": sources == source for source in sorted(set(sources.tolist()))},
    }
    found = {}
    for name, key in CROSS_SPLITS.items():
        log_errors = errors_by_case(used, key)
        inside = is_covered(used, key, log_errors)
        found[name] = {
            what: metric_errors(np.expm1(log_errors[chosen]), inside[chosen])
            for what, chosen in members.items()
            if chosen.any()
        }
    return found


def stored_cross_training() -> dict[str, dict[str, MetricErrors]]:
    """The errors of the package's own held-out rows, as computed when the fit was stored."""
    return {
        split: {what: MetricErrors(**figures) for what, figures in found.items()}
        for split, found in read_constants(FILE)["cross"].items()
    }
