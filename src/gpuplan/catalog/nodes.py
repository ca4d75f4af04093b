"""How many accelerators a usual node of each kind carries."""

from collections import Counter

from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator

TPU_HOST = 4  # chips of one host of a slice [TPU-architecture]
USUAL_NODE = 8


def node_sizes(catalog: Catalog) -> dict[str, int]:
    """Of the servers in the catalog, else of the island, up to a usual node."""
    found: dict[str, int] = {}
    for card in catalog.accelerators.values():
        counts = Counter(
            server.n_accelerators
            for server in catalog.servers.values()
            if server.accelerator == card.id
        )
        found[str(card.id)] = counts.most_common(1)[0][0] if counts else _usual(card)
    return found


def _usual(card: Accelerator) -> int:
    if card.vendor == "Google":
        return TPU_HOST
    return min(USUAL_NODE, card.scale_up.n_domain) if card.scale_up else 1
