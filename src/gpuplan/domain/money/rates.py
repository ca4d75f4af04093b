"""What things cost: the price of a node-hour for each way to pay, with its evidence."""

from datetime import date
from typing import Literal

from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.terms import Purchase

Day = date  # compute rooms compare days that they are given; none of them asks what day it is

RefusalCode = Literal[
    "zero",
    "not-finite",
    "missing",
    "stale",
    "ambiguous",
    "bid-floor",
    "accelerator-only",
    "share-of-card",
    "unclear-term",
    "spot-above-on-demand",
    "indicative",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """The smallest thing that can be had: one machine with all its accelerators."""

    name: str
    accelerator: str  # empty for a machine without
    n_accelerators: int
    n_vcpus: int | None = None
    cloud: str | None = None
    region: str | None = None
    network_bytes_per_s: float | None = None  # towards other nodes, one direction; None: not stated
    fabric_kind: str = ""  # efa, infiniband, roce or tcp; empty: none known
    placement: str = ""  # what puts such nodes side by side
    fabric: str = ""  # what joins it to others, as predict-training reads it; empty: not asked
    fabric_source: str = ""  # stated, site, reference or none

    def joins(self, layout: ServingLayout) -> bool:
        """Whether one replica of this layout can stand here: inside a node, or over its network."""
        wanted, there = layout.network_bytes_per_s, self.network_bytes_per_s
        is_spread = layout.is_disaggregated and wanted is not None
        if layout.n_accelerators <= self.n_accelerators and not is_spread:
            return True
        return wanted is not None and there is not None and there >= wanted * (1 - 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceEvidence:
    """Where a price comes from, of which day, and how far to trust it."""

    source: str  # a key of the catalog's sources, or "user"
    price_date: Day | None = None  # None: the user's own figure
    is_weak: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTerms:
    """How an offer binds and how sure it is; None is not known."""

    term_s: float | None = None  # commitment
    n_nodes_max: int | None = None
    cold_start_s: Range | None = None
    interruptions_per_s: float | None = None  # of one node
    is_for_spanning: bool = False  # a cheaper node of this size states no network to span


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePart:
    """One cause of an hourly price."""

    name: str
    usd_per_h: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Capital:
    """Money laid out for one owned node; the hourly price holds it once, as an annuity."""

    hardware_usd: Range
    outlay_usd: Range  # hardware with freight, tax, installation and its share of gear
    residual_frac: Range  # of the hardware, got back at the end of life
    life_s: float
    discount_frac_per_year: float
    purchase: "NodePurchase | None" = None  # the outlay by cause; None: it is past

    @property
    def residuals_usd(self) -> tuple[float, float, float]:
        """Got back in the cheap, the middle and the dear case: dear is what keeps little worth."""
        price, share = self.hardware_usd, self.residual_frac
        return price.low * share.high, price.mid * share.mid, price.high * share.low

    @property
    def is_sunk(self) -> bool:
        """Nothing more to pay: the node is there."""
        return self.outlay_usd.high == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRate:
    """What one node costs for one hour, one way of paying for it."""

    id: str  # unique among rates, the same on every run
    node: NodeKind
    purchase: Purchase
    price_usd_per_h: Range
    parts: tuple[RatePart, ...]  # causes; their sum is the price
    evidence: PriceEvidence
    terms: RateTerms = RateTerms()
    capital: Capital | None = None  # of owned nodes
    assumptions: tuple[Assumption, ...] = ()

    @property
    def is_committed(self) -> bool:
        """Paid whether used or not: a reserved or owned hour is never free at the margin."""
        return self.purchase in ("reserved", "capacity_block", "owned")

    @property
    def usd_per_accelerator_h(self) -> Range | None:
        """The price shared out over the accelerators; None without any."""
        n = self.node.n_accelerators
        return self.price_usd_per_h.times(1 / n) if n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRefusal:
    """A way to pay that gets no price, and why: it can never win a comparison."""

    id: str
    node: NodeKind
    purchase: Purchase
    code: RefusalCode
    what: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Every way to pay: kept or refused, none dropped in silence."""

    accepted: tuple[NodeRate, ...]
    refused: tuple[PriceRefusal, ...]

    def joined(self, other: "Rates") -> "Rates":
        """Both lists, one after the other."""
        return Rates(accepted=self.accepted + other.accepted, refused=self.refused + other.refused)

    def of(self, accelerator: str) -> tuple[NodeRate, ...]:
        """Rates of nodes that carry this accelerator."""
        return tuple(rate for rate in self.accepted if rate.node.accelerator == accelerator)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePurchase:
    """What it takes to own one node, as money up front."""

    hardware_usd: Range
    freight_frac: float = 0.0
    tax_frac: float = 0.0
    install_frac: float = 0.0
    gear_frac: float = 0.0  # racks, switches and cables, where no fabric is designed for itself
    spares_frac: float = 0.0

    @property
    def outlay_usd(self) -> Range:
        """All of it: tax on hardware, gear, spares and freight; installation on hardware."""
        goods = 1 + self.gear_frac + self.spares_frac + self.freight_frac
        return self.hardware_usd.times(goods * (1 + self.tax_frac) + self.install_frac)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """How long a node is kept, what it is worth then, and what money costs meanwhile."""

    life_s: float
    residual_frac: Range  # of the hardware price
    discount_frac_per_year: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRunning:
    """What one owned node needs to run. Average draw is paid as energy, highest as demand."""

    average_w: float  # of the machine at the wall
    highest_w: float
    pue_ratio: float
    electricity_usd_per_j: Range
    demand_usd_per_w_month: float = 0.0  # of facility power
    colocation_usd_per_w_month: float = 0.0  # of the machine's highest draw
    support_frac_per_year: float = 0.0  # of the hardware price
    licence_usd_per_accelerator_year: float = 0.0
