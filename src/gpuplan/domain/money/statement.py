"""A whole-life account in cents by month: what is paid when, for what, on which evidence."""

from typing import Literal

from gpuplan.domain.money.rates import NodePurchase, NodeRate, NodeRunning
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range

CostCategory = Literal[
    "hardware", "freight", "tax", "installation", "network", "spares", "residual", "financing",
    "energy", "cooling", "demand charge", "space", "support", "licences", "staff", "storage",
    "rent", "reservation", "spot", "egress", "tokens", "porting", "carbon", "other",
]  # fmt: skip
CAPITAL: tuple[CostCategory, ...] = (
    "hardware", "freight", "tax", "installation", "network", "spares", "residual",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One cause of cost, month by month; month 0 is today. Money that comes in is negative."""

    category: CostCategory
    name: str
    cents: tuple[int, ...]
    low_cents: tuple[int, ...]
    high_cents: tuple[int, ...]
    source: str = ""  # where the price comes from, and its day

    @property
    def total_cents(self) -> int:
        """Over all months."""
        return sum(self.cents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """All lines of one plan over its life. Totals are sums of the lines' cents: they add up."""

    name: str
    n_months: int  # after today: lines have one month more
    lines: tuple[CostLine, ...]
    discount_frac_per_year: float
    assumptions: tuple[Assumption, ...] = ()

    @property
    def total_cents(self) -> int:
        """Everything paid less everything got back, not discounted."""
        return sum(line.total_cents for line in self.lines)

    @property
    def low_cents(self) -> int:
        """Total if every range turns out cheap: a bound, less likely than any single one."""
        return sum(sum(line.low_cents) for line in self.lines)

    @property
    def high_cents(self) -> int:
        """Total if every range turns out dear."""
        return sum(sum(line.high_cents) for line in self.lines)

    @property
    def cents_by_month(self) -> tuple[int, ...]:
        """Cash of each month."""
        zero = (0,) * (self.n_months + 1)
        return tuple(map(sum, zip(zero, *(line.cents for line in self.lines), strict=True)))

    @property
    def cents_by_category(self) -> dict[CostCategory, int]:
        """Totals by cause, in the order of the lines."""
        sums: dict[CostCategory, int] = {}
        for line in self.lines:
            sums[line.category] = sums.get(line.category, 0) + line.total_cents
        return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchasePlan:
    """Nodes bought in a month, kept for their life, worth something at its end."""

    name: str
    n_nodes: int
    purchase: NodePurchase
    residual_frac: Range  # of the hardware price
    month: int = 0
    life_months: int | None = None  # None: sold when the statement ends
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPlan:
    """Owned nodes that run: from a month on, up to and with another."""

    name: str
    n_nodes: int
    n_accelerators_per_node: int
    running: NodeRunning
    hardware_usd: Range  # what support is counted on
    first_month: int = 1
    last_month: int | None = None
    price_growth_frac_per_year: float = 0.0  # of electricity
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RentPlan:
    """Node-hours that are paid for at a rate, month by month: paid, not merely used."""

    rate: NodeRate
    node_hours: tuple[float, ...]  # one for each month, today first
    lost_frac: float = 0.0  # of spot hours, by preemption: paid on top
    growth_frac_per_year: float = 0.0  # of the price, which may rise or fall


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """The same sum every month, growing by the year if said."""

    category: CostCategory
    name: str
    usd_per_month: Range
    first_month: int = 1
    last_month: int | None = None
    growth_frac_per_year: float = 0.0
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A sum that is paid in one month."""

    category: CostCategory
    name: str
    usd: Range
    month: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """Money borrowed in a month and paid back in equal payments."""

    name: str
    principal_usd: float
    interest_frac_per_year: float
    n_months: int
    month: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLife:
    """Everything that a plan buys, runs, rents and pays for."""

    name: str
    n_months: int
    discount_frac_per_year: float
    purchases: tuple[PurchasePlan, ...] = ()
    running: tuple[RunningPlan, ...] = ()
    rents: tuple[RentPlan, ...] = ()
    recurring: tuple[Recurring, ...] = ()
    once: tuple[Once, ...] = ()
    loans: tuple[Loan, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
