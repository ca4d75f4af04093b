"""Which usual figure an answer rests on, in: rules and their names; out: assumptions with keys."""

from collections.abc import Callable
from typing import NamedTuple

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import BuildRules
from gpuplan.units import DAY, GB, KW, KWH, MIB, MINUTE, TB, YEAR

NO_LIST = "no price list is published; weak evidence"


class Rule(NamedTuple):
    """How one rule is told."""

    what: str
    show: Callable[[BuildRules], str]
    why: str
    source: str = ""


def _span(price: Range, unit: str) -> str:
    if price.is_exact:
        return f"{price.mid:g} {unit}"
    return f"{price.low:g} to {price.high:g} {unit}"


RULES: dict[str, Rule] = {
    "hosts.cores_per_accelerator": Rule(
        "cores for each accelerator", lambda b: f"{b.hosts.n_cores_per_accelerator:g}",
        "one for its process, one for what hands batches over"),
    "hosts.system_cores": Rule(
        "cores for the system", lambda b: f"{b.hosts.n_system_cores:g} of each machine",
        "agents, drivers, storage clients"),
    "hosts.memory_ratio": Rule(
        "host memory", lambda b: f"{b.hosts.memory_ratio:g} times the accelerators'",
        "loading, file caches, what is moved out; reference machines have three times",
        "dgx-superpod-h100-ra"),
    "hosts.load_s": Rule(
        "time to load weights", lambda b: f"{b.hosts.load_s:g} s",
        "a new replica should help before the peak has passed"),
    "hosts.prefetch_batches": Rule(
        "batches pinned in host memory",
        lambda b: f"{b.hosts.n_prefetch_batches:g} for each accelerator",
        "loaders read ahead a few batches"),
    "hosts.memory_gb_per_s": Rule(
        "memory rate of a host", lambda b: f"{b.hosts.memory_bytes_per_s / GB:g} GB/s",
        "two sockets under mixed reads and writes"),
    "hosts.memory_crossings": Rule(
        "times that a sample crosses host memory", lambda b: f"{b.hosts.n_memory_crossings:g}",
        "read, decoded, collated, copied out"),
    "links.file_link_frac": Rule(
        "share of a link that file protocols reach", lambda b: f"{b.links.file_link_frac:.0%}",
        "frames, acknowledgements and gaps between requests"),
    "links.objects_in_flight": Rule(
        "requests to object storage in flight",
        lambda b: f"{b.links.n_objects_in_flight:g} from each node",
        "small objects wait for latency, not for bytes"),
    "links.read_mib": Rule(
        "size of a read", lambda b: f"{b.links.read_bytes / MIB:g} MiB",
        "large samples and shards are read in parts of it"),
    "links.enough_speed_frac": Rule(
        "speed that work must keep over a network", lambda b: f"{b.links.enough_frac:.0%}",
        "below it a network costs more speed than its price saves"),
    "links.management_ports": Rule(
        "management ports of a machine", lambda b: f"{b.links.n_management_ports}",
        "its controller and its system"),
    "links.management_oversubscription": Rule(
        "oversubscription of the management network",
        lambda b: f"{b.links.management_oversubscription_ratio:g}",
        "consoles and monitoring need little"),
    "links.held_tb": Rule(
        "data that is stored", lambda b: f"{b.links.held_bytes / TB:g} TB",
        "its size is not said; it decides how much storage is bought"),
    "links.kept_checkpoints": Rule(
        "checkpoints that are kept", lambda b: f"{b.links.n_kept_checkpoints:g}",
        "the last may be damaged"),
    "room.nodes_per_rack": Rule(
        "machines in a rack", lambda b: f"{b.room.n_nodes_per_rack}",
        "no rack is described; it decides how long cables are"),
    "room.racks_per_row": Rule(
        "racks in a row", lambda b: f"{b.room.n_racks_per_row}",
        "decides how long cables are and what a row draws"),
    "room.rack_width_m": Rule(
        "width of a rack", lambda b: f"{b.room.rack_width_m:g} m", "the usual footprint"),
    "room.row_m": Rule(
        "way from row to row", lambda b: f"{b.room.row_m:g} m", "a rack and an aisle"),
    "room.cable_ends_m": Rule(
        "cable up and down at both ends", lambda b: f"{b.room.cable_ends_m:g} m",
        "from the port to the tray and back"),
    "room.reserved_u": Rule(
        "height kept for switches and distribution",
        lambda b: f"{b.room.n_reserved_units} U of each rack",
        "usual for a rack with its own leaf switches"),
    "room.cap_reserve_frac": Rule(
        "feed kept free under caps", lambda b: f"{b.room.cap_reserve_frac:.0%}",
        "caps hold on average, transients exceed them"),
    "room.liquid_frac": Rule(
        "heat that leaves with the liquid", lambda b: f"{b.room.liquid_frac:.0%}",
        "plates cover boards and processors, not drives and supplies"),
    "room.ups_minutes": Rule(
        "time that the UPS bridges", lambda b: f"{b.room.ups_bridge_s / MINUTE:g} min",
        "a generator starts within it, with a second try"),
    "room.ups_module_kw": Rule(
        "module of the UPS", lambda b: f"{b.room.ups_module_w / KW:g} kW, one to spare",
        "a usual size"),
    "room.ups_power_factor_frac": Rule(
        "power factor at the UPS", lambda b: f"{b.room.ups_power_factor_frac:g}",
        "supplies with correction"),
    "room.ups_efficiency_frac": Rule(
        "efficiency of the UPS", lambda b: f"{b.room.ups_efficiency_frac:.0%}",
        "double conversion at usual load"),
    "spares.repair_days": Rule(
        "repair of a machine", lambda b: f"{b.spares.repair_s / DAY:g} days",
        "a usual contract; yours may differ"),
    "spares.kept_frac": Rule(
        "time in which the wanted number of machines works",
        lambda b: f"{b.spares.kept_frac:.0%}", "spares are counted for it"),
    "spares.worth_frac": Rule(
        "what a faster checkpoint tier must save", lambda b: f"{b.spares.worth_frac:.0%} of a run",
        "less is not worth another tier"),
    "prices.switch_usd_per_gbit": Rule(
        "price of switches",
        lambda b: _span(b.prices.switch_usd_per_gbit, "USD per Gbit/s of ports"), NO_LIST),
    "prices.adapter_usd_per_gbit": Rule(
        "price of adapters", lambda b: _span(b.prices.adapter_usd_per_gbit, "USD per Gbit/s"),
        NO_LIST),
    "prices.optic_usd_per_gbit": Rule(
        "price of optics and fibre", lambda b: _span(b.prices.optic_usd_per_gbit, "USD per Gbit/s"),
        NO_LIST),
    "prices.copper_usd_per_gbit": Rule(
        "price of copper cables", lambda b: _span(b.prices.copper_usd_per_gbit, "USD per Gbit/s"),
        NO_LIST),
    "prices.core_usd": Rule(
        "price of a core in decoding servers", lambda b: _span(b.prices.core_usd, "USD"), NO_LIST),
    "prices.nvme_usd_per_tb": Rule(
        "price of local NVMe", lambda b: _span(b.prices.nvme_usd_per_tb, "USD/TB"), NO_LIST),
    "prices.flash_shelf_usd_per_tb": Rule(
        "price of a parallel file system on flash",
        lambda b: _span(b.prices.flash_shelf_usd_per_tb, "USD/TB"), NO_LIST),
    "prices.disk_usd_per_tb": Rule(
        "price of hard disks behind NFS", lambda b: _span(b.prices.disk_usd_per_tb, "USD/TB"),
        NO_LIST),
    "footprint.water_l_per_kwh": Rule(
        "water drawn on site",
        lambda b: _span(b.footprint.water_kg_per_j.times(KWH), "litres per kWh of machines"),
        "depends on the cooling: none for dry coolers, most for open towers", "wue-ranges"),
    "footprint.server_kg": Rule(
        "embodied carbon of a server without accelerators",
        lambda b: _span(b.footprint.server_kg, "kg CO2e"),
        "models differ; no maker publishes a figure for such a machine", "ecologits"),
    "footprint.life_years": Rule(
        "life over which manufacture is spread",
        lambda b: f"{b.footprint.life_s / YEAR:g} years", "a usual life of accelerators"),
    "busy.reject_frac": Rule(
        "accelerators busy for less reject a system", lambda b: f"{b.busy.reject_frac:.0%}",
        "the diagnosis calls them under-used below it"),
    "busy.warn_frac": Rule(
        "accelerators busy for less are warned of", lambda b: f"{b.busy.warn_frac:.0%}",
        "what waits beside them is worth its price"),
}  # fmt: skip
STORAGE_PRICES = (
    "prices.nvme_usd_per_tb", "prices.flash_shelf_usd_per_tb", "prices.disk_usd_per_tb",
)  # fmt: skip
NETWORK_PRICES = (
    "prices.switch_usd_per_gbit", "prices.adapter_usd_per_gbit", "prices.optic_usd_per_gbit",
    "prices.copper_usd_per_gbit",
)  # fmt: skip
CABLES = ("room.racks_per_row", "room.rack_width_m", "room.row_m", "room.cable_ends_m")
UPS = tuple(name for name in RULES if name.startswith("room.ups_"))


def assumed(build: BuildRules, *names: str) -> tuple[Assumption, ...]:
    """An assumption for each of these rules that the user did not set."""
    return tuple(_note(build, name) for name in names if name not in build.given)


def _note(build: BuildRules, name: str) -> Assumption:
    rule = RULES[name]
    return Assumption(
        what=rule.what, value=rule.show(build), why=rule.why, change=f"build.{name}",
        source=rule.source,
    )  # fmt: skip
