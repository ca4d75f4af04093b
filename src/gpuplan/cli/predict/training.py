"""`gpuplan predict-training` and `scale`: one training run, and its speed-up over devices."""

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import typer

from gpuplan import api
from gpuplan.cli.command import Form
from gpuplan.cli.options import (
    ANALYSIS,
    MODEL,
    PRICES,
    TRAINING,
    Accelerator,
    Cp,
    DevicesPerNode,
    Ep,
    MicroBatch,
    Model,
    Pp,
    Sequence,
    TrainingLoraRank,
    TrainingTp,
    VirtualStages,
    bytes_per_s,
    option,
)
from gpuplan.cli.output import emit
from gpuplan.errors import InputError, ViolationError, one

if TYPE_CHECKING:
    from gpuplan.domain.training.scaling import ScaleRequest

FAILURES = "Failures and checkpoints"
NETWORK = "Network"


class TrainingOptions(NamedTuple):
    """Options of `predict-training`, in the order of its help: what `api.training_run` takes."""

    model: Model
    on: Accelerator
    devices: int | None = option(
        MODEL, "Number of accelerators; that of --on, else 8, by default.", "--devices", min=1
    )
    tp: TrainingTp = 1
    pp: Pp = 1
    vp: VirtualStages = None
    cp: Cp = 1
    ep: Ep = 1
    precision: str = option(MODEL, "Compute precision: bf16, fp8 …", default="bf16")
    seq_len: Sequence = 4096
    global_batch: int = option(TRAINING, "Global batch size per step, samples.", default=128, min=1)
    micro_batch: MicroBatch = 1
    task: str = option(
        TRAINING, "Kind of training: pretrain, full, lora or qlora.", default="pretrain"
    )
    sharding: str = option(
        TRAINING,
        "Sharding: none, zero1, zero2, zero3, fsdp or hsdp; the framework's usual by default.",
        default="",
    )
    recompute: str = option(
        TRAINING,
        "Activation recomputation: none, selective or full; the framework's usual by default.",
        default="",
    )
    framework: str = option(
        TRAINING, "Framework whose defaults apply: Megatron, NeMo, torchtitan …", default=""
    )
    lora_rank: TrainingLoraRank = 16
    tokens: float | None = option(TRAINING, "Total tokens of the run, e.g. 2e12.", min=1.0)
    fabric: str = option(
        NETWORK,
        "Network between servers, e.g. '400 Gbit/s per GPU', '100 Gbps TCP per node'.",
        default="",
    )
    devices_per_node: DevicesPerNode = None
    mtbf_h: float | None = option(
        FAILURES, "Mean time between failures (MTBF) of the job, hours.", min=0.001
    )
    restart_min: float = option(
        FAILURES, "Restart time after a failure, minutes.", default=15.0, min=0.0
    )
    checkpoint_gb_per_s: float | None = option(
        FAILURES, "Total checkpoint write bandwidth, GB/s.", min=0.001
    )


def predict_training(options: TrainingOptions, form: Form) -> None:
    """Predict step time, tokens per second, MFU and duration of a training run, with ranges."""
    sheet = api.run_sheet(api.predict_training(api.training_run(**options._asdict())))
    emit(sheet, form)


class Recompute(StrEnum):
    """What the backward pass computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class ScaleOptions(NamedTuple):
    """Options of `scale`, in the order of its help."""

    model: Model
    on: Accelerator
    devices: str = option(
        MODEL,
        "Numbers of accelerators to compare, e.g. 8,16,32,64, or the largest.",
        default="8,16,32,64",
    )
    tp: TrainingTp = 1
    tp_across_nodes: bool = option(
        MODEL, "Allow tensor parallelism across nodes.", "--tp-across-nodes", default=False
    )
    hsdp: bool = option(
        MODEL, "Hybrid sharding (HSDP): shard inside nodes, replicate between them.", default=False
    )
    sequence_tokens: Sequence = 8192
    micro_batch: MicroBatch = 1
    gradient_accumulation_steps: int = option(
        TRAINING, "Gradient accumulation steps per optimizer step.", default=1, min=1
    )
    recompute: Recompute = option(
        TRAINING, "Activation recomputation in the backward pass.", default=Recompute.FULL
    )
    mfu_frac: float | None = option(
        TRAINING, "Measured MFU of your own, 0 to 1, instead of the model's.", "--mfu"
    )
    devices_per_node: int = option(NETWORK, "Accelerators per server.", default=8, min=1)
    node_gbit: float | None = option(NETWORK, "Total NIC bandwidth of a server, Gbit/s.", min=0.1)
    fabric: str = option(
        NETWORK, "Network between servers, e.g. '3200 Gbit/s EFA per node', 'TCP'.", default=""
    )
    price_usd_per_h: float | None = option(
        PRICES, "Hourly price per accelerator, USD.", "--price", min=0.0
    )
    loader_samples_per_s: float | None = option(
        TRAINING, "Samples per second that the data loader supplies to the job.", min=0.001
    )
    force: bool = option(
        ANALYSIS, "End with code 0 although the largest number is past the knee.", default=False
    )


def scale(options: ScaleOptions, form: Form) -> None:
    """Show training speed-up over the number of accelerators: the knee, its causes, what helps.

    Exits with code 4 when the largest number is past the knee, unless forced.
    """
    curve = api.scale(_scale_request(options))
    emit(api.scale_sheet(curve), form)
    if curve.is_past_knee and not options.force:
        largest = curve.points[-1].n_accelerators
        what = f"{largest} accelerators are past the knee at {curve.knee}"
        fix = "change network or parallelism first, or ask for it with --force"
        error = one(ViolationError, "scale", "--devices", what, fix)
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code)


def _scale_request(options: ScaleOptions) -> "ScaleRequest":
    from gpuplan.domain.requests.typed import request_of
    from gpuplan.domain.training.scaling import NodeLinks, ScaleLayout, ScaleRequest

    return request_of(
        ScaleRequest,
        options,
        accelerator=options.on,
        counts=_counts(options.devices),
        n_micro_batches=options.gradient_accumulation_steps,
        layout=ScaleLayout(
            is_hybrid=options.hsdp, tp=options.tp, allows_tp_across_nodes=options.tp_across_nodes
        ),
        recompute=options.recompute.value,
        links=NodeLinks(
            n_node=options.devices_per_node,
            adapters_bytes_per_s=bytes_per_s(options.node_gbit),
            fabric=options.fabric,
        ),
    )


def _counts(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and len(word) <= 7 for word in words):
        what, fix = f"{text!r} is not a list of numbers", "write e.g. 8,16,32,64"
        raise one(InputError, "scale", "--devices", what, fix)
    return tuple(int(word) for word in words)
