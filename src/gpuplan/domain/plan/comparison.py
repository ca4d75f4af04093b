"""What a plan was chosen from: every accelerator and precision as a row, the front, the risk."""

from collections.abc import Mapping

from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import PoolLayout, RunNeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """A training run or one-off job of a row."""

    wall_s: float
    total_usd: float  # of the whole run
    mfu_frac: float | None  # None: no training run
    fit_probability_frac: float | None = None  # in memory; None: no training run
    is_past_knee: bool = False
    needs: RunNeeds | None = None  # None: no training run


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvidence:
    """What a row rests on, or why it has no fleet."""

    is_eligible: bool  # may be the headline: as published or as asked for, and measured
    power_w: float | None  # most that its nodes draw at the wall; None: unknown
    tier: str  # of the latency model for this stack: fitted, estimated …
    price_source: str  # purchase option, cloud and offer
    note: str = ""  # quality of a lower precision, a stack that nobody measured
    reason: str = ""  # why there is no fleet; empty where there is one
    relaxation: str = ""  # the smallest change that would give one
    run: RunFigures | None = None  # None: a service
    engine: str = ""  # that serves, with its version; empty: no language model behind one


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """The best fleet of one accelerator at one precision, sized, simulated and billed."""

    workload: str
    accelerator: str
    precision: str
    layout: PoolLayout | None  # None: no fleet
    n_replicas: int  # reserve included
    n_accelerators: int  # paid for at the peak, whole nodes
    usd_per_month: float | None  # what a plan costs that is forced to this row
    usd_per_million_tokens: float | None  # output tokens at the offered load; None: none
    latency: Mapping[str, float]  # seconds by SLO: ttft_p95_s, tpot_p95_s …
    probability_frac: float | None  # that all SLOs are met; None: not sampled
    is_chosen: bool
    evidence: RowEvidence  # its keys stand among those of the row in documents


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoRow:
    """A fleet that no other beats in cost, latency, power and risk at once."""

    workload: str
    accelerator: str
    precision: str
    n_accelerators: int
    usd_per_month: float
    latency_frac: float  # of the tightest SLO that is used
    power_w: float | None
    risk_frac: float  # 1 - probability


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskFleet:
    """The cheapest fleet that meets all SLOs with at least this probability."""

    level_frac: float
    fleet: str  # empty: no fleet reaches it
    usd_per_month: float | None
    extra_usd_per_month: float | None  # above the plan
    probability_frac: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRisk:
    """How likely the plan meets all SLOs, what other odds cost, what a measurement is worth."""

    level_frac: float | None  # asked for; None: the plan is sized for the predicted speed
    probability_frac: float
    by_cause: Mapping[str, float]  # probability if this cause alone were uncertain
    fleets: tuple[RiskFleet, ...]  # the gamble, the plan, the safe one
    measurement_usd_per_month: float | None  # expected saving by measuring one replica first
    lines: tuple[str, ...]  # in words


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeRow:
    """One accelerator of a row: its specifications, and its work within the SLOs per $ and J."""

    workload: str
    accelerator: str
    precision: str
    unit: str  # of work: output tokens, or requests
    n_work_per_s: float  # that one accelerator carries within the SLOs
    n_work_per_usd: float | None  # at that rate; None: no price
    n_work_per_j: float | None  # at the plug at the planned peak; None: the draw is unknown
    usd_per_h: float | None
    memory_bytes: float
    memory_bytes_per_s: float
    peak_flop_per_s: float  # dense, 16 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarRow:
    """Accelerators that one workload takes in each hour of the first week, from Monday 00:00."""

    workload: str
    accelerator: str
    kind: str  # service, job
    accelerators: tuple[int, ...]  # 168


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Who takes how many accelerators when."""

    hours: tuple[int, ...] = ()  # of the week, 0 to 167; empty: nothing is planned by the hour
    rows: tuple[CalendarRow, ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageNeed:
    """What one server of a pool must hold, and the drives that it has."""

    workload: str
    parts_bytes: Mapping[str, float]  # weights, checkpoints, dataset, logs
    drives_bytes: float | None  # None: no server with this accelerator is known
    server: str = ""  # whose drives they are

    @property
    def needed_bytes(self) -> float:
        """All of it."""
        return sum(self.parts_bytes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkNeed:
    """What one server of a service sends at the peak, and what its NICs carry."""

    workload: str
    what: str
    sent_bytes_per_s: float
    nics_bytes_per_s: float | None  # None: the offer does not state it


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the plan was chosen from; its keys stand at the top of documents."""

    comparison: tuple[ComparisonRow, ...] = ()
    pareto: tuple[ParetoRow, ...] = ()
    risk: PlanRisk | None = None
    storage: tuple[StorageNeed, ...] = ()  # of one server of each pool
    network: tuple[NetworkNeed, ...] = ()  # of one server of each service
    trade: tuple[TradeRow, ...] = ()  # work per watt and dollar, by accelerator
    calendar: Calendar = Calendar()
    quality: tuple[str, ...] = ()  # what of the plan touches the quality of outputs
