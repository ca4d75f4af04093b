"""Whether a training job fits, the largest micro-batch, and single changes that would help."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import Suggestion
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.training.run import TrainingFit, TrainingJob
from gpuplan.performance.memory.suggestions import (
    N_OTHER_ACCELERATORS,
    Change,
    larger_than,
    that_fit,
)
from gpuplan.performance.memory.training.frameworks import OPTIMIZER_BYTES
from gpuplan.performance.memory.training.peak import (
    fit_probability_frac,
    memory_range,
    training_memory,
)

MOST_MICRO_BATCH = 4096
MOST_ACCELERATORS = 1024
LEANEST = "--recompute full --micro-batch 1"


def measure_training(job: TrainingJob) -> TrainingFit:
    """Memory of the job with its range, and the largest micro-batch."""
    memory = training_memory(job.model, job.setup, job.layout)
    low, high = memory_range(memory.total_bytes)
    peak = Estimate(value=memory.total_bytes, low=low, high=high, tier="estimated")
    return TrainingFit(
        job=job,
        memory=memory,
        peak=peak,
        fit_probability_frac=fit_probability_frac(memory, job.accelerator.memory.visible_bytes),
        max_micro_batch=_largest_micro_batch(job),
    )


def suggest_training(answer: TrainingFit, others: Sequence[Accelerator]) -> Iterator[Suggestion]:
    """Single changes that make it fit, those that cost no speed first."""
    job = answer.job
    kinds = (_smaller_batch(answer), _recompute(job), _sharding(job), _smaller_optimizer(job))
    alone = [found for kind in kinds for found in that_fit(kind, _headroom_bytes)]
    yield from alone or _together(job)
    larger = larger_than(job.accelerator, others)
    n = f"{job.layout.n_accelerators}x" if job.layout.n_accelerators > 1 else ""
    moved = (Change(f"on {o.name}", f"--on {n}{o.id}", replace(job, accelerator=o)) for o in larger)
    yield from that_fit(moved, _headroom_bytes, n_most=N_OTHER_ACCELERATORS)


def _smaller_batch(answer: TrainingFit) -> Iterator[Change[TrainingJob]]:
    job, n = answer.job, answer.max_micro_batch
    if 0 < n < job.setup.micro_batch:
        caveat = "accumulate gradients to keep the batch"
        after = _with_setup(job, micro_batch=n)
        yield Change(f"micro-batches of {n}", f"--micro-batch {n}", after, caveat)


def _recompute(job: TrainingJob) -> Iterator[Change[TrainingJob]]:
    if job.setup.execution.recompute != "full":
        after = _with_setup(job, execution=replace(job.setup.execution, recompute="full"))
        caveat = "about a third more arithmetic"
        yield Change("full activation recomputation", "--recompute full", after, caveat)


def _together(job: TrainingJob) -> Iterator[Suggestion]:
    """Where nothing is enough alone: one sample at once, recomputed, sharded over more."""
    execution = replace(job.setup.execution, recompute="full")
    leanest = _with_setup(job, execution=execution, micro_batch=1)
    alone = Change("activation recomputation, micro-batch 1", LEANEST, leanest, "slower")
    yield from that_fit([alone], _headroom_bytes)
    for found in that_fit(_sharding(leanest), _headroom_bytes):
        change, how = f"{alone.change}, {found.change}", f"{LEANEST} {found.how}"
        yield replace(found, change=change, how=how, caveat="slower")


def _smaller_optimizer(job: TrainingJob) -> Iterator[Change[TrainingJob]]:
    per_param = OPTIMIZER_BYTES["adamw-8bit"]
    if job.setup.adapter is None and job.setup.states.optimizer_bytes_per_param > per_param:
        states = replace(job.setup.states, optimizer_bytes_per_param=per_param)
        how, caveat = "--optimizer adamw-8bit", "quality is yours to judge"
        yield Change("8-bit optimizer", how, _with_setup(job, states=states), caveat)


def _with_setup(job: TrainingJob, **changes: object) -> TrainingJob:
    return replace(job, setup=replace(job.setup, **changes))  # type: ignore[arg-type]


def _headroom_bytes(job: TrainingJob) -> float | None:
    """Memory that is left; None where the job does not fit."""
    memory = training_memory(job.model, job.setup, job.layout)
    left = job.accelerator.memory.visible_bytes - memory.least_bytes
    return left if left >= 0 else None


def _sharding(job: TrainingJob) -> Iterator[Change[TrainingJob]]:
    """More and more accelerators of the same kind over which the states are sharded."""
    n_ranks = 2 * max(1, job.layout.dp)
    while n_ranks <= MOST_ACCELERATORS:
        layout = replace(job.layout, dp=n_ranks, sharding="zero3", n_shard=None)
        n, after = layout.n_accelerators, replace(job, layout=layout)
        yield Change(f"fully sharded over {n}", f"--on {n}x{job.accelerator.id}", after)
        n_ranks *= 2


def _largest_micro_batch(job: TrainingJob) -> int:
    """Bisection: memory never falls as the micro-batch grows."""

    def is_too_large(n: int) -> bool:
        return _headroom_bytes(_with_setup(job, micro_batch=n)) is None

    if is_too_large(1):
        return 0
    low, high = 1, 2
    while high <= MOST_MICRO_BATCH and not is_too_large(high):
        low, high = high, 2 * high
    return low + bisect_left(range(low + 1, high), True, key=is_too_large)
