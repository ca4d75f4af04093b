"""Predictions against measurements: errors as fractions, by metric and by group."""

from collections.abc import Mapping

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricErrors:
    """Errors of one metric over some rows."""

    n: int
    median_ape: float
    mape: float
    p90_ape: float
    bias: float  # median of signed errors
    range_coverage: float  # share of measurements inside the 80 % range


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRow:
    """One row of a measured table beside its predictions, metric by metric."""

    id: str
    groups: Mapping[str, str]  # regime, accelerator, model, source, engine …
    predicted: Mapping[str, Estimate]
    measured: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport(Result):
    """How a table's measurements compare with predictions."""

    kind: str  # of table
    n_rows: int
    n_covered: int
    metrics: Mapping[str, MetricErrors]
    by: Mapping[str, Mapping[str, Mapping[str, MetricErrors]]]
    rows: tuple[PredictedRow, ...]
    refused: tuple[tuple[str, str], ...] = ()  # id and reason
    cross: Mapping[str, Mapping[str, MetricErrors]] | None = None  # by split, "regime metric"
    remarks: tuple[str, ...] = ()  # how a tool's file was read
