"""What a node of each kind costs, draws and how fast jobs run on it, from the same rooms as plans.

A price of the cluster file stands; without one the kind has the cheapest published price that a
plan for a scenario would be made with.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.offers import read_offers
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup
from gpuplan.domain.cluster.plan import ClusterPlanRequest, FleetRejection
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly
from gpuplan.errors import InputError, one
from gpuplan.inputs.documents.document import document_from_dict
from gpuplan.inputs.scenario.read import scenario_of
from gpuplan.studies.cluster.described import catalog_key, known_card
from gpuplan.studies.market.offers import market_of
from gpuplan.studies.naming import with_overlays
from gpuplan.studies.power.node_draw import node_watts
from gpuplan.units import GIB


class PricedNode(NamedTuple):
    """A kind of node of the cluster file, ready to be chosen."""

    group: NodeGroup
    usd_per_h: Range
    source: str
    max_w: float | None
    notes: tuple[Assumption, ...] = ()


class Priced(NamedTuple):
    """Kinds that can be chosen, and those that nobody sells."""

    nodes: tuple[PricedNode, ...]
    rejected: tuple[FleetRejection, ...]


def priced_nodes(cluster: Cluster, request: ClusterPlanRequest) -> Priced:
    """Every kind of the file with its price, or the reason why it has none."""
    catalog = with_overlays(read_catalog(), request.overlays)
    groups = _requested(cluster, request.accelerators, catalog)
    rates = _rates(groups, catalog, request)
    nodes, rejected = [], []
    first = cluster.groups[0]
    least_bytes = cluster.plan.memory_bytes or _memory_bytes(first, catalog)
    for group in groups:
        found = _too_small(group, least_bytes, catalog) or _priced(group, first, catalog, rates)
        if isinstance(found, FleetRejection):
            rejected.append(found)
        else:
            nodes.append(found)
    if not nodes:
        fix = "give nodes.usd_per_accelerator_h, or run `gpuplan catalog update`"
        what = f"none for {', '.join(one.candidate for one in rejected)}"
        raise one(InputError, "plan", "prices", what, fix)
    return Priced(tuple(nodes), tuple(rejected))


def _requested(cluster: Cluster, only: Sequence[str], catalog: Catalog) -> tuple[NodeGroup, ...]:
    """Groups of the file, or those of the accelerators that were asked for."""
    if not only:
        return cluster.groups
    wanted = {catalog_key(name, catalog) for name in only}
    retained = tuple(
        group for group in cluster.groups if catalog_key(group.accelerator, catalog) in wanted
    )
    if not retained:
        fix = f"use one of {', '.join(cluster.accelerators)}, or add it to nodes with nodes: 0"
        raise one(InputError, "plan", "--on", f"no {', '.join(only)} in the cluster file", fix)
    return retained


def _memory_bytes(group: NodeGroup, catalog: Catalog) -> float:
    card = known_card(group.accelerator, catalog)
    return card.memory.marketed_bytes if card else 0.0


def _too_small(group: NodeGroup, least_bytes: float, catalog: Catalog) -> FleetRejection | None:
    """The rejection of GPUs with less memory than jobs may need."""
    own = _memory_bytes(group, catalog)
    if not own or own >= least_bytes:
        return None
    least = f"{least_bytes / GIB:.0f} GiB"
    reason = f"{own / GIB:.0f} GiB of memory; jobs may need the {least} that they ran with"
    fix = f"say plan.memory_gib: {own / GIB:.0f} if all jobs fit"
    return FleetRejection(candidate=group.accelerator, reason=reason, relaxation=fix)


def _rates(
    groups: Sequence[NodeGroup], catalog: Catalog, request: ClusterPlanRequest
) -> tuple[NodeRate, ...]:
    """Published prices of the kinds without one of their own, as any plan would see them."""
    unpriced = [group for group in groups if group.usd_per_accelerator_h is None]
    known = [card for group in unpriced if (card := known_card(group.accelerator, catalog))]
    if not known:
        return ()
    tree = {
        "version": 1,
        "name": "cluster",
        "workloads": [{"name": "jobs", "kind": "generic", "work": {"accelerators": 1}}],
        "policy": {"accelerators": {"allowed": sorted({str(card.id) for card in known})}},
    }
    scenario = scenario_of(document_from_dict(tree, name="cluster"), folder=None)
    market = market_of(scenario, catalog, offers=read_offers(request.store), today=request.today)
    return tuple(rate for rate in market.rates if rate.purchase != "spot")


def _priced(
    group: NodeGroup, first: NodeGroup, catalog: Catalog, rates: Sequence[NodeRate]
) -> PricedNode | FleetRejection:
    card, n = known_card(group.accelerator, catalog), group.n_accelerators_per_node
    watts = node_watts(catalog, str(card.id), n).max_w if card else 0.0
    fast = _with_speed(group, first, catalog)
    notes = tuple(_speed_notes(group, fast, first))
    if group.usd_per_accelerator_h is not None:
        usd = exactly(group.usd_per_accelerator_h * n)
        return PricedNode(fast, usd, "cluster file", watts or None, notes)
    own = [rate for rate in rates if card is not None and rate.node.accelerator == str(card.id)]
    found = _cheapest(own, n)
    if found is None:
        what = "no price is published" if card else "it is in no catalog and has no price"
        fix = "give nodes.usd_per_accelerator_h"
        return FleetRejection(candidate=group.accelerator, reason=what, relaxation=fix)
    usd, rate = found
    notes += tuple(_price_notes(group, usd, rate))
    fast = replace(fast, usd_per_accelerator_h=usd.mid / n)
    return PricedNode(fast, usd, rate.id, watts or None, notes)


def _cheapest(rates: Sequence[NodeRate], n: int) -> tuple[Range, NodeRate] | None:
    """The cheapest node of this size; without one, the cheapest accelerator of any size."""
    same = [rate for rate in rates if rate.node.n_accelerators == n]
    able = same or [rate for rate in rates if rate.node.n_accelerators]
    if not able:
        return None
    best = min(able, key=lambda rate: rate.price_usd_per_h.mid / rate.node.n_accelerators)
    return best.price_usd_per_h.times(n / best.node.n_accelerators), best


def _price_notes(group: NodeGroup, usd: Range, rate: NodeRate) -> Iterator[Assumption]:
    size = rate.node.n_accelerators
    n = group.n_accelerators_per_node
    why = "the cheapest published price of the catalog"
    if size != n:
        why += f"; nodes of {n} are not offered, so it is that of {size} in proportion"
    value = f"${usd.mid:,.2f}/h a node ({rate.id})"
    yield assume(f"price of {group.accelerator}", value, why, "nodes.usd_per_accelerator_h")
    yield from rate.assumptions


def _with_speed(group: NodeGroup, first: NodeGroup, catalog: Catalog) -> NodeGroup:
    """The group with its speed: the file's, else from peak compute and memory bandwidth."""
    if group.speed_ratio is not None or group.accelerator == first.accelerator:
        return group
    card, base = known_card(group.accelerator, catalog), known_card(first.accelerator, catalog)
    if card is None or base is None:
        return group
    compute = _flop_per_s(card) / _flop_per_s(base)
    memory = card.memory.bytes_per_s / base.memory.bytes_per_s
    return replace(group, speed_ratio=round(sqrt(compute * memory), 2))


def _flop_per_s(card: Accelerator) -> float:
    """Peak of the widest format that is common in training."""
    peaks = card.peak_flop_per_s
    return next((peaks[name] for name in ("bf16", "fp16", "fp32") if name in peaks), 1.0)


def _speed_notes(group: NodeGroup, fast: NodeGroup, first: NodeGroup) -> Iterator[Assumption]:
    if group.speed_ratio is not None or group.accelerator == first.accelerator:
        return
    why = "its catalog facts are not known: as fast as the first kind of the file"
    if fast.speed_ratio is not None:
        why = "geometric mean of the ratios of peak dense BF16 compute and memory bandwidth"
    value = f"{fast.speed_ratio or 1.0:g} × {first.accelerator}"
    yield assume(f"speed of jobs on {group.accelerator}", value, why, "nodes.speed_ratio")
