"""A plan with everything around it: machines by group, money by month, energy by place."""

from gpuplan.domain.hardware.software import SoftwareLayer
from gpuplan.domain.money.carbon import CarbonAccount, ShiftPlan
from gpuplan.domain.money.statement import Statement
from gpuplan.domain.money.worth import (
    BookYear,
    BreakEven,
    OwnershipCost,
    OwnOrBurst,
    TeamCost,
    TokenCosts,
)
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.result import Result
from gpuplan.domain.system.facility import ChecklistItem, FacilityPlan
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import (
    CheckpointRate,
    DataTransfer,
    FabricPlan,
    HostLine,
    SpareNeed,
    TierChoice,
)

OWN = ("existing", "owned")  # purchases whose machines are the user's


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerGroup:
    """Equal machines of one pool, paid for in one way."""

    workload: str
    server: str  # the seller's or the user's name of it
    accelerator: str
    purchase: str
    n_nodes: int  # at the peak
    n_accelerators_per_node: int
    paid_frac: float  # of all hours, at that number
    price_usd_per_node_h: float
    mean_w_per_node: float | None = None  # at the load that it carries; None: unknown
    region: str = ""
    cloud: str = ""
    spot_usd_per_useful_node_h: Range | None = None  # None: not spot, or interruptions unknown

    @property
    def is_own(self) -> bool:
        """Whether they are the user's machines, not a cloud's."""
        return self.purchase in OWN

    @property
    def n_accelerators(self) -> int:
        """In all machines."""
        return self.n_nodes * self.n_accelerators_per_node

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.n_nodes} x {self.server} for {self.workload}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDesign:
    """What stands around one group."""

    group: ServerGroup
    hosts: tuple[HostLine, ...] = ()
    storage: tuple[TierChoice, ...] = ()
    checkpoints: tuple[CheckpointRate, ...] = ()
    networks: tuple[FabricPlan, ...] = ()
    facility: FacilityPlan | None = None
    spares: SpareNeed | None = None
    moved: DataTransfer | None = None
    carbon: CarbonAccount | None = None  # over the plan's span; None: its place is not known
    findings: tuple[Finding, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    shift: ShiftPlan | None = None  # of a day, where work may wait and carbon by hour is known


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCost:
    """What one pool costs by what it does, over the plan's span."""

    workload: str
    total_cents: int
    n_paid_accelerator_hours: float
    usd_per_paid_h: float | None  # of an accelerator; None: no hours are paid for
    usd_per_used_h: float | None  # None: how busy it is, is not known
    tokens: TokenCosts | None = None  # None: it serves none
    services: tuple[tuple[str, int], ...] = ()  # who sells the same tokens, for how many cents
    run_usd: float | None = None  # of a training run
    energy_j_per_token: float | None = None  # of the machines, over all tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnInstead:
    """Machines that are rented, bought instead."""

    group: ServerGroup
    own_usd_per_accelerator_h: Range  # of all hours, used or not
    rent_usd_per_accelerator_h: float
    best: OwnOrBurst


@dataclass(frozen=True, slots=True, kw_only=True)
class RentOrOwn:
    """One group rented, owned, or both, over the life of an owned machine."""

    group: ServerGroup
    rent_from: str
    used_frac: float  # of the hours of a machine's life in which it is needed
    options: tuple[OwnershipCost, ...]  # all rented, own and rent, all owned
    break_even: BreakEven
    shares: tuple[float, ...]  # of all hours, for the chart
    curves: tuple[tuple[str, tuple[float, ...]], ...]  # way, present cost in USD at each share
    book: tuple[BookYear, ...]  # of all owned, at the end of each year
    npv_usd: tuple[Range, ...]  # of each way, cheap to dear
    begins: str  # the day of the plan: month 0

    def calendar(self, month: int) -> str:
        """The year and month so many months after the beginning."""
        year, first = (int(part) for part in self.begins.split("-")[:2])
        months = 12 * year + first - 1 + month
        return f"{months // 12}-{months % 12 + 1:02d}"

    @property
    def best(self) -> OwnershipCost:
        """The least present cost; of equals the one that owns less."""
        return min(self.options, key=lambda option: (option.npv_usd, option.n_owned))


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """The plan's bill by month, and what it means."""

    statement: Statement
    npv_usd: float
    plan_total_cents: int  # as the plan says it
    pools: tuple[PoolCost, ...]
    own_instead: tuple[OwnInstead, ...] = ()
    rent_or_own: tuple[RentOrOwn, ...] = ()
    teams: tuple[TeamCost, ...] = ()  # empty: no workload names its team
    beside: tuple[tuple[str, Range], ...] = ()  # costs that the plan's bill does not hold

    @property
    def difference_cents(self) -> int:
        """Statement less plan: nothing but the rounding of its lines."""
        return self.statement.total_cents - self.plan_total_cents


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialLine:
    """One line of the bill of materials."""

    part: str  # server, accelerator, network, storage, spare server
    name: str
    n_units: int
    workload: str
    supply: str  # purchase option, and from whom
    usd: Range | None = None  # once; None: in the rent, or there already


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignedPlan(Result):
    """A plan with everything around it: servers, network, site, money by month, energy."""

    name: str
    groups: tuple[GroupDesign, ...]
    money: Money
    findings: tuple[Finding, ...]
    assumptions: tuple[Assumption, ...]
    checklist: tuple[ChecklistItem, ...] = ()
    materials: tuple[MaterialLine, ...] = ()
    software: tuple[tuple[str, tuple[SoftwareLayer, ...]], ...] = ()  # pool, its stack

    @property
    def is_ok(self) -> bool:
        """Nothing around the plan is wrong enough to reject it."""
        return all(finding.severity != "error" for finding in self.findings)
