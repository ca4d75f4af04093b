"""`gpuplan predict-training`: step time, utilization and length of a training run."""

from typing import Annotated

import typer

from gpuplan.cli.options import Cp, Ep, Json, MicroBatch, Output, Pp, SequenceTokens
from gpuplan.cli.output import Form, chosen, emit
from gpuplan.units import GB, HOUR

Model = Annotated[str, typer.Argument(help="Model name or config.json.")]
On = Annotated[str, typer.Option(help="Accelerator, e.g. H100.")]
Devices = Annotated[int, typer.Option("--devices", min=1, help="How many of them.")]
GlobalBatch = Annotated[int, typer.Option(min=1, help="Samples of one step, all devices.")]
Tp = Annotated[int, typer.Option(min=1, help="Tensor parallel.")]
Vp = Annotated[int | None, typer.Option(min=1, help="Chunks of a stage (interleaving).")]
Sharding = Annotated[str, typer.Option(help="fsdp, zero1, zero2, zero3; empty: the usual.")]
Recompute = Annotated[str, typer.Option(help="none, selective or full; empty: the usual.")]
Precision = Annotated[str, typer.Option(help="bf16, fp8 …")]
Framework = Annotated[str, typer.Option(help="Megatron, NeMo, torchtitan, llm-foundry …")]
Task = Annotated[str, typer.Option(help="pretrain, full, lora or qlora.")]
Fabric = Annotated[str, typer.Option(help="Between servers, e.g. '400 Gb/s per GPU'.")]
Tokens = Annotated[float | None, typer.Option(min=1.0, help="Tokens of the whole run, e.g. 2e12.")]
MtbfHours = Annotated[
    float | None, typer.Option("--mtbf-h", min=0.001, help="Hours between stops of the job.")
]
RestartMinutes = Annotated[float, typer.Option("--restart-min", min=0.0, help="Of one stop.")]
CheckpointRate = Annotated[
    float | None, typer.Option("--checkpoint-gb-per-s", min=0.001, help="Write rate, all together.")
]


def predict_training(
    model: Model,
    on: On,
    devices: Devices = 8,
    sequence: SequenceTokens = 4096,
    global_batch: GlobalBatch = 128,
    micro_batch: MicroBatch = 1,
    tp: Tp = 1,
    pp: Pp = 1,
    vp: Vp = None,
    cp: Cp = 1,
    ep: Ep = 1,
    sharding: Sharding = "",
    recompute: Recompute = "",
    precision: Precision = "bf16",
    framework: Framework = "",
    task: Task = "pretrain",
    fabric: Fabric = "",
    tokens: Tokens = None,
    mtbf_h: MtbfHours = None,
    restart_min: RestartMinutes = 15.0,
    checkpoint_gb_per_s: CheckpointRate = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Step time, tokens per second, utilization and length of a training run, with ranges."""
    from gpuplan import api
    from gpuplan.domain.requests.requests import TrainingRun

    columns = {
        "id": "asked", "model": model, "accelerator": on, "n_accelerators": devices,
        "seq_len": sequence, "global_batch": global_batch, "micro_batch": micro_batch, "tp": tp,
        "pp": pp, "vp": vp or "", "cp": cp, "ep": ep, "sharding": sharding,
        "recompute": recompute, "precision": precision, "framework": framework, "task": task,
        "fabric": fabric,
    }  # fmt: skip
    run = TrainingRun(
        columns=tuple((name, str(value)) for name, value in columns.items()),
        n_tokens=tokens,
        mtbf_s=None if mtbf_h is None else mtbf_h * HOUR,
        restart_s=restart_min * 60.0,
        checkpoint_bytes_per_s=None if checkpoint_gb_per_s is None else checkpoint_gb_per_s * GB,
    )
    emit(api.run_sheet(api.predict_training(run)), chosen(output, as_json=as_json))
