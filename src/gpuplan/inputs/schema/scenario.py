"""The file format of scenario.yaml: human units, always named in the key.

The file format of the site: racks, power, network, software, and the nodes owned already.
"""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.inputs.schema.build import BuildSpec
from gpuplan.inputs.schema.keys import (
    Count,
    CountPerNode,
    Frac,
    GrowthSpread,
    NonNegative,
    Positive,
    PositiveFrac,
    PositiveSpread,
    Ratio,
    Strict,
    Text,
    entries,
    key,
    optional,
    section,
)
from gpuplan.inputs.schema.kinds import AnyWorkload
from gpuplan.inputs.schema.terms import BudgetSpec, PolicySpec, PricesSpec, TeamSpec


class CircuitSpec(Strict):
    """The electrical supply of one rack."""

    volts: Positive = key(
        "Voltage, line to line where there are three phases", "volts", to="line_v", example=208
    )
    amps: Positive = key("Rating of the breaker", "amperes", to="breaker_a", example=60)
    phases: Literal[1, 3] = key("Number of phases: 1 or 3", "phases", example=3)
    feeds: Literal["A", "A+B"] = key(
        "Feeds of the rack; A+B are redundant, so their power is never added",
        means={"A": 1, "A+B": 2},
        default="A",
        why="one feed unless a second is named",
    )
    circuits_per_feed: Count = key(
        "Equal circuits on each feed", "circuits", default=1, why="one unless more are named"
    )
    derate_frac: PositiveFrac = key(
        "Share of the breaker rating that may be drawn continuously",
        default=0.8,
        why="North American practice for continuous load: 80 % of the breaker",
    )


class RackSpec(Strict):
    """Height, power, cooling, weight and depth limits of one rack."""

    units_u: Count | None = optional("Height of the rack", to="n_units", example=42)
    power_kw: Positive | None = optional("Power limit of one rack", example=40)
    circuit: CircuitSpec | None = optional("Electrical supply of one rack")
    cooling_kw: Positive | None = optional("Cooling capacity of one rack", example=30)
    weight_kg: Positive | None = optional("Weight limit of rack and floor")
    depth_m: Positive | None = optional("Depth of the rack that servers can use", example=1.2)


class NetworkSpec(Strict):
    """The network that connects the nodes."""

    kind: Literal["ethernet", "roce", "infiniband", "efa"] = key(
        "Type of the fabric", example="ethernet"
    )
    nics_per_node: Count = key("NICs of one node", "NICs", example=4)
    nic_gbit_per_s: Positive = key("Line rate of one NIC", example=100)
    oversubscription: Ratio = key(
        "Oversubscription: leaf bandwidth down over up; 1 is non-blocking",
        "ratio",
        default=1.0,
        why="a non-blocking fabric, unless stated otherwise",
    )


class SoftwareSpec(Strict):
    """Software on the nodes; versions are quoted, for 2.10 is not 2.1."""

    driver: Text | None = optional("Version of the GPU driver", example="580.65.06")
    cuda: Text | None = optional("CUDA version of the framework's build", example="12.8")
    torch: Text | None = optional("Version of PyTorch", example="2.8.0")
    framework: Literal["vllm", "sglang", "tensorrt-llm"] | None = optional("Inference engine")
    framework_version: Text | None = optional("Version of the inference engine", example="0.10.2")
    python: Text | None = optional("Version of Python", example="3.12")
    rocm: Text | None = optional("Version of ROCm, on AMD", example="7.0")


