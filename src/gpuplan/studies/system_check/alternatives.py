"""Fleets that the same money could buy, in: work and catalog; out: parts, speed, and the proof.

A fleet counts only with the share that the chain of bottlenecks gives it once it is described
anew with its own drives, cores, copies and network: the rule that rejected the first judges all.
"""

from dataclasses import replace
from math import ceil, floor, inf, sqrt
from typing import NamedTuple

from gpuplan.catalog.names import find_accelerator
from gpuplan.cost.owned import hardware_price
from gpuplan.design.balance import Parts, sizes
from gpuplan.design.data_path import LINES_GBIT, busy_frac, demand_of
from gpuplan.design.fabric_parts import (
    cheapest_sufficient,
    fabric_options,
    node_bytes_per_s,
    total,
)
from gpuplan.design.storage import choose_units, tiers
from gpuplan.design.totals import place_findings
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import OwnedNodes, Site
from gpuplan.domain.scenario.workload import DataPath, Generic, Storage, Training, Workload
from gpuplan.domain.system.facility import FacilityPlan
from gpuplan.domain.system.parts import DataDemand, FabricPlan, TierChoice
from gpuplan.errors import PlannerError
from gpuplan.studies.power.node_draw import facility_of
from gpuplan.studies.system_check.data_path import Ground, feed_of, sample_rate, usable_cores
from gpuplan.studies.system_check.exchange import params_of, talk_of
from gpuplan.studies.system_check.network import means_of
from gpuplan.units import GBIT

# Bytes of training state for each parameter: weights, gradients, master copy, two moments
# [Rajbhandari2020]; and the share of memory that they may take beside activations.
STATE_BYTES_PER_PARAM = 16.0
STATE_MEMORY_FRAC = 0.7
BYTES_16 = 2.0
WHOLE_NODE = 4  # accelerators: fewer in each machine are no answer to larger ones
FEWER = 3  # counts below the most that the budget pays for, of each other accelerator
# Machines that are sold: boards of eight, of the older sockets of four too; cards in any number.
BOARDS = {"SXM6": (8,), "SXM": (8, 4), "OAM": (8,), "PCIe": (8, 4, 2, 1)}
UNSEEN_U = 8  # of a machine whose height nobody publishes: that of the tallest of eight
MOST_DRIVES = 32  # of a machine, in drives of 7.68 TB: eight of 30.72 TB hold and cost as much

Priced = list[tuple[str, Range]]


class Fleet(NamedTuple):
    """So many machines of one accelerator, and how fast it is beside the described one."""

    accelerator: Accelerator
    n_nodes: int
    n_per_node: int
    speed_ratio: float = 1.0

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.n_nodes} x {self.n_per_node} {self.accelerator.name}"


class Fed(NamedTuple):
    """A fleet with all that feeds it, and how busy the chain says it is."""

    parts: Parts
    busy_frac: float


def boards(accelerator: Accelerator) -> tuple[int, ...]:
    """Accelerators in one machine, as machines are sold."""
    form = accelerator.form_factor
    return next((found for name, found in BOARDS.items() if form.startswith(name)), (1,))


def own_fleets(ground: Ground) -> list[Fleet]:
    """No more of the described accelerator than are described, in machines that are sold."""
    owned, card = ground.owned, ground.accelerator
    sold = {*boards(card), owned.n_accelerators_per_node}
    return [
        Fleet(card, n, size)
        for n, size in sizes(owned.n_nodes, owned.n_accelerators_per_node)
        if size in sold
    ]


def other_fleets(
    scenario: Scenario, work: Workload, ground: Ground, *, budget_usd: float
) -> tuple[list[Fleet], tuple[Assumption, ...]]:
    """Other accelerators of the same maker that have a price: as many as the budget pays for."""
    found: list[Fleet] = []
    told: list[Assumption] = []
    for card in ground.catalog.accelerators.values():
        if card.id == ground.accelerator.id or not _may(scenario, card, ground):
            continue
        least = min(WHOLE_NODE, ground.owned.n_accelerators_per_node)
        sized = [
            (n, machine_usd(scenario, ground.catalog, card, n)[0])
            for n in boards(card)
            if n >= least
        ]
        priced = [(n, usd) for n, usd in sized if usd is not None]
        if not priced:
            continue
        speed, why = _speed(work, ground, card)
        fleets = [
            Fleet(card, count, n, speed)
            for n, usd in priced
            for most in (floor(budget_usd / usd.mid),)
            for count in range(max(1, most - FEWER), most + 1)
        ]
        kept = [fleet for fleet in fleets if _holds(work, fleet)]
        found += kept
        if kept:
            told += [_speed_note(card, ground, speed, why)]
            told += machine_usd(scenario, ground.catalog, card, priced[0][0])[1]
    return found, tuple(told)


