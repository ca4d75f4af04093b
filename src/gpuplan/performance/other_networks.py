"""Time of networks that are no language models, in: work and device; out: seconds per batch."""

from dataclasses import replace

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.other import (
    DenoiserShape,
    Device,
    NetworkConstants,
    NetworkWork,
    SpeedBasis,
)
from gpuplan.errors import CatalogError, one

AUTOENCODER_FRAMES = 4  # that video autoencoders fold into one
LINEAR_STATE_TOKENS = 64  # attention without scores costs as if this many tokens were seen


def network_time_s(
    work: NetworkWork,
    device: Device,
    *,
    constants: NetworkConstants,
    basis: SpeedBasis,
    n_devices: float = 1,
) -> float:
    """One batch: arithmetic and traffic in turn, launches beside or after; above the roofline.

    Plain arithmetic: columns of batches, devices and constants pass through as well.
    """
    rates = based_on(device, basis)
    busy_s = constants.compute_ratio * work.flop / rates.flop_per_s
    busy_s += constants.attention_ratio * work.attention_flop / rates.attention_flop_per_s
    traffic = constants.traffic_ratio * work.activation_bytes
    busy_s += (traffic + constants.weight_ratio * work.weight_bytes) / rates.bytes_per_s
    spread_s = constants.scale_ratio * busy_s * split_frac(n_devices, constants.split_ratio)
    least_s = roofline_s(work, device, n_devices)
    device_s = _larger(least_s, spread_s)
    launches_s = constants.launch_s * work.n_kernels
    return _larger(device_s, launches_s) if basis.is_overlapped else device_s + launches_s


def _larger(one: float, other: float) -> float:
    """The larger of two, written so that it holds for columns too."""
    return 0.5 * (one + other + abs(one - other))


def based_on(device: Device, basis: SpeedBasis) -> Device:
    """Rates that this kind of network feels."""
    if not basis.is_mean:
        return device
    reference = basis.reference
    mean = _mean_ratio(device, reference, (1.0, 1.0, 1.0))
    return Device(
        flop_per_s=reference.flop_per_s * mean,
        attention_flop_per_s=reference.attention_flop_per_s * mean,
        bytes_per_s=reference.bytes_per_s * mean,
        power_w=reference.power_w,
    )


def speed_ratio(device: Device, reference: Device) -> float:
    """Speed of a board over another's on whole inference pipelines [MLPerf]: mostly peak."""
    return _mean_ratio(device, reference, (0.4, 0.3, 0.3))


def _mean_ratio(device: Device, reference: Device, weights: tuple[float, float, float]) -> float:
    """Geometric mean of peak, bandwidth and power limit; of the first two where no limit is known.

    A board's limit follows from the other two more than it adds to them.
    """
    ratios = [
        device.flop_per_s / reference.flop_per_s,
        device.bytes_per_s / reference.bytes_per_s,
    ]
    if device.power_w is not None and reference.power_w is not None:
        ratios.append(device.power_w / reference.power_w)
    used = weights[: len(ratios)]
    product = 1.0
    for ratio, weight in zip(ratios, used, strict=True):
        product *= ratio ** (weight / sum(used))
    return product


def split_frac(n_devices: float, split_ratio: float) -> float:
    """Time on n devices over time on one: each further one brings less."""
    return (1.0 + split_ratio * (n_devices - 1)) / n_devices


def roofline_s(work: NetworkWork, device: Device, n_devices: float = 1) -> float:
    """No network beats the peak."""
    arithmetic = work.flop / device.flop_per_s + work.attention_flop / device.attention_flop_per_s
    return arithmetic / n_devices


def device_of(accelerator: Accelerator, precision: str) -> Device:
    """The board's figures at this precision."""
    peaks = accelerator.peak_flop_per_s
    if precision not in peaks:
        known = ", ".join(sorted(peaks))
        where, what = f"{accelerator.id}.{precision}", "the hardware has no such peak"
        raise one(CatalogError, "network", where, what, f"use one of {known}")
    sixteen = peaks.get("fp16", peaks.get("bf16", peaks[precision]))
    return Device(
        flop_per_s=peaks[precision],
        attention_flop_per_s=sixteen,
        bytes_per_s=accelerator.memory.bytes_per_s,
        power_w=accelerator.power.limit_w,
    )


def vision_work(
    n_macs: float,
    n_activations: float,
    n_params: float,
    *,
    batch: int,
    bytes_per_value: float = 2.0,
) -> NetworkWork:
    """A CNN or ViT from the figures that model cards print, per image."""
    return NetworkWork(
        flop=2.0 * n_macs * batch,
        activation_bytes=bytes_per_value * n_activations * batch,
        weight_bytes=bytes_per_value * n_params,
        n_kernels=1.0,  # layer counts are not printed: one fixed cost per batch
    )


def encoder_work(
    n_layers: int, hidden_size: int, *, n_tokens: int, batch: int, bytes_per_value: float = 2.0
) -> NetworkWork:
    """A BERT-like encoder with a feed-forward of four widths.

    Embedding tables are looked up, not multiplied: for small encoders they would double the work.
    """
    n_matrix_params = 12 * n_layers * hidden_size**2
    return NetworkWork(
        flop=2.0 * n_matrix_params * n_tokens * batch,
        attention_flop=4.0 * n_layers * hidden_size * n_tokens**2 * batch,
        activation_bytes=bytes_per_value * n_layers * hidden_size * n_tokens * batch,
        weight_bytes=bytes_per_value * n_matrix_params,
        n_kernels=n_layers,
    )


def on_processor(work: NetworkWork) -> NetworkWork:
    """The same work on a host processor: one fixed cost per call, no launches of kernels."""
    return replace(work, n_kernels=1.0)


def denoiser_work(
    shape: DenoiserShape, n_tokens: int, *, n_steps: int, batch: int = 1
) -> NetworkWork:
    """A diffusion transformer over all its steps."""
    runs = float(n_steps * shape.n_passes * batch)
    observed = LINEAR_STATE_TOKENS if shape.has_linear_attention else n_tokens
    width = shape.n_layers * shape.hidden_size
    return NetworkWork(
        flop=runs * 2.0 * shape.matrix_ratio * width * shape.hidden_size * n_tokens,
        attention_flop=runs * 4.0 * width * n_tokens * observed * shape.n_attentions_per_layer,
        activation_bytes=runs * 2.0 * width * n_tokens,
        n_kernels=float(n_steps * shape.n_layers),
    )


def latent_tokens(shape: DenoiserShape, height_px: int, *, width_px: int, n_frames: int = 1) -> int:
    """Tokens of an image or clip after the autoencoder and patching, text included."""
    latent_frames = (n_frames - 1) // AUTOENCODER_FRAMES + 1
    frames = -(-latent_frames // (shape.frames_per_token // AUTOENCODER_FRAMES))
    pixels = shape.pixels_per_token
    return shape.n_text_tokens + frames * (height_px // pixels) * (width_px // pixels)
