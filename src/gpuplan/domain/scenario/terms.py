"""On what terms: prices that the user knows, the budget, and what is allowed."""

from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import USUAL, BuildRules

Purchase = Literal["on_demand", "reserved", "spot", "capacity_block", "owned"]
FailureDomain = Literal["none", "gpu", "replica", "node", "rack", "zone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedHost:
    """What an offer says of a node beside its accelerators; None is not stated."""

    n_vcpus: int | None = None
    network_bytes_per_s: float | None = None  # towards other nodes, one direction


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedOffer:
    """Something to be had at a price by the hour."""

    name: str
    accelerator: str
    price_usd_per_h: Range  # of one node
    n_accelerators_per_node: int
    purchase: Purchase
    host: OfferedHost = OfferedHost()
    cloud: str | None = None
    region: str | None = None
    n_nodes_max: int | None = None  # quota
    term_s: float | None = None  # commitment, paid whether used or not
    cold_start_s: Range | None = None
    interruptions_per_s: float | None = None  # of one node, where it can be taken away


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwarePrice:
    """What it costs to buy, and to move to."""

    accelerator: str
    accelerator_usd: Range | None = None
    node_usd: Range | None = None
    porting_usd: Range | None = None  # once, for software that does not run there yet
    lead_time_s: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """A bought service that answers by the token: the alternative to own machines."""

    name: str
    input_usd_per_token: float
    cached_usd_per_token: float | None
    output_usd_per_token: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseExtras:
    """What comes on top of the price of hardware, as shares of it; None leaves it to defaults."""

    freight_frac: float | None = None
    tax_frac: float | None = None  # of hardware, gear, spares and freight
    install_frac: float | None = None
    gear_frac: float | None = None  # racks, switches, cables
    spares_frac: float | None = None
    loan_frac: float | None = None  # of all that is laid out
    loan_interest_frac_per_year: float | None = None
    loan_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices that the user knows better than the catalog; None leaves them to it."""

    offers: tuple[StatedOffer, ...] = ()
    hardware: tuple[HardwarePrice, ...] = ()
    tokens: tuple[TokenPrice, ...] = ()
    egress_usd_per_byte: float | None = None
    storage_usd_per_byte_month: float | None = None
    colocation_usd_per_w_month: float | None = None
    staff_usd_per_year: float | None = None
    support_frac_per_year: float | None = None  # of the purchase price
    licence_usd_per_accelerator_year: float | None = None
    carbon_usd_per_kg: float | None = None
    extras: PurchaseExtras = PurchaseExtras()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of money, and over what time it is counted."""

    horizon_s: float
    capex_usd: float | None = None
    opex_usd_per_year: float | None = None
    usd_per_month: float | None = None
    total_usd: float | None = None
    discount_frac_per_year: float = 0.0
    depreciation_s: float | None = None
    residual_frac: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What may be used: everything, or the allowed ones only, and never the forbidden."""

    allowed: tuple[str, ...] = ()  # empty: all
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resilience:
    """What may break without the promise breaking."""

    survive: FailureDomain
    n_failures: int
    max_utilization_frac: float | None = None  # None: whatever is safe for the pool
    min_probability_frac: float | None = None  # of meeting all SLOs; None: the usual one


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveWeights:
    """How much each quantity counts, each as a share of the least of it that any plan needs."""

    cost_ratio: float = 0.0
    time_ratio: float = 0.0
    energy_ratio: float = 0.0
    carbon_ratio: float = 0.0
    risk_ratio: float = 0.0  # of violating an SLO


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRules:
    """How replicas may be laid out."""

    is_tensor_across_islands_allowed: bool = False
    disaggregation: str = "auto"  # prefill/decode: shown, or allowed, always, never


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is allowed."""

    accelerators: Choice
    clouds: Choice
    regions: Choice
    precisions: tuple[str, ...]  # empty: whatever each workload allows
    purchases: tuple[Purchase, ...]
    resilience: Resilience
    layouts: LayoutRules
    n_accelerators_max: int | None = None
    carbon_max_kg_per_year: float | None = None
    is_indicative_price_allowed: bool = False  # marketplaces, old prices, advertised discounts
    build: BuildRules = USUAL
    weights: ObjectiveWeights | None = None  # of the objective "weighted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """Who shares the fleet."""

    name: str
    n_accelerators_quota: int | None = None
    share_ratio: float = 1.0  # weight among the teams