def _may(scenario: Scenario, card: Accelerator, ground: Ground) -> bool:
    """Same maker, so that software runs on; allowed by the user; no processor."""
    named = scenario.policy.accelerators
    ids = {
        kind: {find_accelerator(name, ground.catalog).accelerator.id for name in names}
        for kind, names in (("allowed", named.allowed), ("forbidden", named.forbidden))
    }
    is_allowed = not named.allowed or card.id in ids["allowed"]
    is_alike = card.vendor == ground.accelerator.vendor and not card.is_cpu
    return is_alike and is_allowed and card.id not in ids["forbidden"]


def _holds(work: Workload, fleet: Fleet) -> bool:
    """Whether the model's state can be in the memory of the fleet, or of one machine to serve."""
    n_params = params_of(work)
    if n_params is None:
        return True
    memory = fleet.accelerator.memory.marketed_bytes
    run = work.work
    if isinstance(run, Training) or (isinstance(run, Generic) and run.is_training):
        sharding = work.layout.sharding if work.layout else None
        is_whole = sharding in ("none", "ddp") or (sharding is None and isinstance(run, Generic))
        n = 1 if is_whole else fleet.n_nodes * fleet.n_per_node
        return STATE_BYTES_PER_PARAM * n_params / n <= STATE_MEMORY_FRAC * memory
    return BYTES_16 * n_params <= STATE_MEMORY_FRAC * fleet.n_per_node * memory


def _speed(work: Workload, ground: Ground, card: Accelerator) -> tuple[float, str]:
    """Speed beside the described accelerator: as given, by peak for a utilization, else a mean."""
    mine = sample_rate(work, ground)
    given = sample_rate(replace(work, data_path=None), ground._replace(accelerator=card))
    if mine is not None and given is not None:
        return given / mine, "given as a capacity"
    peak = _peak(card) / _peak(ground.accelerator)
    if isinstance(work.work, Training) and work.work.mfu_frac is not None:
        return peak, "ratio of dense 16-bit peaks, for the utilization is given"
    memory = card.memory.bytes_per_s / ground.accelerator.memory.bytes_per_s
    return sqrt(peak * memory), "geometric mean of the ratios of 16-bit peak and bandwidth"


def _peak(card: Accelerator) -> float:
    peaks = card.peak_flop_per_s
    return peaks.get("bf16", peaks.get("fp16", max(peaks.values())))


def _speed_note(card: Accelerator, ground: Ground, speed: float, why: str) -> Assumption:
    return Assumption(
        what=f"speed of {card.name} beside {ground.accelerator.name}",
        value=f"{speed:.2f}",
        why=why,
        change="workloads[].capacity",
    )


def machine_usd(
    scenario: Scenario, catalog: Catalog, card: Accelerator, n: int
) -> tuple[Range | None, tuple[Assumption, ...]]:
    """Price of a machine with so many: the user's, or made from street prices of boards."""
    given = next(
        (
            price
            for price in scenario.prices.hardware
            if find_accelerator(price.accelerator, catalog).accelerator.id == card.id
        ),
        None,
    )
    return hardware_price(
        card, n, given=given, published_usd=_street(catalog, card), source="street-prices"
    )


def _street(catalog: Catalog, accelerator: Accelerator) -> Range | None:
    low = catalog.fact(accelerator.id, "price_low")
    high = catalog.fact(accelerator.id, "price_high")
    if low is None or high is None:
        return None
    least, most = float(low.value), float(high.value)
    return Range(low=least, mid=(least + most) / 2, high=most)


# --- a fleet, fed and proven --------------------------------------------------------------------


def fed(
    scenario: Scenario, work: Workload, ground: Ground, fleet: Fleet, *, kind: str = "ethernet"
) -> Fed | None:
    """What feeds and joins the fleet, and its share by the chain; None where it cannot stand."""
    here = _ground(ground, fleet)
    if not stands(scenario, here):
        return None
    asked = _faster(work, ground, fleet)
    fitted, feeding = _feeding(asked, here)
    # An exchange that nobody can judge is as it was: it is not spread over more machines.
    is_spread = fleet.accelerator.id != ground.accelerator.id or fleet.n_nodes > ground.n_nodes
    joined = _joining(scenario, fitted, here, kind=kind, must_know=is_spread)
    if joined is None:
        return None
    network, waits = joined
    stages = feed_of(fitted, here).stages
    # The exchange is a wait after the computation: busy = 1 / (1 + wait) alone.
    alone = busy_frac(stages)
    share = 1.0 / (1.0 / alone + waits)
    parts = [*feeding]
    if network is not None:
        gbit = network.port_bytes_per_s * 8 / 1e9
        ports = network.counts.n_ports_per_node
        parts.append((f"network, {ports} x {gbit:.0f} Gbit/s per node", network.usd))
    return Fed(tuple(parts), share)


