"""Whether a training job fits: memory by name, and the smallest changes that make it fit."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.requests import TrainingRequest
from gpuplan.domain.training.fit import TrainingFit, TrainingJob
from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.errors import InputError, one
from gpuplan.performance.memory.training.fit import measure_training, suggest_training
from gpuplan.performance.memory.training.setups import setup_of
from gpuplan.studies.naming import model_named, with_overlays


def training_fit(
    model_name: str,
    accelerator_name: str,
    request: TrainingRequest,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> TrainingFit:
    """Whether the training job fits, with what is left, and what would make it fit."""
    catalog = with_overlays(read_catalog(), overlays)
    model = model_named(model_name, store)
    choice = find_accelerator(accelerator_name, catalog)
    setup, assumed = setup_of(request)
    layout, assumed_layout = _training_layout(request, choice.n_accelerators)
    job = TrainingJob(model=model, accelerator=choice.accelerator, setup=setup, layout=layout)
    answer = dataclasses.replace(
        measure_training(job),
        assumptions=(*model.assumptions, *choice.assumptions, *assumed, *assumed_layout),
        overrides=catalog.overrides,
    )
    if answer.fits:
        return answer
    others = list(catalog.accelerators.values())
    found = tuple(suggest_training(answer, others))
    return dataclasses.replace(answer, suggestions=found)


def _training_layout(
    request: TrainingRequest, n_named: int
) -> tuple[ParallelLayout, tuple[Assumption, ...]]:
    """What is asked for, the rest of the accelerators as data-parallel ranks."""
    n_group = request.tp * request.pp * request.cp
    dp, left = divmod(max(n_named, n_group), n_group)
    if left or request.ep > dp * request.cp:
        what = f"{n_named} accelerators, groups of {n_group}, experts over {request.ep}"
        fix = "name a multiple of tp x pp x cp, and at least ep data-parallel ranks"
        raise one(InputError, "fit-training", "--on", what, fix)
    sharding = request.sharding or ("zero3" if dp > 1 else "none")
    layout = ParallelLayout(
        tp=request.tp,
        pp=request.pp,
        cp=request.cp,
        ep=request.ep,
        dp=dp,
        sharding=sharding,  # type: ignore[arg-type]
        has_sequence_parallel=request.tp > 1,
    )
    if request.sharding is not None or dp == 1:
        return layout, ()
    value = f"fully sharded over {dp} data-parallel ranks"
    why = f"{n_named} accelerators were named"
    return layout, (assume("sharding", value, why, "--sharding"),)
