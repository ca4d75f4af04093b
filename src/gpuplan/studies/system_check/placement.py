"""The nodes that a workload runs on, and the kinds of remarks that a study makes about them."""

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, Server
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.build import USUAL, BuildRules
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes
from gpuplan.domain.scenario.workload import Generic, Workload
from gpuplan.domain.system.findings import Finding, warning
from gpuplan.studies.power.node_draw import server_with

Remark = Finding | Assumption


class Placement(NamedTuple):
    """Nodes of one kind, and how many of their accelerators a workload takes."""

    catalog: Catalog
    accelerator: Accelerator
    owned: OwnedNodes
    n_accelerators: int
    build: BuildRules = USUAL

    @property
    def n_nodes(self) -> int:
        """Whole nodes that the workload needs."""
        return ceil(self.n_accelerators / self.n_per_node)

    @property
    def n_per_node(self) -> int:
        """Accelerators in one node."""
        return self.owned.n_accelerators_per_node

    @property
    def server(self) -> Server | None:
        """The catalog's server of this size; None where it has none."""
        return server_with(self.catalog, self.accelerator, self.n_per_node)

    @property
    def host_memory_bytes(self) -> float | None:
        """Memory of one node: the user's figure, else its server's; None where neither is known."""
        server = self.server
        return self.owned.host_memory_bytes or (server.host.ram_bytes if server else None)


def placement_of(scenario: Scenario, work: Workload, catalog: Catalog) -> Placement:
    """The largest group of nodes, and as many of its accelerators as the workload takes."""
    owned = max(scenario.owned, key=lambda group: group.n_accelerators)
    accelerator = find_accelerator(owned.accelerator, catalog).accelerator
    wanted = work.work.n_accelerators if isinstance(work.work, Generic) else None
    n = owned.n_accelerators if wanted is None else min(ceil(wanted), owned.n_accelerators)
    return Placement(catalog, accelerator, owned, n, scenario.policy.build)


def not_judged(work: Workload, what: str, fix: str) -> Finding:
    """The warning that something of the workload is described too little to be judged."""
    return warning("not-judged", work.name, what, fix)


def findings_in(remarks: Iterable[object]) -> tuple[Finding, ...]:
    """The findings among the remarks, each once."""
    return tuple(dict.fromkeys(r for r in remarks if isinstance(r, Finding)))


def assumptions_in(remarks: Iterable[object]) -> tuple[Assumption, ...]:
    """The assumptions among the remarks, each once."""
    return tuple(dict.fromkeys(r for r in remarks if isinstance(r, Assumption)))
