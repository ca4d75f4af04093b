"""What the ranks of a training run can stand on: servers with the network that joins them.

A run wider than one server talks over what the offer states; where an offer states nothing, over
the site's network, the maker's reference server (prices that the user gives), or a conservative
Ethernet (published prices). What is assumed is said.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from gpuplan.calibration.training.fabric import nic_bytes_per_s
from gpuplan.catalog.nodes import USUAL_NODE, node_sizes
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId
from gpuplan.domain.money.rates import NodeKind, NodeRate, RateTerms
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.studies.market.offers import Market, indexed
from gpuplan.units import GBIT

# Assumption: Ethernet of a rented server whose offer states no network; consumer boards stand in
# ordinary PCs, and only servers with scale-up links are built for more than one machine.
ASSUMED_GBIT = {"scale-up": 100, "board": 25, "consumer": 10}
CLOUD_FABRICS = {"aws": "EFA"}
FABRIC_WORDS = {"infiniband": "InfiniBand", "ethernet": "RoCE", "roce": "RoCE", "efa": "EFA"}


class RentedServer(NamedTuple):
    """One kind of server that ranks may stand on."""

    node: NodeKind
    usd_per_h: float  # the least that one costs
    n_most: int | None  # that can be had; None: any number


def market_for_ranks(market: Market, scenario: Scenario, catalog: Catalog) -> Market:
    """Every way to pay for servers that ranks fill evenly, each with its network."""
    network = scenario.site.network if scenario.site else None
    sizes = node_sizes(catalog)
    rates = [
        replace(each, id=f"{each.id} for ranks", node=_joined(each, network, catalog))
        for rate in market.rates
        if rate.evidence.source == "user" or _is_even(rate.node.n_accelerators)
        for each in _servers(rate, sizes.get(rate.node.accelerator, 1))
    ]
    return indexed(market._replace(rates=tuple(rates)))


def joint_market(market: Market, ranks: Market) -> Market:
    """Both in one: jobs find their servers with or without a network."""
    return indexed(market._replace(rates=(*market.rates, *ranks.rates)))


def rented_servers(market: Market) -> tuple[RentedServer, ...]:
    """Every kind of server once, cheapest accelerator first."""
    found: dict[tuple[str, int, str], RentedServer] = {}
    for rate in market.rates:
        node, usd, most = rate.node, rate.price_usd_per_h.mid, rate.terms.n_nodes_max
        if rate.purchase == "spot" or not node.n_accelerators or not node.fabric:
            continue
        key = (node.accelerator, node.n_accelerators, node.fabric)
        known = found.get(key)
        if known is not None:
            limits = (known.n_most, most)
            most = None if None in limits else max(n for n in limits if n is not None)
            usd = min(usd, known.usd_per_h)
        found[key] = RentedServer(node, usd, most)
    widest: dict[tuple[str, str], int] = {}
    for server in found.values():
        kind = (server.node.accelerator, server.node.fabric_source)
        widest[kind] = max(widest.get(kind, 0), server.node.n_accelerators)
    return tuple(
        server if _is_widest(server, widest) else server._replace(n_most=1)
        for server in sorted(
            found.values(), key=lambda server: server.usd_per_h / server.node.n_accelerators
        )
    )


def _is_widest(server: RentedServer, widest: Mapping[tuple[str, str], int]) -> bool:
    """Whether several of them may be joined: runs over several servers take the largest."""
    node = server.node
    return node.n_accelerators == widest[node.accelerator, node.fabric_source]


def _servers(rate: NodeRate, n_usual: int) -> Iterator[NodeRate]:
    """A price by the accelerator as the servers it stands in: a part of one, or whole ones."""
    yield replace(rate, terms=_alone(rate)) if _is_single(rate, n_usual) else rate
    n = 2
    while _is_single(rate, n_usual) and n <= n_usual:
        most = rate.terms.n_nodes_max
        terms = replace(rate.terms, n_nodes_max=None if most is None else most // n)
        yield replace(
            rate,
            id=f"{rate.id} x{n}",
            node=replace(rate.node, n_accelerators=n),
            price_usd_per_h=rate.price_usd_per_h.times(n),
            parts=tuple(replace(part, usd_per_h=part.usd_per_h.times(n)) for part in rate.parts),
            terms=terms if n == n_usual else _alone(rate),
        )
        n = n_usual if 2 * n > n_usual > n else 2 * n


def _is_single(rate: NodeRate, n_usual: int) -> bool:
    """Whether the user prices single accelerators of servers that hold several."""
    return rate.id.startswith("user/") and rate.node.n_accelerators == 1 < n_usual


def _alone(rate: NodeRate) -> RateTerms:
    return replace(rate.terms, n_nodes_max=1)


def _is_even(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _joined(rate: NodeRate, network: NodeNetwork | None, catalog: Catalog) -> NodeKind:
    """The server with its network in words, and whose word it is."""
    node = rate.node
    card = catalog.accelerators.get(AcceleratorId(node.accelerator))
    if card is None or card.is_cpu:
        return node
    if node.network_bytes_per_s is not None:
        kind = CLOUD_FABRICS.get(node.cloud or "", "Ethernet")
        return replace(node, fabric=_words(node.network_bytes_per_s, kind), fabric_source="stated")
    if network is not None:
        rate_bytes = network.n_nics_per_node * network.nic_bytes_per_s
        usable = rate_bytes / network.oversubscription_ratio
        words = _words(usable, FABRIC_WORDS.get(network.kind.lower(), network.kind))
        return replace(node, fabric=words, fabric_source="site")
    if rate.evidence.source == "user":
        return with_reference_fabric(node, card)
    share = min(1.0, node.n_accelerators / USUAL_NODE)  # a part of a server gets a part of its NIC
    words = _words(assumed_gbit(card) * GBIT * share, "TCP")
    return replace(node, fabric=words, fabric_source="assumed")


def with_reference_fabric(node: NodeKind, card: Accelerator) -> NodeKind:
    """The server with the NICs of the maker's reference design."""
    each, _ = nic_bytes_per_s("", card, n_node=USUAL_NODE)
    words = _words(each * node.n_accelerators, "InfiniBand")
    return replace(node, fabric=words, fabric_source="reference")


def assumed_gbit(card: Accelerator) -> float:
    """Ethernet of a rented server whose offer states no network."""
    if card.scale_up is not None and card.scale_up.n_domain > 2:
        return ASSUMED_GBIT["scale-up"]
    return ASSUMED_GBIT["consumer" if "GeForce" in card.name else "board"]


def _words(bytes_per_s: float, kind: str) -> str:
    return f"{bytes_per_s / GBIT:g} Gbit/s {kind} per node"
