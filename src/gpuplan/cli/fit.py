"""`gpuplan fit`: does it fit, where, and with what room to spare."""

import re
from typing import Annotated

import typer

from gpuplan.cli.completion import accelerator_names
from gpuplan.cli.options import (
    Dp,
    Ep,
    Json,
    KvPrecision,
    MaxSeqs,
    Model,
    Output,
    Overlay,
    Pp,
    Precision,
    Strict,
    Tp,
    user_store,
)
from gpuplan.cli.output import Form, chosen, emit
from gpuplan.errors import InfeasibleError, InputError, one

On = Annotated[
    str | None,
    typer.Option(
        help="Accelerator, e.g. H100, 8xH100, l40s; all when left out.",
        autocompletion=accelerator_names,
    ),
]
Context = Annotated[
    int | None, typer.Option(min=1, help="Tokens of one sequence, prompt and answer.")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Sequences held at once.")]
MemoryUse = Annotated[
    float | None, typer.Option(min=0.01, max=1.0, help="Share of the memory for the engine.")
]
EngineVersion = Annotated[str, typer.Option(help="vLLM version whose memory rules apply.")]
LoraSlotCount = Annotated[int, typer.Option("--max-loras", min=0, help="Adapters in memory.")]
LoraRank = Annotated[int, typer.Option("--max-lora-rank", min=1, help="Largest adapter rank.")]


def fit(
    model: Model,
    on: On = None,
    tp: Tp = None,
    pp: Pp = 1,
    dp: Dp = 1,
    ep: Ep = 1,
    context: Context = None,
    concurrency: Concurrency = 1,
    precision: Precision = None,
    kv_precision: KvPrecision = None,
    memory_use: MemoryUse = None,
    engine_version: EngineVersion = "0.11",
    max_num_seqs: MaxSeqs = None,
    max_loras: LoraSlotCount = 0,
    max_lora_rank: LoraRank = 16,
    overlay: Overlay = None,
    strict: Strict = False,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Does a model fit for inference, by how much, how many at once, what would make it fit."""
    from gpuplan import api
    from gpuplan.domain.inference.serving import LoraSlots
    from gpuplan.domain.requests.requests import FitRequest

    request = FitRequest(
        tp=tp,
        pp=pp,
        dp=dp,
        ep=ep,
        context_tokens=context,
        n_sequences=concurrency,
        precision=precision,
        cache_precision=kv_precision,
        memory_use_frac=memory_use,
        engine_version=_version(engine_version),
        max_sequences=max_num_seqs,
        lora=LoraSlots(n_slots=max_loras, max_rank=max_lora_rank) if max_loras else None,
    )
    overlays, store = overlay or [], user_store()
    if on is None:
        found = api.survey(model, request, overlays=overlays, store=store)
        sheet, fits = api.survey_sheet(found), bool(found.fits)
    else:
        answer = api.fit(model, on, request, overlays=overlays, store=store)
        sheet, fits = api.fit_sheet(answer), answer.fits
    emit(sheet, chosen(output, as_json=as_json))
    if strict and not fits:
        raise typer.Exit(InfeasibleError.exit_code)


def _version(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"v?(\d{1,3})\.(\d{1,3})(\.\w+)*", text.strip())
    if not found:
        raise one(InputError, "fit", "--engine-version", f"got {text!r}", "use e.g. 0.11 or 0.32")
    return int(found[1]), int(found[2])