def stands(scenario: Scenario, ground: Ground) -> bool:
    """Whether the place feeds, cools and holds these machines beside the other groups."""
    site = scenario.site
    if site is None:
        return True
    largest = max(scenario.owned, key=lambda group: group.n_accelerators)
    groups = [ground.owned, *(group for group in scenario.owned if group is not largest)]
    plans = [facility_of(ground.catalog, group, site, build=ground.build) for group in groups]
    found = [*plans[0].findings, *place_findings(plans, (), site)]
    has_room = _racks_unseen(plans[0], site, ground) <= (site.n_racks or inf)
    return has_room and all(finding.severity != "error" for finding in found)


def _racks_unseen(plan: FacilityPlan, site: Site, ground: Ground) -> float:
    """Racks where no maker tells the machine's height: it is taken as tall as any of its kind."""
    rack = site.rack
    if plan.node.height_u is not None or rack is None or rack.n_units is None:
        return plan.n_racks
    by_height = (rack.n_units - ground.build.room.n_reserved_units) // UNSEEN_U
    each = min(by_height, plan.fit.n_nodes) if plan.fit.limits else by_height
    return ceil(plan.n_nodes / each) if each > 0 else inf


def _ground(ground: Ground, fleet: Fleet) -> Ground:
    owned, is_same = ground.owned, fleet.accelerator.id == ground.accelerator.id
    is_whole = is_same and fleet.n_per_node == owned.n_accelerators_per_node
    if is_whole:
        made = replace(owned, n_nodes=fleet.n_nodes)
    else:
        made = OwnedNodes(
            accelerator=str(fleet.accelerator.id),
            n_nodes=fleet.n_nodes,
            n_accelerators_per_node=fleet.n_per_node,
            accelerator_cap_w=owned.accelerator_cap_w if is_same else None,
            n_host_cores=_share(owned.n_host_cores, fleet, owned),
        )
    n = fleet.n_nodes * fleet.n_per_node
    return ground._replace(accelerator=fleet.accelerator, owned=made, n_accelerators=n)


def _share(n_cores: float | None, fleet: Fleet, owned: OwnedNodes) -> float | None:
    """Cores of a smaller machine of the same make: its part of them."""
    if n_cores is None:
        return None
    return n_cores * min(1.0, fleet.n_per_node / owned.n_accelerators_per_node)


def _faster(work: Workload, ground: Ground, fleet: Fleet) -> Workload:
    """The work with the rate of samples that this accelerator takes."""
    rate, path = sample_rate(work, ground), work.data_path
    if path is None or rate is None:
        return work
    share = min(1.0, fleet.n_per_node / ground.owned.n_accelerators_per_node)
    loader = path.loader
    if loader is not None and loader.n_cores is not None:
        loader = replace(loader, n_cores=loader.n_cores * share)
    changed = replace(path, samples_per_s_per_accelerator=rate * fleet.speed_ratio, loader=loader)
    return replace(work, data_path=changed)


def _feeding(work: Workload, ground: Ground) -> tuple[Workload, Priced]:
    """Local drives, cores and copies that keep up, and the work described with them."""
    path, rate = work.data_path, sample_rate(work, ground)
    if path is None or rate is None or path.sample_bytes is None:
        return work, []
    build = ground.build
    demand = demand_of(path, ground.n_accelerators, samples_per_s=rate, rules=build.links)
    held = path.staging.dataset_bytes if path.staging else build.links.held_bytes
    fitted, parts = _storing(path, ground, demand, held_bytes=held)
    fitted, cores = _decoding(fitted, ground, demand.samples_per_s)
    fitted, copies = _copying(fitted)
    return replace(work, data_path=fitted), [*parts, *cores, *copies]


