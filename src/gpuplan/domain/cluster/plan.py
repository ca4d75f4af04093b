"""A planned cluster: nodes, policy and quotas at the least cost, and why these."""

from datetime import date
from pathlib import Path
from typing import Literal

from gpuplan.domain.cluster.answer import ClusterSimulation
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.result import Result

Target = Literal["wait", "service", "deadline", "unfit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlanRequest:
    """A cluster file, the jobs to plan for, and how sure the answer must be."""

    cluster_file: Path
    jobs_file: Path
    today: date  # against which the age of prices is judged
    accelerators: tuple[str, ...] = ()  # only these; empty: all of the file
    budget_usd_per_month: float | None = None  # None: as the file says
    n_draws: int = 20  # streams like the trace's that targets must be met in; 0: the trace alone
    min_probability_frac: float | None = None  # share of the draws; None: the usual one
    overlays: tuple[Path, ...] = ()
    store: Path | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedTarget:
    """A target that a fleet misses: what it reaches, and what was asked."""

    kind: Target
    who: str  # a team, services, or jobs
    wait_p90_s: float = 0.0
    target_p90_s: float = 0.0
    short_accelerator_s: float = 0.0  # that services reserve and do not get
    met_frac: float = 1.0  # of the deadlines
    asked_frac: float = 1.0
    n_jobs: int = 0  # that never start


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNodes:
    """Nodes of one kind in a plan, and what one costs."""

    accelerator: str
    n_nodes: int
    n_nodes_now: int
    n_accelerators_per_node: int
    node_usd_per_h: Range
    source: str  # of the price
    speed_ratio: float
    node_max_w: float | None  # None: not published

    @property
    def n_accelerators(self) -> int:
        """GPUs of the kind."""
        return self.n_nodes * self.n_accelerators_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow:
    """A fleet beside the plan: what it costs and which targets it misses on the trace."""

    kind: str  # what is different
    fleet: str
    policy: str
    quotas: str
    usd_per_month: float
    missed: tuple[MissedTarget, ...]
    tightest_team: str  # whose wait is closest to its target; empty: no wait targets
    tightest_ratio: float  # its p90 wait over the target
    met_frac: float | None = None  # of streams like the trace's; None: not tried
    often_missed: str = ""  # whose target most of the other streams miss


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRejection:
    """A kind of node or a policy that is not in the plan, why, and what would change that."""

    candidate: str
    reason: str
    relaxation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOdds:
    """How often streams like the trace's meet every target on the plan."""

    n_draws: int
    asked_frac: float
    met_frac: float | None  # None: nothing was drawn
    on_trace_usd_per_month: float | None  # of the fleet that the trace alone asks for


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan(Result):
    """How many of which nodes, which quotas and policy; without a plan, what stands in the way."""

    request: ClusterPlanRequest
    described: Cluster
    nodes: tuple[PlannedNodes, ...]  # of the plan; empty where there is none
    chosen: FleetRow | None
    simulation: ClusterSimulation | None  # of the chosen cluster, under the trace
    alternatives: tuple[FleetRow, ...]
    rejected: tuple[FleetRejection, ...]
    binding: tuple[FleetRow, ...]  # the plan with one node less of each kind
    relaxations: tuple[str, ...]  # smallest first; without a plan
    odds: PlanOdds
    assumptions: tuple[Assumption, ...]
