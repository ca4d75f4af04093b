"""A described system, judged: what it is fed by, fits into, lacks, and what would balance it."""

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.result import Result
from gpuplan.domain.system.facility import ChecklistItem, FacilityPlan
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import (
    BalancedSystem,
    Bottleneck,
    CapacityPoint,
    CheckpointRate,
    DataDemand,
    DataTransfer,
    FabricPlan,
    HostLine,
    SpareNeed,
    TierChoice,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderAdvice:
    """How the data loader should be set up."""

    n_workers_per_accelerator: int  # one core each
    n_prefetch_batches: int  # of each accelerator
    pinned_bytes: float | None  # of host memory, in one server; None: no batch is described


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCheck:
    """One workload on the machines that are there."""

    name: str
    accelerator: str
    n_accelerators: int
    demand: DataDemand | None  # None: too little is said of its data
    bottlenecks: tuple[Bottleneck, ...]
    moved: DataTransfer | None = None
    checkpoints: tuple[CheckpointRate, ...] = ()
    storage: tuple[TierChoice, ...] = ()
    loader: LoaderAdvice | None = None  # None: too little is said of its data
    capacity: tuple[CapacityPoint, ...] = ()  # over the horizon

    @property
    def busy_frac(self) -> float:
        """As it stands: the first bottleneck's share."""
        return self.bottlenecks[0].busy_frac if self.bottlenecks else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSurroundings:
    """What stands around the accelerators."""

    facilities: tuple[FacilityPlan, ...] = ()
    fabrics: tuple[FabricPlan, ...] = ()
    hosts: tuple[tuple[str, tuple[HostLine, ...]], ...] = ()  # machine, its parts
    spares: tuple[SpareNeed, ...] = ()
    checklist: tuple[ChecklistItem, ...] = ()
    electricity_usd_per_j: Range | None = None  # None: no price is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One need: compute, memory, speed, storage, network or power."""

    name: str
    what: str  # what is counted
    unit: str
    n_demand: float | None  # None: nothing says what is demanded
    n_supply: float | None  # None: nothing says what is there

    @property
    def headroom_frac(self) -> float | None:
        """Share of the supply that is left; below zero it is short."""
        if self.n_demand is None or not self.n_supply:
            return None
        return 1.0 - self.n_demand / self.n_supply


def next_bottleneck(needs: tuple[Need, ...]) -> Need | None:
    """The need with the least headroom: it binds now, or will be the next to do so."""
    known = [one for one in needs if one.headroom_frac is not None]
    return min(known, key=lambda one: one.headroom_frac or 0.0, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemCheck(Result):
    """The judgement: an error anywhere rejects the system."""

    name: str
    works: tuple[WorkCheck, ...]
    around: SystemSurroundings
    balanced: tuple[BalancedSystem, ...]  # best first
    budget_usd: float | None  # that the balanced systems keep; None: no price is known
    findings: tuple[Finding, ...]
    assumptions: tuple[Assumption, ...]
    needs: tuple[Need, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Nothing is wrong enough to reject it."""
        return all(finding.severity != "error" for finding in self.findings)
