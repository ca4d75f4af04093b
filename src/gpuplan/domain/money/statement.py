"""A whole-life account in cents by month: what is paid when, for what, on which evidence."""

from typing import Literal

from gpuplan.domain.money.rates import NodeKind, NodePurchase, NodeRunning, PriceEvidence
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range

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
