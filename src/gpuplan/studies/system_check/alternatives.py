"""Balanced alternatives to a rejected system: other fleets that the same budget buys, fed."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import floor, sqrt
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.cost.owned import hardware_price
from gpuplan.design.balance import best_within, most_work_first, sizes
from gpuplan.design.racks import cap_choices
from gpuplan.design.rules import NETWORK_PRICES, STORAGE_PRICES, assumed
from gpuplan.design.storage import KINDS, tiers
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, total
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Rack
from gpuplan.domain.scenario.workload import Generic, Training, Workload
from gpuplan.domain.system.facility import CapChoice, FacilityPlan
from gpuplan.domain.system.findings import Finding, note
from gpuplan.domain.system.parts import BalancedSystem, FabricPlan
from gpuplan.studies.power.node_draw import slowdown_of
from gpuplan.studies.system_check.data_path import sample_rate
from gpuplan.studies.system_check.feeding import Fleet, Priced, fits_site, fleet_with_data
from gpuplan.studies.system_check.placement import Placement, Remark
from gpuplan.studies.system_check.traffic import BYTES_16, params_of

# Bytes of training state for each parameter: weights, gradients, master copy, two moments
# [Rajbhandari2020]; and the share of memory that they may take beside activations.
STATE_BYTES_PER_PARAM = 16.0
STATE_MEMORY_FRAC = 0.7
WHOLE_NODE = 4  # accelerators: fewer in each server are no answer to larger ones
FEWER = 3  # counts below the most that the budget pays for, of each other accelerator
# Servers that are sold: boards of eight, of the older sockets of four too; cards in any number.
BOARDS = {"SXM6": (8,), "SXM": (8, 4), "OAM": (8,), "PCIe": (8, 4, 2, 1)}


def boards(accelerator: Accelerator) -> tuple[int, ...]:
    """Accelerators in one server, as servers are sold."""
    form = accelerator.form_factor
    return next((found for name, found in BOARDS.items() if form.startswith(name)), (1,))


def own_fleets(placement: Placement) -> list[Fleet]:
    """No more of the described accelerator than are described, in servers that are sold."""
    card, n_per_node = placement.accelerator, placement.n_per_node
    sold = {*boards(card), n_per_node}
    found = sizes(placement.owned.n_nodes, n_per_node)
    return [Fleet(card, n, size) for n, size in found if size in sold]


def other_fleets(
    scenario: Scenario, work: Workload, placement: Placement, *, budget_usd: float
) -> Iterator[Fleet | Assumption]:
    """Other accelerators of the same maker that have a price: as many as the budget pays for."""
    catalog = placement.catalog
    least = min(WHOLE_NODE, placement.n_per_node)
    for card in catalog.accelerators.values():
        if card.id == placement.accelerator.id or not _may_replace(scenario, card, placement):
            continue
        priced = {
            n: (usd, price_notes)
            for n in boards(card)
            if n >= least
            for usd, price_notes in (server_usd(scenario, catalog, card, n),)
            if usd is not None
        }
        if not priced:
            continue
        speed, why = _speed(work, placement, card)
        fleets = [
            fleet
            for n, (usd, _) in priced.items()
            for most in (floor(budget_usd / usd.mid),)
            for count in range(max(1, most - FEWER), most + 1)
            if _holds_model(work, fleet := Fleet(card, count, n, speed))
        ]
        yield from fleets
        if fleets:
            what = f"speed of {card.name} beside {placement.accelerator.name}"
            yield assume(what, f"{speed:.2f}", why, "workloads[].capacity")
            yield from next(iter(priced.values()))[1]


def _may_replace(scenario: Scenario, card: Accelerator, placement: Placement) -> bool:
    """Whether it is of the same maker, so that software runs, allowed by the user, and no CPU."""
    named = scenario.policy.accelerators

    def ids(names: tuple[str, ...]) -> set[str]:
        return {find_accelerator(n, placement.catalog).accelerator.id for n in names}

    is_allowed = not named.allowed or card.id in ids(named.allowed)
    is_alike = card.vendor == placement.accelerator.vendor and not card.is_cpu
    is_sold = not card.is_announced
    return is_sold and is_alike and is_allowed and card.id not in ids(named.forbidden)


def _holds_model(work: Workload, fleet: Fleet) -> bool:
    """Whether the model's state fits the memory of the fleet, or of one server to serve."""
    n_params = params_of(work)
    if n_params is None:
        return True
    memory = STATE_MEMORY_FRAC * fleet.accelerator.memory.marketed_bytes
    if not work.is_training:
        return BYTES_16 * n_params <= fleet.n_per_node * memory
    sharding = work.layout.sharding if work.layout else None
    is_whole = sharding in ("none", "ddp") or (sharding is None and isinstance(work.work, Generic))
    n = 1 if is_whole else fleet.n_nodes * fleet.n_per_node
    return STATE_BYTES_PER_PARAM * n_params / n <= memory


