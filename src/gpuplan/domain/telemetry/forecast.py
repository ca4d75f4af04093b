"""What demand will be, how sure that is, and when something must be ordered."""

from typing import Literal

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result

GrowthModel = Literal["compound", "linear", "damped"]
GROWTH_MODELS: tuple[GrowthModel, ...] = ("compound", "linear", "damped")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandSeries:
    """A load in equal steps; gaps are already filled, and how many is told."""

    name: str
    unit: str
    begin_s: float
    step_s: float
    level: Floats  # in the unit above
    n_filled: int = 0
    n_before_gap: int = 0  # readings before the last long gap: a forecast does not see them


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRow:
    """How one way to forecast did on the past, from origins that it could not see beyond."""

    method: str
    mase_ratio: float  # mean error over that of "as a day ago" within the series
    n_origins: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandForecast:
    """A forecast with its range and its record."""

    series: DemandSeries
    at_s: Floats
    middle: Floats
    low: Floats  # 80 % range
    high: Floats
    method: str
    backtest: tuple[BacktestRow, ...]
    range_held_frac: float | None  # share of past values inside; None: too short to try
    warnings: tuple[str, ...]
    assumptions: tuple[Assumption, ...] = ()

    @property
    def peak(self) -> float:
        """The highest middle value."""
        return float(self.middle.max())


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Growth of weekly peaks, as a share per month, with its 80 % range."""

    per_month_frac: float
    low_frac: float
    high_frac: float
    n_weeks: int
    model: GrowthModel = "compound"
    record: "tuple[GrowthRecord, ...]" = ()  # best first; empty: the past is too short


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRecord:
    """How one growth model did on the weekly peaks of the past."""

    model: GrowthModel
    error_frac: float  # mean absolute error of the peaks ahead
    n_origins: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerms:
    """What an order depends on besides demand."""

    n_devices: int
    lead_s: float
    trigger_frac: float
    target_frac: float
    lead_high_s: float | None = None  # 90th percentile; None: delivered as quoted
    service_frac: float = 0.95  # probability that capacity suffices until the order arrives
    model: GrowthModel = "compound"
    weekly_error_frac: float = 0.0  # deviation of a weekly peak from its trend
    now_s: float | None = None  # since 1970; None: the telemetry has no dates


@dataclass(frozen=True, slots=True, kw_only=True)
class LateDelivery:
    """Supplier risk: an order of today that arrives at the late end of its lead time."""

    lead_s: float
    bridge_s: float
    use_at_arrival_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAdvice:
    """When a trigger is reached at one growth, and what that means for an order."""

    growth_frac_per_month: float
    trigger_in_s: float | None  # None: never at this growth
    order_in_s: float | None  # 0: now; None: never
    bridge_s: float  # between the trigger and the arrival of an order placed now
    use_at_arrival_frac: float
    n_needed_in_a_year: int
    now_s: float | None = None  # since 1970; None: no dates in the telemetry
    n_safety_stock: int = 0
    reorder_at_frac: float = 0.0  # peak utilization at which an order arrives in time
    late: LateDelivery | None = None

    @property
    def order_at_s(self) -> float | None:
        """When to order, since 1970; None: never, or no dates in the telemetry."""
        if self.order_in_s is None or self.now_s is None:
            return None
        return self.now_s + self.order_in_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRequest:
    """What to forecast, as asked; None is what was left out."""

    metric: str | None = None
    horizon_s: float = 86400.0
    step_s: float | None = None
    n_devices: int | None = None
    n_capacity: float | None = None  # of the fleet, in the unit of the series
    trigger_frac: float = 0.85
    target_frac: float = 0.80
    lead_s: float | None = None
    growth_frac_per_month: float | None = None  # None: from the weekly peaks
    growth_model: GrowthModel | None = None  # None: by back-test, compound for a given growth
    lead_high_s: float | None = None
    service_frac: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook(Result):
    """A forecast and what follows from it."""

    forecast: DemandForecast
    trend: Trend | None  # None: fewer than three weeks
    peak_use_frac: float | None  # of the last week, of the capacity
    advice: tuple[OrderAdvice, ...]  # at low, middle and high growth
    no_advice: str | None = None  # what is missing for the advice that was asked for
    assumptions: tuple[Assumption, ...] = ()
