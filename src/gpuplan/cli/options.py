"""Options that several commands share, with one wording; the groups that help shows them in."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.models import OptionInfo

from gpuplan.cli.command import OUTPUT
from gpuplan.cli.completion import accelerator_names, model_names
from gpuplan.units import GBIT

COMMON = "Common options"
MODEL = "Model and layout"
TRAINING = "Training job"
LOAD = "Load"
ENGINE = "Engine"
FLEET = "Fleet"
SLO = "SLO"
PRICES = "Prices and budget"
SITE = "Site"
CATALOG = "Catalog and calibration"
SERVER = "Prometheus server"
ANALYSIS = "Analysis"


def opt(group: str, help_text: str, *flags: str, **settings: Any) -> Any:
    """An option in a named group of the help."""
    return typer.Option(*flags, help=help_text, rich_help_panel=group, **settings)


def option(group: str, help_text: str, *flags: str, default: Any = None, **settings: Any) -> Any:
    """An option as the field of a class of options: `name: kind = option(group, text)`."""
    return typer.Option(default, *flags, help=help_text, rich_help_panel=group, **settings)


def usual(options: type[NamedTuple]) -> dict[str, Any]:
    """What each option of a class is where it is not given."""
    given = options._field_defaults
    return {
        name: value.default if isinstance(value, OptionInfo) else value
        for name, value in given.items()
    }


def arg(help_text: str, **settings: Any) -> Any:
    """A positional argument."""
    return typer.Argument(help=help_text, **settings)


def model_in(group: str) -> Any:
    """The model as an option, completed with the catalog's names."""
    text = "Model name, config.json, or a folder that holds one."
    return opt(group, text, "--model", autocompletion=model_names)


def accelerators_in(group: str, help_text: str) -> Any:
    """Accelerators as an option, completed with the catalog's names."""
    return opt(group, help_text, "--on", autocompletion=accelerator_names)


Model = Annotated[
    str, arg("Model name, config.json, or a folder that holds one.", autocompletion=model_names)
]
On = Annotated[str, accelerators_in(MODEL, "Accelerators of the deployment, e.g. H100 or 8xH100.")]
Accelerator = Annotated[str, accelerators_in(MODEL, "Accelerator type, e.g. H100, L40S or cpu.")]
Tp = Annotated[int | None, opt(MODEL, "Tensor-parallel size (vLLM's tensor_parallel_size).", min=1)]
TrainingTp = Annotated[int, opt(MODEL, "Tensor-parallel size, with sequence parallelism.", min=1)]
Pp = Annotated[int, opt(MODEL, "Pipeline-parallel size (number of stages).", min=1)]
Dp = Annotated[
    int, opt(MODEL, "Data-parallel attention ranks that share one set of experts.", min=1)
]
Cp = Annotated[int, opt(MODEL, "Context-parallel size (one sequence across devices).", min=1)]
Ep = Annotated[int, opt(MODEL, "Expert-parallel size of mixture-of-experts layers.", min=1)]
NodeGbit = Annotated[
    float | None,
    opt(
        MODEL,
        "Total NIC bandwidth of a server, Gbit/s: of a replica that spans servers.",
        "--node-gbit",
        min=0.1,
    ),
]
Precision = Annotated[
    str | None, opt(MODEL, "Weight precision: bf16, fp8, int4 …; the published one by default.")
]
KvPrecision = Annotated[
    str | None,
    opt(MODEL, "KV cache precision: bf16 or fp8 (vLLM's kv_cache_dtype).", "--kv-precision"),
]
Engine = Annotated[str, opt(ENGINE, "Serving engine: vllm, sglang, trtllm, llama.cpp …")]
EngineVersion = Annotated[str | None, opt(ENGINE, "Engine version; a recent one by default.")]
MaxSeqs = Annotated[
    int | None,
    opt(ENGINE, "Maximum sequences per iteration (vLLM's max_num_seqs).", "--max-num-seqs", min=1),
]
LoraRank = Annotated[int, opt(ENGINE, "LoRA adapter rank of the requests; 0 is no LoRA.", min=0)]
InputTokens = Annotated[int | None, opt(LOAD, "Mean prompt length in tokens.", min=1)]
OutputTokens = Annotated[int | None, opt(LOAD, "Mean output length in tokens.", min=1)]
Concurrency = Annotated[
    int | None,
    opt(
        LOAD,
        "Concurrent requests of a closed loop (max concurrency).",
        "--concurrency",
        min=1,
        max=1_000_000,
    ),
]
Rate = Annotated[
    float | None, opt(LOAD, "Request rate at the peak, requests per second.", "--rate", min=0)
]
ThinkTime = Annotated[
    float | None,
    opt(LOAD, "Mean think time of a user between requests, s.", "--think-time-s", min=0),
]
PrefixHitRate = Annotated[
    float | None, opt(LOAD, "Prefix cache hit rate: share of prompt tokens, 0 to 1.", min=0, max=1)
]
Sequence = Annotated[
    int, opt(TRAINING, "Sequence length of a training sample, tokens.", "--seq-length", min=1)
]
DevicesPerNode = Annotated[
    int | None, opt(TRAINING, "Accelerators per server; the usual server's by default.", min=1)
]
VirtualStages = Annotated[
    int | None, opt(MODEL, "Virtual pipeline stages per device (interleaved schedule).", min=1)
]
TrainingLoraRank = Annotated[int, opt(TRAINING, "LoRA rank of lora and qlora tasks.", min=1)]
MicroBatch = Annotated[int, opt(TRAINING, "Micro-batch size per rank, samples.", min=1)]
Overlay = Annotated[
    list[Path] | None, opt(CATALOG, "Catalog overlay with your own facts (YAML); repeatable.")
]
Store = Annotated[
    Path | None, opt(CATALOG, "Folder of updated prices; your user folder by default.")
]
Calibration = Annotated[
    Path | None, opt(CATALOG, "Calibration of your site, written by `gpuplan calibrate --out`.")
]
Seed = Annotated[int, opt(ANALYSIS, "Random seed; same seed, same bytes.", min=0)]
AsOf = Annotated[
    str | None, opt(PRICES, "Date on which prices are judged, e.g. 2026-11-01; today by default.")
]
UsdPerH = Annotated[
    float | None, opt(PRICES, "Hourly price per accelerator, USD.", "--usd-per-h", min=0)
]
Strict = Annotated[bool, opt(OUTPUT, "Exit with code 3 when it does not fit.")]
Out = Annotated[Path | None, opt(OUTPUT, "File to write; stdout by default.", "--out")]


def bytes_per_s(node_gbit: float | None) -> float | None:
    """A rate as typed, in bytes."""
    return None if node_gbit is None else node_gbit * GBIT


def user_store(given: Path | None = None) -> Path:
    """The folder of updated prices."""
    return given or Path(typer.get_app_dir("gpuplan")) / "catalog"
