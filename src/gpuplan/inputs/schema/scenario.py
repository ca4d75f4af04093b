"""The file format of scenario.yaml: human units, always named in the key."""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.inputs.schema.build import BuildSpec
from gpuplan.inputs.schema.keys import (
    GrowthSpread,
    NonNegative,
    PositiveFrac,
    PositiveSpread,
    Strict,
    Text,
    entries,
    key,
    optional,
    section,
)
from gpuplan.inputs.schema.kinds import AnyWorkload
from gpuplan.inputs.schema.site import OwnedSpec, SiteSpec
from gpuplan.inputs.schema.terms import BudgetSpec, PolicySpec, PricesSpec, TeamSpec

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
    site: SiteSpec | None = optional("Your own site; left out: everything is rented")
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
