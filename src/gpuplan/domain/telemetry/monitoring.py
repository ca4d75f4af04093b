"""How to reach a monitoring server, and what stretch of time to ask for.

One moment of a fleet, for a screen.

What a watch over a running fleet asks for, finds, and keeps between two looks.
"""

from urllib.parse import urlsplit, urlunsplit

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.telemetry.diagnosis import Diagnosis


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """Address and credentials; secrets never leave this value."""

    url: str
    token: str = ""
    user: str = ""
    password: str = ""
    client_cert: tuple[str, str] = ("", "")  # files of certificate and key, where a server asks
    ca_file: str = ""  # authority to trust besides the system's
    headers: tuple[tuple[str, str], ...] = ()  # X-Scope-OrgID of Mimir, THANOS-TENANT …
    matcher: str = ""  # narrows every query: namespace="prod"
    timeout_s: float = 30.0
    n_tries: int = 4
    total_s: float = 300.0  # for all questions together, however slowly a server answers

    @property
    def retry_s(self) -> float:
        """Wait before the second try; each further wait is twice as long."""
        return min(1.0, self.timeout_s / 10.0)

    @property
    def public_url(self) -> str:
        """The address without the user and password that it may hold."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def __repr__(self) -> str:
        """Without secrets, so that no log or error can show them."""
        return f"ServerAccess({self.public_url!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """A stretch of time, in seconds since 1970, and the step to sample it with."""

    begin_s: float
    end_s: float
    step_s: float

    @classmethod
    def until(cls, end_s: float, *, look_back_s: float, step_s: float) -> "TimeWindow":
        """The stretch of this length that ends at an instant."""
        return cls(begin_s=end_s - look_back_s, end_s=end_s, step_s=step_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSource:
    """A stretch of time on a monitoring server, read where a telemetry file could stand."""

    access: ServerAccess
    window: TimeWindow


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
