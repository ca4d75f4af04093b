"""`gpuplan calibrate`: your own benchmark runs move the constants to your site."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, KvPrecision, Output, Tp
from gpuplan.cli.output import Form, busy, chosen, emit

Files = Annotated[
    list[Path],
    typer.Argument(
        help="Benchmark outputs: a table in gpuplan's columns, vLLM, SGLang, GuideLLM, AIPerf, "
        "GenAI-Perf, MLPerf or llama-bench."
    ),
]
Out = Annotated[Path | None, typer.Option(help="Write the calibration here, for predictions.")]
Model = Annotated[str | None, typer.Option(help="Model that ran, where the files do not say.")]
On = Annotated[str | None, typer.Option(help="Accelerators of the whole system, e.g. 8xH100.")]
Pp = Annotated[int | None, typer.Option(min=1, help="Pipeline stages.")]
Precision = Annotated[str | None, typer.Option(help="Of the weights: bf16, fp8, int4, q4_k_m …")]
Engine = Annotated[str | None, typer.Option(help="Engine that served, e.g. vllm.")]
EngineVersion = Annotated[str | None, typer.Option(help="Its version, e.g. 0.11.")]
Regime = Annotated[
    str | None, typer.Option(help="Kind of load: fixed_concurrency, poisson, max_load …")
]
Concurrency = Annotated[int | None, typer.Option(min=1, help="Requests under way at once.")]
Rate = Annotated[float | None, typer.Option(min=0.0, help="Requests per second.")]
InputTokens = Annotated[int | None, typer.Option("--input", min=1, help="Mean of the prompts.")]
OutputTokens = Annotated[int | None, typer.Option("--output-tokens", min=1, help="Of the answers.")]


def calibrate(
    files: Files,
    out: Out = None,
    model: Model = None,
    on: On = None,
    tp: Tp = None,
    pp: Pp = None,
    precision: Precision = None,
    kv_precision: KvPrecision = None,
    engine: Engine = None,
    engine_version: EngineVersion = None,
    regime: Regime = None,
    concurrency: Concurrency = None,
    rate: Rate = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Refit the inference model to your own runs; errors are of runs that it had not seen."""
    from gpuplan import api

    asked = {
        "model": model,
        "accelerator": on,
        "tp": tp,
        "pp": pp,
        "precision": precision,
        "kv_precision": kv_precision,
        "engine": engine,
        "engine_version": engine_version,
        "regime": regime,
        "batch": concurrency,
        "request_rate_per_s": rate,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
    }
    given = {key: str(value) for key, value in asked.items() if value is not None}
    with busy("refitting, and judging each run by a refit without it"):
        outcome = api.calibrate(files, given=given, out=out)
    sheet = api.calibrate_sheet(outcome, written=str(out) if out else "")
    emit(sheet, chosen(output, as_json=as_json))
