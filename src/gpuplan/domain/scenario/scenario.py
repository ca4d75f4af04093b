"""The user's request as one value: work, place, terms, and what had to be assumed."""

from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.demand import Growth
from gpuplan.domain.scenario.site import OwnedNodes, Site
from gpuplan.domain.scenario.terms import Budget, Policy, Prices, Team
from gpuplan.domain.scenario.workload import Workload

Objective = Literal["cost", "time", "energy", "carbon", "regret", "weighted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is to be planned, in base units."""

    name: str
    workloads: tuple[Workload, ...]
    growth: Growth
    site: Site | None  # None: no place of one's own
    owned: tuple[OwnedNodes, ...]
    budget: Budget
    policy: Policy
    prices: Prices
    teams: tuple[Team, ...]
    objective: Objective
    assumptions: tuple[Assumption, ...]
    sha256: str  # of the meaning: comments, order of keys and layout do not count

    def workload(self, name: str) -> Workload | None:
        """The workload of this name, or None."""
        return next((work for work in self.workloads if work.name == name), None)
