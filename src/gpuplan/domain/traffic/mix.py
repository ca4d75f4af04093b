"""Many clients, each with its own rate, burstiness and lengths, window by window."""

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthWindow:
    """Lengths of a client from a time on, with how often each was seen."""

    start_s: float
    input_tokens: Floats
    input_weight: Floats
    output_tokens: Floats
    output_weight: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One customer of a service: windows of equal length, in order of time."""

    name: str
    start_s: Floats  # of each window
    requests_per_s: Floats  # mean of each window
    gap_cv_ratio: Floats  # deviation over mean of the gaps in each window
    is_weibull: Ints  # 1: gaps of the window are Weibull; 0: Gamma
    lengths: tuple[LengthWindow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMix:
    """The clients of one service."""

    window_s: float
    clients: tuple[Client, ...]
