"""`gpuplan predict` and `gpuplan roofline`: how fast one configuration is, and what limits it."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import (
    Dp,
    Ep,
    Json,
    KvPrecision,
    MaxSeqs,
    Model,
    On,
    Out,
    Output,
    Overlay,
    Pp,
    Precision,
    Tp,
    user_store,
)
from gpuplan.cli.output import Form, busy, chosen, emit
from gpuplan.cli.scenario import write_whole

Cp = Annotated[int, typer.Option(min=1, help="Context parallel size.")]
LoraRank = Annotated[int, typer.Option(min=0, help="Rank of the requests' adapters; 0: none.")]
Loras = Annotated[int, typer.Option(min=1, help="Adapters in rotation.")]
Replicas = Annotated[int, typer.Option(min=1, help="Copies of the deployment.")]
Engine = Annotated[str, typer.Option(help="vllm, sglang, trtllm, llama.cpp …")]
EngineVersion = Annotated[str | None, typer.Option(help="Its version; a recent one by default.")]
Regime = Annotated[
    str | None,
    typer.Option(help="max_load, fixed_concurrency, static_batch, poisson, prefill …"),
]
InputTokens = Annotated[int | None, typer.Option("--input", min=1, help="Tokens of a prompt.")]
OutputTokens = Annotated[int | None, typer.Option("--output-tokens", min=1, help="Of an answer.")]
Concurrency = Annotated[int | None, typer.Option(min=1, help="Users that ask again at once.")]
Rate = Annotated[float | None, typer.Option(min=0.0, help="Requests per second.")]
Calibration = Annotated[
    Path | None, typer.Option(help="Constants refitted with your own runs (calibrate --out).")
]
Table = Annotated[Path, typer.Argument(help="Configurations, one per row (CSV).")]
ModelOrTable = Annotated[
    str,
    typer.Argument(help="Model name, config.json, or a table of configurations (CSV)."),
]
OnUnlessTable = Annotated[
    str | None, typer.Option("--on", help="Accelerators, e.g. H100, 8xH100; a table has its own.")
]


def predict(
    model: ModelOrTable,
    on: OnUnlessTable = None,
    tp: Tp = None,
    pp: Pp = 1,
    dp: Dp = 1,
    ep: Ep = 1,
    cp: Cp = 1,
    replicas: Replicas = 1,
    precision: Precision = None,
    kv_precision: KvPrecision = None,
    engine: Engine = "vllm",
    engine_version: EngineVersion = None,
    max_num_seqs: MaxSeqs = None,
    lora_rank: LoraRank = 0,
    loras: Loras = 1,
    regime: Regime = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    concurrency: Concurrency = None,
    rate: Rate = None,
    calibration: Calibration = None,
    overlay: Overlay = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Throughput, latency, power and memory of one configuration, or of each row of a table."""
    if on is None and model.lower().endswith(".csv"):
        return predict_table(Path(model))
    if on is None:
        raise typer.BadParameter("is missing; give accelerators, e.g. 8xH100", param_hint="--on")
    from gpuplan import api
    from gpuplan.domain.inference.serving import LoraUse
    from gpuplan.domain.requests.requests import LoadRequest, PredictRequest

    load = LoadRequest(
        regime=regime,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        n_concurrent=concurrency,
        requests_per_s=rate,
        adapters=LoraUse(rank=lora_rank, n_adapters=loras) if lora_rank else None,
    )
    request = PredictRequest(
        tp=tp, pp=pp, dp=dp, ep=ep, cp=cp, n_replicas=replicas, precision=precision,
        cache_precision=kv_precision, engine=engine, engine_version=engine_version,
        max_sequences=max_num_seqs, load=load,
    )  # fmt: skip
    found = api.predict(
        model,
        on,
        request,
        overlays=overlay or [],
        store=user_store(),
        calibration=calibration,
    )
    return emit(api.predict_sheet(found), chosen(output, as_json=as_json))


def predict_table(file: Table, out: Out = None) -> None:
    """Predict every configuration of a table (CSV), inference or training; writes CSV."""
    from gpuplan import api

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


def roofline(
    model: Model,
    on: On,
    tp: Tp = None,
    precision: Precision = None,
    kv_precision: KvPrecision = None,
    engine: Engine = "vllm",
    engine_version: EngineVersion = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    overlay: Overlay = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Where prefill and decode sit under the roofline, and what limits each."""
    from gpuplan import api
    from gpuplan.domain.requests.requests import LoadRequest, PredictRequest

    request = PredictRequest(
        tp=tp, precision=precision, cache_precision=kv_precision, engine=engine,
        engine_version=engine_version,
        load=LoadRequest(input_tokens=input_tokens, output_tokens=output_tokens),
    )  # fmt: skip
    found = api.roofline(model, on, request, overlays=overlay or [], store=user_store())
    emit(api.roofline_sheet(found), chosen(output, as_json=as_json))
