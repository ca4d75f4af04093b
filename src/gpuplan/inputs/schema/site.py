"""The file format of the place, the machines that stand there, and the terms."""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.inputs.schema.keys import (
    Count,
    Frac,
    FracSpread,
    Names,
    NonNegative,
    Positive,
    PositiveFrac,
    PositiveSpread,
    Ratio,
    Strict,
    Text,
    key,
    optional,
    section,
)

PurchaseKind = Literal["on_demand", "reserved", "spot", "capacity_block", "owned"]


class CircuitSpec(Strict):
    """The supply of one rack."""

    volts: Positive = key("Line to line where there are three phases", "volts", example=208)
    amps: Positive = key("Of the breaker", "amperes", example=60)
    phases: Literal[1, 3] = key("1 or 3", "phases", example=3)
    feeds: Literal["A", "A+B"] = key(
        "A+B: two feeds, each the reserve of the other, so never added",
        default="A",
        why="one feed unless a second is named",
    )
    circuits_per_feed: Count = key(
        "Equal circuits on each feed", "circuits", default=1, why="one unless more are named"
    )
    derate_frac: PositiveFrac = key(
        "Share of the breaker that may be drawn without pause",
        "fraction",
        default=0.8,
        why="North American practice for continuous load: 80 % of the breaker",
    )


class RackSpec(Strict):
    """Limits of one rack."""

    units_u: Count | None = optional("Height", "rack units", example=42)
    power_kw: Positive | None = optional("Power that a rack may draw", "kW", example=40)
    circuit: CircuitSpec | None = optional("Its supply")
    cooling_kw: Positive | None = optional("Heat that can be taken from a rack", "kW", example=30)
    weight_kg: Positive | None = optional("What floor and rack bear", "kg")


class NetworkSpec(Strict):
    """How nodes are joined."""

    kind: Literal["ethernet", "roce", "infiniband", "efa"] = key("Fabric", example="ethernet")
    nics_per_node: Count = key("Ports of one node", "ports", example=4)
    nic_gbit_per_s: Positive = key("Line rate of one port", "Gbit per second", example=100)
    oversubscription: Ratio = key(
        "Leaf bandwidth down over up; 1 does not block",
        "ratio",
        default=1.0,
        why="a fabric that does not block, unless said otherwise",
    )


class SoftwareSpec(Strict):
    """What runs on the machines; versions are quoted, for 2.10 is not 2.1."""

    driver: Text | None = optional("Driver", example="580.65.06")
    cuda: Text | None = optional("Of the framework's build", example="12.8")
    torch: Text | None = optional("PyTorch", example="2.8.0")
    framework: Literal["vllm", "sglang", "tensorrt-llm"] | None = optional("Serving framework")
    framework_version: Text | None = optional("Its version", example="0.10.2")
    python: Text | None = optional("Python", example="3.12")
    rocm: Text | None = optional("On AMD", example="7.0")


class SiteSpec(Strict):
    """Your own place. Leave it out if you only rent."""

    region: Text | None = optional("Region or country, for power price and carbon", example="de")
    power_kw: Positive | None = optional("Power that you can draw", "kW", example=500)
    power_scope: Literal["it", "facility"] = key(
        "What power_kw counts: the machines, or cooling and losses too",
        default="it",
        why="power limits are usually quoted for the machines",
    )
    racks: Count | None = optional("Racks that you can fill", "racks", example=4)
    rack: RackSpec | None = optional("Limits of each")
    cooling: Literal["air", "rear_door", "direct_liquid", "immersion"] | None = optional(
        "How heat leaves the rack", example="air"
    )
    pue: Annotated[float, Field(ge=1, le=5)] | None = optional(
        "Facility power over machine power", "ratio", example=1.4
    )
    electricity_usd_per_kwh: PositiveSpread | None = optional(
        "Price of energy", "USD per kWh", example=0.12
    )
    demand_charge_usd_per_kw_month: NonNegative | None = optional(
        "Price of the highest draw of a month", "USD per kW and month"
    )
    carbon_g_per_kwh: NonNegative | None = optional("Carbon intensity", "gCO2e per kWh")
    network: NetworkSpec | None = optional("How nodes are joined")
    software: SoftwareSpec | None = optional("What runs on the machines")


