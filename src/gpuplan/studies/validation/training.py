"""Validation of training tables: a row to its prediction, a table to errors of held-out rows."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpuplan.calibration.residuals import metric_errors
from gpuplan.calibration.tables import read_constants
from gpuplan.calibration.training.constants import FILE
from gpuplan.calibration.training.rows import DEGREES, TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.calibration.validation import MetricErrors, PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.errors import InputError, PlannerError, Problem
from gpuplan.performance.memory.training.frameworks import PRACTICES
from gpuplan.performance.memory.training.setups import USUAL_FRAMEWORK
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
from gpuplan.studies.training.fit import configuration_fit
from gpuplan.studies.training.predict import RECOMPUTE_WORDS, forecast
from gpuplan.units import GIB

TRAINING_COLUMNS = frozenset(
    {"accelerator", "n_accelerators", "model", "seq_len", "global_batch", "micro_batch"}
)
CONDITIONS = ("n_layers", "hidden", "heads", "vocab", "n_accelerators", "seq_len", "global_batch")
COUNTED = (*CONDITIONS, "micro_batch", *DEGREES, "lora_rank")
MEMORY, MEMORY_CONDITIONS = "measured_memory_gib", ("seq_len", "micro_batch")
TASKS = {
    "": "pretrain",
    "pre-training": "pretrain",
    "pretraining": "pretrain",
    "sft": "full",
}  # as the memory model calls them
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
    case = case_of(_known(TrainingRow(_counted(cells))), read_catalog())
    row, found, prediction = case.row, case.configuration, forecast(case)
    setup, step = found.setup, prediction.step
    tokens = (row.count("global_batch") or 0) * setup.sequence_tokens or step.tokens_per_step
    flop_frac = published_flop(found.model, setup) / peak_flop_per_s(
        found.accelerator, setup.execution.compute
    )
    rate = prediction.tokens_per_s_per_accelerator
    memory_gib = row.number(MEMORY)
    memory = {} if memory_gib is None else {"memory_gib": peak_gib(row)}
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
            **memory,
        },
        measured=row.measured | ({} if memory_gib is None else {"memory_gib": memory_gib}),
    )


def peak_gib(row: TrainingRow) -> Estimate:
    """The most memory that the fullest accelerator of the row needs, as its framework is used."""
    framework, task = row.text("framework"), row.lower("task")
    practice = PRACTICES.get(framework.lower())
    cells = dict(row.cells)
    if practice is not None and not row.text("recompute"):
        word = practice.execution.recompute
        cells["recompute"] = RECOMPUTE_WORDS.get(word, word)
    found = case_of(TrainingRow(cells), read_catalog()).configuration
    fit = configuration_fit(found, task=TASKS.get(task, task), framework=framework)
    return fit.peak.scaled(1.0 / GIB)


def rejected_memory(cells: Mapping[str, str]) -> dict[str, str]:
    """The memory of a row that does not state what decides it, with the reason."""
    row = TrainingRow(_counted(cells))
    if row.number(MEMORY) is None:
        return {}
    missing = [column for column in MEMORY_CONDITIONS if row.count(column) is None]
    if missing:
        return {"memory_gib": f"memory_gib: the row does not state {' and '.join(missing)}"}
    try:
        peak_gib(row)
    except PlannerError as error:
        return {"memory_gib": f"memory_gib: {error}"}
    return {}


def _known(row: TrainingRow) -> TrainingRow:
    """The row; InputError where it trains by a method that is not modelled."""
    task = row.lower("task")
    if task and TASKS.get(task, task) not in USUAL_FRAMEWORK:
        fix = f"leave it; known are {', '.join(USUAL_FRAMEWORK)}"
        raise InputError(row.name, [Problem("task", f"{row.text('task')!r} is not modelled", fix)])
    return row


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
