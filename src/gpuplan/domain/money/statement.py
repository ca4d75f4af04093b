"""A whole-life account in cents by month: what is paid when, for what, on which evidence.

What was paid, beside what was planned.
"""

from typing import Literal

from gpuplan.domain.money.rates import NodeKind, NodePurchase, NodeRunning, PriceEvidence
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ActualCost:
    """One allocation of a cost tool over its window."""

    name: str
    names: tuple[str, ...]  # by which a workload or team may know it: namespace, labels, …
    usd: float
    accelerator_s: float
    window_s: float | None  # None: the export does not say
    is_idle: bool = False  # paid for and allocated to nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """Planned and actual cost of one workload, team or remainder over the same window."""

    what: str
    team: str
    model: str
    planned_usd: float | None  # None: not in the plan
    actual_usd: float | None  # None: nothing was paid for it
    planned_accelerator_s: float | None = None
    actual_accelerator_s: float | None = None

    @property
    def difference_usd(self) -> float:
        """Actual less planned."""
        return (self.actual_usd or 0.0) - (self.planned_usd or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActualComparison(Result):
    """A plan held against what was paid."""

    name: str
    window_s: float
    rows: tuple[CostRow, ...]  # by workload, then what is not in the plan, then idle
    teams: tuple[CostRow, ...]
    assumptions: tuple[Assumption, ...] = ()

    @property
    def planned_usd(self) -> float:
        """Of all rows."""
        return sum(row.planned_usd or 0.0 for row in self.rows)

    @property
    def actual_usd(self) -> float:
        """Of all rows."""
        return sum(row.actual_usd or 0.0 for row in self.rows)


CostCategory = Literal[
    "hardware",
    "freight",
    "tax",
    "installation",
    "network",
    "spares",
    "residual",
    "financing",
    "energy",
    "cooling",
    "demand charge",
    "space",
    "support",
    "licences",
    "staff",
    "storage",
    "owned nodes",
    "rent",
    "reservation",
    "spot",
    "egress",
    "tokens",
    "porting",
    "carbon",
    "other",
]
CAPITAL: tuple[CostCategory, ...] = (
    "hardware",
    "freight",
    "tax",
    "installation",
    "network",
    "spares",
    "residual",
)


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
class OwnNode:
    """A node that could be bought: its outlay, life, residual value and running costs."""

    node: NodeKind
    purchase: NodePurchase
    running: NodeRunning
    life_months: int
    residual_frac: Range  # of the hardware price
    evidence: PriceEvidence
    staff_usd_per_year: float = 0.0  # of the site, however many nodes stand there
