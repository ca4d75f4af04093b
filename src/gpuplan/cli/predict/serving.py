"""`gpuplan predict`, `predict-table` and `roofline`: one serving configuration, or a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gpuplan import api
from gpuplan.cli.command import Form
from gpuplan.cli.completion import model_names
from gpuplan.cli.options import (
    COMMON,
    LOAD,
    MODEL,
    Calibration,
    Concurrency,
    Cp,
    Dp,
    Engine,
    EngineVersion,
    Ep,
    InputTokens,
    KvPrecision,
    LoraRank,
    MaxSeqs,
    Model,
    NodeGbit,
    On,
    Out,
    OutputTokens,
    Overlay,
    Pp,
    Precision,
    PrefixHitRate,
    Rate,
    Tp,
    accelerators_in,
    arg,
    bytes_per_s,
    option,
    user_store,
)
from gpuplan.cli.output import busy, check_writable, emit, write_whole
from gpuplan.errors import InputError, one

if TYPE_CHECKING:
    from gpuplan.domain.requests.requests import PredictRequest

Table = Annotated[Path, arg("Table of configurations, one per row (CSV).")]


class PredictOptions(NamedTuple):
    """Options of `predict`, in the order of its help."""

    model: Annotated[
        str,
        arg(
            "Model name, config.json, or a table of configurations (CSV).",
            autocompletion=model_names,
        ),
    ]
    on: Annotated[
        str | None,
        accelerators_in(COMMON, "Accelerators, e.g. H100 or 8xH100; not needed with a table."),
    ] = None
    tp: int | None = option(COMMON, "Tensor-parallel size of one replica.", min=1)
    n_replicas: int = option(
        COMMON, "Number of replicas of the deployment.", "--replicas", default=1, min=1
    )
    precision: Precision = None
    precisions: str | None = option(
        MODEL, "Precisions to compare: speed, memory and quality risk, e.g. bf16,fp8,fp4."
    )
    cache_precision: KvPrecision = None
    pp: Pp = 1
    dp: Dp = 1
    ep: Ep = 1
    cp: Cp = 1
    node_gbit: NodeGbit = None
    n_concurrent: Concurrency = None
    requests_per_s: Rate = None
    input_tokens: InputTokens = None
    output_tokens: OutputTokens = None
    prefix_cache_hit_rate: PrefixHitRate = None
    regime: str | None = option(
        LOAD, "Kind of load: max_load, fixed_concurrency, static_batch, poisson, prefill …"
    )
    engine: Engine = "vllm"
    engine_version: EngineVersion = None
    max_sequences: MaxSeqs = None
    lora_rank: LoraRank = 0
    loras: int = option(LOAD, "Distinct LoRA adapters in the traffic.", default=1, min=1)
    calibration: Calibration = None
    overlay: Overlay = None


class RooflineOptions(NamedTuple):
    """Options of `roofline`, in the order of its help."""

    model: Model
    on: On
    tp: Tp = None
    precision: Precision = None
    cache_precision: KvPrecision = None
    input_tokens: InputTokens = None
    output_tokens: OutputTokens = None
    engine: Engine = "vllm"
    engine_version: EngineVersion = None
    overlay: Overlay = None


def predict(options: PredictOptions, form: Form) -> None:
    """Predict throughput, latency, power and memory of a configuration, or of a table of them."""
    if options.on is None and options.model.lower().endswith(".csv"):
        return predict_table(Path(options.model))
    if options.on is None:
        raise typer.BadParameter("is missing; give accelerators, e.g. 8xH100", param_hint="--on")
    if options.precisions is not None:
        return _compare_precisions(options, options.on, form)
    found = api.predict(
        options.model,
        options.on,
        _request(options),
        overlays=options.overlay or [],
        store=user_store(),
        calibration=options.calibration,
    )
    return emit(api.predict_sheet(found), form)


def _compare_precisions(options: PredictOptions, on: str, form: Form) -> None:
    names = [name.strip() for name in (options.precisions or "").split(",") if name.strip()]
    if not names or options.precision is not None:
        what = "no precision is named" if not names else "--precision names one already"
        raise one(InputError, "predict", "--precisions", what, "write e.g. bf16,fp8,fp4")
    overlays, store = options.overlay or [], user_store()
    found = api.compare_precisions(
        options.model, on, names, _request(options), overlays=overlays, store=store
    )
    emit(api.precisions_sheet(found), form)


def _request(options: PredictOptions) -> "PredictRequest":
    from gpuplan.domain.inference.serving import LoraUse
    from gpuplan.domain.requests.requests import LoadRequest, PredictRequest, ReplicaSpan
    from gpuplan.domain.requests.typed import request_of

    lora = LoraUse(rank=options.lora_rank, n_adapters=options.loras) if options.lora_rank else None
    hit_frac = options.prefix_cache_hit_rate or 0.0
    load = request_of(LoadRequest, options, prefix_hit_frac=hit_frac, adapters=lora)
    span = ReplicaSpan(cp=options.cp, network_bytes_per_s=bytes_per_s(options.node_gbit))
    return request_of(PredictRequest, options, span=span, load=load)


def predict_table(file: Table, out: Out = None) -> None:
    """Predict each configuration of a table (CSV), inference or training; writes CSV."""
    check_writable(out)
    with busy("predicting every row"):
        report = api.predict_table(file)
    text = api.predictions_csv(report, is_whole=True)
    for row, why in report.refused:
        typer.echo(f"not predicted: {row}: {why}", err=True)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_whole(out, text)
    typer.echo(f"wrote {report.n_covered} of {report.n_rows} predictions to {out}", err=True)


def roofline(options: RooflineOptions, form: Form) -> None:
    """Show where prefill and decode lie under the roofline, and what limits each."""
    from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
    from gpuplan.domain.requests.typed import request_of

    request = request_of(PredictRequest, options, load=request_of(LoadRequest, options))
    overlays, store = options.overlay or [], user_store()
    found = api.roofline(options.model, options.on, request, overlays=overlays, store=store)
    emit(api.roofline_sheet(found), form)
