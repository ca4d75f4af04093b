"""Balanced alternatives to a rejected system, in: scenario, catalog; out: what the money buys."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.cost.owned import hardware_price
from gpuplan.design.balance import (
    Parts,
    balanced_systems,
    best_within,
    capped_system,
    full_size,
    sizes,
)
from gpuplan.design.data_path import demand_of
from gpuplan.design.fabric_parts import (
    cheapest_sufficient,
    fabric_options,
    total,
)
from gpuplan.design.racks import best_cap
from gpuplan.design.rules import NETWORK_PRICES, STORAGE_PRICES, assumed
from gpuplan.design.storage import KINDS, cheapest, choose_units, tiers
from gpuplan.domain.catalog import Catalog
from gpuplan.domain.design import BalancedSystem, FabricPlan
from gpuplan.domain.facility import FacilityPlan
from gpuplan.domain.hardware import Accelerator
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario import Scenario
from gpuplan.domain.site import OwnedNodes
from gpuplan.domain.workload import Workload
from gpuplan.pipeline.check_data import Ground, sample_rate, usable_cores
from gpuplan.pipeline.check_exchange import Talk
from gpuplan.pipeline.check_network import means_of
from gpuplan.pipeline.node_draw import facility_of


class Case(NamedTuple):
    """A rejected system with what was found out about it."""

    scenario: Scenario
    work: Workload
    ground: Ground
    talk: Talk
    fabrics: tuple[FabricPlan, ...]
    facility: FacilityPlan | None


class Balance(NamedTuple):
    """Alternatives, the budget that they keep, and what was assumed."""

    systems: tuple[BalancedSystem, ...] = ()
    budget_usd: float | None = None
    whole: BalancedSystem | None = None  # the full fleet, fed, whatever it costs
    assumptions: tuple[Assumption, ...] = ()


def balance_of(case: Case) -> Balance:
    """The best that the same money buys, and what the whole fleet would take."""
    ground, owned = case.ground, case.ground.owned
    price, told = _machine(case, owned.n_accelerators_per_node)
    capped = tuple(_capped(case))
    made = balanced_systems(
        ground.accelerator.name, sizes(owned.n_nodes, owned.n_accelerators_per_node),
        lambda n, size: _parts(case, n, size), is_priced=price is not None,
    )  # fmt: skip
    notes = (*told, *assumed(ground.build, *STORAGE_PRICES, *NETWORK_PRICES, "prices.core_usd"))
    if price is None:
        whole = full_size(made)
        return Balance(capped or ((whole,) if whole else ()), None, None, notes)
    budget = case.scenario.budget.capex_usd or _described_usd(case, price)
    found = sorted((*capped, *best_within(made, budget)), key=lambda s: -s.n_at_work)
    return Balance(tuple(found), budget, full_size(made), notes)


def _capped(case: Case) -> Iterator[BalancedSystem]:
    """The same machines under a cap and fed, where a supply is what rejects them."""
    plan, owned = case.facility, case.ground.owned
    if plan is None or all(finding.severity != "error" for finding in plan.findings):
        return
    choice = best_cap(plan.caps)
    if choice is None or case.scenario.site is None:
        return
    held = replace(owned, accelerator_cap_w=choice.cap_w)
    if not _stands(case.ground.catalog, held, case.scenario):
        return
    machine, _ = _machine(case, owned.n_accelerators_per_node)
    parts: list[tuple[str, Range]] = []
    if machine is not None:
        parts.append((f"{owned.n_nodes} machines", machine.times(owned.n_nodes)))
    parts += _feeding(case, owned.n_nodes, owned.n_accelerators_per_node)
    yield capped_system(
        case.ground.accelerator.name, owned.n_accelerators, choice, parts=tuple(parts),
        is_priced=machine is not None,
    )  # fmt: skip


def _stands(catalog: Catalog, owned: OwnedNodes, scenario: Scenario) -> bool:
    """Whether the place feeds and cools these machines."""
    if scenario.site is None:
        return True
    plan = facility_of(catalog, owned, scenario.site, build=scenario.policy.build)
    return all(finding.severity != "error" for finding in plan.findings)


def _machine(case: Case, size: int) -> tuple[Range | None, tuple[Assumption, ...]]:
    """Price of a machine of this size; one of another size than was priced costs its share."""
    ground = case.ground
    given = next(
        (
            price
            for price in case.scenario.prices.hardware
            if find_accelerator(price.accelerator, ground.catalog).accelerator.id
            == ground.accelerator.id
        ),
        None,
    )
    n = ground.owned.n_accelerators_per_node
    whole, told = hardware_price(
        ground.accelerator, n, given=given,
        published_usd=_street(ground.catalog, ground.accelerator), source="street-prices",
    )  # fmt: skip
    return (None if whole is None else whole.times(size / n)), told


def _street(catalog: Catalog, accelerator: Accelerator) -> Range | None:
    low = catalog.fact(accelerator.id, "price_low")
    high = catalog.fact(accelerator.id, "price_high")
    if low is None or high is None:
        return None
    least, most = float(low.value), float(high.value)
    return Range(low=least, mid=(least + most) / 2, high=most)


def _described_usd(case: Case, machine: Range) -> float:
    """What the system as described costs: machines, its storage, its network."""
    owned, path = case.ground.owned, case.work.data_path
    usd = machine.mid * owned.n_nodes
    usd += sum(plan.usd.mid for plan in case.fabrics if plan.purpose == "compute")
    if path is None or path.storage is None:
        return usd
    kind = KINDS[path.storage.kind]
    n = kind.n_units * (1 if kind.is_shared else owned.n_nodes)
    for tier in tiers(case.ground.catalog.storage, case.ground.build.prices):
        if ("hard disks" in tier.name) == (kind.class_id == "hard-disk"):
            return usd + n * tier.unit_usd.mid
    return usd


def _parts(case: Case, n_nodes: int, size: int) -> tuple[Parts, float] | None:
    """All that so many machines of this size take to be kept busy; None where they cannot be."""
    ground, owned = case.ground, case.ground.owned
    is_whole = size == owned.n_accelerators_per_node
    smaller = replace(
        owned, n_nodes=n_nodes, n_accelerators_per_node=size,
        node_max_w=owned.node_max_w if is_whole else None,
    )  # fmt: skip
    machine, _ = _machine(case, size)
    if not _stands(ground.catalog, smaller, case.scenario):
        return None
    parts = [] if machine is None else [(f"{n_nodes} machines", machine.times(n_nodes))]
    parts += _feeding(case, n_nodes, size)
    linked = _linking(case, n_nodes, size)
    if linked is None:
        return None
    network, busy = linked
    return (*parts, *network), busy


def _feeding(case: Case, n_nodes: int, size: int) -> Iterator[tuple[str, Range]]:
    """Storage that reads and holds enough, and cores to decode what the hosts cannot."""
    path, ground = case.work.data_path, case.ground
    rate = sample_rate(case.work, ground)
    if path is None or rate is None or path.sample_bytes is None:
        return
    demand = demand_of(path, n_nodes * size, samples_per_s=rate, rules=ground.build.links)
    held = path.staging.dataset_bytes if path.staging else ground.build.links.held_bytes
    # Disks behind one server would need its link too, and seek: flash is what feeds.
    known = [
        tier for tier in tiers(ground.catalog.storage, ground.build.prices) if not tier.is_shared
    ]
    tier = cheapest([choose_units(one, demand, held_bytes=held) for one in known])
    yield f"{tier.n_units} {tier.tier.name}", tier.usd
    loader = path.loader
    if loader is None or loader.is_on_accelerator or not loader.samples_per_s_per_core:
        return
    own, _ = usable_cores(loader, ground)
    share = size / ground.owned.n_accelerators_per_node
    short = demand.samples_per_s / loader.samples_per_s_per_core - n_nodes * share * (own or 0.0)
    if short > 0:
        yield (
            f"{ceil(short)} cores of decoding servers",
            ground.build.prices.core_usd.times(ceil(short)),
        )


def _linking(case: Case, n_nodes: int, size: int) -> tuple[Parts, float] | None:
    ask = case.talk.efficiency
    if ask is None or n_nodes < 2:
        return (), 1.0
    if size != case.ground.owned.n_accelerators_per_node:
        return None
    network = case.ground.catalog.network
    kind = case.fabrics[0].switch.fabric if case.fabrics else "ethernet"
    options = fabric_options(
        n_nodes, n_accelerators_per_node=size, n_racks=n_nodes, switches=network.switches,
        means=means_of(case.ground), kind=kind,
    )  # fmt: skip
    best = cheapest_sufficient(
        options, lambda rate: ask(n_nodes, rate), enough_frac=case.ground.build.links.enough_frac
    )
    if best is None:
        return None
    plan, busy = best
    gbit = plan.port_bytes_per_s * 8 / 1e9
    ports = plan.counts.n_ports_per_node
    return ((f"network, {ports} x {gbit:.0f} Gbit/s per node", total([plan.usd])),), busy
