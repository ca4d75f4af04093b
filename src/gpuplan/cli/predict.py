"""`gpuplan predict` and `gpuplan roofline`: how fast one configuration is, and what limits it."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.catalog import user_store
from gpuplan.cli.output import Form, chosen, emit
from gpuplan.cli.scenario import write_whole

Model = Annotated[str, typer.Argument(help="Model name, config.json, or a folder that holds one.")]
On = Annotated[str, typer.Option(help="Accelerators, e.g. H100, 8xH100.")]
Tp = Annotated[int | None, typer.Option(min=1, help="Tensor parallel.")]
Pp = Annotated[int, typer.Option(min=1, help="Pipeline stages.")]
Dp = Annotated[int, typer.Option(min=1, help="Attention replicas that share the experts.")]
Ep = Annotated[int, typer.Option(min=1, help="Devices that the experts are dealt to.")]
Replicas = Annotated[int, typer.Option(min=1, help="Copies of the deployment.")]
Precision = Annotated[str | None, typer.Option(help="Of the weights; as published by default.")]
KvPrecision = Annotated[str | None, typer.Option(help="Of the key-value cache.")]
Engine = Annotated[str, typer.Option(help="vllm, sglang, trtllm, llama.cpp …")]
EngineVersion = Annotated[str | None, typer.Option(help="Its version; a recent one by default.")]
MaxSeqs = Annotated[int | None, typer.Option("--max-num-seqs", min=1, help="Of one iteration.")]
Regime = Annotated[
    str | None,
    typer.Option(help="max_load, fixed_concurrency, static_batch, poisson, prefill …"),
]
InputTokens = Annotated[int | None, typer.Option("--input", min=1, help="Tokens of a prompt.")]
OutputTokens = Annotated[int | None, typer.Option("--output-tokens", min=1, help="Of an answer.")]
Concurrency = Annotated[int | None, typer.Option(min=1, help="Users that ask again at once.")]
Rate = Annotated[float | None, typer.Option(min=0.0, help="Requests per second.")]
Overlay = Annotated[list[Path] | None, typer.Option(help="Your facts over the catalog's (YAML).")]
Table = Annotated[Path, typer.Argument(help="Configurations, one per row (CSV).")]
Out = Annotated[Path | None, typer.Option("--out", help="File to write; stdout when left out.")]
Output = Annotated[Form, typer.Option("-o", "--output", help="Output form.")]
Json = Annotated[bool, typer.Option("--json", help="Short for -o json.")]


def predict(
    model: Model,
    on: On,
    tp: Tp = None,
    pp: Pp = 1,
    dp: Dp = 1,
    ep: Ep = 1,
    replicas: Replicas = 1,
    precision: Precision = None,
    kv_precision: KvPrecision = None,
    engine: Engine = "vllm",
    engine_version: EngineVersion = None,
    max_num_seqs: MaxSeqs = None,
    regime: Regime = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    concurrency: Concurrency = None,
    rate: Rate = None,
    overlay: Overlay = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Throughput, latency, power and memory of one configuration, each with a range."""
    from gpuplan import api
    from gpuplan.domain.requests import LoadRequest, PredictRequest

    load = LoadRequest(
        regime=regime,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        n_concurrent=concurrency,
        requests_per_s=rate,
    )
    request = PredictRequest(
        tp=tp, pp=pp, dp=dp, ep=ep, n_replicas=replicas, precision=precision,
        cache_precision=kv_precision, engine=engine, engine_version=engine_version,
        max_sequences=max_num_seqs, load=load,
    )  # fmt: skip
    found = api.predict(model, on, request, overlays=overlay or [], store=user_store(None))
    emit(api.predict_sheet(found), chosen(output, as_json=as_json))


def predict_table(file: Table, out: Out = None) -> None:
    """Predict every configuration of a table (CSV), inference or training; writes CSV."""
    from gpuplan import api

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
    from gpuplan.domain.requests import LoadRequest, PredictRequest

    request = PredictRequest(
        tp=tp, precision=precision, cache_precision=kv_precision, engine=engine,
        engine_version=engine_version,
        load=LoadRequest(input_tokens=input_tokens, output_tokens=output_tokens),
    )  # fmt: skip
    found = api.roofline(model, on, request, overlays=overlay or [], store=user_store(None))
    emit(api.roofline_sheet(found), chosen(output, as_json=as_json))