class OwnedSpec(Strict):
    """Equal machines that you have already."""

    name: Text | None = optional("A name of your own")
    accelerator: Text = key("Catalog name", example="H100")
    nodes: Count = key("Machines", "nodes", example=4)
    accelerators_per_node: Count = key("In each machine", "accelerators", example=8)
    node_max_kw: Positive | None = optional("Highest draw of one machine", "kW", example=10.2)
    accelerator_cap_w: Positive | None = optional("Power cap of one accelerator", "watts")
    host_cores: Positive | None = optional("Usable cores of one machine", "cores")
    host_memory_gib: Positive | None = optional("Memory of one machine", "GiB")
    nics: Count | None = optional("Ports of one machine", "ports")
    nic_gbit_per_s: Positive | None = optional("Line rate of one port", "Gbit per second")
    peak_utilization_frac: Frac | None = optional(
        "Busiest hour of the week", "fraction", example=0.7
    )
    mean_utilization_frac: Frac | None = optional("Mean of the week", "fraction")


class BudgetSpec(Strict):
    """Limits of money, and over what time it is counted."""

    capex_usd: NonNegative | None = optional("Most to spend on purchase", "USD", example=2000000)
    opex_usd_per_year: NonNegative | None = optional("Most to spend on running", "USD per year")
    usd_per_month: NonNegative | None = optional("Most to spend in a month", "USD per month")
    total_usd: NonNegative | None = optional("Most to spend over the horizon", "USD")
    horizon_months: Annotated[float, Field(ge=1, le=600)] = key(
        "Time over which cost is counted",
        "months",
        default=36.0,
        why="three years: a usual life of accelerators in budgets",
    )
    discount_rate_frac_per_year: Frac = key(
        "Interest for present value",
        "fraction per year",
        default=0.0,
        why="money is not discounted unless a rate is given",
    )
    depreciation_years: Positive | None = optional("Life in the books", "years", example=4)
    residual_frac: FracSpread | None = optional("Worth at the end, of the purchase", "fraction")


class ChoiceSpec(Strict):
    """All, or the allowed ones only, and never the forbidden."""

    allowed: Names | None = optional("Only these", example=["H100", "L40S"])
    forbidden: Names | None = optional("Never these")


class PolicySpec(Strict):
    """What is allowed."""

    accelerators: ChoiceSpec = section("Which accelerators", ChoiceSpec)
    clouds: ChoiceSpec = section("Which clouds", ChoiceSpec)
    regions: ChoiceSpec = section("Which regions", ChoiceSpec)
    precisions: Names | None = optional("Weight precisions for all workloads", example="bf16")
    purchases: Annotated[list[PurchaseKind], Field(min_length=1)] | None = optional(
        "Ways to get hardware", example=["on_demand", "reserved"]
    )
    spot_allowed: bool | None = optional("Machines that can be taken away at short notice")
    max_accelerators: Count | None = optional("In the whole plan", "accelerators", example=64)
    survive: Literal["none", "gpu", "replica", "node", "rack", "zone"] = key(
        "Largest part whose loss the service must survive at the peak",
        default="none",
        why="no spare is bought unless it is asked for",
    )
    survive_count: Count = key(
        "How many such losses at once", "losses", default=1, why="one loss at a time"
    )
    max_utilization_frac: PositiveFrac | None = optional(
        "Busy share at the peak, never above", "fraction", example=0.7
    )
    tensor_parallel_across_islands: bool = key(
        "Tensor parallelism may leave the fast links",
        default=False,
        why="it is slow there",
    )
    max_co2_t_per_year: Positive | None = optional("Most carbon", "tonnes CO2e per year")


class AvailabilitySpec(Strict):
    """How much of an offer can be had, how fast, and for how long."""

    max_nodes: Count | None = optional("Quota", "nodes")
    cold_start_min: PositiveSpread | None = optional(
        "From order to service", "minutes", example={"low": 4, "mid": 6, "high": 8}
    )
    interruptions_per_week: NonNegative | None = optional(
        "How often a node is taken away", "per week"
    )