def _speed(work: Workload, placement: Placement, card: Accelerator) -> tuple[float, str]:
    """Speed beside the described accelerator: as given, by peak for a given MFU, else a mean."""
    mine = sample_rate(work, placement)
    given = sample_rate(replace(work, data_path=None), placement._replace(accelerator=card))
    if mine is not None and given is not None:
        return given / mine, "given as a capacity"
    peak = _peak(card) / _peak(placement.accelerator)
    if isinstance(work.work, Training) and work.work.mfu_frac is not None:
        return peak, "ratio of dense 16-bit peaks, as the MFU is given"
    memory = card.memory.bytes_per_s / placement.accelerator.memory.bytes_per_s
    return sqrt(peak * memory), "geometric mean of the ratios of 16-bit peak and bandwidth"


def _peak(card: Accelerator) -> float:
    peaks = card.peak_flop_per_s
    return peaks.get("bf16", peaks.get("fp16", max(peaks.values())))


def server_usd(
    scenario: Scenario, catalog: Catalog, card: Accelerator, n: int
) -> tuple[Range | None, tuple[Assumption, ...]]:
    """The price of a server with n accelerators: the user's, or by street prices."""
    prices = scenario.prices.hardware
    mine = (p for p in prices if find_accelerator(p.accelerator, catalog).accelerator.id == card.id)
    return hardware_price(
        card, n, given=next(mine, None), street=catalog.node_price(str(card.id), n)
    )


# --- the best of them ---------------------------------------------------------------------------


class RejectedSystem(NamedTuple):
    """A system that is rejected, with the networks and the facility designed for it."""

    scenario: Scenario
    work: Workload
    placement: Placement
    fabrics: tuple[FabricPlan, ...]
    facility: FacilityPlan | None


class Balance(NamedTuple):
    """The alternatives, the budget that they keep, and remarks on both."""

    systems: tuple[BalancedSystem, ...] = ()
    budget_usd: float | None = None
    remarks: tuple[Remark, ...] = ()


def balance_of(case: RejectedSystem) -> Balance:
    """The best that the same money buys; and the whole fleet, fed, where it costs more."""
    placement, build = case.placement, case.placement.build
    price, price_notes = _server_usd(case, placement.n_per_node)
    capped = tuple(_capped(case))
    made = tuple(_systems(case, own_fleets(placement)))
    whole = min(made, key=most_work_first, default=None)
    retained = () if whole is None else (whole,)
    notes = (*price_notes, *assumed(build, *STORAGE_PRICES, *NETWORK_PRICES, "prices.core_usd"))
    if price is None:
        systems = capped or retained
        return Balance(systems, None, (*notes, *(_price_findings(placement) if systems else ())))
    budget = case.scenario.budget.capex_usd or _described_usd(case, price)
    found = list(other_fleets(case.scenario, case.work, placement, budget_usd=budget))
    fleets = [fleet for fleet in found if isinstance(fleet, Fleet)]
    notes += tuple(remark for remark in found if isinstance(remark, Assumption))
    others: list[BalancedSystem] = []
    for card in dict.fromkeys(fleet.accelerator.id for fleet in fleets):
        systems = tuple(_systems(case, [f for f in fleets if f.accelerator.id == card]))
        others += best_within(systems, budget, n_most=1)
    best = (*capped, *best_within(made, budget), *best_within(others, budget, n_most=2))
    ordered = tuple(sorted(best, key=lambda s: -s.n_at_work))
    return Balance((*ordered, *(s for s in retained if s not in ordered)), budget, notes)


def _price_findings(placement: Placement) -> tuple[Finding, ...]:
    name = placement.accelerator.name
    what = f"no price of {name} is known: alternatives are not limited by a budget"
    return (note("price-unknown", "prices", what, "give prices.hardware"),)


