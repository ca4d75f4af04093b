"""Training forecasts: the columns of a training table in, its step and its whole run out."""

from collections.abc import Mapping

from gpuplan.calibration.residuals import Spread
from gpuplan.calibration.training.constants import (
    TrainingCalibration,
    constants_of,
    read_calibration,
    tier_of,
)
from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.provenance import Estimate, Tier
from gpuplan.domain.requests.requests import TrainingRun
from gpuplan.domain.training.run import RunForecast
from gpuplan.domain.training.time import CheckpointWrites, FailureRate, Goodput, TrainingForecast
from gpuplan.performance.training.goodput import goodput
from gpuplan.performance.training.run import checkpoint_bytes
from gpuplan.performance.training.step import training_step
from gpuplan.studies.measured.names import named_model
from gpuplan.studies.measured.training import shape_key
from gpuplan.studies.training.cases import Case, case_of, kind_of


def predict_training(
    fields: Mapping[str, str], *, calibration: TrainingCalibration | None = None
) -> TrainingForecast:
    """Step time, throughput and utilization with ranges, and what was assumed."""
    return forecast(case_of(TrainingRow(fields), read_catalog()), calibration)


def predict_run(run: TrainingRun) -> RunForecast:
    """The step with its range, the useful share of the clock, and the length of the run."""
    columns = dict(run.columns)
    model = named_model(columns["model"])
    return RunForecast(
        model=model,
        columns=run.columns,
        forecast=predict_training(columns),
        goodput=_goodput(run, model.n_params),
        n_tokens=run.n_tokens,
    )


def _goodput(run: TrainingRun, n_params: float) -> Goodput | None:
    if run.checkpoint_bytes_per_s is None:
        return None
    writes = CheckpointWrites(
        size_bytes=checkpoint_bytes(n_params), write_bytes_per_s=run.checkpoint_bytes_per_s
    )
    return goodput(FailureRate(mtbf_s=run.mtbf_s, restart_s=run.restart_s), writes)


def forecast(case: Case, calibration: TrainingCalibration | None = None) -> TrainingForecast:
    """The step of one case with the ranges of the calibration, and what was assumed."""
    used, found = calibration or read_calibration(), case.configuration
    constants = constants_of(
        used.fitted, found.labels, accelerator=found.accelerator, stack=found.stack
    )
    step = training_step(
        found.model, found.accelerator, found.setup, found.layout, found.fabric, constants
    )
    known = used.known(found.labels, shape_key(found.model), has_conditions=case.is_complete)
    spread, tier = used.spread(kind_of(case), known), tier_of(known)
    return TrainingForecast(
        step=step,
        step_s=_rising(step.step_s, spread, tier),
        tokens_per_s_per_accelerator=_falling(step.tokens_per_s_per_accelerator, spread, tier),
        mfu_frac=_falling(step.mfu_frac, spread, tier),
        assumptions=found.assumptions,
    )


def _rising(value: float, spread: Spread, tier: Tier) -> Estimate:
    return Estimate(value=value, low=value * spread.low, high=value * spread.high, tier=tier)


def _falling(value: float, spread: Spread, tier: Tier) -> Estimate:
    """A rate: a longer step is a lower rate."""
    return Estimate(value=value, low=value / spread.high, high=value / spread.low, tier=tier)
