"""`gpuplan fit-training`: does a training job fit, and what would make it fit."""

from typing import Annotated

import typer

from gpuplan.cli.options import (
    Cp,
    Ep,
    Json,
    MicroBatch,
    Model,
    On,
    Output,
    Overlay,
    Pp,
    SequenceTokens,
    Strict,
    user_store,
)
from gpuplan.cli.output import Form, chosen, emit
from gpuplan.errors import InfeasibleError, InputError, one

SHARDINGS = {"none": "none", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3", "fsdp": "zero3"}

Task = Annotated[str, typer.Option(help="full, lora, qlora or pretrain.")]
Sharding = Annotated[
    str | None, typer.Option(help="none, zero1, zero2, zero3 or fsdp; fsdp on several devices.")
]
Tp = Annotated[int, typer.Option(min=1, help="Tensor parallel, with sequence parallel.")]
Recompute = Annotated[str | None, typer.Option(help="none, selective or full.")]
Optimizer = Annotated[str | None, typer.Option(help="adamw, adamw-8bit, adafactor, sgd …")]
Framework = Annotated[str | None, typer.Option(help="Whose usual way applies: megatron …")]
LoraRank = Annotated[int, typer.Option(min=1, help="Rank of the adapters.")]


def fit_training(
    model: Model,
    on: On,
    task: Task = "full",
    sequence: SequenceTokens = 2048,
    micro_batch: MicroBatch = 1,
    sharding: Sharding = None,
    tp: Tp = 1,
    pp: Pp = 1,
    cp: Cp = 1,
    ep: Ep = 1,
    recompute: Recompute = None,
    optimizer: Optimizer = None,
    framework: Framework = None,
    lora_rank: LoraRank = 16,
    overlay: Overlay = None,
    strict: Strict = False,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Does a training or fine-tuning job fit, by how much, and what would make it fit."""
    from gpuplan import api
    from gpuplan.domain.requests.requests import TrainingRequest

    request = TrainingRequest(
        task=task,
        framework=framework,
        micro_batch=micro_batch,
        sequence_tokens=sequence,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        sharding=_sharding(sharding),
        recompute=recompute,
        optimizer=optimizer,
        lora_rank=lora_rank,
    )
    answer = api.training_fit(model, on, request, overlays=overlay or [], store=user_store())
    emit(api.training_sheet(answer), chosen(output, as_json=as_json))
    if strict and not answer.fits:
        raise typer.Exit(InfeasibleError.exit_code)


def _sharding(word: str | None) -> str | None:
    if word is not None and word not in SHARDINGS:
        known = ", ".join(SHARDINGS)
        raise one(InputError, "fit-training", "--sharding", f"got {word!r}", f"use one of {known}")
    return SHARDINGS[word] if word else None
