"""A fleet too large to hold as series: every device in a few figures, exact where it matters."""

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDigests:
    """One row per device; NaN is what was not measured."""

    name: tuple[str, ...]
    team: tuple[str, ...]
    model: tuple[str, ...]
    span_s: Floats
    mean_frac: Floats  # of utilization
    p95_frac: Floats  # exact to a percent
    peak_frac: Floats
    idle_frac: Floats  # share of samples at or below 2 %
    sm_frac: Floats  # mean of processors active
    tensor_frac: Floats
    power_w: Floats
    held_bytes: Floats  # mean of device memory in use


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDigest:
    """All devices, and the whole over time."""

    source: str
    devices: DeviceDigests
    percent_s: Floats  # [0 … 100] device time at each whole percent of utilization
    at_s: Floats  # of the whole, by the hour
    hour_mean_frac: Floats
    hour_peak_frac: Floats  # highest instant mean over all devices within the hour
    n_rows: int
    n_missing: Ints  # per metric: utilization, processors, tensor, power, memory
