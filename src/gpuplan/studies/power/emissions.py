"""What an hour of a node emits, in: its place; out: kg per joule that its machines draw."""

from collections.abc import Mapping

from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import PlannerError
from gpuplan.studies.power.carbon import place_at


def carbon_counts(scenario: Scenario) -> bool:
    """Whether the choice depends on carbon, so that what is not known may not be chosen."""
    return scenario.objective == "carbon" or scenario.policy.carbon_max_kg_per_year is not None


def carbon_kg_per_j(rate: NodeRate, scenario: Scenario) -> float | None:
    """The grid's average at the place, cooling and losses included; None where it is not known."""
    is_own = rate.purchase == "owned" or rate.capital is not None
    site = scenario.site if is_own else None
    if site is not None and site.carbon_kg_per_j is not None:
        return site.carbon_kg_per_j * (site.pue_ratio or 1.0)
    if rate.node.region is None and (site is None or site.region is None):
        return None
    try:
        place = place_at(rate.node.region, cloud=rate.node.cloud, site=site)
    except PlannerError:
        return None  # a region that nobody describes
    for figure in place.intensities:
        if (figure.boundary, figure.method) == ("location", "average"):
            return figure.kg_per_j * place.pue_ratio
    return None


def emitted_kg(energy_j: Mapping[str, float], rates: Mapping[str, NodeRate], scenario: Scenario
               ) -> float | None:  # fmt: skip
    """Of energy by terms; None where any of it comes from a place that is not known."""
    total = 0.0
    for terms, joules in energy_j.items():
        rate = rates.get(terms)
        each = carbon_kg_per_j(rate, scenario) if rate else None
        if each is None:
            return None
        total += joules * each
    return total