class SiteSpec(Strict):
    """Your own site. Leave it out if you only rent."""

    region: Text | None = optional(
        "Region or country, for the price of energy and its carbon intensity", example="de"
    )
    power_kw: Positive | None = optional("Power limit of the site", example=500)
    power_scope: Literal["it", "facility"] = key(
        "What power_kw counts: IT equipment alone, or cooling and losses too",
        to="is_facility_power",
        means={"it": False, "facility": True},
        default="it",
        why="power limits are usually quoted for IT equipment",
    )
    racks: Count | None = optional("Racks that can be filled", example=4)
    rack: RackSpec | None = optional("Limits of each rack")
    cooling: Literal["air", "rear_door", "direct_liquid", "immersion"] | None = optional(
        "Cooling of the racks", example="air"
    )
    pue: Annotated[float, Field(ge=1, le=5)] | None = optional(
        "PUE: facility power over IT power", "ratio", example=1.4
    )
    electricity_usd_per_kwh: PositiveSpread | None = optional("Price of energy", example=0.12)
    demand_charge_usd_per_kw_month: NonNegative | None = optional(
        "Demand charge on the highest draw of a month", to="demand_usd_per_w_month"
    )
    carbon_g_per_kwh: NonNegative | None = optional("Carbon intensity of energy")
    network: NetworkSpec | None = optional("Network between nodes")
    software: SoftwareSpec | None = optional("Software on the nodes")


class OwnedSpec(Strict):
    """Equal nodes that you own already."""

    name: Text | None = optional("Name of this group of nodes")
    accelerator: Text = key("Accelerator, by its catalog name", example="H100")
    nodes: Count = key("Number of nodes", example=4)
    accelerators_per_node: CountPerNode = key("Accelerators of one node", "accelerators", example=8)
    node_max_kw: Positive | None = optional("Maximum power draw of one node", example=10.2)
    accelerator_cap_w: Positive | None = optional("Power cap of one accelerator")
    host_cores: Positive | None = optional("Usable CPU cores of one node")
    host_memory_gib: Positive | None = optional("Host memory of one node")
    nics: Count | None = optional("NICs of one node")
    nic_gbit_per_s: Positive | None = optional("Line rate of one NIC")
    peak_utilization_frac: Frac | None = optional(
        "Utilization in the busiest hour of the week", example=0.7
    )
    mean_utilization_frac: Frac | None = optional("Mean utilization over the week")


FORMAT_VERSION = 1


class GrowthSpec(Strict):
    """How demand grows, and how fast hardware can follow."""

    per_month_frac: GrowthSpread = key(
        "Compound growth of demand",
        default=GrowthSpread(low=0, mid=0, high=0),
        why="demand stays as it is, unless growth is given",
        example={"low": 0.04, "mid": 0.08, "high": 0.12},
    )
    monthly_profile: Annotated[list[NonNegative], Field(min_length=12, max_length=12)] | None = (
        optional("Relative load of each of the 12 months of a year")
    )
    lead_time_weeks: PositiveSpread | None = optional(
        "Lead time of hardware, from order to service", example=16
    )
    trigger_utilization_frac: PositiveFrac | None = optional(
        "Peak utilization at which new capacity is ordered", example=0.85
    )
    target_utilization_frac: PositiveFrac | None = optional(
        "Peak utilization that new capacity is sized for", example=0.8
    )


class ScenarioSpec(Strict):
    """A scenario: the workloads, the site, the budget and the policy to plan for."""

    version: Literal[1] = key(
        "Version of this file format", to="", default=FORMAT_VERSION, why="the only one"
    )
    name: Text = key("Name of the scenario", example="chat for 6000 users")
    workloads: Annotated[list[AnyWorkload], Field(min_length=1, max_length=500)] = key(
        "Workloads to plan for"
    )
    growth: GrowthSpec = section("How demand grows", GrowthSpec)
    site: SiteSpec | None = optional("Your own site; everything is rented by default")
    owned: Annotated[list[OwnedSpec], Field(max_length=1000)] = entries(
        "Nodes that you own already"
    )
    budget: BudgetSpec = section("Budget limits and the planning horizon", BudgetSpec)
    policy: PolicySpec = section("Constraints on what the plan may use", PolicySpec)
    prices: PricesSpec = section("Your own prices, in place of the catalog's", PricesSpec)
    build: BuildSpec = section("Design rules for everything around accelerators", BuildSpec, to="")
    teams: Annotated[list[TeamSpec], Field(max_length=500)] = entries("Teams that share the fleet")
    objective: Literal["cost", "time", "energy", "carbon", "regret", "weighted"] = key(
        "Objective: the quantity that the plan minimizes",
        default="cost",
        why="whole-life cost, with energy and upkeep in it",
    )
