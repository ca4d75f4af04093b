"""Networks that are no language models: by name to their work, and to the time of a batch."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.networks.fit import basis_of
from gpuplan.calibration.networks.stored import (
    benchmark_rate,
    benchmarks,
    denoiser_shape,
    is_no_wider,
    network_constants,
    network_estimate,
)
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.model_names import without_part
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.vision import vision_named, vision_networks
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.other import NetworkForecast, NetworkKind, NetworkWork, VisionNetwork
from gpuplan.domain.provenance import Assumption, Estimate, assume
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.performance.other_networks import (
    denoiser_work,
    device_of,
    encoder_work,
    latent_tokens,
    network_time_s,
    on_processor,
    speed_ratio,
    vision_work,
)
from gpuplan.studies.naming import model_named, with_overlays
from gpuplan.studies.networks.recommender import recommender_forecast
from gpuplan.studies.networks.speech import (
    benchmarked_board,
    board_figures,
    sixteen_bits,
    speech_forecast,
)
from gpuplan.units import MS

FLOP_PER_MAC = 2.0
# Assumption: some 300 kernels of an image network at 10 us each in eager mode, thrice in training.
LAUNCHES_S = {"vision": 3.0 * MS, "vision-training": 9.0 * MS}
USUAL_IMAGE_PX = 224
USUAL_TOKENS = 197  # 14 x 14 patches and the class
ATTENTION_WIDTHS = 4  # query, key, value and output
STACKS: dict[NetworkKind, str] = {
    "vision": "eager-nchw",
    "vision-training": "eager-nchw",
    "vision-cpu": "eager-nchw",
    "encoder": "served-fused",  # an embedding server; TensorRT runs on boards of one maker alone
    "denoiser": "xdit",
}


def predict_network(
    name: str, on: str, request: NetworkRequest | None = None, *, overlays: Sequence[Path] = ()
) -> NetworkForecast:
    """Time of a batch of a network that is no language model, with its range."""
    request = request or NetworkRequest()
    catalog = with_overlays(read_catalog(), overlays)
    choice = find_accelerator(on, catalog)
    card, notes = choice.accelerator, list(choice.assumptions)
    images = vision_named(name)
    model = None if images else _model(name)
    if model is None and not images:
        return _pipeline(name, card, notes)
    if model is not None and model.kind == "speech":
        return speech_forecast(model, card, request, notes)
    if model is not None and model.kind == "recommender":
        return recommender_forecast(model, card, request, notes)
    name = model_label(model) if model is not None else images[0].name.split(".")[0]
    kind, work, assumed = _work(name, model, card, request)
    notes += assumed
    notes.append(assume("software", STACKS[kind], "what the measurements ran on", ""))
    seconds = _seconds(name, kind, work, card, request.precision or sixteen_bits(card))
    return NetworkForecast(
        name=name,
        kind=kind,
        accelerator=card,
        batch=request.batch,
        work=work,
        batch_s=network_estimate(seconds, kind, model=name, accelerator=card),
        assumptions=tuple(notes),
    )


@lru_cache(maxsize=4096)
def is_covered(name: str, accelerator_name: str) -> bool:
    """Whether such networks were measured on the accelerator, or do as predicted on any board.

    Where boards make no difference to the error, those count that language models were measured on.
    """
    try:
        found = predict_network(name, accelerator_name, NetworkRequest(batch=1))
    except PlannerError:
        return False
    if found.batch_s.tier != "estimated":
        return True
    is_common = str(found.accelerator.id) in inference_calibration().known["accelerator"]
    return is_common and is_no_wider(found.kind, found.batch_s)


def _seconds(
    name: str, kind: NetworkKind, work: NetworkWork, card: Accelerator, precision: str
) -> float:
    """Time of the batch; measured rates are those of large ones: a small one waits for launches."""
    constants = network_constants(kind, name, STACKS[kind], accelerator=card)
    device = device_of(card, precision)
    busy_s = network_time_s(work, device, constants=constants, basis=basis_of(kind))
    return max(busy_s, LAUNCHES_S.get(kind, 0.0))


def _pipeline(name: str, card: Accelerator, notes: list[Assumption]) -> NetworkForecast:
    board = benchmarked_board(card)
    rate = benchmark_rate(name, board, known=board_figures(), speed_ratio=speed_ratio)
    batch_s = Estimate(
        value=1 / rate.value,
        low=1 / rate.high,
        high=1 / rate.low,
        tier=rate.tier,
        sources=rate.sources,
    )
    notes.append(assume("pipeline", name, "an MLPerf entry, tuned by its submitters", ""))
    return NetworkForecast(
        name=name,
        kind="pipeline",
        accelerator=card,
        batch=1,
        work=None,
        batch_s=batch_s,
        assumptions=tuple(notes),
    )


def model_label(model: Model) -> str:
    """The name that measurements know a model by: without its owner and the part of a pipeline."""
    return without_part(model.name).rpartition("/")[2]


def _work(
    name: str, model: Model | None, card: Accelerator, request: NetworkRequest
) -> tuple[NetworkKind, NetworkWork, list[Assumption]]:
    if model is None or model.kind == "vision":
        found = vision_named(name) or tuple(from_layers(each) for each in (model,) if each)
        return _vision(found, card, request)
    if model.kind == "encoder":
        return _encoder(model, card, request)
    if model.kind == "diffusion":
        shape = denoiser_shape(name, float(model.n_params))
        n_tokens = latent_tokens(
            shape, request.height_px, width_px=request.width_px, n_frames=request.n_frames
        )
        work = denoiser_work(shape, n_tokens, n_steps=request.n_steps, batch=request.batch)
        size = f"{request.width_px}x{request.height_px}, {request.n_steps} steps"
        return "denoiser", work, [assume("picture", size, "as asked or usual", "--size, --steps")]
    fix = "language models go to gpuplan predict"
    raise one(InputError, "predict-network", name, f"is a {model.kind}", fix)


def from_layers(model: Model) -> VisionNetwork:
    """A vision transformer by its layers: every matrix and both products of attention."""
    n_tokens, width = model.max_context_tokens or USUAL_TOKENS, model.main.hidden_size
    n_macs = n_elements = 0.0
    for group in model.main.groups:
        inner = (group.n_params / group.n_layers - ATTENTION_WIDTHS * width**2) / (2 * width)
        n_macs += group.n_params * n_tokens + group.n_layers * 2 * n_tokens**2 * width
        n_elements += group.n_layers * n_tokens * (ATTENTION_WIDTHS * width + inner + width)
    return VisionNetwork(
        name=model.name,
        n_params=model.n_params,
        flop_per_sample=FLOP_PER_MAC * n_macs,
        activation_elements=round(n_elements),
        image_px=USUAL_IMAGE_PX,
        source=model.source,
    )


def _vision(
    found: Sequence[VisionNetwork], card: Accelerator, request: NetworkRequest
) -> tuple[NetworkKind, NetworkWork, list[Assumption]]:
    usual = min((n.image_px for n in found), key=lambda px: abs(px - USUAL_IMAGE_PX))
    at = request.image_px or usual
    chosen = min(found, key=lambda network: abs(network.image_px - at))
    area = (at / chosen.image_px) ** 2
    work = vision_work(
        chosen.flop_per_sample / FLOP_PER_MAC * area,
        chosen.activation_elements * area,
        chosen.n_params,
        batch=request.batch,
    )
    kind: NetworkKind = "vision-training" if request.is_training else "vision"
    notes = [assume("picture", f"{at} x {at}", "the usual size unless given", "--image-size")]
    return ("vision-cpu" if card.is_cpu else kind), work, notes


def _encoder(
    model: Model, card: Accelerator, request: NetworkRequest
) -> tuple[NetworkKind, NetworkWork, list[Assumption]]:
    work = encoder_work(
        model.main.n_layers,
        model.main.hidden_size,
        n_tokens=request.n_tokens,
        batch=request.batch,
    )
    notes = [assume("text", f"{request.n_tokens} tokens", "as asked or usual", "--tokens")]
    if not card.is_cpu:
        return "encoder", work, notes
    # No encoder was measured on a processor: its reach is that of image networks there.
    why = "no encoder was measured on a CPU"
    notes.append(assume("utilization of the CPU", "that of image networks", why, ""))
    return "vision-cpu", on_processor(work), notes


def _model(name: str) -> Model | None:
    """The model of this name; None where it is a measured pipeline that is no model."""
    try:
        return model_named(name)
    except InputError as error:
        if name in benchmarks():
            return None
        networks = sorted({n.name.split(".")[0] for n in vision_networks()} | set(benchmarks()))
        near = get_close_matches(name.lower(), networks, n=3, cutoff=0.4)
        fix = f"{error.problems[0].fix}; among networks: {', '.join(near or networks[:3])}"
        raise one(
            InputError, "predict-network", name, "is neither a network nor a model", fix
        ) from None
