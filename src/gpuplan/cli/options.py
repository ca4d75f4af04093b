"""Options that several commands share, with one wording."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.completion import accelerator_names, model_names
from gpuplan.cli.output import Form

Model = Annotated[
    str,
    typer.Argument(
        help="Model name, config.json, or a folder that holds one.", autocompletion=model_names
    ),
]
On = Annotated[
    str,
    typer.Option(help="Accelerators, e.g. H100, 8xH100, l40s.", autocompletion=accelerator_names),
]
Tp = Annotated[int | None, typer.Option(min=1, help="Tensor parallel.")]
Pp = Annotated[int, typer.Option(min=1, help="Pipeline stages.")]
Dp = Annotated[int, typer.Option(min=1, help="Attention replicas that share the experts.")]
Cp = Annotated[int, typer.Option(min=1, help="Context parallel.")]
Ep = Annotated[int, typer.Option(min=1, help="Devices that the experts are dealt to.")]
Precision = Annotated[
    str | None, typer.Option(help="Of the weights: bf16, fp8, int4 …; as published by default.")
]
KvPrecision = Annotated[str | None, typer.Option(help="Of the key-value cache: bf16 or fp8.")]
MaxSeqs = Annotated[
    int | None, typer.Option("--max-num-seqs", min=1, help="Sequences of one iteration.")
]
SequenceTokens = Annotated[int, typer.Option("--sequence", min=1, help="Tokens of one sample.")]
MicroBatch = Annotated[int, typer.Option(min=1, help="Samples at once on one rank.")]
Overlay = Annotated[list[Path] | None, typer.Option(help="Your facts over the catalog's (YAML).")]
Store = Annotated[
    Path | None, typer.Option(help="Folder of refreshed facts; your user folder by default.")
]
Strict = Annotated[bool, typer.Option(help="End with 3 when it does not fit.")]
Out = Annotated[Path | None, typer.Option("--out", help="File to write; stdout when left out.")]
Output = Annotated[Form, typer.Option("-o", "--output", help="Output form.")]
Json = Annotated[bool, typer.Option("--json", help="Short for -o json.")]


def user_store(given: Path | None = None) -> Path:
    """Where refreshed facts are kept."""
    return given or Path(typer.get_app_dir("gpuplan")) / "catalog"
