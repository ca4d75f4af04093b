"""What a watch over a running fleet asks for, finds, and keeps between two looks."""

from gpuplan.domain.noun import dataclass
from gpuplan.domain.telemetry.diagnosis import Diagnosis
from gpuplan.domain.telemetry.monitoring import ServerAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """Where to look, how far back, how often."""

    access: ServerAccess
    look_back_s: float = 1800.0
    step_s: float = 30.0
    every_s: float = 60.0
    usd_per_h: float | None = None
    ttft_limit_s: float | None = None
    trigger_frac: float = 0.85
    cache_target_frac: float = 0.80  # of the key-value cache: beyond it the cliff is near


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPoint:
    """One hour of the past, kept for the forecast."""

    at_s: float
    n_demand: float  # mean of the hour, in the unit of the metric below
    metric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReading:
    """What one look found."""

    at_s: float
    diagnosis: Diagnosis
    n_replicas: int
    n_recommended: int
    reason: str
    trigger_in_s: float | None  # None: not in sight
    n_peak_expected: float | None  # demand at its highest in the coming day
    waste_usd_per_h: float | None
    metric: str = ""  # of demand
