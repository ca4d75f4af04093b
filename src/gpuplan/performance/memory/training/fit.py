"""Whether a training job fits, the largest micro-batch, and single changes that would help."""

import dataclasses
from collections.abc import Iterator, Sequence

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import Suggestion
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.training.fit import TrainingFit, TrainingJob
from gpuplan.performance.memory.training.frameworks import OPTIMIZER_BYTES
from gpuplan.performance.memory.training.peak import memory_range, training_memory

MOST_MICRO_BATCH = 4096
N_OTHER_ACCELERATORS = 3
MOST_ACCELERATORS = 1024


def measure_training(job: TrainingJob) -> TrainingFit:
    """Memory of the job with its range, and the largest micro-batch."""
    memory = training_memory(job.model, job.setup, job.layout)
    low, high = memory_range(memory.total_bytes)
    peak = Estimate(value=memory.total_bytes, low=low, high=high, tier="estimated")
    return TrainingFit(job=job, memory=memory, peak=peak, max_micro_batch=_largest_micro_batch(job))


def suggest_training(answer: TrainingFit, others: Sequence[Accelerator]) -> Iterator[Suggestion]:
    """Single changes that make it fit, those that cost no speed first."""
    job = answer.job
    alone = [
        *_smaller_batch(answer),
        *_more_recompute(job),
        *_sharding(job),
        *_smaller_optimizer(job),
    ]
    yield from alone or _together(job)
    yield from _other_accelerators(job, others)


def _smaller_batch(answer: TrainingFit) -> Iterator[Suggestion]:
    job, n = answer.job, answer.max_micro_batch
    if 0 < n < job.setup.micro_batch:
        yield from _if_enough(
            _with_setup(job, micro_batch=n),
            f"micro-batches of {n}",
            f"--micro-batch {n}",
            "accumulate gradients to keep the batch",
        )


def _more_recompute(job: TrainingJob) -> Iterator[Suggestion]:
    if job.setup.execution.recompute != "full":
        execution = dataclasses.replace(job.setup.execution, recompute="full")
        yield from _if_enough(
            _with_setup(job, execution=execution),
            "recompute every layer",
            "--recompute full",
            "about a third more arithmetic",
        )


def _together(job: TrainingJob) -> Iterator[Suggestion]:
    """Where nothing is enough alone: one sample at once, recomputed, sharded over more."""
    execution = dataclasses.replace(job.setup.execution, recompute="full")
    leanest = _with_setup(job, execution=execution, micro_batch=1)
    flags = "--recompute full --micro-batch 1"
    yield from _if_enough(leanest, "recompute, one sample at once", flags, "slower")
    for suggestion in _sharding(leanest):
        yield dataclasses.replace(
            suggestion,
            change=f"recompute, one sample at once, {suggestion.change}",
            how=f"{flags} {suggestion.how}",
            caveat="slower",
        )


def _smaller_optimizer(job: TrainingJob) -> Iterator[Suggestion]:
    kept = OPTIMIZER_BYTES["adamw-8bit"]
    if job.setup.adapter is None and job.setup.states.optimizer_bytes_per_param > kept:
        states = dataclasses.replace(job.setup.states, optimizer_bytes_per_param=kept)
        yield from _if_enough(
            _with_setup(job, states=states),
            "8-bit optimizer",
            "--optimizer adamw-8bit",
            "quality is yours to judge",
        )


def _with_setup(job: TrainingJob, **changes: object) -> TrainingJob:
    return dataclasses.replace(job, setup=dataclasses.replace(job.setup, **changes))  # type: ignore[arg-type]


def _if_enough(job: TrainingJob, change: str, how: str, caveat: str) -> Iterator[Suggestion]:
    left = _headroom(job)
    if left >= 0:
        yield Suggestion(change=change, how=how, headroom_bytes=left, caveat=caveat)


def _headroom(job: TrainingJob) -> float:
    memory = training_memory(job.model, job.setup, job.layout)
    return job.accelerator.memory.visible_bytes - memory.least_bytes


def _sharding(job: TrainingJob) -> Iterator[Suggestion]:
    """The fewest accelerators of the same kind over which the states can be sharded."""
    n_ranks = 2 * max(1, job.layout.dp)
    while n_ranks <= MOST_ACCELERATORS:
        layout = dataclasses.replace(job.layout, dp=n_ranks, sharding="zero3", n_shard=None)
        left = _headroom(dataclasses.replace(job, layout=layout))
        if left >= 0:
            n = layout.n_accelerators
            yield Suggestion(
                change=f"fully sharded over {n}", how=f"--on {n}x{job.accelerator.id}",
                headroom_bytes=left, caveat="",
            )  # fmt: skip
            return
        n_ranks *= 2


def _other_accelerators(job: TrainingJob, others: Sequence[Accelerator]) -> Iterator[Suggestion]:
    here = job.accelerator.memory.visible_bytes
    larger = [o for o in others if o.memory.visible_bytes > here and not o.is_cpu]
    found = 0
    for other in sorted(larger, key=lambda o: o.memory.visible_bytes):
        left = _headroom(dataclasses.replace(job, accelerator=other))
        if left >= 0:
            found += 1
            n = job.layout.n_accelerators
            how = f"--on {n}x{other.id}" if n > 1 else f"--on {other.id}"
            yield Suggestion(change=f"on {other.name}", how=how, headroom_bytes=left)
        if found == N_OTHER_ACCELERATORS:
            return


def _largest_micro_batch(job: TrainingJob) -> int:
    """Bisection: memory never falls as the micro-batch grows."""

    def has_room(n: int) -> bool:
        return _headroom(_with_setup(job, micro_batch=n)) >= 0

    if not has_room(1):
        return 0
    low, high = 1, 2
    while high <= MOST_MICRO_BATCH and has_room(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if has_room(middle) else (low, middle)
    return low
