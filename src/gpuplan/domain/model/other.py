"""A network that is no language model, as its work per batch; and what turns work into time.

Image networks by their figures: what a roofline needs, without their layers.
"""

from typing import Literal

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionNetwork:
    """An image network at one input size."""

    name: str
    n_params: int
    flop_per_sample: float  # one forward pass: two per multiply-add
    activation_elements: int  # outputs of all convolutions and matrices of one image
    image_px: int  # side of the square input
    source: str = ""


# vision: CNN and ViT; encoder: BERT-like; denoiser: diffusion transformers.
NetworkKind = Literal["vision", "vision-training", "vision-cpu", "encoder", "denoiser"]
# Measured as a whole and carried over by the figures of boards.
PipelineKind = Literal["pipeline", "speech", "recommender"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkWork:
    """What one batch asks of a device; attention apart, for it runs at another rate."""

    flop: float  # matrix products and convolutions, 2 per multiply-add
    attention_flop: float = 0.0  # scores and values
    activation_bytes: float = 0.0  # outputs of layers, written once
    weight_bytes: float = 0.0
    n_kernels: float = 0.0  # launches that wait for one another: layers times steps


@dataclass(frozen=True, slots=True, kw_only=True)
class DenoiserShape:
    """A diffusion transformer, as far as its work depends on it."""

    n_layers: int
    hidden_size: int
    # Matrix parameters that one token meets in a layer, over the square of the width: 12 for a
    # plain block, 14 with cross-attention.
    matrix_ratio: float = 12.0
    n_text_tokens: int = 0  # that join the image's in attention
    n_attentions_per_layer: float = 1.0  # above one where some layers attend twice
    n_passes: int = 2  # per step: two where guidance is classifier-free, one where distilled
    pixels_per_token: int = 16
    frames_per_token: int = 4
    has_linear_attention: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A board by the three figures that its speed follows."""

    flop_per_s: float  # dense peak of the precision in use
    attention_flop_per_s: float  # dense 16-bit peak: attention is rarely narrower
    bytes_per_s: float
    power_w: float | None  # limit; None where none is published


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkConstants:
    """Fitted numbers of one kind of network, family and software."""

    compute_ratio: float  # time of the arithmetic over its time at peak
    attention_ratio: float
    traffic_ratio: float  # times that activations cross the memory
    weight_ratio: float  # times that weights do
    launch_s: float
    split_ratio: float  # loss per further device, as a share
    scale_ratio: float  # software and layout


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedBasis:
    """How a kind of network follows its device: by peak and bandwidth, or by an equal mean.

    Networks of many small operators follow neither alone: their speed goes with the geometric
    mean of peak, bandwidth and power limit, relative to the device of the fit.
    """

    reference: Device
    is_mean: bool
    # Launches run ahead of the device: they show only where the device waits for them.
    is_overlapped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkForecast(Result):
    """One batch of a network on one kind of accelerator, with its range."""

    name: str
    kind: NetworkKind | PipelineKind
    accelerator: Accelerator
    batch: int
    work: NetworkWork | None  # None where a measured pipeline was carried over
    batch_s: Estimate
    assumptions: tuple[Assumption, ...] = ()

    @property
    def samples_per_s(self) -> Estimate:
        """Rate of one accelerator; the slow end of the time is the low end of the rate."""
        time = self.batch_s
        return Estimate(
            value=self.batch / time.value,
            low=self.batch / time.high,
            high=self.batch / time.low,
            tier=time.tier,
            sources=time.sources,
        )
