"""A plan held against what really happened, and what to change."""

from pathlib import Path
from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result
from gpuplan.domain.telemetry.forecast import DemandForecast

Advice = Literal["keep", "change", "change in steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a service really saw; None is what telemetry does not say."""

    peak_requests_per_s: float | None
    mean_requests_per_s: float | None
    input_tokens: float | None  # mean of a request
    output_tokens: float | None
    ttft_p95_s: float | None
    tpot_p95_s: float | None
    e2e_p95_s: float | None
    n_replicas: int | None
    power_w: float | None
    span_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One figure of the plan beside the observed one."""

    what: str
    planned: str
    observed: str
    change_ratio: float  # observed over planned
    is_beyond: bool  # outside what the plan's own range and the tolerance allow


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplanRequest:
    """How to judge and how much may change."""

    workload: str | None = None  # None: the only service
    tolerance_frac: float = 0.20
    hysteresis_frac: float = 0.05  # a saving below this is no reason to move
    max_added_accelerators: int | None = None  # change budget of one step; None: no limit
    growth_frac_per_month: float = 0.0
    horizon_s: float = 7 * 86400.0
    seed: int = 0
    as_of: str = ""
    calibration: Path | None = None  # of the user's site; None: that of the package


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned(Result):
    """The old plan, what happened, the new plan, and whether to move."""

    old: Answer
    new: Answer
    observed: Observed
    drifts: tuple[Drift, ...]
    forecast: DemandForecast | None
    advice: Advice
    reasons: tuple[str, ...]
    n_added: int  # accelerators, below zero they are given back
    saved_usd_per_month: float  # below zero it costs more
    once_usd: float  # of the change itself
    n_step: int  # accelerators to add or give back now, within the change budget
    assumptions: tuple[Assumption, ...] = ()

    @property
    def has_drifted(self) -> bool:
        """Whether any figure left the plan's own range."""
        return any(drift.is_beyond for drift in self.drifts)
