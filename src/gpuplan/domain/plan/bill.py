"""A plan's bill: every sum with its cause, its time and who it is for; all totals come from it."""

from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCostLine:
    """One cause of the bill by the month; the lines add up to the cent."""

    what: str
    usd_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CashLine:
    """One sum in the money of its day; what comes in is negative."""

    what: str  # hardware, rent, energy …
    workload: str  # that it is for; sharers of a pool pay by use
    name: str  # of the node or offer
    source: str  # of the price, and its day
    start_s: float  # from today
    span_s: float  # that it is paid over, evenly; 0: at once
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCost:
    """The fleet of one period of growth, and its month."""

    start_s: float
    span_s: float
    n_accelerators: int  # at the peak of the period
    usd_per_month: float  # running costs of the period; outlays spread over the whole plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOrder:
    """Equal nodes that are bought or reserved together, and when."""

    name: str  # of the node or offer
    purchase: str  # owned, reserved …
    n_nodes: int
    n_accelerators: int
    order_s: float  # from today: the latest day on which they arrive in time
    service_s: float  # from today until they serve
    usd: float  # that is paid at once, in the period of the order


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBill:
    """What a plan costs: by cause, in total, in today's money, sum by sum and period by period."""

    cost_lines: tuple[PlanCostLine, ...]
    once_usd: float  # purchase and porting
    total_usd: float  # over the span below, in the money of its day
    span_s: float  # the horizon of a service; a run from start to end
    present_value_usd: float = 0.0  # the total in today's money; equal to it without a discount
    cash_flow: tuple[CashLine, ...] = ()
    by_period: tuple[PeriodCost, ...] = ()
    orders: tuple[PlannedOrder, ...] = ()  # by the day on which they serve
