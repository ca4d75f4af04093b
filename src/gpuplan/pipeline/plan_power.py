"""What a node draws at its plug, in: the catalog; out: highest and mean draw."""

from typing import NamedTuple

from gpuplan.domain.catalog import Catalog
from gpuplan.domain.hardware import AcceleratorId
from gpuplan.errors import InvariantError, one
from gpuplan.pipeline.node_draw import node_draw


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
