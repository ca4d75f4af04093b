"""A user's own benchmark runs, and what a refit to them changed."""

from collections.abc import Mapping
from typing import Literal

from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.calibration.validation import MetricErrors
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result

Verdict = Literal["better", "no better", "too few rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsRead:
    """Rows in the columns of measured tables, from one file of one tool."""

    tool: str
    rows: tuple[Mapping[str, str], ...]
    remarks: tuple[str, ...] = ()  # failed requests, other definitions, figures not used


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedConstant:
    """One number that the runs moved, where it applies, and by how much."""

    name: str
    label: str  # engine and accelerator, or a narrower group
    values: tuple[float, float]  # before and after, in the unit of the name

    @property
    def change_frac(self) -> float:
        """How far it moved."""
        return self.values[1] / self.values[0] - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationOutcome(Result):
    """A refit to a user's runs: errors are of rows held out of the refit."""

    calibration: InferenceCalibration
    verdict: Verdict
    n_rows: int
    n_conditions: int  # rows of equal conditions count once
    before: Mapping[str, MetricErrors]
    after: Mapping[str, MetricErrors]
    moved: tuple[MovedConstant, ...]
    rows: tuple[Mapping[str, str], ...]
    refused: tuple[tuple[str, str], ...] = ()  # id of a row and why it has no prediction
    remarks: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
