"""The work to be done: serving, batch inference, training, or anything counted in samples."""

from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.demand import Arrivals, LoadStep, RequestShape, Slo

WorkloadKind = Literal[
    "online_inference", "batch_inference", "pretraining", "finetuning", "generic"
]
TrainingMethod = Literal["pretraining", "full", "lora", "qlora"]
CapacityMetric = Literal["output_tokens", "input_tokens", "requests", "samples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """The model as the user named or described it; the catalog finds the rest."""

    name: str | None  # catalog name, hub name, or path of a folder or config.json
    n_params: float | None = None  # given where there is no name
    n_active_params: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What the user knows about this workload on one accelerator; it overrides our estimate."""

    accelerator: str  # a catalog name, or the name of one of the user's offers
    metric: CapacityMetric | None  # of the rate below
    rate_per_s: Range | None  # within the SLO
    is_per_node: bool
    mfu_frac: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a model is spread over accelerators, where the user insists; None is left to us."""

    n_tensor: int | None = None
    n_pipeline: int | None = None
    n_expert: int | None = None
    n_context: int | None = None
    n_data: int | None = None
    sharding: str | None = None
    recompute: str | None = None
    n_accumulation_steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where the data lies."""

    kind: str
    bytes_per_s: float | None = None
    operations_per_s: float | None = None  # random reads
    network_bytes_per_s: float | None = None  # line rate between storage and host


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """What turns stored samples into tensors on the host."""

    n_cores: float | None = None  # usable, per node
    samples_per_s_per_core: float | None = None
    n_workers: int | None = None
    is_on_accelerator: bool = False  # decoding is done there


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCopy:
    """The way of a batch from host memory to the accelerator."""

    n_batch_samples: int
    sample_bytes: float  # as a tensor, after decoding
    is_pinned: bool
    is_overlapped: bool  # with compute: the longer of both counts, not the sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging:
    """Moving a dataset to where the work is."""

    dataset_bytes: float
    link_bytes_per_s: float  # line rate
    efficiency_frac: float
    back_bytes: float = 0.0  # results that come back, and pay egress


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What accumulates in storage; None is left to us."""

    dataset_growth_frac: float | None = None
    log_bytes_per_s: float | None = None  # of one accelerator
    artifacts_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """How samples reach the accelerator."""

    sample_bytes: float | None = None  # as stored
    samples_per_s_per_accelerator: float | None = None  # what the accelerator could take
    n_samples_per_file: float = 1.0  # 1: one file per sample
    cache_hit_frac: float = 0.0
    storage: Storage | None = None
    loader: Loader | None = None
    copy: DeviceCopy | None = None
    staging: Staging | None = None
    retention: Retention | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """How training state is kept; None is left to us."""

    state_bytes: float | None = None
    interval_s: float | None = None
    write_bytes_per_s: Range | None = None
    restart_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Requests that someone waits for."""

    arrivals: Arrivals
    request: RequestShape
    slo: Slo
    max_context_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Documents that only have to be done in time."""

    docs_per_s: float | None  # a steady stream, as a mean
    n_docs: float | None  # or one heap
    deadline_s: float  # from arrival of a document, or for the heap
    request: RequestShape
    max_context_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A run over tokens or samples."""

    method: TrainingMethod
    n_tokens: float | None  # of one epoch
    n_samples: float | None  # of one epoch
    n_epochs: float
    sequence_tokens: int
    deadline_s: float | None = None
    global_batch_tokens: float | None = None
    accelerator_batch_tokens: float | None = None  # tokens of one accelerator in one step
    mfu_frac: Range | None = None
    lora_rank: int | None = None
    checkpoint: CheckpointPlan | None = None
    accelerator_mtbf_s: float | None = None  # of one accelerator, host and links included


@dataclass(frozen=True, slots=True, kw_only=True)
class Generic:
    """Any other work: counted in accelerators, or in samples of known cost."""

    n_accelerators: float | None = None  # busy at the peak
    samples_per_s: float | None = None  # offered at the peak
    n_samples: float | None = None  # or one heap
    deadline_s: float | None = None
    flop_per_sample: float | None = None
    sample_activation_bytes: float | None = None  # read and written on the device
    is_training: bool = False
    steps: tuple[LoadStep, ...] = ()
    hourly_profile: tuple[float, ...] = ()


Work = Serving | Batch | Training | Generic


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBand:
    """The part of a workload's load that one of its fleets carries: above low, up to high."""

    of: str  # the workload
    low_requests_per_s: float
    high_requests_per_s: float | None  # None: all that is above
    is_owned: bool = False  # carried by nodes that are there already


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How often a run or batch job starts anew."""

    interval_s: float  # from the start of one to that of the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One piece of work with what the user demands of it."""

    name: str
    kind: WorkloadKind
    work: Work
    model: ModelRef | None
    precisions: tuple[str, ...]  # allowed; empty: as the checkpoint is published
    cache_precision: str | None  # None: as the engine chooses for the model
    priority: int  # higher goes first
    team: str | None = None
    capacities: tuple[Capacity, ...] = ()
    layout: Layout | None = None
    data_path: DataPath | None = None
    extent: LoadBand | Schedule | None = None  # None: the whole load of a service, or one run

    @property
    def band(self) -> LoadBand | None:
        """The part of a service's load that is meant; None: the whole."""
        return self.extent if isinstance(self.extent, LoadBand) else None

    @property
    def interval_s(self) -> float | None:
        """From the start of a run to that of the next; None where it is one."""
        return self.extent.interval_s if isinstance(self.extent, Schedule) else None

    @property
    def is_training(self) -> bool:
        """Whether it trains a model, rather than serving or processing."""
        run = self.work
        return isinstance(run, Training) or (isinstance(run, Generic) and run.is_training)

    @property
    def amount(self) -> float | None:
        """Documents or samples of a one-off job; None for services, streams and training."""
        run = self.work
        if isinstance(run, Batch):
            return run.n_docs
        is_one_off_batch = isinstance(run, Generic) and run.deadline_s is not None
        return run.n_samples if is_one_off_batch and isinstance(run, Generic) else None

    @property
    def has_end(self) -> bool:
        """Whether it is a run or a batch job: paid for its own hours, not for the horizon."""
        return isinstance(self.work, Training) or self.amount is not None

    @property
    def deadline_s(self) -> float | None:
        """From now until it has to be done; None where nobody said."""
        return None if isinstance(self.work, Serving) else self.work.deadline_s
