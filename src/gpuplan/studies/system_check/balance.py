"""Balanced alternatives to a rejected system, in: scenario, catalog; out: what the money buys."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from gpuplan.design.balance import best_within, capped_system, full_size
from gpuplan.design.fabric_parts import total
from gpuplan.design.racks import Slowdown, cap_choices
from gpuplan.design.rules import NETWORK_PRICES, STORAGE_PRICES, assumed
from gpuplan.design.storage import KINDS, tiers
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Rack
from gpuplan.domain.scenario.workload import Generic, Training, Workload
from gpuplan.domain.system.facility import CapChoice, FacilityPlan
from gpuplan.domain.system.parts import BalancedSystem, FabricPlan
from gpuplan.studies.power.node_draw import slowdown_of
from gpuplan.studies.system_check.alternatives import (
    Fleet,
    fed,
    machine_usd,
    other_fleets,
    own_fleets,
    stands,
)
from gpuplan.studies.system_check.data_path import Ground


class Case(NamedTuple):
    """A rejected system with what was found out about it."""

    scenario: Scenario
    work: Workload
    ground: Ground
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
    made = tuple(_systems(case, own_fleets(ground)))
    notes = (*told, *assumed(ground.build, *STORAGE_PRICES, *NETWORK_PRICES, "prices.core_usd"))
    if price is None:
        whole = full_size(made)
        return Balance(capped or ((whole,) if whole else ()), None, None, notes)
    budget = case.scenario.budget.capex_usd or _described_usd(case, price)
    fleets, speed_told = other_fleets(case.scenario, case.work, ground, budget_usd=budget)
    kinds = dict.fromkeys(fleet.accelerator.id for fleet in fleets)
    others = [
        best
        for kind in kinds
        for best in best_within(
            tuple(_systems(case, [f for f in fleets if f.accelerator.id == kind])), budget, n_most=1
        )
    ]
    best = (*capped, *best_within(made, budget), *best_within(others, budget, n_most=2))
    found = sorted(best, key=lambda s: -s.n_at_work)
    return Balance(tuple(found), budget, full_size(made), (*notes, *speed_told))


def _systems(case: Case, fleets: Iterable[Fleet]) -> Iterator[BalancedSystem]:
    """Each fleet with all that feeds it; one that cannot stand or be joined is left out.

    Where machines have no price the parts around them are listed, and no sum is.
    """
    kind = case.fabrics[0].switch.fabric if case.fabrics else "ethernet"
    for fleet in fleets:
        found = fed(case.scenario, case.work, case.ground, fleet, kind=kind)
        if found is None:
            continue
        machine = _machine_of(case, fleet)
        parts = found.parts
        if machine is not None:
            parts = ((f"{fleet.n_nodes} machines", machine.times(fleet.n_nodes)), *parts)
        yield BalancedSystem(
            what=f"{fleet.name}, fed",
            n_accelerators=fleet.n_nodes * fleet.n_per_node,
            busy_frac=found.busy_frac,
            usd=None if machine is None else total(usd for _, usd in parts),
            parts=parts,
            speed_ratio=fleet.speed_ratio,
        )


def _machine_of(case: Case, fleet: Fleet) -> Range | None:
    if fleet.accelerator.id == case.ground.accelerator.id:
        return _machine(case, fleet.n_per_node)[0]
    return machine_usd(case.scenario, case.ground.catalog, fleet.accelerator, fleet.n_per_node)[0]


def _machine(case: Case, size: int) -> tuple[Range | None, tuple[Assumption, ...]]:
    """Price of a machine of this size; one of another size than was priced costs its share."""
    ground = case.ground
    n = ground.owned.n_accelerators_per_node
    whole, told = machine_usd(case.scenario, ground.catalog, ground.accelerator, n)
    return (None if whole is None else whole.times(size / n)), told


def _capped(case: Case) -> Iterator[BalancedSystem]:
    """The same machines under a cap and fed, where a supply is what rejects them."""
    plan, owned = case.facility, case.ground.owned
    if plan is None or stands(case.scenario, case.ground):
        return
    found_cap = _highest_cap(case, plan)
    if found_cap is None:
        return
    choice, here = found_cap
    fleet = Fleet(here.accelerator, owned.n_nodes, owned.n_accelerators_per_node)
    found = fed(case.scenario, case.work, here, fleet)
    if found is None:
        return
    machine, _ = _machine(case, owned.n_accelerators_per_node)
    parts = found.parts
    if machine is not None:
        parts = ((f"{owned.n_nodes} machines", machine.times(owned.n_nodes)), *parts)
    made = capped_system(
        here.accelerator.name,
        owned.n_accelerators,
        choice,
        parts=parts,
        is_priced=machine is not None,
    )
    yield replace(made, busy_frac=made.busy_frac * found.busy_frac)


def _highest_cap(case: Case, plan: FacilityPlan) -> tuple[CapChoice, Ground] | None:
    """The highest cap under which the place carries all of them: by rack, or by the whole site."""
    site = case.scenario.site
    if site is None:
        return None
    grid = plan.caps or cap_choices(
        plan.node,
        site.rack or Rack(),
        n_wanted=0,
        room=case.ground.build.room,
        slowdown=_slowdown(case),
    )
    for choice in grid:
        held = replace(case.ground.owned, accelerator_cap_w=choice.cap_w)
        here = case.ground._replace(owned=held)
        if choice.is_accepted and stands(case.scenario, here):
            return choice, here
    return None


def _slowdown(case: Case) -> Slowdown:
    card, run = case.ground.accelerator, case.work.work
    is_training = isinstance(run, Training) or (isinstance(run, Generic) and run.is_training)
    board = case.facility.node.board if case.facility else None
    return slowdown_of(card, board.typical_w if board else 0.0, is_saturated=is_training)


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
