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
    key,
    optional,
    section,
)
from gpuplan.inputs.schema.site import (
    BudgetSpec,
    OwnedSpec,
    PolicySpec,
    PricesSpec,
    SiteSpec,
    TeamSpec,
)
from gpuplan.inputs.schema.workload import AnyWorkload

FORMAT_VERSION = 1


class GrowthSpec(Strict):
    """How demand moves, and how fast hardware can follow."""

    per_month_frac: GrowthSpread = key(
        "Compound growth of demand",
        "fraction per month",
        default=GrowthSpread(low=0, mid=0, high=0),
        why="demand stays as it is, unless growth is given",
        example={"low": 0.04, "mid": 0.08, "high": 0.12},
    )
    monthly_profile: Annotated[list[NonNegative], Field(min_length=12, max_length=12)] | None = (
        optional("Relative load of the 12 months of a year", "relative")
    )
    lead_time_weeks: PositiveSpread | None = optional("From order to service", "weeks", example=16)
    trigger_utilization_frac: PositiveFrac | None = optional(
        "Order when the peak reaches this", "fraction", example=0.85
    )
    target_utilization_frac: PositiveFrac | None = optional(
        "Size new capacity for this at the peak", "fraction", example=0.8
    )


class ScenarioSpec(Strict):
    """A scenario: what is to be planned."""

    version: Literal[1] = key("Version of this format", default=FORMAT_VERSION, why="the only one")
    name: Text = key("A name of your own", example="chat for 6000 users")
    workloads: Annotated[list[AnyWorkload], Field(min_length=1, max_length=500)] = key(
        "The work to be done"
    )
    growth: GrowthSpec = section("How demand moves", GrowthSpec)
    site: SiteSpec | None = optional("Your own place")
    owned: Annotated[list[OwnedSpec], Field(max_length=1000)] = Field(
        default_factory=list, description="Machines that you have already"
    )
    budget: BudgetSpec = section("Limits of money", BudgetSpec)
    policy: PolicySpec = section("What is allowed", PolicySpec)
    prices: PricesSpec = section("Prices that you know better than the catalog", PricesSpec)
    build: BuildSpec = section("Rules for everything around accelerators", BuildSpec)
    teams: Annotated[list[TeamSpec], Field(max_length=500)] = Field(
        default_factory=list, description="Who shares the fleet"
    )
    objective: Literal["cost", "time", "energy", "carbon", "regret"] = key(
        "What is made smallest",
        default="cost",
        why="whole-life cost, with energy and upkeep in it",
    )
