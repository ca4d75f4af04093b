"""What a node draws and takes of a rack, in: the catalog and the site; out: watts and shares."""

from typing import NamedTuple

from gpuplan.design.racks import fit_rack
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.money.rates import NodeKind
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Rack
from gpuplan.errors import InvariantError, one
from gpuplan.studies.power.node_draw import node_draw


class NodePower(NamedTuple):
    """Of one node at its plug; zero where no limit of the accelerator is published."""

    max_w: float
    mean_w: float


def node_power(catalog: Catalog, accelerator: str, n_accelerators: int) -> NodePower:
    """Highest and mean draw of one node: its maker's figure, or from its parts."""
    card = catalog.accelerators.get(AcceleratorId(accelerator))
    if card is None:
        what = f"{accelerator} is in no catalog"
        raise one(InvariantError, "plan", "power", what, "resolve names before pricing")
    if card.power.limit_w is None:
        return NodePower(max_w=0.0, mean_w=0.0)
    node, _ = node_draw(catalog, card, max(1, n_accelerators))
    return NodePower(max_w=node.max_w, mean_w=node.typical_w)


def racks_per_node(scenario: Scenario, catalog: Catalog, node: NodeKind) -> float:
    """Share of a rack that a node takes; more than all racks where it fits into none."""
    site = scenario.site
    card = catalog.accelerators.get(AcceleratorId(node.accelerator))
    if site is None or site.n_racks is None or card is None or card.power.limit_w is None:
        return 0.0
    machine, _ = node_draw(catalog, card, max(1, node.n_accelerators))
    fit = fit_rack(machine, site.rack or Rack(), room=scenario.policy.build.room)
    if not fit.limits:
        return 0.0
    return 1.0 / fit.n_nodes if fit.n_nodes else site.n_racks + 1.0
