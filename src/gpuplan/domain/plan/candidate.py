"""A deployment that could run a workload, and why one could not."""

from math import ceil
from typing import Literal

from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import EngineSettings, ServingLayout
from gpuplan.domain.money.rates import NodeKind
from gpuplan.domain.noun import dataclass

ShareKind = Literal["mig", "time_slice"]
# In the order in which they are tried: the first that fails is the reason.
Constraint = Literal[
    "policy",
    "software",
    "precision",
    "layout",
    "island",
    "memory",
    "context",
    "ttft",
    "tpot",
    "e2e",
    "deadline",
    "accelerators",
    "slo",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorShare:
    """A part of one accelerator: isolated (MIG), or in turns with others (time slice)."""

    kind: ShareKind
    name: str  # 3g.40gb, or 1/4
    n_per_accelerator: int  # parts of this kind on one accelerator
    compute_frac: float
    memory_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """How the steps of a training run are made; of a pool that serves, the adapters of one."""

    vp: int = 1  # model chunks of a pipeline stage
    micro_batch: int = 0  # samples at once
    global_batch: int = 0  # samples of one step
    recompute: str = ""  # activations that are computed again
    fabric: str = ""  # between servers, as predict-training reads it
    max_loras: int = 0  # of an engine: LoRA adapters in memory at once, and in one step; 0: none


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNeeds:
    """What a training run takes of one accelerator's memory and of one server's NICs."""

    peak_bytes: float
    usable_bytes: float
    sent_bytes_per_s: float  # between servers, averaged over a step
    nics_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShape:
    """How a training run makes its steps, and the servers that it was sized for."""

    sharding: str  # none, zero1, zero2, zero3 or hsdp, over data-parallel ranks
    framework: str
    steps: RunSteps
    n_per_node: int = 8

    def stands_on(self, node: NodeKind) -> bool:
        """Whether these are the servers."""
        return (node.n_accelerators, node.fabric) == (self.n_per_node, self.steps.fabric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way to run one workload: the smallest unit that works alone, a replica."""

    workload: str
    accelerator: AcceleratorId
    layout: ServingLayout  # of a replica, or of a whole run
    precision: str  # of the weights
    cache_precision: str = ""  # empty: keeps no cache
    engine: EngineChoice | None = None  # None: not a language model behind an engine
    settings: EngineSettings | None = None
    share: AcceleratorShare | None = None  # None: whole accelerators
    run: RunShape | None = None  # of training: how its steps are made; None: it serves
    offer: str = ""  # the user's own offer that capacity was given for; empty: any
    is_node: bool = False  # a replica is one whole node of that offer, whatever it carries
    is_quantized_below: bool = False  # narrower than published: the user's call on quality

    @property
    def n_slots(self) -> int:
        """LoRA adapters that its engine holds at once; 0: none are asked for."""
        lora = self.settings.lora if self.settings else None
        return lora.n_slots if lora else 0

    @property
    def n_accelerators(self) -> int:
        """Of one replica; 1 where it takes a share or a node."""
        return self.layout.n_accelerators

    def n_accelerators_for(self, n_replicas: int) -> int:
        """Whole accelerators (or nodes, where a replica is one) that so many replicas take."""
        if self.share is not None:
            return ceil(n_replicas / self.share.n_per_accelerator)
        return n_replicas * self.n_accelerators

    @property
    def spread(self) -> str:
        """What one replica takes: TP2, DP8 EP8, a fraction as 1/2 GPU, a MIG slice as 3g.40gb."""
        if self.share is None:
            return self.layout.name
        return self.share.name if self.share.kind == "mig" else f"{self.share.name} GPU"

    @property
    def name(self) -> str:
        """Short and unique among the candidates of a workload."""
        layout = self.layout
        ways = (("tp", layout.tp), ("pp", layout.pp), ("dp", layout.dp), ("ep", layout.ep))
        spread = [f"{what}{n}" for what, n in ways if n > 1 or what == "tp"]
        if layout.is_disaggregated:
            spread.insert(0, f"{layout.n_prefill}p{layout.n_decode}d")
        parts = [self.offer or str(self.accelerator), *spread, self.precision]
        if layout.network_bytes_per_s is not None:
            parts.append(f"over {layout.network_bytes_per_s * 8 / 1e9:g} Gbit/s")
        if self.cache_precision and self.cache_precision not in ("bf16", "fp16"):
            parts.append(f"kv-{self.cache_precision}")
        if self.share is not None:
            parts.append(self.share.name)
        if self.run is not None:
            steps = self.run.steps
            batch = f"{steps.global_batch}/{steps.micro_batch}"
            servers = f"x{self.run.n_per_node} {steps.fabric}"
            parts += [self.run.sharding, batch, steps.recompute, servers]
        if self.settings is not None:
            parts.append(f"b{self.settings.max_batch_tokens}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A candidate that cannot do it: the first limit that it breaks, and the least that helps."""

    candidate: Candidate
    constraint: Constraint
    reason: str  # weights need 141 GB, one accelerator has 80 GB
    relaxation: str  # what would help; empty: nothing that we know of
    gap_ratio: float | None = None  # what it takes over what is allowed, above 1; None: not told


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Every proposal, either kept or rejected."""

    accepted: tuple[Candidate, ...]
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLayout:
    """How one replica, or a run, is spread over accelerators and servers."""

    tp: int
    pp: int
    dp: int = 1  # attention replicas that share the experts; of a run, data parallelism
    ep: int = 1
    cp: int = 1
    sharding: str = ""  # of a run: how parameters and their states are spread over dp
    share: str = ""  # that a replica takes of one accelerator: 1/4, a MIG profile; empty: all
    n_servers_per_replica: int = 1
    network_bytes_per_s: float | None = None  # of a server, that a replica of several counts on
    # Of prefill/decode disaggregation: engines of one replica, or the one role of a pool.
    n_prefill: int = 0
    n_decode: int = 0
    role: str = ""  # prefill or decode; empty: the pool does both

    @property
    def spread(self) -> ServingLayout:
        """The same as a layout that the performance model knows."""
        return ServingLayout(
            tp=self.tp,
            pp=self.pp,
            dp=self.dp,
            ep=self.ep,
            cp=self.cp,
            network_bytes_per_s=self.network_bytes_per_s,
            n_prefill=self.n_prefill,
            n_decode=self.n_decode,
        )
