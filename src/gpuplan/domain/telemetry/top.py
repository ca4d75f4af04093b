"""One moment of a fleet, for a screen."""

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopDevice:
    """One device now, and its last stretch of use; None is not measured."""

    name: str
    team: str
    band: str
    use_frac: float | None
    sm_frac: float | None
    tensor_frac: float | None
    memory_frac: float | None
    power_w: float | None
    heat_c: float | None  # of the chip
    trail_frac: Floats  # the last samples of use, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class TopEngine:
    """One engine now."""

    name: str
    n_running: float | None
    n_waiting: float | None
    cache_frac: float | None
    output_tokens_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopFrame:
    """The screen's content."""

    source: str
    at_s: float
    devices: tuple[TopDevice, ...]
    engines: tuple[TopEngine, ...]
    mean_frac: float | None
    peak_frac: float | None
    headline: str  # the gravest verdict so far
    n_devices: int  # all, also those not listed
