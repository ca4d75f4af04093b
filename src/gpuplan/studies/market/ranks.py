"""What the ranks of a training run can stand on: servers with the network that joins them.

A run wider than one server talks over what the offer states; servers of one's own and prices that
the user gives stand on the site's network or on the maker's reference server. Published offers
that state no fabric carry runs inside one server alone.
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

NO_FABRIC = "no fabric known"
FABRIC_WORDS = {
    "infiniband": "InfiniBand",
    "ethernet": "RoCE",
    "roce": "RoCE",
    "efa": "EFA",
    "tcp": "TCP",
}


class RentedServer(NamedTuple):
    """One kind of server that ranks may stand on."""

    node: NodeKind
    usd_per_h: float  # the least that one costs
    n_most: int | None  # that can be had; None: any number
    is_own: bool = False  # on one's own site: no cable joins them with rented ones
    is_all_used: bool = False  # as many as there are, as far as more are faster
    cap_w: float | None = None  # power cap of each accelerator; None: none


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
    found: dict[tuple[str, int, str, bool], RentedServer] = {}
    for rate in market.rates:
        node, usd, most = rate.node, rate.price_usd_per_h.mid, rate.terms.n_nodes_max
        if rate.purchase == "spot" or not node.n_accelerators or not node.fabric:
            continue
        if node.fabric == NO_FABRIC:
            most = 1
        is_own = rate.capital is not None
        key = (node.accelerator, node.n_accelerators, node.fabric, is_own)
        known = found.get(key)
        if known is not None:
            limits = (known.n_most, most)
            most = None if None in limits else max(n for n in limits if n is not None)
            usd = min(usd, known.usd_per_h)
        found[key] = RentedServer(node, usd, most, is_own)
    widest: dict[tuple[str, str, bool], int] = {}
    for server in found.values():
        kind = (server.node.accelerator, server.node.fabric_source, server.is_own)
        widest[kind] = max(widest.get(kind, 0), server.node.n_accelerators)
    return tuple(
        server if _is_widest(server, widest) else server._replace(n_most=1)
        for server in sorted(
            found.values(), key=lambda server: server.usd_per_h / server.node.n_accelerators
        )
    )


def _is_widest(server: RentedServer, widest: Mapping[tuple[str, str, bool], int]) -> bool:
    """Whether several of them may be joined: runs over several servers take the largest."""
    node = server.node
    return node.n_accelerators == widest[node.accelerator, node.fabric_source, server.is_own]


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
    is_mine = rate.capital is not None or rate.evidence.source == "user"
    if rate.capital is not None and network is not None:
        return _on_site(node, network)
    if node.network_bytes_per_s is not None:
        kind = FABRIC_WORDS.get(node.fabric_kind, "Ethernet")
        return replace(node, fabric=_words(node.network_bytes_per_s, kind), fabric_source="stated")
    if is_mine:
        return with_reference_fabric(node, card) if network is None else _on_site(node, network)
    return replace(node, fabric=NO_FABRIC, fabric_source="none")


def _on_site(node: NodeKind, network: NodeNetwork) -> NodeKind:
    rate_bytes = network.n_nics_per_node * network.nic_bytes_per_s
    kind = FABRIC_WORDS.get(network.kind.lower(), network.kind)
    words = _words(rate_bytes / network.oversubscription_ratio, kind)
    return replace(node, fabric=words, fabric_source="site")


def with_reference_fabric(node: NodeKind, card: Accelerator) -> NodeKind:
    """The server with the NICs of the maker's reference design."""
    each, _ = nic_bytes_per_s("", card, n_node=USUAL_NODE)
    words = _words(each * node.n_accelerators, "InfiniBand")
    return replace(node, fabric=words, fabric_source="reference")


def _words(bytes_per_s: float, kind: str) -> str:
    return f"{bytes_per_s / GBIT:g} Gbit/s {kind} per node"
