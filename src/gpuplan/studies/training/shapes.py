"""A training job, the servers it may run on, and the layouts that are worth a try."""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.layers import Experts
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.scenario.workload import Layout
from gpuplan.domain.training.setup import ParallelLayout, Recompute, Schedule, TrainingSetup

LONG_TOKENS = 16_384  # from here on sequences are worth splitting over context parallelism
MICRO_BATCHES = (1, 2, 4, 8, 16)
TENSOR = (1, 2, 4, 8)
STAGES = (1, 2, 4, 8, 16, 32)
EXPERT = (1, 2, 4, 8, 16, 32, 64)
NO_LAYOUT = Layout()
# What each kind of software shards by; pipelines go with the first of Megatron alone.
SHARDINGS = {
    "megatron": ("zero1", "zero3", "hsdp"),
    "fsdp": ("zero3", "hsdp"),
    "xla": ("zero3", "hsdp"),
    "finetune": ("none", "zero3"),
}
RECOMPUTE: dict[str, tuple[Recompute, ...]] = {"fsdp": ("none", "alternate", "full")}
RECOMPUTE_WORDS = {"alternate": "selective"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """What is trained, whatever runs it."""

    model: Model
    columns: tuple[tuple[str, str], ...]  # that name the model in a training table
    task: str
    precision: str
    sequence_tokens: int
    batch_samples: float  # wanted in one step
    samples_per_accelerator: float | None = None  # or in one step of each accelerator
    batch_slack_frac: float = 0.05  # that the batch may move to be dealt out evenly
    lora_rank: int = 16
    requested: Layout = NO_LAYOUT

    def n_samples(self, n_accelerators: int) -> float:
        """Samples of one step on so many accelerators."""
        each = self.samples_per_accelerator
        return self.batch_samples if each is None else max(1.0, each * n_accelerators)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKind:
    """Equal servers and what joins them, as `predict-training` is told."""

    accelerator: Accelerator
    n_per_node: int
    fabric: str = ""  # empty: the maker's reference server


class Family(NamedTuple):
    """Layouts that differ in tensor parallelism alone."""

    sharding: str
    pp: int = 1
    cp: int = 1
    ep: int = 1


class Trial(NamedTuple):
    """A layout that fits, and its step."""

    layout: ParallelLayout
    setup: TrainingSetup
    step_s: float

    @property
    def n_samples(self) -> int:
        """Samples of one step."""
        return self.setup.micro_batch * self.setup.n_micro_batches * self.layout.dp

    @property
    def s_per_sample(self) -> float:
        """Seconds of one sample: what layouts with slightly different batches are compared by."""
        return self.step_s / self.n_samples


def with_chunks(layout: ParallelLayout, vp: int) -> ParallelLayout:
    """The layout with so many model chunks on each stage."""
    schedule: Schedule = "interleaved" if vp > 1 else "1f1b"
    return replace(layout, n_virtual=vp, schedule=schedule)


class LayoutOptions:
    """The degrees of parallelism, shardings and recomputations that a job may take."""

    def __init__(self, job: TrainingTask, server: ServerKind, stack: str) -> None:
        self.job, self.server, self.stack = job, server, stack

    def shardings(self, n: int) -> tuple[str, ...]:
        """How the states of so many ranks may be spread."""
        requested = self.job.requested.sharding
        if requested is not None:
            return ("zero3" if requested == "fsdp" else requested,)
        if n == 1:
            return ("none",)
        kinds = SHARDINGS[self.stack]
        is_far = n > self.server.n_per_node
        return tuple(kind for kind in kinds if is_far or kind != "hsdp")

    def stages(self, sharding: str) -> tuple[int, ...]:
        """Numbers of pipeline stages."""
        requested = self.job.requested.n_pipeline
        if requested is not None:
            return (requested,)
        is_piped = self.stack == "megatron" and sharding in ("zero1", "none")
        return STAGES if is_piped else (1,)

    def chunks(self, pp: int) -> tuple[int, ...]:
        """Plain, and as many chunks of a stage as divide the layers, with or without the tables."""
        n_layers = self.job.model.main.n_layers
        most = n_layers // pp if pp > 1 else 1
        slots = (n_layers, n_layers + 2)
        even = [v for v in range(2, most + 1) if any(n % (pp * v) == 0 for n in slots)]
        return (1, even[-1]) if even else (1,)

    @cached_property
    def context(self) -> tuple[int, ...]:
        """Degrees of context parallelism: long sequences alone are split."""
        requested = self.job.requested.n_context
        if requested is not None:
            return (requested,)
        is_split = self.stack != "finetune" and self.job.sequence_tokens >= LONG_TOKENS
        return (1, 2, 4, 8) if is_split else (1,)

    def experts(self) -> tuple[int, ...]:
        """Degrees of expert parallelism that divide the experts."""
        requested = self.job.requested.n_expert
        if requested is not None:
            return (requested,)
        feeds = [group.feed_forward for group in self.job.model.main.groups]
        counts = {feed.n_experts for feed in feeds if isinstance(feed, Experts)}
        if not counts or self.stack == "finetune":
            return (1,)
        return tuple(ep for ep in EXPERT if all(n % ep == 0 for n in counts))

    @cached_property
    def tensor(self) -> tuple[int, ...]:
        """Degrees of tensor parallelism that stay inside a server."""
        requested = self.job.requested.n_tensor
        if requested is not None:
            return (requested,)
        if self.stack == "finetune":
            return (1,)
        return tuple(tp for tp in TENSOR if self.server.n_per_node % tp == 0)

    @cached_property
    def recomputes(self) -> tuple[Recompute, ...]:
        """What may be recomputed, the cheapest in time first."""
        requested, stack = self.job.requested.recompute, self.stack
        if requested is None:
            return RECOMPUTE.get(stack, ("none", "full"))
        is_alternate = requested == "selective" and stack in RECOMPUTE
        return ("alternate",) if is_alternate else (requested,)  # type: ignore[return-value]
