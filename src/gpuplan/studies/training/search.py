"""The best layout of a training job on so many accelerators of one kind of server.

In: a job and the servers it would run on. Out: parallelism, sharding, micro-batch and activation
recomputation whose step is the shortest of those that fit. Time and memory are those of
`predict-training` and `fit-training`; the columns of what is found repeat it there.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import inf

from gpuplan.calibration.training.constants import constants_of, read_calibration
from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.model.layers import Experts
from gpuplan.domain.training.run import LIKELY_FRAC
from gpuplan.domain.training.setup import (
    ParallelLayout,
    Recompute,
    Sharding,
    TrainingMemory,
    TrainingSetup,
)
from gpuplan.domain.training.time import TrainingConstants
from gpuplan.performance.memory.training.check import training_problems
from gpuplan.performance.memory.training.peak import (
    checked_memory,
    fit_probability_frac,
    likely_bytes,
)
from gpuplan.performance.memory.training.setups import usual_framework
from gpuplan.performance.training.basis import step_basis
from gpuplan.performance.training.step import step_parts
from gpuplan.studies.measured.training import Configuration, configuration_of
from gpuplan.studies.training.fit import memory_setup
from gpuplan.studies.training.shapes import (
    MICRO_BATCHES,
    RECOMPUTE_WORDS,
    Family,
    LayoutOptions,
    ServerKind,
    TrainingTask,
    Trial,
    with_chunks,
)

EVEN_FRAC = 0.5  # probability of fitting below which a layout is not tried
# Probabilities of fitting that layouts are sought for: sure ones may be slower than likely ones.
SURE_FRACS = (0.98, LIKELY_FRAC)
N_POLISHED = 2  # of the best layouts, whose neighbours are tried as well


class LayoutSearch:
    """Layouts of one job on one kind of server, number by number."""

    def __init__(self, job: TrainingTask, server: ServerKind, *, sure: float = EVEN_FRAC) -> None:
        self.job, self.server, self.sure = job, server, sure
        self.framework = usual_framework(job.task, server.accelerator.vendor)
        row = TrainingRow(self._columns({"n_accelerators": "1", "recompute": "none"}))
        self.base: Configuration = configuration_of(row, read_catalog(), model=job.model)
        self.memory = memory_setup(self.base, task=job.task, framework=self.framework)
        self.options = LayoutOptions(job, server, self.base.stack.name)
        self._found: dict[int, tuple[Trial, ...]] = {}

    @cached_property
    def constants(self) -> TrainingConstants:
        """What the step rests on: one software on one accelerator."""
        base = self.base
        return constants_of(
            read_calibration().fitted, base.labels, accelerator=base.accelerator, stack=base.stack
        )

    def layouts(self, n: int) -> tuple[Trial, ...]:
        """The shortest steps on so many accelerators, surer to fit or faster; none: none fits."""
        if n not in self._found:
            likely = [self._searched(n, sure=each) for each in SURE_FRACS if each >= self.sure]
            if not any(likely):
                # No surer than was asked for: only where nothing else fits.
                likely = [self._searched(n, sure=self.sure)]
            self._found[n] = tuple(dict.fromkeys(trial for trial in likely if trial is not None))
        return self._found[n]

    def best(self, n: int) -> Trial | None:
        """The shortest step on so many accelerators; None where nothing fits or divides."""
        return min(self.layouts(n), key=lambda trial: trial.s_per_sample, default=None)

    def fit_probability_frac(self, trial: Trial) -> float:
        """How likely the layout fits."""
        setup, layout = trial.setup, trial.layout
        memory = self._memory(
            layout, setup.micro_batch, setup.execution.recompute, n=layout.n_accelerators
        )
        return fit_probability_frac(memory, self.server.accelerator.memory.visible_bytes)

    def tried(self) -> Trial:
        """Any of the layouts that were found so far."""
        return next(trial for found in self._found.values() for trial in found)

    def _searched(self, n: int, *, sure: float) -> Trial | None:
        """The best of all, then of its neighbours: other chunks and micro-batches."""
        trials = sorted(self._trials(n, sure=sure), key=lambda trial: trial.s_per_sample)
        near = [
            trial
            for best in trials[:N_POLISHED]
            if best.layout.pp > 1
            for trial in self._neighbours(best, n=n, sure=sure)
        ]
        return min((*trials[:1], *near), key=lambda trial: trial.s_per_sample, default=None)

    def _neighbours(self, trial: Trial, *, n: int, sure: float) -> Iterator[Trial]:
        recompute = trial.setup.execution.recompute
        for vp in self.options.chunks(trial.layout.pp):
            layout = with_chunks(trial.layout, vp)
            for micro in MICRO_BATCHES[:3]:
                if not self._is_even(layout, micro, n=n):
                    continue
                if not self._fits(layout, micro, recompute, n=n, sure=sure):
                    break
                yield self._trial(layout, micro, recompute, n=n)

    def resized(self, like: Trial, n: int) -> tuple[Trial, ...]:
        """The same layout with other data parallelism; none where it does not divide or fit."""
        old, recompute = like.layout, like.setup.execution.recompute
        sharding = "hsdp" if old.n_shard is not None else old.sharding
        layout = self._layout(n, old.tp, Family(sharding, old.pp, old.cp, old.ep))
        if layout is None:
            return ()
        layout = with_chunks(layout, old.n_virtual)
        micros = dict.fromkeys(
            self._micro_batch(layout, recompute, n=n, sure=each)
            for each in (*SURE_FRACS, self.sure)
            if each >= self.sure
        )
        return tuple(self._trial(layout, micro, recompute, n=n) for micro in micros if micro)

    def ideal_s_per_sample(self) -> float:
        """Accelerator-seconds of a sample without links, bubbles or recomputation: a bound."""
        ep = max(self.options.experts(), default=1)
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

    def missing_bytes(self, n: int) -> float:
        """What the leanest layout lacks on the fullest accelerator; infinite where none divides."""
        taken = (likely_bytes(memory, self.sure) for memory in self._leanest(n))
        return min(taken, default=inf) - self.server.accelerator.memory.visible_bytes

    def likeliest_fit_frac(self, n: int) -> float:
        """How likely the leanest layout fits so many."""
        visible = self.server.accelerator.memory.visible_bytes
        return max((fit_probability_frac(each, visible) for each in self._leanest(n)), default=0.0)

    def _leanest(self, n: int) -> list[TrainingMemory]:
        """Layouts of so many that take the least memory."""
        recompute = self.options.recomputes[-1]
        return [
            self._memory(layout, 1, recompute, n=n)
            for sharding, cp, ep in product(
                self.options.shardings(n), self.options.context, self.options.experts()
            )
            for pp in self.options.stages(sharding)
            for layout in (self._layout(n, self.options.tensor[-1], Family(sharding, pp, cp, ep)),)
            if layout is not None
        ]

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

    def _trials(self, n: int, *, sure: float) -> Iterator[Trial]:
        for sharding, cp, ep in product(
            self.options.shardings(n), self.options.context, self.options.experts()
        ):
            least, is_lean = inf, False
            for pp in self.options.stages(sharding):
                family = Family(sharding, pp, cp, ep)
                found = [*self._in_family(n, family, sure=sure)]
                yield from found
                best = min((trial.s_per_sample for trial in found), default=inf)
                # Where a plain rank has room, more stages pay only as long as they save links.
                if is_lean and best >= least:
                    break
                is_lean = is_lean or any(self._is_lean(trial) for trial in found)
                least = min(least, best)

    def _is_lean(self, trial: Trial) -> bool:
        """Neither tensor parallelism nor recomputation was needed."""
        return (
            trial.layout.tp == 1 and trial.setup.execution.recompute == self.options.recomputes[0]
        )

    def _in_family(self, n: int, family: Family, *, sure: float) -> Iterator[Trial]:
        """For each recomputation the least tensor parallelism that fits: more only costs links."""
        left = list(self.options.recomputes)
        for tp in self.options.tensor:
            layout = self._layout(n, tp, family)
            if layout is None or not self._has_room(layout):
                continue
            for recompute in tuple(left):
                found = [*self._scheduled(layout, recompute, n=n, sure=sure)]
                if found:
                    left.remove(recompute)
                    yield from found
            if self.options.recomputes[0] not in left:
                return

    def _scheduled(
        self, layout: ParallelLayout, recompute: Recompute, *, n: int, sure: float
    ) -> Iterator[Trial]:
        """Interleaved and plain: a plain schedule holds no more than an interleaved one."""
        for vp in reversed(self.options.chunks(layout.pp)):
            chunked = with_chunks(layout, vp)
            micro = self._micro_batch(chunked, recompute, n=n, sure=sure)
            if micro:
                yield self._trial(chunked, micro, recompute, n=n)
                if vp > 1:
                    yield self._trial(with_chunks(layout, 1), micro, recompute, n=n)
                return

    def _has_room(self, layout: ParallelLayout) -> bool:
        """Whether the layers' weights and states alone fit: cheap, and never wrongly false."""
        dense, expert = self._layer_params
        split = layout.tp * layout.pp
        states, ways = self.memory.states, layout.n_shards
        if self.memory.adapter is not None:
            each = self.memory.adapter.base.stored_bytes if self.memory.adapter.base else 2.0
            resident = (dense + expert / layout.ep) * each
            resident /= ways if layout.sharding == "zero3" else 1
        else:
            retained = states.weight_bytes_per_param + states.gradient_bytes_per_param
            rest = states.master_bytes_per_param + states.optimizer_bytes_per_param
            whole = retained / ways if layout.sharding == "zero3" else retained
            resident = (dense + expert / layout.ep) * (whole + rest / ways)
        return resident / split <= self.server.accelerator.memory.visible_bytes

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

    def _layout(self, n: int, tp: int, family: Family) -> ParallelLayout | None:
        """The layout, or None where it does not divide."""
        dp, left = divmod(n, tp * family.pp * family.cp)
        wanted = self.job.requested.n_data
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
        self, layout: ParallelLayout, recompute: Recompute, *, n: int, sure: float
    ) -> int:
        """The largest micro-batch that fits, of one sample on pipelines; 0 where none does."""
        fitting = 0
        for micro in MICRO_BATCHES if layout.pp == 1 else MICRO_BATCHES[:1]:
            if not self._is_even(layout, micro, n=n):
                continue
            if not self._fits(layout, micro, recompute, n=n, sure=sure):
                break
            fitting = micro
        return fitting

    def _is_even(self, layout: ParallelLayout, micro: int, *, n: int) -> bool:
        """Whether the batch is nearly the one that is wanted; single samples come nearest."""
        per_rank = self.job.n_samples(n) / layout.dp
        batch = max(1, round(per_rank / micro)) * micro
        return micro == 1 or abs(batch / per_rank - 1.0) <= self.job.batch_slack_frac

    def _fits(
        self, layout: ParallelLayout, micro: int, recompute: Recompute, *, n: int, sure: float
    ) -> bool:
        found = self._memory(layout, micro, recompute, n=n)
        return likely_bytes(found, sure) <= self.server.accelerator.memory.visible_bytes

    def _memory(
        self, layout: ParallelLayout, micro: int, recompute: Recompute, *, n: int
    ) -> TrainingMemory:
        step = self._setup(layout, micro, recompute, n_samples=self.job.n_samples(n))
        setup = replace(
            self.memory,
            micro_batch=micro,
            n_micro_batches=step.n_micro_batches,
            execution=replace(self.memory.execution, recompute=recompute),
        )
        return checked_memory(self.job.model, setup, layout)

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
            n_micro_batches=self.job.requested.n_accumulation_steps or max(1, round(per_rank)),
            execution=replace(base.execution, recompute=recompute),
        )

    def _timed(self, layout: ParallelLayout, setup: TrainingSetup) -> Trial:
        base = self.base
        basis = step_basis(base.model, base.accelerator, setup, layout=layout, fabric=base.fabric)
        return Trial(layout, setup, sum(step_parts(basis, self.constants)))
