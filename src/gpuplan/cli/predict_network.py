"""`gpuplan predict-network`: CNNs, ViTs, encoders, diffusion and measured pipelines."""

import re
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Output, Overlay
from gpuplan.cli.output import Form, chosen, emit
from gpuplan.errors import InputError, one

Name = Annotated[str, typer.Argument(help="A timm network, an encoder, FLUX, a pipeline …")]
On = Annotated[str, typer.Option(help="Accelerator, e.g. A100, L4, cpu.")]
Batch = Annotated[int, typer.Option(min=1, help="Samples at once.")]
Precision = Annotated[str | None, typer.Option(help="fp16, bf16, fp32, int8 …")]
Train = Annotated[bool, typer.Option("--train", help="A training step instead of inference.")]
Image = Annotated[int | None, typer.Option("--image", min=8, help="Side of the picture, pixels.")]
TextTokens = Annotated[int, typer.Option("--tokens", min=1, help="Of one text, for encoders.")]
Steps = Annotated[int, typer.Option(min=1, help="Denoising steps.")]
Size = Annotated[str, typer.Option(help="Width x height of what is made, e.g. 1024x1024.")]
Frames = Annotated[int, typer.Option(min=1, help="Frames of a clip.")]


def predict_network(
    name: Name,
    on: On,
    batch: Batch = 1,
    precision: Precision = None,
    train: Train = False,
    image: Image = None,
    tokens: TextTokens = 256,
    steps: Steps = 28,
    size: Size = "1024x1024",
    frames: Frames = 1,
    overlay: Overlay = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Time of a batch and samples per second of a network that is no language model."""
    from gpuplan import api
    from gpuplan.domain.requests.requests import NetworkRequest

    width, height = _size(size)
    request = NetworkRequest(
        batch=batch, precision=precision, is_training=train, image_px=image, n_tokens=tokens,
        n_steps=steps, height_px=height, width_px=width, n_frames=frames,
    )  # fmt: skip
    found = api.predict_network(name, on, request, overlays=overlay or [])
    emit(api.network_sheet(found), chosen(output, as_json=as_json))


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,5})\s*[xX×]\s*(\d{2,5})", text.strip())
    if not found:
        raise one(InputError, "predict-network", "--size", f"got {text!r}", "write e.g. 1024x1024")
    return int(found[1]), int(found[2])
