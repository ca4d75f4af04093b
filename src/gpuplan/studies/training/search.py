"""The best layout of a training job on so many accelerators of one kind of server.

In: a job and the servers it would run on. Out: parallelism, sharding, micro-batch and activation
recomputation whose step is the shortest of those that fit. Time and memory are those of
`predict-training` and `fit-training`; the columns of what is found repeat it there.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

from gpuplan.calibration.training.constants import constants_of, read_calibration
from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.layers import Experts
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.scenario.workload import Layout
from gpuplan.domain.training.setup import (
    ParallelLayout,
    Recompute,
    Schedule,
    Sharding,
    TrainingSetup,
)
from gpuplan.domain.training.time import TrainingConstants
from gpuplan.performance.memory.training.check import training_problems
from gpuplan.performance.memory.training.peak import training_memory
from gpuplan.performance.memory.training.setups import usual_framework
from gpuplan.performance.training.basis import step_basis
from gpuplan.performance.training.step import step_parts
from gpuplan.studies.measured.training import Configuration, configuration_of
from gpuplan.studies.training.fit import memory_setup

LONG_TOKENS = 16_384  # from here on sequences are worth splitting over context parallelism
MICRO_BATCHES = (1, 2, 4, 8, 16)
TENSOR = (1, 2, 4, 8)
STAGES = (1, 2, 4, 8, 16, 32)
EXPERT = (1, 2, 4, 8, 16, 32, 64)
N_POLISHED = 2  # of the best layouts, whose neighbours are tried as well
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
    lora_rank: int = 16
    asked: Layout = NO_LAYOUT

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


class LayoutSearch:
    """Layouts of one job on one kind of server, number by number."""

    def __init__(self, job: TrainingTask, server: ServerKind) -> None:
        self.job, self.server = job, server
        self.framework = usual_framework(job.task, server.accelerator.vendor)
        row = TrainingRow(self._columns({"n_accelerators": "1", "recompute": "none"}))
        self.base: Configuration = configuration_of(row, read_catalog(), model=job.model)
        self.memory = memory_setup(self.base, task=job.task, framework=self.framework)
        self._found: dict[int, Trial | None] = {}

    @cached_property
    def constants(self) -> TrainingConstants:
        """What the step rests on: one software on one accelerator."""
        base = self.base
        return constants_of(
            read_calibration().fitted, base.labels, accelerator=base.accelerator, stack=base.stack
        )

    def best(self, n: int) -> Trial | None:
        """The shortest step on so many accelerators; None where nothing fits or divides."""
        if n not in self._found:
            self._found[n] = self._searched(n, is_tight=False) or self._searched(n, is_tight=True)
        return self._found[n]

    def _searched(self, n: int, *, is_tight: bool) -> Trial | None:
        """The best of all, then of its neighbours: other chunks and micro-batches."""
        trials = sorted(self._trials(n, is_tight=is_tight), key=lambda trial: trial.s_per_sample)
        near = [
            trial
            for best in trials[:N_POLISHED]
            if best.layout.pp > 1
            for trial in self._neighbours(best, n=n, is_tight=is_tight)
        ]
        return min((*trials[:1], *near), key=lambda trial: trial.s_per_sample, default=None)

    def _neighbours(self, trial: Trial, *, n: int, is_tight: bool) -> Iterator[Trial]:
        recompute = trial.setup.execution.recompute
        for vp in self._chunks(trial.layout.pp):
            layout = with_chunks(trial.layout, vp)
            for micro in MICRO_BATCHES[:3]:
                if not self._fits(layout, micro, recompute, n=n, is_tight=is_tight):
                    break
                yield self._trial(layout, micro, recompute, n=n)

    def ideal_s_per_sample(self) -> float:
        """Accelerator-seconds of a sample without links, bubbles or recomputation: a bound."""
        ep = max(self._experts(), default=1)
        layout = ParallelLayout(ep=ep)
        return min(
            self._timed(layout, self._setup(layout, micro, "none", n_samples=micro)).s_per_sample
            for micro in (MICRO_BATCHES[0], MICRO_BATCHES[-1])
        )

    def columns(self, trial: Trial) -> dict[str, str]:
        """The run as `predict-training` takes it."""
        layout, setup = trial.layout, trial.setup
        recompute = setup.execution.recompute
        return self._columns(
            {
                "n_accelerators": str(layout.n_accelerators),
                "global_batch": str(trial.n_samples),
                "micro_batch": str(setup.micro_batch),
                **{name: str(getattr(layout, name)) for name in ("tp", "pp", "cp", "ep")},
                "vp": str(layout.n_virtual),
                "sharding": "hsdp" if layout.n_shard is not None else layout.sharding,
                "recompute": RECOMPUTE_WORDS.get(recompute, recompute),
            }
        )

    def _columns(self, run: dict[str, str]) -> dict[str, str]:
        job = self.job
        return {
            "id": "plan",
            **dict(job.columns),
            "accelerator": str(self.server.accelerator.id),
            "seq_len": str(job.sequence_tokens),
            "precision": job.precision,
            "framework": self.framework,
            "task": job.task,
            "fabric": self.server.fabric,
            "devices_per_node": str(self.server.n_per_node),
            "lora_rank": str(job.lora_rank),
            "lora_targets": "all",
            **run,
        }

    def _trials(self, n: int, *, is_tight: bool) -> Iterator[Trial]:
        for sharding, cp, ep in product(self._shardings(n), self._context, self._experts()):
            for pp in self._stages(sharding):
                found = [
                    *self._in_family(n, Family(sharding, pp, cp, ep), is_tight=is_tight),
                ]
                yield from found
                # A plain data-parallel rank has room: more stages would only add bubbles.
                if any(t.layout.tp == 1 and self._is_leanest(t.setup) for t in found):
                    break

    def _is_leanest(self, setup: TrainingSetup) -> bool:
        return setup.execution.recompute == self._recomputes[0]

    def _in_family(self, n: int, family: Family, *, is_tight: bool) -> Iterator[Trial]:
        """For each recomputation the least tensor parallelism that fits: more only costs links."""
        left = list(self._recomputes)
        for tp in self._tensor:
            layout = self._layout(n, tp, family)
            if layout is None or not self._has_room(layout):
                continue
            for recompute in tuple(left):
                found = [*self._scheduled(layout, recompute, n=n, is_tight=is_tight)]
                if found:
                    left.remove(recompute)
                    yield from found
            if self._recomputes[0] not in left:
                return

    def _scheduled(
        self, layout: ParallelLayout, recompute: Recompute, *, n: int, is_tight: bool
    ) -> Iterator[Trial]:
        """Interleaved and plain: a plain schedule holds no more than an interleaved one."""
        for vp in reversed(self._chunks(layout.pp)):
            chunked = with_chunks(layout, vp)
            micro = self._micro_batch(chunked, recompute, n=n, is_tight=is_tight)
            if micro:
                yield self._trial(chunked, micro, recompute, n=n)
                if vp > 1:
                    yield self._trial(with_chunks(layout, 1), micro, recompute, n=n)
                return

    def _shardings(self, n: int) -> tuple[str, ...]:
        asked = self.job.asked.sharding
        if asked is not None:
            return ("zero3" if asked == "fsdp" else asked,)
        if n == 1:
            return ("none",)
        kinds = SHARDINGS[self.base.stack.name]
        is_far = n > self.server.n_per_node
        return tuple(kind for kind in kinds if is_far or kind != "hsdp")

    def _has_room(self, layout: ParallelLayout) -> bool:
        """Whether the layers' weights and states alone fit: cheap, and never wrongly false."""
        dense, expert = self._layer_params
        split = layout.tp * layout.pp
        states, ways = self.memory.states, layout.n_shards
        if self.memory.adapter is not None:
            each = self.memory.adapter.base.stored_bytes if self.memory.adapter.base else 2.0
            held = (dense + expert / layout.ep) * each
            held /= ways if layout.sharding == "zero3" else 1
        else:
            kept = states.weight_bytes_per_param + states.gradient_bytes_per_param
            rest = states.master_bytes_per_param + states.optimizer_bytes_per_param
            whole = kept / ways if layout.sharding == "zero3" else kept
            held = (dense + expert / layout.ep) * (whole + rest / ways)
        return held / split <= self.server.accelerator.memory.visible_bytes

    @cached_property
    def _layer_params(self) -> tuple[float, float]:
        """Matrix parameters of all layers, without and of routed experts."""
        expert = 0.0
        for group in self.job.model.main.groups:
            feed = group.feed_forward
            if isinstance(feed, Experts):
                expert += group.n_layers * feed.n_experts * feed.n_expert_matrix_params
        total = sum(group.n_params for group in self.job.model.main.groups)
        return total - expert, expert

    def _stages(self, sharding: str) -> tuple[int, ...]:
        asked = self.job.asked.n_pipeline
        if asked is not None:
            return (asked,)
        is_piped = self.base.stack.name == "megatron" and sharding in ("zero1", "none")
        return STAGES if is_piped else (1,)

    def _chunks(self, pp: int) -> tuple[int, ...]:
        """Plain, and as many chunks of a stage as divide the layers, with or without the tables."""
        n_layers = self.job.model.main.n_layers
        most = n_layers // pp if pp > 1 else 1
        slots = (n_layers, n_layers + 2)
        even = [v for v in range(2, most + 1) if any(n % (pp * v) == 0 for n in slots)]
        return (1, even[-1]) if even else (1,)

    @cached_property
    def _context(self) -> tuple[int, ...]:
        asked = self.job.asked.n_context
        if asked is not None:
            return (asked,)
        is_split = self.base.stack.name != "finetune" and self.job.sequence_tokens >= LONG_TOKENS
        return (1, 2, 4, 8) if is_split else (1,)

    def _experts(self) -> tuple[int, ...]:
        asked = self.job.asked.n_expert
        if asked is not None:
            return (asked,)
        feeds = [group.feed_forward for group in self.job.model.main.groups]
        counts = {feed.n_experts for feed in feeds if isinstance(feed, Experts)}
        if not counts or self.base.stack.name == "finetune":
            return (1,)
        return tuple(ep for ep in EXPERT if all(n % ep == 0 for n in counts))

    @cached_property
    def _tensor(self) -> tuple[int, ...]:
        asked = self.job.asked.n_tensor
        if asked is not None:
            return (asked,)
        if self.base.stack.name == "finetune":
            return (1,)
        return tuple(tp for tp in TENSOR if self.server.n_per_node % tp == 0)

    @cached_property
    def _recomputes(self) -> tuple[Recompute, ...]:
        asked, stack = self.job.asked.recompute, self.base.stack.name
        if asked is None:
            return RECOMPUTE.get(stack, ("none", "full"))
        is_alternate = asked == "selective" and stack in RECOMPUTE
        return ("alternate",) if is_alternate else (asked,)  # type: ignore[return-value]

    def _layout(self, n: int, tp: int, family: Family) -> ParallelLayout | None:
        """The layout, or None where it does not divide."""
        dp, left = divmod(n, tp * family.pp * family.cp)
        wanted = self.job.asked.n_data
        if left or dp < 1 or dp > self.job.n_samples(n) or (wanted is not None and dp != wanted):
            return None
        is_hybrid = family.sharding == "hsdp"
        n_near = min(dp * family.cp, max(1, self.server.n_per_node // tp))
        sharding: Sharding = "zero3" if is_hybrid else family.sharding  # type: ignore[assignment]
        layout = ParallelLayout(
            tp=tp,
            pp=family.pp,
            cp=family.cp,
            ep=family.ep,
            dp=dp,
            sharding=sharding,
            n_shard=n_near if is_hybrid else None,
            has_sequence_parallel=self.base.stack.has_sequence_parallel and tp > 1,
        )
        return None if training_problems(self.job.model, self.memory, layout) else layout

    def _micro_batch(
        self, layout: ParallelLayout, recompute: Recompute, *, n: int, is_tight: bool
    ) -> int:
        """The largest micro-batch that fits, of one sample on pipelines; 0 where none does."""
        per_rank = self.job.n_samples(n) / layout.dp
        fitting = 0
        for micro in MICRO_BATCHES if layout.pp == 1 else MICRO_BATCHES[:1]:
            is_more = fitting and micro > per_rank
            if is_more or not self._fits(layout, micro, recompute, n=n, is_tight=is_tight):
                break
            fitting = micro
        return fitting

    def _fits(
        self, layout: ParallelLayout, micro: int, recompute: Recompute, *, n: int, is_tight: bool
    ) -> bool:
        step = self._setup(layout, micro, recompute, n_samples=self.job.n_samples(n))
        setup = replace(
            self.memory,
            micro_batch=micro,
            n_micro_batches=step.n_micro_batches,
            execution=replace(self.memory.execution, recompute=recompute),
        )
        found = training_memory(self.job.model, setup, layout)
        taken = found.least_bytes if is_tight else found.total_bytes
        return taken <= self.server.accelerator.memory.visible_bytes

    def _trial(self, layout: ParallelLayout, micro: int, recompute: Recompute, *, n: int) -> Trial:
        return self._timed(
            layout, self._setup(layout, micro, recompute, n_samples=self.job.n_samples(n))
        )

    def _setup(
        self, layout: ParallelLayout, micro: int, recompute: Recompute, *, n_samples: float
    ) -> TrainingSetup:
        per_rank = n_samples / layout.dp / micro
        base = self.base.setup
        return replace(
            base,
            micro_batch=micro,
            n_micro_batches=self.job.asked.n_accumulation_steps or max(1, round(per_rank)),
            execution=replace(base.execution, recompute=recompute),
        )

    def _timed(self, layout: ParallelLayout, setup: TrainingSetup) -> Trial:
        base = self.base
        basis = step_basis(
            base.model, base.accelerator, setup, layout=layout, fabric=base.fabric
        )
        return Trial(layout, setup, sum(step_parts(basis, self.constants)))
