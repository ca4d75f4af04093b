"""What a node draws: the maker's figure where the catalog has the machine, else from its parts."""

from typing import NamedTuple

from gpuplan.domain.catalog import Catalog
from gpuplan.domain.hardware import AcceleratorId
from gpuplan.errors import InvariantError, one

# Assumption: hosts, fans, network and losses over the accelerators' own limit. The eight-way
# machine of the catalog with the most published figures draws 10.2 kW around 5.6 kW.
HOST_RATIO = 1.6
MEAN_FRAC = 0.7  # Assumption: of the highest draw, over busy hours


class NodePower(NamedTuple):
    """Of one node at its plug."""

    max_w: float
    mean_w: float


def node_power(catalog: Catalog, accelerator: str, n_accelerators: int) -> NodePower:
    """Highest and mean draw of one node."""
    servers = [
        server
        for server in catalog.servers.values()
        if server.accelerator == accelerator
        and server.n_accelerators == n_accelerators
        and server.power.limit_w is not None
    ]
    limits = [server.power.limit_w for server in servers if server.power.limit_w is not None]
    if limits:
        return NodePower(max_w=max(limits), mean_w=MEAN_FRAC * max(limits))
    found = catalog.accelerators.get(AcceleratorId(accelerator))
    if found is None:
        what = f"{accelerator} is in no catalog"
        raise one(InvariantError, "plan", "power", what, "resolve names before pricing")
    each_w = (found.power.limit_w or 0.0) * HOST_RATIO
    return NodePower(max_w=n_accelerators * each_w, mean_w=n_accelerators * each_w * MEAN_FRAC)
