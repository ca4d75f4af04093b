"""Two measured runs side by side: what changed, and which versions changed with it."""

from gpuplan.domain.noun import dataclass
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