class OfferSpec(Strict):
    """Something to be had by the hour, at your price."""

    name: Text | None = optional("A name of your own; the accelerator's if left out")
    accelerator: Text = key("Catalog name", example="H100")
    usd_per_accelerator_h: PositiveSpread | None = optional(
        "Price of one accelerator", "USD per hour", example=2.95
    )
    usd_per_node_h: PositiveSpread | None = optional("Price of one node", "USD per hour")
    accelerators_per_node: Count = key(
        "Smallest number that can be had",
        "accelerators",
        default=1,
        why="single accelerators can be had, unless said otherwise",
    )
    vcpus_per_node: Count | None = optional("For CPU nodes", "vCPUs", example=16)
    purchase: PurchaseKind = key(
        "Terms", default="on_demand", why="by the hour, unless said otherwise"
    )
    cloud: Text | None = optional("Who sells it", example="aws")
    region: Text | None = optional("Where", example="us-east-1")
    term_months: Positive | None = optional("Commitment, paid whether used or not", "months")
    availability: AvailabilitySpec = section("How much, how fast", AvailabilitySpec)


class HardwarePriceSpec(Strict):
    """What it costs to buy, and to move to."""

    accelerator: Text = key("Catalog name", example="H100")
    usd_per_accelerator: PositiveSpread | None = optional("Price of one", "USD", example=28000)
    usd_per_node: PositiveSpread | None = optional("Price of a whole machine", "USD")
    porting_usd: PositiveSpread | None = optional("Once, to move software there", "USD")
    lead_time_weeks: PositiveSpread | None = optional("From order to service", "weeks", example=16)


class TokenPriceSpec(Strict):
    """A bought service that answers by the token."""

    name: Text = key("Which service", example="hosted API")
    usd_per_m_input_tokens: NonNegative = key("Input", "USD per million tokens", example=0.6)
    usd_per_m_cached_tokens: NonNegative | None = optional(
        "Input found in its cache", "USD per million tokens"
    )
    usd_per_m_output_tokens: Positive = key("Output", "USD per million tokens", example=0.6)


class PurchaseExtrasSpec(Strict):
    """What comes on top of the price of hardware; left out, usual shares are assumed and told."""

    freight_frac: Frac | None = optional("Freight, of the hardware", "fraction", example=0.02)
    tax_frac: Frac | None = optional("Tax that you cannot reclaim", "fraction", example=0.0)
    installation_frac: Frac | None = optional("Installation, of the hardware", "fraction")
    network_gear_frac: Frac | None = optional("Racks, switches, cables", "fraction", example=0.12)
    spares_frac: Frac | None = optional("Spare parts, of the hardware", "fraction")
    loan_frac: Frac | None = optional("Share that is borrowed", "fraction", example=0.8)
    loan_interest_frac_per_year: Frac | None = optional("Interest", "fraction per year")
    loan_months: Positive | None = optional("Until it is paid back", "months", example=36)


class PricesSpec(Strict):
    """Prices that you know better than the catalog."""

    offers: Annotated[list[OfferSpec], Field(max_length=1000)] = Field(
        default_factory=list, description="What can be rented, or runs already, by the hour"
    )
    hardware: Annotated[list[HardwarePriceSpec], Field(max_length=1000)] = Field(
        default_factory=list, description="What can be bought"
    )
    token_services: Annotated[list[TokenPriceSpec], Field(max_length=100)] = Field(
        default_factory=list, description="Bought services, as the alternative"
    )
    egress_usd_per_gb: NonNegative | None = optional("Data out of a cloud", "USD per GB")
    storage_usd_per_tb_month: NonNegative | None = optional("Storage", "USD per TB and month")
    colocation_usd_per_kw_month: NonNegative | None = optional("Space", "USD per kW and month")
    staff_usd_per_year: NonNegative | None = optional("People", "USD per year")
    support_frac_per_year: Frac | None = optional("Support, of the purchase", "fraction per year")
    licence_usd_per_accelerator_year: NonNegative | None = optional(
        "Software licences", "USD per accelerator and year"
    )
    carbon_usd_per_t: NonNegative | None = optional("Price of carbon", "USD per tonne CO2e")
    purchase_extras: PurchaseExtrasSpec = section("On top of hardware", PurchaseExtrasSpec)


class TeamSpec(Strict):
    """Who shares the fleet."""

    name: Text = key("Team", example="search")
    quota_accelerators: Count | None = optional("Guaranteed share", "accelerators", example=24)
    share: Positive = key("Weight among the teams", "ratio", default=1.0, why="teams count alike")
