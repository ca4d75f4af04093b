"""Whether a training job fits: memory by name, and the smallest changes that make it fit."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.requests import StepSchedule, TrainingRequest
from gpuplan.domain.training.run import TrainingFit, TrainingJob
from gpuplan.domain.training.setup import ParallelLayout, TrainingSetup
from gpuplan.errors import InputError, one
from gpuplan.performance.memory.training.fit import measure_training, suggest_training
from gpuplan.performance.memory.training.frameworks import PRACTICES
from gpuplan.performance.memory.training.setups import setup_of
from gpuplan.studies.measured.training import Configuration
from gpuplan.studies.naming import model_named, with_overlays

ONE_STEP = StepSchedule()
FULL_PIPELINE = 4  # micro-batches per stage that fill any schedule
# The framework whose memory is that of a stack of the step model.
STACK_PRACTICE = {
    "megatron-2021": "megatron-deepspeed",
    "megatron-deepspeed": "megatron-deepspeed",
    "megatron": "megatron",
    "fsdp": "torchtitan",
    "fsdp-compiled": "torchtitan",
    "fsdp-fused": "torchtitan",
    "zero": "internevo",
    "finetune": "transformers",
    "xla": "maxtext",
}


def training_fit(
    model_name: str,
    accelerator_name: str,
    request: TrainingRequest,
    *,
    schedule: StepSchedule = ONE_STEP,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> TrainingFit:
    """Whether the training job fits, with what is left, and what would make it fit."""
    catalog = with_overlays(read_catalog(), overlays)
    model = model_named(model_name, store)
    choice = find_accelerator(accelerator_name, catalog)
    setup, assumed = setup_of(request, choice.accelerator.vendor)
    layout = _training_layout(request, schedule, choice.n_accelerators)
    n_micro_batches = _n_micro_batches(schedule.global_batch, request.micro_batch, layout)
    setup = dataclasses.replace(setup, n_micro_batches=n_micro_batches)
    job = TrainingJob(model=model, accelerator=choice.accelerator, setup=setup, layout=layout)
    answer = dataclasses.replace(
        measure_training(job),
        assumptions=(
            *model.assumptions,
            *choice.assumptions,
            *assumed,
            *_layout_notes(request, layout),
        ),
        overrides=catalog.overrides,
    )
    others = list(catalog.accelerators.values())
    found = () if answer.fits else tuple(suggest_training(answer, others))
    return dataclasses.replace(answer, suggestions=found)


def configuration_fit(found: Configuration, *, task: str, framework: str = "") -> TrainingFit:
    """Whether a configuration of the step model fits: the same layout, batch and framework."""
    setup = memory_setup(found, task=task, framework=framework)
    job = TrainingJob(
        model=found.model, accelerator=found.accelerator, setup=setup, layout=found.layout
    )
    return measure_training(job)


def memory_setup(found: Configuration, *, task: str, framework: str = "") -> TrainingSetup:
    """The setup of a configuration as the memory model knows it."""
    step = found.setup
    practice = framework.lower() if framework.lower() in PRACTICES else ""
    request = TrainingRequest(
        task=task,
        framework=practice or STACK_PRACTICE[found.stack.name],
        micro_batch=step.micro_batch,
        sequence_tokens=step.sequence_tokens,
        recompute=step.execution.recompute,
        lora_rank=step.adapter.rank if step.adapter else 16,
    )
    setup, _ = setup_of(request)
    return dataclasses.replace(setup, n_micro_batches=step.n_micro_batches)


def _n_micro_batches(global_batch: int | None, micro_batch: int, layout: ParallelLayout) -> int:
    """Of a step and rank: those of the batch; a full pipeline where the batch is not given."""
    if global_batch is None:
        return FULL_PIPELINE * layout.pp if layout.pp > 1 else 1
    return max(1, round(global_batch / layout.dp / micro_batch))


def _training_layout(
    request: TrainingRequest, schedule: StepSchedule, n_named: int
) -> ParallelLayout:
    """What is asked for, the rest of the accelerators as data-parallel ranks."""
    n_group = request.tp * request.pp * request.cp
    dp, left = divmod(max(n_named, n_group), n_group)
    if left or request.ep > dp * request.cp:
        what = f"{n_named} accelerators, groups of {n_group}, experts over {request.ep}"
        fix = "name a multiple of tp x pp x cp, and at least ep data-parallel ranks"
        raise one(InputError, "fit-training", "--on", what, fix)
    is_hybrid = request.sharding == "hsdp"
    requested = "zero3" if is_hybrid else request.sharding
    n_near = min(dp * request.cp, max(1, schedule.n_per_node // request.tp))
    return ParallelLayout(
        tp=request.tp,
        pp=request.pp,
        n_virtual=schedule.vp,
        schedule="interleaved" if schedule.vp > 1 else "1f1b",
        cp=request.cp,
        ep=request.ep,
        dp=dp,
        sharding=requested or ("zero3" if dp > 1 else "none"),  # type: ignore[arg-type]
        n_shard=n_near if is_hybrid else None,
        has_sequence_parallel=request.tp > 1,
    )


def _layout_notes(request: TrainingRequest, layout: ParallelLayout) -> tuple[Assumption, ...]:
    if request.sharding is not None or layout.dp == 1:
        return ()
    value = f"fully sharded over {layout.dp} data-parallel ranks"
    why = f"{layout.n_accelerators} accelerators were named"
    return (assume("sharding", value, why, "--sharding"),)
