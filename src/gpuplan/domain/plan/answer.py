"""A plan as chosen, checked and explained: one shape in memory, in JSON and in plan.yaml."""

from collections.abc import Mapping
from typing import Any

from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.bill import PlanBill, PlanCostLine
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.comparison import Decision
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseLine:
    """Equal nodes paid for in one way."""

    purchase: str  # on_demand, reserved, spot, owned, buy …
    offer: str  # the cloud's or the user's name of the machine
    cloud: str
    region: str
    n_nodes: int  # at the peak
    n_accelerators_per_node: int
    paid_frac: float  # of all hours, at that number of nodes
    price_usd_per_node_h: Estimate
    usd_per_month: float
    price_date: str  # empty: the user's own price
    price_source: str
    mean_w_per_node: float | None = None  # at the plug, at the load it carries; None: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """How busy a pool is, and how busy it may be while its SLOs are met."""

    peak_frac: float | None  # of the paid capacity, in the busiest hour
    mean_frac: float | None  # over all paid hours
    safe_frac: float | None  # highest load at which this very pool still meets its SLOs
    remark: str  # whether the usual band of 70 to 90 % is right for it
    load_frac: float = 1.0  # of the workload's load at the peak that its router sends here


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPool:
    """The accelerators of one workload."""

    workload: str
    accelerator: str
    n_accelerators: int  # paid for at the peak, whole nodes
    n_replicas: int
    layout: PoolLayout  # its keys stand among those of the pool in documents
    precision: str
    source: str  # how they are paid for, in one line
    n_spare_replicas: int  # of the replicas, for failures
    engine: str  # that serves, or the framework that trains
    steps: RunSteps = RunSteps()  # of a run; its keys stand among those of the pool, too
    purchases: tuple[PurchaseLine, ...]
    use: PoolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class SloResult:
    """One promised figure and what the replay gave."""

    workload: str
    what: str  # ttft p95, deadline …
    limit_s: float
    reached_s: Estimate | None  # None: capacity was given by the user, nothing was replayed
    is_kept: bool
    # Upper end of the run's 90 % confidence interval, from ten batches; None: nothing was run.
    bound_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SloResults:
    """All of them."""

    is_kept: bool
    promises: tuple[SloResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A day or a week of one workload on its planned fleet, hour by hour, without spares."""

    workload: str
    n_requests: int
    n_hours: int  # of the load that it stands for: 24 or 168
    run_s: float  # that was run of each hour; more requests would say little more
    n_replicas_least: int  # in any hour
    n_replicas_most: int
    kept_frac: float  # of all requests: within the SLO that has least to spare
    worst_hour: int  # the hour in which fewest were, from 0
    worst_kept_frac: float
    broken_hours: tuple[int, ...]  # out of SLO beyond chance, or short where the whole is short
    mean_use_frac: float  # of what the running replicas could ever do
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """A limit that the user set, and how much of it the plan takes."""

    name: str
    used: str
    limit: str
    used_frac: float
    is_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPlan:
    """What to get, what it costs, draws and keeps."""

    pools: tuple[PlannedPool, ...]
    cost_usd_per_month: Estimate
    power_w: Estimate | None  # at the wall, at the peak; low is the mean draw; None: unknown
    slo: SloResults
    bill: PlanBill
    limits: tuple[LimitUse, ...]
    energy_j_per_month: float | None
    carbon_kg_per_month: float | None
    replays: tuple[Replay, ...] = ()  # of services that were simulated

    @property
    def cost_lines(self) -> tuple[PlanCostLine, ...]:
        """The bill by cause, by the month."""
        return self.bill.cost_lines

    @property
    def once_usd(self) -> float:
        """Purchase and porting."""
        return self.bill.once_usd

    @property
    def total_usd(self) -> float:
        """The whole bill, in the money of its day."""
        return self.bill.total_usd

    @property
    def span_s(self) -> float:
        """The horizon of a service; a run from start to end."""
        return self.bill.span_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLoad:
    """What one workload asks for; arrivals times residence is what is in flight."""

    workload: str
    kind: str
    model: str
    peak_requests_per_s: float | None
    mean_requests_per_s: float | None
    residence_s: float | None
    n_in_flight: float | None
    lines: tuple[str, ...]  # how it was derived, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another fleet that would do."""

    kind: str  # next cheapest, mixed fleet, reserved, less energy …
    fleet: str
    usd_per_month: float
    extra_usd_per_month: float  # above the chosen plan; below zero it is cheaper
    power_w: float = 0.0  # 0: not known
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A candidate that was left out: its first failed constraint, and the least that helps."""

    candidate: str
    workload: str
    constraint: str
    reason: str
    relaxation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """The answer to "why not that one?"."""

    question: str
    fleet: str
    answer: str
    extra_usd_per_month: float | None  # None: it cannot run at any price


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """Where another choice takes over."""

    what: str  # load, utilization, price …
    at: str
    then: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    """The chosen fleet under one growth: now, at the end, and over the whole horizon."""

    workload: str
    name: str  # low, mid or high
    per_month_frac: float
    load_ratio: float  # of the last period's peak to today's
    first_fleet: str
    last_fleet: str
    first_usd_per_month: float
    last_usd_per_month: float
    mean_usd_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why this plan and no other."""

    why: tuple[str, ...] = ()
    why_not: tuple[WhyNot, ...] = ()
    binding: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()  # where nothing is feasible: limits that clash, and by how much
    crossovers: tuple[Crossover, ...] = ()
    next_spend: tuple[str, ...] = ()  # what the next 10,000 USD buy best
    naive: tuple[WhyNot, ...] = ()  # what simpler reasoning would have bought
    growth: tuple[GrowthRow, ...] = ()  # low, middle and high, where demand grows
    largest: str = ""  # where the largest load was asked for: what it is, and why no more
    question: str = ""  # that words asked: enough, duration, speed, cost or choice


@dataclass(frozen=True, slots=True, kw_only=True)
class TornadoBar:
    """How far one uncertain input alone moves the monthly cost."""

    what: str
    span: str  # from … to, in the input's own unit
    low_usd_per_month: float
    high_usd_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScenario:
    """A named movement of prices: what the plan then costs, and what would then be chosen."""

    name: str
    usd_per_month: float
    best_fleet: str
    best_usd_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretRow:
    """One fleet over all samples."""

    fleet: str
    mean_usd_per_month: float
    p95_regret_usd_per_month: float
    kept_frac: float  # of the samples in which its SLOs are met


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """What happens when inputs are not what was assumed."""

    n_samples: int
    seed: int
    cost_usd_per_month: Estimate
    kept_frac: float  # of the samples in which every promise holds
    least_regret: str  # the fleet with the least regret in 95 of 100 samples
    rows: tuple[RegretRow, ...]
    tornado: tuple[TornadoBar, ...]
    prices: tuple[PriceScenario, ...]
    inputs: tuple[str, ...]  # what was varied, and how far


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line of a chart; units stand in the names of its axes."""

    chart: str
    name: str
    x_name: str
    y_name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProof:
    """How far the choice can be from the best one, and how often the loop tightened."""

    objective: str
    bill_usd: float  # over the horizon
    bound_usd: float  # no plan can cost less
    gap_frac: float
    n_rounds: int  # of solving and replaying
    status: str
    certificate: tuple[Check, ...] = ()  # by an independent checker; at the top of documents


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProvenance:
    """Everything that is needed to make the same plan again."""

    package_version: str
    catalog_sha256: str
    scenario_sha256: str
    seed: int
    as_of: str  # the day against which the age of prices is judged
    scenario: Mapping[str, Any]  # as written


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Result):
    """What the planner says; without a plan it says what stands in the way."""

    name: str
    plan: ChosenPlan | None
    alternatives: tuple[Alternative, ...]
    rejected: tuple[Rejected, ...]
    assumptions: tuple[Assumption, ...]
    load: tuple[PlannedLoad, ...]
    explanation: Explanation
    uncertainty: Uncertainty | None
    charts: tuple[Curve, ...]
    proof: PlanProof | None
    provenance: PlanProvenance
    decision: Decision = Decision()  # its keys stand at the top of documents

    @property
    def feasible(self) -> bool:
        """Whether there is a plan."""
        return self.plan is not None

    @property
    def gap_frac(self) -> float | None:
        """Proven distance from the best plan, or None without a plan."""
        return self.proof.gap_frac if self.proof else None
