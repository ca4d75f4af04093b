"""Training rows predicted and judged, in: rows of a table; out: predictions beside measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuplan.calibration.residuals import Score, Spread
from gpuplan.calibration.training_constants import (
    TrainingCalibration,
    constants_of,
    read_calibration,
    tier_of,
)
from gpuplan.calibration.training_rows import TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.catalog import Catalog
from gpuplan.domain.provenance import Estimate, Tier
from gpuplan.domain.training_time import TrainingForecast
from gpuplan.performance.training import published_flop, training_step
from gpuplan.performance.training_basis import peak_flop_per_s
from gpuplan.pipeline.training_cases import Case, cases_of
from gpuplan.pipeline.training_conditions import shape_key

METRICS = ("step_s", "tokens_per_s_per_accelerator", "mfu_pct")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowForecast:
    """One row with what was predicted for it."""

    row: TrainingRow
    predicted: Mapping[str, Estimate]  # by metric
    forecast: TrainingForecast


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingValidation:
    """All rows of a table."""

    n_rows: int
    forecasts: tuple[RowForecast, ...]
    refused: tuple[tuple[TrainingRow, str], ...]

    def metrics(self) -> dict[str, Score]:
        """Errors by metric."""
        return _scores(self.forecasts)

    def by(self, what: str) -> dict[str, dict[str, Score]]:
        """Errors by source, model, accelerator or framework, then by metric."""
        groups: dict[str, list[RowForecast]] = {}
        for found in self.forecasts:
            groups.setdefault(_group(found.row, what), []).append(found)
        return {name: _scores(members) for name, members in sorted(groups.items())}


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
    spread, tier = calibration.spread(labels, known), tier_of(known)
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


def _rising(value: float, spread: Spread, tier: Tier) -> Estimate:
    return Estimate(value=value, low=value * spread.low, high=value * spread.high, tier=tier)


def _falling(value: float, spread: Spread, tier: Tier) -> Estimate:
    """Rates: a longer step is a lower rate."""
    return Estimate(value=value, low=value / spread.high, high=value / spread.low, tier=tier)


def _scores(forecasts: Sequence[RowForecast]) -> dict[str, Score]:
    found = {}
    for metric in METRICS:
        pairs = [
            (one.predicted[metric], one.row.measured[metric])
            for one in forecasts
            if metric in one.row.measured
        ]
        if pairs:
            found[metric] = _score(pairs)
    return found


def _score(pairs: Sequence[tuple[Estimate, float]]) -> Score:
    errors = np.array([estimate.value / measured - 1.0 for estimate, measured in pairs])
    inside = [estimate.low <= measured <= estimate.high for estimate, measured in pairs]
    ape = np.abs(errors)
    return Score(
        n=len(pairs),
        median_ape=float(np.median(ape)),
        mape=float(np.mean(ape)),
        p90_ape=float(np.quantile(ape, 0.9)),
        bias=float(np.median(errors)),
        range_coverage=float(np.mean(inside)),
    )


def _group(row: TrainingRow, what: str) -> str:
    names = {
        "source": row.origin.source,
        "model": row.model.name,
        "accelerator": row.machine.accelerator,
        "framework": row.origin.framework,
        "engine": row.origin.framework,
        "regime": row.model.task or "training",
    }
    return names[what]
