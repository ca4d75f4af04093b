"""One training configuration, in: the columns of a training table as text; out: its forecast."""

from collections.abc import Mapping, Sequence

from gpuplan.calibration.training.constants import TrainingCalibration, read_calibration
from gpuplan.calibration.training.rows import TrainingRow, row_of, shipped_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.training.time import TrainingForecast
from gpuplan.studies.training.calibration import calibrate
from gpuplan.studies.training.cases import case_of, cases_of
from gpuplan.studies.training.forecast import forecast_row


def predict_training(
    fields: Mapping[str, str], *, calibration: TrainingCalibration | None = None
) -> TrainingForecast:
    """Step time, throughput and utilization with ranges, and what was assumed."""
    case = case_of(row_of(fields), read_catalog())
    return forecast_row(case, calibration or read_calibration()).forecast


def recalibrate(rows: Sequence[TrainingRow]) -> TrainingCalibration:
    """The fit anew, with the user's own runs beside the shipped ones."""
    cases, _ = cases_of([*shipped_rows(), *rows], read_catalog())
    return calibrate(cases)
