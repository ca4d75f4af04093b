"""`gpuplan validate` and `gpuplan scale`: how right predictions are, and how far a job scales."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, MicroBatch, Output, SequenceTokens
from gpuplan.cli.output import Form, busy, chosen, emit
from gpuplan.cli.scenario import write_whole
from gpuplan.errors import InputError, one
from gpuplan.units import GBIT


class Again(StrEnum):
    """What the backward pass computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


File = Annotated[
    Path | None, typer.Argument(help="Measured rows (CSV); the package's own when left out.")
]
Kind = Annotated[str, typer.Option(help="Of the package's own: llm_inference or llm_training.")]
Cross = Annotated[bool, typer.Option(help="Also refit with sources, models, versions left out.")]
By = Annotated[str, typer.Option(help="regime, accelerator, model, source or engine.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write every prediction here (CSV).")]

Model = Annotated[str, typer.Argument(help="Model name or config.json.")]
On = Annotated[str, typer.Option(help="Accelerator, e.g. H100.")]
Counts = Annotated[str, typer.Option(help="Numbers of devices, e.g. 8,16,32,64.")]
Accumulate = Annotated[int, typer.Option(min=1, help="Micro-batches of one step.")]
Recompute = Annotated[Again, typer.Option(help="What is computed again in the backward pass.")]
Tp = Annotated[int, typer.Option(min=1, help="Tensor parallel.")]
TpAcross = Annotated[bool, typer.Option("--tp-across-nodes", help="Allow it past a node.")]
Hybrid = Annotated[bool, typer.Option(help="Shard inside nodes, copy between them.")]
PerNode = Annotated[int, typer.Option(min=1, help="Devices of one server.")]
NodeGbit = Annotated[
    float | None, typer.Option(min=0.1, help="Gbit/s of all adapters of a server together.")
]
Mfu = Annotated[float | None, typer.Option(help="Your own utilization, 0 to 1, instead of ours.")]
Price = Annotated[float | None, typer.Option(min=0.0, help="USD per device and hour.")]


def validate(
    file: File = None,
    kind: Kind = "llm_inference",
    cross: Cross = False,
    by: By = "regime",
    out: Out = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Predictions against measured rows: errors, bias, and how often the range holds."""
    from gpuplan import api

    with busy("predicting every row"):
        report = api.validate(file, kind=kind, cross=cross)
    if out is not None:
        write_whole(out, api.predictions_csv(report))
    emit(api.validate_sheet(report, group=by), chosen(output, as_json=as_json))


def scale(
    model: Model,
    on: On,
    counts: Counts = "8,16,32,64",
    sequence: SequenceTokens = 8192,
    micro_batch: MicroBatch = 1,
    accumulate: Accumulate = 1,
    recompute: Recompute = Again.FULL,
    tp: Tp = 1,
    tp_across_nodes: TpAcross = False,
    hybrid: Hybrid = False,
    per_node: PerNode = 8,
    node_gbit: NodeGbit = None,
    mfu: Mfu = None,
    price: Price = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Speed over the number of devices for training: the knee, its causes, what helps more."""
    from gpuplan import api
    from gpuplan.domain.training.scaling import NodeLinks, ScaleLayout, ScaleRequest

    request = ScaleRequest(
        model=model,
        accelerator=on,
        counts=_counts(counts),
        micro_batch=micro_batch,
        sequence_tokens=sequence,
        n_micro_batches=accumulate,
        layout=ScaleLayout(is_hybrid=hybrid, tp=tp, allows_tp_across_nodes=tp_across_nodes),
        recompute=recompute.value,
        links=NodeLinks(
            n_node=per_node,
            adapters_bytes_per_s=None if node_gbit is None else node_gbit * GBIT,
        ),
        mfu_frac=mfu,
        price_usd_per_h=price,
    )
    emit(api.scale_sheet(api.scale(request)), chosen(output, as_json=as_json))


def _counts(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and len(word) <= 7 for word in words):
        raise one(InputError, "scale", "--counts", f"got {text!r}", "write e.g. 8,16,32,64")
    return tuple(int(word) for word in words)