def _storing(
    path: DataPath, ground: Ground, demand: DataDemand, *, held_bytes: float
) -> tuple[DataPath, Priced]:
    """The cheaper of drives in the machines and shelves of flash behind links that carry it.

    Disks behind one server would need its link too, and seek: they are no way to feed.
    """
    drives, shelves, _ = tiers(ground.catalog.storage, ground.build.prices)
    n = ground.n_nodes
    each = ceil(choose_units(drives, demand, held_bytes=held_bytes).n_units / n)
    ways = [_shelved(path, ground, choose_units(shelves, demand, held_bytes=held_bytes), demand)]
    if each <= MOST_DRIVES:
        local = Storage(
            kind="local_nvme",
            bytes_per_s=each * drives.unit_read_bytes_per_s,
            operations_per_s=_times(drives.unit_operations_per_s, each),
        )
        part = (f"{n * each} {drives.name}", drives.unit_usd.times(n * each))
        ways.append((replace(path, storage=local), [part]))
    return min(ways, key=lambda way: sum(usd.mid for _, usd in way[1]))


def _shelved(
    path: DataPath, ground: Ground, bought: TierChoice, demand: DataDemand
) -> tuple[DataPath, Priced]:
    """Shelves with a link for each machine, of the slowest rate that is sold and will do."""
    n, tier, build = ground.n_nodes, bought.tier, ground.build
    wanted = demand.bytes_per_s / n / build.links.file_link_frac
    line = next((rate for rate in LINES_GBIT if rate * GBIT >= wanted), ceil(wanted / GBIT))
    prices = build.prices
    per_gbit = total(
        [prices.adapter_usd_per_gbit, prices.optic_usd_per_gbit, prices.switch_usd_per_gbit]
    )
    storage = Storage(
        kind="parallel_fs",
        bytes_per_s=bought.n_units * tier.unit_read_bytes_per_s / n,
        operations_per_s=_times(tier.unit_operations_per_s, bought.n_units / n),
        network_bytes_per_s=line * GBIT,
    )
    return replace(path, storage=storage), [
        (f"{bought.n_units} {tier.name}", bought.usd),
        (f"{n} links of {line:g} Gbit/s to them", per_gbit.times(n * line)),
    ]


def _times(rate: float | None, n: float) -> float | None:
    return None if rate is None else rate * n


def _decoding(path: DataPath, ground: Ground, samples_per_s: float) -> tuple[DataPath, Priced]:
    """Cores that decode what the machines cannot."""
    loader = path.loader
    if loader is None or loader.is_on_accelerator or not loader.samples_per_s_per_core:
        return path, []
    own, _ = usable_cores(loader, ground)
    needed = samples_per_s / loader.samples_per_s_per_core
    short = needed - ground.n_nodes * (own or 0.0)
    n_workers = None if loader.n_workers is None else max(loader.n_workers, ceil(needed))
    fitted = replace(loader, n_cores=max(own or 0.0, needed / ground.n_nodes), n_workers=n_workers)
    parts: Priced = []
    if short > 0:
        n = ceil(short)
        parts.append((f"{n} cores of decoding servers", ground.build.prices.core_usd.times(n)))
    return replace(path, loader=fitted), parts


def _copying(path: DataPath) -> tuple[DataPath, Priced]:
    """Batches in pinned memory, copied beside the computation: a setting, not a purchase."""
    copy = path.copy
    if copy is None or (copy.is_pinned and copy.is_overlapped):
        return path, []
    fitted = replace(path, copy=replace(copy, is_pinned=True, is_overlapped=True))
    return fitted, [("batches pinned and copied beside the computation", exactly(0.0))]


def _joining(
    scenario: Scenario, work: Workload, ground: Ground, *, kind: str, must_know: bool
) -> tuple[FabricPlan | None, float] | None:
    """The cheapest network that is enough, and the wait that is left; None where none is."""
    if ground.n_nodes < 2:
        return None, 0.0
    try:
        talk = talk_of(scenario, work, ground)
    except PlannerError:
        return None  # the model cannot be spread over machines of this size
    ask = talk.efficiency
    if ask is None:
        return None if talk.findings and must_know else (None, 0.0)
    network, n = ground.catalog.network, ground.n_nodes
    options = fabric_options(
        n,
        n_accelerators_per_node=ground.owned.n_accelerators_per_node,
        n_racks=n,
        switches=network.switches,
        means=means_of(ground),
        kind=kind,
    )
    best = cheapest_sufficient(
        options, lambda rate: ask(n, rate), enough_frac=ground.build.links.enough_frac
    )
    if best is None:
        return None
    plan, _ = best
    return plan, 1.0 / ask(n, node_bytes_per_s(plan)) - 1.0
