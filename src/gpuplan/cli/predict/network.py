"""`gpuplan predict-network`: CNNs, ViTs, encoders, diffusion and measured pipelines."""

import re
from typing import Annotated, NamedTuple

from gpuplan import api
from gpuplan.cli.command import Form
from gpuplan.cli.options import LOAD, MODEL, Accelerator, Overlay, arg, option
from gpuplan.cli.output import emit
from gpuplan.errors import InputError, one


class NetworkOptions(NamedTuple):
    """Options of the command, in the order of its help."""

    name: Annotated[str, arg("Network: a timm name, an encoder, FLUX, a pipeline …")]
    on: Accelerator
    precision: str | None = option(MODEL, "Compute precision: fp16, bf16, fp32, int8 …")
    batch: int = option(LOAD, "Batch size in samples.", default=1, min=1)
    is_training: bool = option(
        LOAD, "Training step instead of inference.", "--train", default=False
    )
    image_px: int | None = option(
        LOAD, "Image side length in pixels (timm's img_size).", "--image-size", min=8
    )
    n_tokens: int = option(
        LOAD, "Text length in tokens, of encoders.", "--tokens", default=256, min=1
    )
    n_steps: int = option(LOAD, "Number of denoising steps.", "--steps", default=28, min=1)
    size: str = option(
        LOAD, "Width x height of the generated image, e.g. 1024x1024.", default="1024x1024"
    )
    n_frames: int = option(LOAD, "Number of frames of a clip.", "--frames", default=1, min=1)
    overlay: Overlay = None


def predict_network(options: NetworkOptions, form: Form) -> None:
    """Predict batch time and samples per second of a CNN, ViT, encoder or diffusion model."""
    from gpuplan.domain.requests.requests import NetworkRequest
    from gpuplan.domain.requests.typed import request_of

    width, height = _size(options.size)
    request = request_of(NetworkRequest, options, height_px=height, width_px=width)
    found = api.predict_network(options.name, options.on, request, overlays=options.overlay or [])
    emit(api.network_sheet(found), form)


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,5})\s*[xX×]\s*(\d{2,5})", text.strip())
    if not found:
        what, fix = f"{text!r} is not a size", "write e.g. 1024x1024"
        raise one(InputError, "predict-network", "--size", what, fix)
    return int(found[1]), int(found[2])
