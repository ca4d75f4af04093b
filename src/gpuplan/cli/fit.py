"""`gpuplan fit`: does it fit, where, and with what room to spare."""

import re
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.catalog import user_store
from gpuplan.cli.output import Form, chosen, emit
from gpuplan.errors import InfeasibleError, InputError, one

Model = Annotated[str, typer.Argument(help="Model name, config.json, or a folder that holds one.")]
On = Annotated[
    str | None, typer.Option(help="Accelerator, e.g. H100, 8xH100, l40s; all when left out.")
]
Tp = Annotated[int | None, typer.Option(min=1, help="Tensor parallel.")]
Pp = Annotated[int, typer.Option(min=1, help="Pipeline stages.")]
Dp = Annotated[int, typer.Option(min=1, help="Attention replicas that share the experts.")]
Ep = Annotated[int, typer.Option(min=1, help="Devices that the experts are dealt to.")]
Context = Annotated[
    int | None, typer.Option(min=1, help="Tokens of one sequence, prompt and answer.")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Sequences held at once.")]
Precision = Annotated[
    str | None, typer.Option(help="Of the weights: bf16, fp8, int4 …; as published by default.")
]
KvPrecision = Annotated[str | None, typer.Option(help="Of the key-value cache: bf16 or fp8.")]
MemoryUse = Annotated[
    float | None, typer.Option(min=0.01, max=1.0, help="Share of the memory for the engine.")
]
EngineVersion = Annotated[str, typer.Option(help="vLLM version whose memory rules apply.")]
MaxSeqs = Annotated[
    int | None, typer.Option("--max-num-seqs", min=1, help="Sequences of one iteration.")
]
LoraSlotCount = Annotated[int, typer.Option("--max-loras", min=0, help="Adapters in memory.")]
LoraRank = Annotated[int, typer.Option("--max-lora-rank", min=1, help="Largest adapter rank.")]
Overlay = Annotated[list[Path] | None, typer.Option(help="Your facts over the catalog's (YAML).")]
Strict = Annotated[bool, typer.Option(help="End with 3 when it does not fit.")]
Output = Annotated[Form, typer.Option("-o", "--output", help="Output form.")]
Json = Annotated[bool, typer.Option("--json", help="Short for -o json.")]


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
    from gpuplan.domain.requests import FitRequest
    from gpuplan.domain.serving import LoraSlots

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
    overlays, store = overlay or [], user_store(None)
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
