"""`gpuplan calibrate` and `validate`: measured rows that fit the constants, or judge them."""

from pathlib import Path
from typing import Annotated, NamedTuple

from gpuplan import api
from gpuplan.cli.command import OUTPUT, Form
from gpuplan.cli.options import (
    ANALYSIS,
    ENGINE,
    LOAD,
    MODEL,
    Concurrency,
    InputTokens,
    KvPrecision,
    OutputTokens,
    Rate,
    Tp,
    accelerators_in,
    arg,
    model_in,
    opt,
    option,
)
from gpuplan.cli.output import busy, check_writable, deliver, emit

# Option → column of a measured row.
COLUMNS = {
    "model": "model",
    "on": "accelerator",
    "tp": "tp",
    "pp": "pp",
    "precision": "precision",
    "kv_precision": "kv_precision",
    "engine": "engine",
    "engine_version": "engine_version",
    "regime": "regime",
    "concurrency": "batch",
    "rate": "request_rate_per_s",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
}


class CalibrateOptions(NamedTuple):
    """Options of the command, in the order of its help."""

    files: Annotated[
        list[Path],
        arg(
            "Benchmark results: vLLM, SGLang, GuideLLM, AIPerf, GenAI-Perf, InferenceX, MLPerf, "
            "llama-bench, or a table in gpuplan's columns."
        ),
    ]
    model: Annotated[str | None, model_in(MODEL)] = None
    on: Annotated[
        str | None, accelerators_in(MODEL, "Accelerators of the whole system, e.g. 8xH100.")
    ] = None
    tp: Tp = None
    pp: int | None = option(MODEL, "Pipeline-parallel size (number of stages).", min=1)
    precision: str | None = option(MODEL, "Weight precision: bf16, fp8, int4, q4_k_m …")
    kv_precision: KvPrecision = None
    engine: str | None = option(ENGINE, "Serving engine, e.g. vllm.")
    engine_version: str | None = option(ENGINE, "Engine version, e.g. 0.11.")
    regime: str | None = option(LOAD, "Kind of load: fixed_concurrency, poisson, max_load …")
    concurrency: Concurrency = None
    rate: Rate = None
    input_tokens: InputTokens = None
    output_tokens: OutputTokens = None
    out: Path | None = option(OUTPUT, "Calibration file to write, for `predict --calibration`.")


def calibrate(options: CalibrateOptions, form: Form) -> None:
    """Calibrate the inference model with your own runs; errors are of held-out runs."""
    columns = {column: getattr(options, name) for name, column in COLUMNS.items()}
    given = {column: str(value) for column, value in columns.items() if value is not None}
    with busy("refitting, and judging each run by a refit without it"):
        outcome = api.calibrate(options.files, given=given, out=options.out)
    sheet = api.calibrate_sheet(outcome, written=str(options.out) if options.out else "")
    emit(sheet, form)


File = Annotated[
    Path | None, arg("Measured rows (CSV) or a tool's results; the package's own by default.")
]
Kind = Annotated[
    str, opt(ANALYSIS, "Measured table of the package: llm_inference or llm_training.")
]
Cross = Annotated[
    bool, opt(ANALYSIS, "Cross-validation with sources, models and versions held out.")
]
By = Annotated[
    str, opt(ANALYSIS, "Grouping of the errors: regime, accelerator, model, source or engine.")
]
Columns = Annotated[
    list[str] | None,
    opt(
        ANALYSIS,
        "Column of the file under its name here, gpu=accelerator; seq_len:=2048 sets one; "
        "repeatable.",
        "--map",
    ),
]
PredictionsOut = Annotated[Path | None, opt(OUTPUT, "Predictions file to write (CSV).", "--out")]


def validate(
    form: Form,
    file: File = None,
    kind: Kind = "llm_inference",
    cross_validate: Cross = False,
    by: By = "regime",
    columns: Columns = None,
    out: PredictionsOut = None,
) -> None:
    """Validate predictions against measured rows: error, bias, coverage of the ranges."""
    check_writable(out)
    with busy("predicting every row"):
        report = api.validate(file, kind=kind, cross=cross_validate, columns=columns or ())
    sheet = api.validate_sheet(report, group=by)
    deliver(sheet, form, [(out, lambda: api.predictions_csv(report), "")])
