"""The file format of the terms: budget, policy, prices, teams."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gpuplan.inputs.schema.keys import (
    Count,
    CountPerNode,
    Frac,
    FracSpread,
    Names,
    NonNegative,
    Positive,
    PositiveFrac,
    PositiveSpread,
    Strict,
    Text,
    entries,
    key,
    optional,
    section,
)

PurchaseOption = Literal["on_demand", "reserved", "spot", "capacity_block", "owned"]


class BudgetSpec(Strict):
    """Budget limits, and the horizon over which cost is counted."""

    capex_usd: NonNegative | None = optional(
        "Capital expenditure limit for purchases", example=2000000
    )
    opex_usd_per_year: NonNegative | None = optional("Operating expenditure limit")
    usd_per_month: NonNegative | None = optional("Monthly spending limit")
    total_usd: NonNegative | None = optional("Spending limit over the whole horizon")
    horizon_months: Annotated[float, Field(ge=1, le=600)] = key(
        "Planning horizon over which cost is counted",
        default=36.0,
        why="three years: a usual life of accelerators in budgets",
    )
    discount_rate_frac_per_year: Frac = key(
        "Discount rate for present value",
        to="discount_frac_per_year",
        default=0.0,
        why="money is not discounted unless a rate is given",
    )
    depreciation_years: Positive | None = optional("Depreciation period of hardware", example=4)
    residual_frac: FracSpread | None = optional(
        "Residual value at the end of the horizon, as a share of the purchase price"
    )


class ChoiceSpec(Strict):
    """Everything, or the allowed ones only, and never the forbidden."""

    allowed: Names | None = optional("Only these may be used", example=["H100", "L40S"])
    forbidden: Names | None = optional("These may never be used")


def _weight(name: str, what: str = "", **options: Any) -> Any:
    why = "what is given no weight does not count"
    text, to = f"Weight of {what or name}", f"{name}_ratio"
    return key(text, "relative", default=0.0, to=to, why=why, **options)


class WeightsSpec(Strict):
    """Weights of the objective `weighted`; each quantity counts over the least that it can be."""

    cost: NonNegative = _weight("cost", example=1)
    time: NonNegative = _weight("time")
    energy: NonNegative = _weight("energy")
    carbon: NonNegative = _weight("carbon")
    risk: NonNegative = _weight("risk", "the risk of violating an SLO")


class PolicySpec(Strict):
    """Constraints on what the plan may use."""

    accelerators: ChoiceSpec = section("Accelerators that may be used", ChoiceSpec)
    clouds: ChoiceSpec = section("Clouds that may be used", ChoiceSpec)
    regions: ChoiceSpec = section("Regions that may be used", ChoiceSpec)
    precisions: Names | None = optional(
        "Weight precisions allowed for all workloads", to="", example="bf16"
    )
    purchases: Annotated[list[PurchaseOption], Field(min_length=1)] | None = optional(
        "Purchase options that may be used", to="", example=["on_demand", "reserved"]
    )
    weights: WeightsSpec | None = optional(
        "Weights over cost, time, energy, carbon and risk; they go with objective: weighted"
    )
    spot_allowed: bool | None = optional(
        "Whether spot capacity, which can be reclaimed at short notice, may be used", to=""
    )
    indicative_prices_allowed: bool = key(
        "Whether a plan may rest on indicative prices: marketplaces and auctions, prices older "
        "than 180 days, discounts that resellers advertise",
        to="is_indicative_price_allowed",
        default=False,
        why="they may not be had; they are shown as alternatives",
    )
    max_accelerators: Count | None = optional(
        "Maximum accelerators of the whole plan", to="n_accelerators_max", example=64
    )
    survive: Literal["none", "gpu", "replica", "node", "rack", "zone"] = key(
        "Largest failure domain whose loss the service must survive at the peak",
        to="resilience.survive",
        default="none",
        why="no spare is bought unless it is asked for",
    )
    survive_count: Count = key(
        "Simultaneous losses of that failure domain to survive",
        "losses",
        to="resilience.n_failures",
        default=1,
        why="one loss at a time",
    )
    max_utilization_frac: PositiveFrac | None = optional(
        "Maximum utilization at the peak", to="resilience.max_utilization_frac", example=0.7
    )
    min_probability_frac: PositiveFrac | None = optional(
        "Least probability of meeting all SLOs, from model error, demand and failures; "
        "left out: 0.8",
        to="resilience.min_probability_frac",
        example=0.8,
    )
    tensor_parallel_across_islands: bool = key(
        "Whether tensor parallelism may span servers (or larger NVLink domains)",
        to="layouts.is_tensor_across_islands_allowed",
        default=False,
        why="it is slow there",
    )
    disaggregation: Literal["auto", "allowed", "always", "never"] = key(
        "Prefill/decode disaggregation of language models: shown beside the cheapest fleet where "
        "it would cost less (auto), chosen where it is cheapest (allowed), always or never",
        to="layouts.disaggregation",
        default="auto",
        why="no measured disaggregated fleet checks the simulation yet",
    )
    max_co2_t_per_year: Positive | None = optional(
        "Maximum carbon emissions", to="carbon_max_kg_per_year"
    )


class AvailabilitySpec(Strict):
    """How many nodes of an offer can be had, how fast they start, how often they are reclaimed."""

    max_nodes: Count | None = optional("Quota of nodes", to="n_nodes_max")
    cold_start_min: PositiveSpread | None = optional(
        "Time from order to service", example={"low": 4, "mid": 6, "high": 8}
    )
    interruptions_per_week: NonNegative | None = optional("Spot interruptions of one node")


class OfferSpec(Strict):
    """Capacity that can be rented by the hour, at your price."""

    name: Text | None = optional("Name of the offer; default: the accelerator's", to="")
    accelerator: Text = key("Accelerator, by its catalog name", example="H100")
    usd_per_accelerator_h: PositiveSpread | None = optional(
        "Price of one accelerator", "USD per hour", to="", example=2.95
    )
    usd_per_node_h: PositiveSpread | None = optional("Price of one node", "USD per hour", to="")
    accelerators_per_node: CountPerNode = key(
        "Accelerators of one node, the smallest unit that can be rented",
        "accelerators",
        default=1,
        why="single accelerators can be rented, unless stated otherwise",
    )
    vcpus_per_node: Count | None = optional(
        "vCPUs of one node, for CPU nodes", "vCPUs", to="host.n_vcpus", example=16
    )
    network_gbit_per_s: Positive | None = optional(
        "Line rate of one node towards other nodes; without it no replica spans nodes",
        to="host.network_bytes_per_s",
        example=3200,
    )
    purchase: PurchaseOption = key(
        "Purchase option", default="on_demand", why="on demand, unless stated otherwise"
    )
    cloud: Text | None = optional("Cloud that sells it", example="aws")
    region: Text | None = optional("Region where it runs", example="us-east-1")
    term_months: Positive | None = optional("Term of the commitment, paid whether used or not")
    availability: AvailabilitySpec = section(
        "Quota, cold start and interruptions", AvailabilitySpec, to="*"
    )


class HardwarePriceSpec(Strict):
    """Purchase price of hardware, and the cost of moving to it."""

    accelerator: Text = key("Accelerator, by its catalog name", example="H100")
    usd_per_accelerator: PositiveSpread | None = optional(
        "Purchase price of one accelerator", "USD", to="accelerator_usd", example=28000
    )
    usd_per_node: PositiveSpread | None = optional(
        "Purchase price of one whole node", "USD", to="node_usd"
    )
    porting_usd: PositiveSpread | None = optional(
        "One-off cost of porting software to this hardware"
    )
    lead_time_weeks: PositiveSpread | None = optional(
        "Lead time, from order to service", example=16
    )


class TokenPriceSpec(Strict):
    """A hosted API that is paid by the token."""

    name: Text = key("Name of the hosted API", example="hosted API")
    usd_per_m_input_tokens: NonNegative = key(
        "Price of input tokens", "USD per million tokens", to="input_usd_per_token", example=0.6
    )
    usd_per_m_cached_tokens: NonNegative | None = optional(
        "Price of cached input tokens", "USD per million tokens", to="cached_usd_per_token"
    )
    usd_per_m_output_tokens: Positive = key(
        "Price of output tokens", "USD per million tokens", to="output_usd_per_token", example=0.6
    )


class PurchaseExtrasSpec(Strict):
    """Costs on top of the hardware price; left out, usual shares are assumed and reported."""

    freight_frac: Frac | None = optional("Freight, as a share of the hardware price", example=0.02)
    tax_frac: Frac | None = optional("Tax that cannot be reclaimed", example=0.0)
    installation_frac: Frac | None = optional(
        "Installation, as a share of the hardware price", to="install_frac"
    )
    network_gear_frac: Frac | None = optional(
        "Racks, switches and cables, as a share of the hardware price", to="gear_frac", example=0.12
    )
    spares_frac: Frac | None = optional("Spare parts, as a share of the hardware price")
    loan_frac: Frac | None = optional("Share that is financed by a loan", example=0.8)
    loan_interest_frac_per_year: Frac | None = optional("Interest rate of the loan")
    loan_months: Positive | None = optional("Term of the loan", example=36)


class PricesSpec(Strict):
    """Your own prices, in place of the catalog's."""

    offers: Annotated[list[OfferSpec], Field(max_length=1000)] = entries(
        "Capacity by the hour: rented, or running already"
    )
    hardware: Annotated[list[HardwarePriceSpec], Field(max_length=1000)] = entries(
        "Hardware that can be bought"
    )
    token_services: Annotated[list[TokenPriceSpec], Field(max_length=100)] = entries(
        "Hosted APIs to compare with", to="tokens"
    )
    egress_usd_per_gb: NonNegative | None = optional("Price of data egress from a cloud")
    storage_usd_per_tb_month: NonNegative | None = optional("Price of storage")
    colocation_usd_per_kw_month: NonNegative | None = optional("Price of colocation space")
    staff_usd_per_year: NonNegative | None = optional("Cost of staff")
    support_frac_per_year: Frac | None = optional(
        "Vendor support, as a share of the purchase price"
    )
    licence_usd_per_accelerator_year: NonNegative | None = optional(
        "Price of software licences", "USD per accelerator and year"
    )
    carbon_usd_per_t: NonNegative | None = optional("Price of carbon")
    purchase_extras: PurchaseExtrasSpec = section(
        "Costs on top of the hardware price", PurchaseExtrasSpec, to="extras"
    )


class TeamSpec(Strict):
    """A team that shares the fleet."""

    name: Text = key("Name of the team", example="search")
    quota_accelerators: Count | None = optional(
        "Quota: accelerators that the workloads of the team may take together",
        to="n_accelerators_quota",
        example=24,
    )
    share: Positive = key(
        "Fair-share weight among the teams",
        "ratio",
        default=1.0,
        why="all teams have the same weight",
    )
