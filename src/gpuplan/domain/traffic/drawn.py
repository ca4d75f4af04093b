"""A load described by a few figures, as typed, and the requests that were taken from somewhere."""

from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.traffic.stream import ClosedLoop, PrefixBlocks, Requests

ArrivalLaw = Literal["poisson", "gamma", "weibull", "mmpp", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A time of steady Poisson arrivals; its length is random around this mean."""

    requests_per_s: float
    stay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTerms:
    """How the rate moves."""

    hourly_profile: tuple[float, ...] = ()  # relative load: 24 hours of a day or 168 of a week
    growth_frac_per_month: float = 0.0
    after_s: float | None = None  # of growth before the run; None: it grows during the run


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLoad:
    """Arrivals and lengths by law; None is what was left out."""

    law: ArrivalLaw | None = None
    requests_per_s: float | None = None
    burstiness_ratio: float | None = None  # deviation over mean of gaps
    phases: tuple[Phase, ...] = ()
    input: TokenLengths | None = None
    output: TokenLengths | None = None
    duration_s: float | None = None
    n_requests: int | None = None
    terms: LoadTerms | None = None
    n_users: int | None = None  # of a closed loop
    think_s: float | None = None
    n_turns_mean: float | None = None  # of a conversation, whose prompts hold all said before


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSource:
    """Requests to replay, and all that had to be assumed or is odd about them."""

    requests: Requests
    source: str  # "trace", "drawn" or "scenario"
    assumptions: tuple[Assumption, ...] = ()
    remarks: tuple[str, ...] = ()
    blocks: PrefixBlocks | None = None  # content of prompts, where a trace tells it
    loop: ClosedLoop | None = None  # users who wait for their answers; requests have no times then
    n_loop: int | None = None  # so many requests are asked in all; the loop has rows to spare
    slo: SloTargets | None = None  # that a scenario sets
    model: str | None = None  # that a scenario names
    precision: str | None = None  # of the weights, that a scenario allows
    cache_precision: str | None = None
    cached_input_frac: float = 0.0  # of each prompt, left out of the requests: held in the cache
