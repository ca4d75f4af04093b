"""What was paid, beside what was planned."""

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ActualCost:
    """One allocation of a cost tool over its window."""

    name: str
    names: tuple[str, ...]  # by which a workload or team may know it: namespace, labels, …
    usd: float
    accelerator_s: float
    window_s: float | None  # None: the export does not say
    is_idle: bool = False  # paid for and allocated to nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """Planned and actual cost of one workload, team or remainder over the same window."""

    what: str
    team: str
    model: str
    planned_usd: float | None  # None: not in the plan
    actual_usd: float | None  # None: nothing was paid for it
    planned_accelerator_s: float | None = None
    actual_accelerator_s: float | None = None

    @property
    def difference_usd(self) -> float:
        """Actual less planned."""
        return (self.actual_usd or 0.0) - (self.planned_usd or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActualComparison(Result):
    """A plan held against what was paid."""

    name: str
    window_s: float
    rows: tuple[CostRow, ...]  # by workload, then what is not in the plan, then idle
    teams: tuple[CostRow, ...]
    assumptions: tuple[Assumption, ...] = ()

    @property
    def planned_usd(self) -> float:
        """Of all rows."""
        return sum(row.planned_usd or 0.0 for row in self.rows)

    @property
    def actual_usd(self) -> float:
        """Of all rows."""
        return sum(row.actual_usd or 0.0 for row in self.rows)
