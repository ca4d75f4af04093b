"""What can be rented, where, at which price, and what power costs and emits there."""

from datetime import date
from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption

PriceBasis = Literal["on-demand", "bid-floor", "accelerator-only"]
Seller = Literal["provider", "marketplace", "auction", "survey"]
RegionKind = Literal["cloud", "country", "state"]
Boundary = Literal["location", "market"]
Method = Literal["average", "marginal"]
UpdateState = Literal["updated", "unchanged", "refused", "failed"]
FabricKind = Literal["efa", "infiniband", "roce", "tcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferFabric:
    """What joins servers of one kind, as a source states it; the rate stands with the shape."""

    kind: FabricKind
    placement: str  # what puts servers side by side: a placement group, a cluster network …
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceShape:
    """A kind of machine that a cloud rents out; what the cloud does not publish is None."""

    cloud: str
    name: str
    accelerators: tuple[str, ...]  # ids it may carry: one is certain, several are ambiguous
    n_accelerators: float  # below 1 where a share of a card is rented; 0 without accelerators
    n_vcpu: int | None
    ram_bytes: float | None
    network_bytes_per_s: float | None  # towards other servers, one direction, the whole server
    basis: PriceBasis = "on-demand"
    note: str = ""
    fabric: OfferFabric | None = None  # None: none known, servers are not to be joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine at a price in a region, as published on a day."""

    shape: InstanceShape
    region: str  # the cloud's own name; empty where no source says which region has it
    usd_per_h: float
    spot_usd_per_h: float | None
    price_date: date
    source: str
    listed_regions: tuple[str, ...] = ()  # where region is empty: the cloud's, any may lack it

    @property
    def cloud(self) -> str:
        """Who rents it out."""
        return self.shape.cloud

    @property
    def instance(self) -> str:
        """The cloud's name of the machine."""
        return self.shape.name

    @property
    def accelerator(self) -> str | None:
        """The accelerator, where the cloud leaves no doubt which; None is ambiguous or none."""
        return self.shape.accelerators[0] if len(self.shape.accelerators) == 1 else None

    @property
    def is_ambiguous(self) -> bool:
        """Whether the published name fits more than one accelerator."""
        return len(self.shape.accelerators) > 1

    @property
    def n_accelerators(self) -> float:
        """Accelerators in the machine."""
        return self.shape.n_accelerators

    @property
    def is_rate(self) -> bool:
        """Whether the price is what the whole machine costs: not a bid floor, not a part of it."""
        return self.shape.basis == "on-demand"

    @property
    def usd_per_accelerator_h(self) -> float | None:
        """Price of the machine shared out over its accelerators; None without accelerators."""
        return self.usd_per_h / self.shape.n_accelerators if self.shape.n_accelerators else None

    def age_days(self, today: date) -> int:
        """Days since the price was published."""
        return (today - self.price_date).days


@dataclass(frozen=True, slots=True, kw_only=True)
class Discount:
    """What a commitment takes off the on-demand price; a range, and weak evidence where said."""

    provider: str  # a cloud, or "any"
    instrument: str
    term: str
    low_frac: float
    high_frac: float
    applies: str
    source: str
    is_weak: bool  # general claims, not read off a price list of accelerators


@dataclass(frozen=True, slots=True, kw_only=True)
class CarbonIntensity:
    """Emissions per energy drawn, and which of the several meanings it has."""

    kg_per_j: float
    boundary: Boundary  # location: the grid there; market: after certificates and contracts
    method: Method  # average of all plants, or of the plants that answer one more watt
    year: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectricityPrice:
    """What energy costs."""

    usd_per_j: float
    basis: str  # industrial average, large-consumer tariff …
    year: int | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Where machines run: a cloud region, a country, a state. Unknown is None or empty."""

    id: str  # aws:us-east-1, NLD, US-VA
    kind: RegionKind
    name: str
    country: str  # ISO 3166 alpha-3; empty where the cloud does not say
    state: str = ""  # US-VA …
    cloud: str = ""
    pue_ratio: float | None = None  # facility power over computer power, 1 or more
    pue_source: str = ""
    electricity: ElectricityPrice | None = None
    carbon: tuple[CarbonIntensity, ...] = ()

    def carbon_of(self, boundary: Boundary, method: Method) -> CarbonIntensity | None:
        """The figure of that meaning, or None; meanings are never exchanged in silence."""
        for figure in self.carbon:
            if (figure.boundary, figure.method) == (boundary, method):
                return figure
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceMove:
    """A machine that costs otherwise than before the update."""

    cloud: str
    instance: str
    region: str
    old_usd_per_h: float
    new_usd_per_h: float

    @property
    def change_frac(self) -> float:
        """Relative change; below zero is cheaper."""
        return self.new_usd_per_h / self.old_usd_per_h - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMove:
    """A saved plan at the prices it was made with, and at those of the update."""

    plan: str
    old_usd_per_month: float
    new_usd_per_month: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudUpdate:
    """What became of one cloud's prices, or of one model's config."""

    name: str
    state: UpdateState
    n_rows: int
    n_dropped: int
    detail: str
    moves: tuple[PriceMove, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What an update changed and what it left alone."""

    fetched_on: date
    source: str
    parts: tuple[CloudUpdate, ...]
    plans: tuple[PlanMove, ...] = ()

    @property
    def moves(self) -> tuple[PriceMove, ...]:
        """Every price that moved, cloud by cloud."""
        return tuple(move for part in self.parts for move in part.moves)

    def names(self, state: UpdateState) -> tuple[str, ...]:
        """The parts that ended so."""
        return tuple(part.name for part in self.parts if part.state == state)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEnergy:
    """What a plan needs to know of a place's power, and what had to be assumed for it."""

    region: Region
    pue_ratio: float
    electricity: ElectricityPrice | None
    carbon: CarbonIntensity | None
    assumptions: tuple[Assumption, ...] = ()
