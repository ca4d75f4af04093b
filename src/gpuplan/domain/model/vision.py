"""Image networks by their figures: what a roofline needs, without their layers."""

from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionNetwork:
    """An image network at one input size."""

    name: str
    n_params: int
    flop_per_sample: float  # one forward pass: two per multiply-add
    activation_elements: int  # outputs of all convolutions and matrices of one image
    image_px: int  # side of the square input
    source: str = ""
