"""Validate tables of LLM training: rows -> predictions; rows -> errors of what is left out."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.residuals import Floats, Spread
from gpuplan.calibration.tables import read_constants
from gpuplan.calibration.training.constants import (
    FILE,
    TrainingCalibration,
    constants_of,
    read_calibration,
    tier_of,
)
from gpuplan.calibration.training.rows import TrainingRow, regime_of, row_of
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.calibration.validation import MetricErrors, PredictedRow
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Estimate, Tier
from gpuplan.domain.training.time import TrainingForecast
from gpuplan.errors import InputError, Problem
from gpuplan.performance.training.basis import peak_flop_per_s
from gpuplan.performance.training.step import published_flop, training_step
from gpuplan.studies.measured.numbers import whole_text
from gpuplan.studies.measured.training import shape_key
from gpuplan.studies.training.calibration import (
    Key,
    accelerator_of,
    cross,
    in_order,
    is_covered,
    kind_of,
    model_of,
    source_of,
    usable,
)
from gpuplan.studies.training.cases import Case, cases_of

TRAINING_COLUMNS = frozenset(
    {"accelerator", "n_accelerators", "model", "seq_len", "global_batch", "micro_batch"}
)
COUNTED = ("n_layers", "hidden", "heads", "vocab", "n_accelerators", "seq_len", "global_batch",
           "micro_batch", "tp", "pp", "vp", "cp", "ep", "dp", "lora_rank")  # fmt: skip
CROSS_SPLITS: dict[str, Key] = {
    "source": source_of, "model": model_of, "accelerator": accelerator_of,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForecast:
    """One row with what was predicted for it."""

    row: TrainingRow
    predicted: Mapping[str, Estimate]  # by metric
    forecast: TrainingForecast


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingValidation:
    """All rows of a table: predicted, or told why not."""

    n_rows: int
    forecasts: tuple[RowForecast, ...]
    refused: tuple[tuple[TrainingRow, str], ...]


def training_rows(
    rows: Sequence[Mapping[str, str]],
) -> tuple[list[PredictedRow], list[tuple[str, str]]]:
    """Predictions of all rows that name something known, and the others with the reason."""
    read, unread = [], []
    for row in rows:
        try:
            read.append(row_of(_counted(row)))
        except InputError as error:
            unread.append((row.get("id", ""), str(error)))
    found = validate_rows(read)
    predicted = [
        PredictedRow(
            id=one.row.origin.id,
            groups=groups_of(one.row),
            predicted=one.predicted,
            measured=one.row.measured,
        )
        for one in found.forecasts
    ]
    return predicted, [*unread, *((row.origin.id, reason) for row, reason in found.refused)]


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
    """Errors of step time of rows whose source, model or accelerator a fit has not seen."""
    cases, _ = cases_of([row_of(row) for row in rows], read_catalog())
    used = usable(cases)
    found = {}
    for name, key in CROSS_SPLITS.items():
        errors = in_order(used, key, cross(used, key))
        inside = is_covered(used, key, errors)
        members = {"training step_s": np.ones(len(used), dtype=bool)}
        for kind in ("pre-training", "fine-tuning"):
            members[f"{kind} step_s"] = np.array([regime_of(c.row) == kind for c in used])
        for source in sorted({source_of(case) for case in used}):
            members[f"{source} step_s"] = np.array([source_of(case) == source for case in used])
        found[name] = {
            what: _figures(errors[chosen], inside=inside[chosen])
            for what, chosen in members.items()
            if chosen.any()
        }
    return found


def stored_cross_training() -> dict[str, dict[str, MetricErrors]]:
    """Errors of the package's own rows left out, as computed when the fit was stored."""
    stored = read_constants(FILE)["cross"]
    return {
        split: {what: MetricErrors(**figures) for what, figures in found.items()}
        for split, found in stored.items()
    }


def validate_rows(
    rows: Sequence[TrainingRow],
    *,
    calibration: TrainingCalibration | None = None,
    catalog: Catalog | None = None,
) -> TrainingValidation:
    """Every row predicted; a row whose model or accelerator is unknown is told with its reason."""
    cases, refused = cases_of(rows, catalog or read_catalog())
    used = calibration or read_calibration()
    return TrainingValidation(
        n_rows=len(rows),
        forecasts=tuple(forecast_row(case, used) for case in cases),
        refused=tuple(refused),
    )


def forecast_row(case: Case, calibration: TrainingCalibration) -> RowForecast:
    """Step time, throughput and utilization of one row, with ranges."""
    found = case.configuration
    labels = found.labels
    constants = constants_of(
        calibration.fitted, labels, accelerator=found.accelerator, stack=found.stack
    )
    step = training_step(
        found.model, found.accelerator, found.setup, found.layout, found.fabric, constants
    )
    known = calibration.known(labels, shape_key(found.model), has_conditions=case.is_complete)
    spread, tier = calibration.spread(kind_of(case), known), tier_of(known)
    batch = case.row.run.global_batch
    tokens = (batch or 0) * found.setup.sequence_tokens or step.tokens_per_step
    peak = peak_flop_per_s(found.accelerator, found.setup.execution.compute)
    mfu = step.tokens_per_s_per_accelerator * published_flop(found.model, found.setup) / peak
    predicted = {
        "step_s": _rising(step.step_s * tokens / step.tokens_per_step, spread, tier),
        "tokens_per_s_per_accelerator": _falling(step.tokens_per_s_per_accelerator, spread, tier),
        "mfu_pct": _falling(100.0 * mfu, spread, tier),
    }
    forecast = TrainingForecast(
        step=step,
        step_s=_rising(step.step_s, spread, tier),
        tokens_per_s_per_accelerator=predicted["tokens_per_s_per_accelerator"],
        mfu_frac=_falling(step.mfu_frac, spread, tier),
        assumptions=found.assumptions,
    )
    return RowForecast(row=case.row, predicted=predicted, forecast=forecast)


def groups_of(row: TrainingRow) -> dict[str, str]:
    """What errors are grouped by."""
    return {
        "source": row.origin.source,
        "model": row.model.name,
        "accelerator": row.machine.accelerator,
        "engine": row.origin.framework,
        "regime": regime_of(row),
    }


def _rising(value: float, spread: Spread, tier: Tier) -> Estimate:
    return Estimate(value=value, low=value * spread.low, high=value * spread.high, tier=tier)


def _falling(value: float, spread: Spread, tier: Tier) -> Estimate:
    """Rates: a longer step is a lower rate."""
    return Estimate(value=value, low=value / spread.high, high=value / spread.low, tier=tier)


def _figures(log_errors: Floats, *, inside: NDArray[np.bool_]) -> MetricErrors:
    """Errors of some rows, and how many of them their ranges held."""
    errors = np.expm1(log_errors)
    size = np.abs(errors)
    return MetricErrors(
        n=len(size),
        median_ape=float(np.median(size)),
        mape=float(size.mean()),
        p90_ape=float(np.quantile(size, 0.9)),
        bias=float(np.median(errors)),
        range_coverage=float(inside.mean()),
    )
