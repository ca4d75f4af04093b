"""`gpuplan fit` and `fit-training`: does it fit in memory, where, and with what headroom."""

import re
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gpuplan import api
from gpuplan.cli.command import Form
from gpuplan.cli.options import (
    ENGINE,
    LOAD,
    MODEL,
    TRAINING,
    Cp,
    DevicesPerNode,
    Dp,
    Ep,
    KvPrecision,
    MaxSeqs,
    MicroBatch,
    Model,
    On,
    Overlay,
    Pp,
    Precision,
    Sequence,
    Strict,
    Tp,
    TrainingLoraRank,
    TrainingTp,
    VirtualStages,
    accelerators_in,
    option,
    user_store,
)
from gpuplan.cli.output import emit
from gpuplan.errors import InfeasibleError, InputError, one

if TYPE_CHECKING:
    from gpuplan.domain.requests.requests import FitRequest, PredictRequest

SHARDINGS = {name: name for name in ("none", "zero1", "zero2", "zero3", "hsdp")} | {"fsdp": "zero3"}


class FitOptions(NamedTuple):
    """Options of `fit`, in the order of its help."""

    model: Model
    on: Annotated[
        str | None,
        accelerators_in(MODEL, "Accelerators, e.g. H100 or 8xH100; the whole catalog by default."),
    ] = None
    tp: Tp = None
    precision: Precision = None
    cache_precision: KvPrecision = None
    pp: Pp = 1
    dp: Dp = 1
    ep: Ep = 1
    context_tokens: int | None = option(
        LOAD,
        "Context length in tokens, prompt and output (vLLM's max_model_len).",
        "--context",
        min=1,
    )
    n_sequences: int = option(
        LOAD, "Concurrent sequences whose KV cache must fit.", "--concurrency", default=1, min=1
    )
    memory_use_frac: float | None = option(
        ENGINE,
        "Share of GPU memory for the engine (vLLM's gpu_memory_utilization).",
        "--gpu-memory-utilization",
        min=0.01,
        max=1.0,
    )
    engine_version: str | None = option(ENGINE, "vLLM version whose memory rules apply.")
    max_sequences: MaxSeqs = None
    max_loras: int = option(
        ENGINE, "LoRA adapters in GPU memory at once (vLLM's max_loras).", default=0, min=0
    )
    max_lora_rank: int = option(
        ENGINE, "Largest LoRA rank (vLLM's max_lora_rank).", default=16, min=1
    )
    rank: bool = option(
        MODEL,
        "Rank several accelerators (--on H100,L40S,L4) and name the deciding specification.",
        "--rank",
        default=False,
    )
    overlay: Overlay = None
    strict: Strict = False


def fit(options: FitOptions, form: Form) -> None:
    """Check whether a model fits for inference: headroom, maximum concurrency, what would help."""
    request, store = _fit_request(options), user_store()
    overlays = options.overlay or []
    if options.rank:
        return _rank(options, form)
    if options.on is None:
        found = api.survey(options.model, request, overlays=overlays, store=store)
        sheet, fits = api.survey_sheet(found), bool(found.fits)
    else:
        answer = api.fit(options.model, options.on, request, overlays=overlays, store=store)
        sheet, fits = api.fit_sheet(answer), answer.fits
    emit(sheet, form)
    if options.strict and not fits:
        raise typer.Exit(InfeasibleError.exit_code)
    return None


def _rank(options: FitOptions, form: Form) -> None:
    """The accelerators side by side."""
    names = [name.strip() for name in (options.on or "").split(",") if name.strip()]
    if not names:
        fix = "name them: --on H100,L40S,L4"
        raise one(InputError, "fit", "--rank", "no accelerators to rank", fix)
    overlays = options.overlay or []
    found = api.rank(
        options.model, names, _rank_request(options), overlays=overlays, store=user_store()
    )
    emit(api.rank_sheet(found), form)
    if options.strict and not any(row.found for row in found.rows):
        raise typer.Exit(InfeasibleError.exit_code)


def _rank_request(options: FitOptions) -> "PredictRequest":
    """The load to rank by; a context is split as requests usually are, 4 to 1."""
    from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
    from gpuplan.domain.requests.typed import request_of

    context = options.context_tokens
    load = LoadRequest(
        n_concurrent=options.n_sequences,
        input_tokens=None if context is None else max(1, context - context // 5),
        output_tokens=None if context is None else max(1, context // 5),
    )
    return request_of(PredictRequest, options, load=load)


def _fit_request(options: FitOptions) -> "FitRequest":
    from gpuplan.domain.inference.serving import LoraSlots
    from gpuplan.domain.requests.requests import FitRequest
    from gpuplan.domain.requests.typed import request_of

    lora = LoraSlots(n_slots=options.max_loras, max_rank=options.max_lora_rank)
    given = options.engine_version
    return request_of(
        FitRequest,
        options,
        engine_version=None if given is None else _version(given),
        lora=lora if options.max_loras else None,
    )


def _version(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"v?(\d{1,3})\.(\d{1,3})(\.\w+)*", text.strip())
    if not found:
        what, fix = f"{text!r} is not a version", "write e.g. 0.11 or 0.32"
        raise one(InputError, "fit", "--engine-version", what, fix)
    return int(found[1]), int(found[2])


class FitTrainingOptions(NamedTuple):
    """Options of `fit-training`, in the order of its help."""

    model: Model
    on: On
    tp: TrainingTp = 1
    pp: Pp = 1
    vp: VirtualStages = None
    cp: Cp = 1
    ep: Ep = 1
    task: str = option(TRAINING, "Kind of training: full, lora, qlora or pretrain.", default="full")
    sequence_tokens: Sequence = 2048
    micro_batch: MicroBatch = 1
    global_batch: int | None = option(
        TRAINING, "Global batch size per step, samples; one micro-batch by default.", min=1
    )
    devices_per_node: DevicesPerNode = None
    sharding: str | None = option(
        TRAINING,
        "Sharding of the model states: none, zero1, zero2, zero3, fsdp or hsdp (hybrid, "
        "inside servers); fsdp by default on several devices.",
    )
    recompute: str | None = option(TRAINING, "Activation recomputation: none, selective or full.")
    optimizer: str | None = option(
        TRAINING, "Optimizer whose states count: adamw, adamw-8bit, adafactor, sgd"
    )
    framework: str | None = option(TRAINING, "Framework whose defaults apply, e.g. megatron.")
    lora_rank: TrainingLoraRank = 16
    overlay: Overlay = None
    strict: Strict = False


def fit_training(options: FitTrainingOptions, form: Form) -> None:
    """Check whether a training or fine-tuning job fits: headroom per GPU, what would help."""
    from gpuplan.domain.requests.requests import StepSchedule, TrainingRequest
    from gpuplan.domain.requests.typed import request_of

    request = request_of(TrainingRequest, options, sharding=_sharding(options.sharding))
    schedule = StepSchedule(
        vp=options.vp or 1,
        global_batch=options.global_batch,
        n_per_node=options.devices_per_node or 8,
    )
    answer = api.training_fit(
        options.model,
        options.on,
        request,
        schedule=schedule,
        overlays=options.overlay or [],
        store=user_store(),
    )
    emit(api.training_sheet(answer), form)
    if options.strict and not answer.fits:
        raise typer.Exit(InfeasibleError.exit_code)


def _sharding(word: str | None) -> str | None:
    if word is not None and word not in SHARDINGS:
        what, fix = f"unknown value {word!r}", f"use one of {', '.join(SHARDINGS)}"
        raise one(InputError, "fit-training", "--sharding", what, fix)
    return SHARDINGS[word] if word else None
