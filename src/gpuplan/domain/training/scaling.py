"""How a job's speed grows with the number of accelerators, and what stops it."""

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result
from gpuplan.domain.training.setup import Recompute, Sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLinks:
    """Links of one server."""

    n_node: int = 8
    adapters_bytes_per_s: float | None = None  # all of the node's, one direction; None: usual
    fabric: str = ""  # in words, as predict-training reads it: '3200 Gbit/s EFA per node'


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleLayout:
    """How the job is spread while accelerators are added."""

    sharding: Sharding = "zero3"
    is_hybrid: bool = False  # sharded inside a node, copied between nodes
    tp: int = 1
    allows_tp_across_nodes: bool = False  # it is seldom worth it: asked for, never assumed


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRequest:
    """A job whose share per accelerator stays the same while accelerators are added."""

    model: str
    accelerator: str
    counts: tuple[int, ...]
    micro_batch: int = 1
    sequence_tokens: int = 8192
    n_micro_batches: int = 1
    layout: ScaleLayout = ScaleLayout()
    recompute: Recompute = "full"
    links: NodeLinks = NodeLinks()
    mfu_frac: float | None = None  # None: the calibrated model says
    price_usd_per_h: float | None = None  # of one accelerator
    loader_samples_per_s: float | None = None  # of the whole job; None: data is always there


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePoint:
    """One number of accelerators."""

    n_accelerators: int
    step_s: float
    compute_s: float
    speedup_ratio: float  # against the smallest number
    efficiency_frac: float  # of the ideal speed-up
    cause: str  # what takes most of the loss
    causes_s: tuple[tuple[str, float], ...]
    usd_per_percent: float | None  # per hour, for one per cent of the first point's speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change that helps more than accelerators do."""

    what: str
    efficiency_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceGain:
    """How much shorter the step becomes with a tenth more of one resource."""

    resource: str  # FLOPs, HBM, NVLink, NIC, storage
    step_gain_frac: float
    worth_usd_per_month: float | None  # of accelerators not needed; None: no price is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What a sum of money buys, and how much faster the job becomes by it."""

    what: str  # accelerators, NICs, code
    buys: str
    speed_gain_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleCurve(Result):
    """The whole curve."""

    points: tuple[ScalePoint, ...]
    knee: int  # the last number whose doubling is still worth it
    states_bytes: float  # weights, gradients and optimizer, before sharding
    remedies: tuple[Remedy, ...]
    assumptions: tuple[Assumption, ...] = ()
    gains: tuple[ResourceGain, ...] = ()
    spends: tuple[Spend, ...] = ()

    @property
    def is_past_knee(self) -> bool:
        """Whether the largest number is more than is worth it."""
        return self.points[-1].n_accelerators > self.knee

    @property
    def communication_ratio(self) -> float:
        """Time outside computation over time in it, at the largest number."""
        last = self.points[-1]
        return (last.step_s - last.compute_s) / last.compute_s

    @property
    def serial_frac(self) -> float | None:
        """Share that does not speed up, by Amdahl's law [Amdahl1967]; None of a single number."""
        first, last = self.points[0], self.points[-1]
        n = last.n_accelerators / first.n_accelerators
        return (n / last.speedup_ratio - 1.0) / (n - 1.0) if n > 1 else None
