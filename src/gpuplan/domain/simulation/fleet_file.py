"""An autoscaled fleet as it is written down, before its engines are known, and a run of it."""

from dataclasses import field

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result
from gpuplan.domain.simulation.fleet import (
    AdmissionControl,
    Autoscaler,
    Clients,
    ColdStart,
    ElasticFleet,
    Failures,
    FleetOutcome,
    PoolSize,
    Restarts,
    Router,
    Service,
    Spot,
)
from gpuplan.domain.simulation.simulation import ReplicaRequest, Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequest:
    """A pool as written; None is what was left out."""

    name: str
    model: str | None = None
    on: str | None = None
    replica: ReplicaRequest = field(default_factory=ReplicaRequest)
    size: PoolSize = field(default_factory=PoolSize)
    start: ColdStart | None = None  # None: predicted
    admission: AdmissionControl = field(default_factory=AdmissionControl)
    scaler: Autoscaler | None = None
    failures: Failures | None = None
    spot: Spot | None = None
    restarts: Restarts | None = None
    drain_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRequest:
    """How keys and values travel."""

    link_bytes_per_s: float
    latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRequest:
    """A fleet as written."""

    pools: tuple[PoolRequest, ...]
    services: tuple[Service, ...] = ()
    shares_frac: tuple[float, ...] = ()  # of the requests, by service
    router: Router = field(default_factory=Router)
    clients: Clients = field(default_factory=Clients)
    link: LinkRequest | None = None
    first_hour: int = 0
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSimulation(Result):
    """A run of an autoscaled fleet: what it says as any run, and what became of the fleet."""

    simulation: Simulation
    fleet: ElasticFleet
    found: FleetOutcome
    n_accelerators: tuple[int, ...]  # of one replica, by pool