def _systems(case: RejectedSystem, fleets: Iterable[Fleet]) -> Iterator[BalancedSystem]:
    """Each fleet with all that feeds it; one that cannot be built or joined is rejected.

    Where servers have no price the parts around them are listed, and no sum is.
    """
    kind = case.fabrics[0].switch.fabric if case.fabrics else "ethernet"
    for fleet in fleets:
        found = fleet_with_data(case.scenario, case.work, case.placement, fleet, kind=kind)
        if found is not None:
            yield _system(case, fleet, *found)


def _system(case: RejectedSystem, fleet: Fleet, parts: Priced, busy_frac: float) -> BalancedSystem:
    if fleet.accelerator.id == case.placement.accelerator.id:
        server, _ = _server_usd(case, fleet.n_per_node)
    else:
        catalog = case.placement.catalog
        server, _ = server_usd(case.scenario, catalog, fleet.accelerator, fleet.n_per_node)
    if server is not None:
        parts = ((f"{fleet.n_nodes} servers", server.times(fleet.n_nodes)), *parts)
    return BalancedSystem(
        what=f"{fleet.name}, balanced",
        n_accelerators=fleet.n_nodes * fleet.n_per_node,
        busy_frac=busy_frac,
        usd=None if server is None else total(usd for _, usd in parts),
        parts=parts,
        speed_ratio=fleet.speed_ratio,
    )


def _server_usd(case: RejectedSystem, size: int) -> tuple[Range | None, tuple[Assumption, ...]]:
    """The price of a server of this size; one of another size than was priced costs its share."""
    placement = case.placement
    n = placement.n_per_node
    whole, price_notes = server_usd(case.scenario, placement.catalog, placement.accelerator, n)
    return (None if whole is None else whole.times(size / n)), price_notes


def _capped(case: RejectedSystem) -> Iterator[BalancedSystem]:
    """The same servers under a power cap and fed, where their supply is what rejects them."""
    plan, owned = case.facility, case.placement.owned
    if plan is None or fits_site(case.scenario, case.placement):
        return
    highest = _highest_cap(case, plan)
    if highest is None:
        return
    choice, here = highest
    fleet = Fleet(here.accelerator, owned.n_nodes, owned.n_accelerators_per_node)
    found = fleet_with_data(case.scenario, case.work, here, fleet, kind="ethernet")
    if found is None:
        return
    made, slower = _system(case, fleet, *found), choice.slowdown_ratio
    cost = f", {slower.low - 1:.0%} to {slower.high - 1:.0%} slower" if slower else ""
    name = f"{owned.n_accelerators} {here.accelerator.name} capped at {choice.cap_w:.0f} W{cost}"
    speed = 1.0 / slower.mid if slower else 1.0
    yield replace(made, what=name, busy_frac=speed * made.busy_frac)


def _highest_cap(case: RejectedSystem, plan: FacilityPlan) -> tuple[CapChoice, Placement] | None:
    """The highest cap under which the site carries all of them, in each rack and in total."""
    site, placement = case.scenario.site, case.placement
    if site is None:
        return None
    drawn = plan.node.board.typical_w if plan.node.board else 0.0
    slowdown = slowdown_of(placement.accelerator, drawn, is_saturated=case.work.is_training)
    rack, room = site.rack or Rack(), placement.build.room
    grid = plan.caps or cap_choices(plan.node, rack, n_wanted=0, room=room, slowdown=slowdown)
    for choice in grid:
        stored = replace(placement.owned, accelerator_cap_w=choice.cap_w)
        here = placement._replace(owned=stored)
        if choice.is_accepted and fits_site(case.scenario, here):
            return choice, here
    return None


def _described_usd(case: RejectedSystem, server: Range) -> float:
    """The price of the system as described: servers, its storage, its network."""
    owned, path, placement = case.placement.owned, case.work.data_path, case.placement
    usd = server.mid * owned.n_nodes
    usd += sum(plan.usd.mid for plan in case.fabrics if plan.purpose == "compute")
    if path is None or path.storage is None:
        return usd
    kind = KINDS[path.storage.kind]
    n = kind.n_units * (1 if kind.is_shared else owned.n_nodes)
    for tier in tiers(placement.catalog.storage, placement.build.prices):
        if ("hard disks" in tier.name) == (kind.class_id == "hard-disk"):
            return usd + n * tier.unit_usd.mid
    return usd
