"""A plan as something that can be started: pools with their commands, nodes and reasons."""

from typing import NamedTuple

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import EngineSettings, ServingLayout
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.answer import PlannedLoad, PlannedPool, SloResult
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.domain.scenario.terms import Team
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.system.facility import FacilityPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What an engine is started with, as the plan was simulated."""

    engine: EngineChoice
    settings: EngineSettings
    is_published_precision: bool  # the checkpoint holds the weights in the pool's precision
    cache_precision: str
    max_context_tokens: int | None  # None: as much as the model knows
    startup_s: float  # from the container's start to the first answer, the image on the node
    n_running: float | None  # requests in flight on one replica at the peak


class ReplicaShape(NamedTuple):
    """What the command of one replica names: the model, how it is spread, its precision."""

    model: str
    layout: PoolLayout | ServingLayout
    precision: str
    role: str = ""  # prefill or decode under disaggregation; empty: both


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """The machine that a pool stands on; what nobody publishes is None."""

    cloud: str  # empty: the user's own
    name: str
    region: str
    n_nodes: int
    n_accelerators: int
    n_vcpu: int | None = None
    ram_bytes: float | None = None
    is_spot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedPool:
    """A pool, its model and its machine."""

    name: str  # unique, as Kubernetes allows names
    pool: PlannedPool
    card: Accelerator
    node: NodeShape
    model: str  # empty: the plan knows no model by name
    load: PlannedLoad | None
    promises: tuple[SloResult, ...]
    n_replicas_least: int  # in the quietest hour, spares included
    served: ServedModel | None = None  # None: no language model behind an engine
    run: Training | None = None  # None: it is no training run
    team: str = ""

    @property
    def n_per_replica(self) -> int:
        """Accelerators of one replica, or of the run; 1 where it takes a share of one."""
        return self.pool.layout.spread.n_accelerators

    @property
    def shape(self) -> ReplicaShape:
        """One replica of the pool, as engines are started."""
        layout = self.pool.layout
        return ReplicaShape(self.model, layout, self.pool.precision, layout.role)

    @property
    def n_per_pod(self) -> int:
        """Accelerators of one replica on one server."""
        return self.n_per_replica // self.pool.layout.n_servers_per_replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """All pools of a plan, with what the files say of where they come from."""

    name: str
    origin: str  # the plan, its day and its facts, in one line
    pools: tuple[DeployedPool, ...]
    facilities: tuple[FacilityPlan, ...] = ()  # racks of servers on the user's site
    teams: tuple[Team, ...] = ()  # that share the fleet

    def beside(self, one: DeployedPool, role: str) -> DeployedPool | None:
        """The pool of the other role that serves the same workload."""
        mine = one.pool.workload
        found = (each for each in self.pools if each.pool.workload == mine)
        return next((each for each in found if each.pool.layout.role == role), None)

    @property
    def with_quota(self) -> tuple[Team, ...]:
        """Teams that have a quota."""
        return tuple(team for team in self.teams if team.n_accelerators_quota is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedFile:
    """One file for another tool."""

    path: str
    content: bytes
