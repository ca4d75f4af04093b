"""A user's own benchmark runs, and what a refit to them changed.

Two measured runs side by side: what changed, and which versions changed with it.
"""

from collections.abc import Mapping
from typing import Literal

from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.calibration.validation import MetricErrors
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """One measured figure under the same conditions, before and after."""

    condition: str
    metric: str  # without measured_
    n_before: float
    n_after: float
    is_worse: bool  # beyond the tolerance, in the metric's own bad direction

    @property
    def change_frac(self) -> float:
        """After over before, less 1."""
        return self.n_after / self.n_before - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintChange:
    """A version or a device that is not the same in both runs."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison(Result):
    """The runs, paired by their conditions."""

    names: tuple[str, str]
    rows: tuple[MetricChange, ...]
    fingerprint: tuple[FingerprintChange, ...]
    unpaired: tuple[str, ...]  # conditions that only one of the runs has
    tolerance_frac: float

    @property
    def is_regression(self) -> bool:
        """Whether anything got worse beyond the tolerance."""
        return any(row.is_worse for row in self.rows)


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
