"""The usual figures that an answer rests on, as assumptions with the keys that set them."""

from typing import NamedTuple

from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.build import BuildRules

NO_LIST = "no price list is published; weak evidence"
GBIT_PRICE, TB_PRICE = "{} USD per Gbit/s", "{} USD/TB"


class Rule(NamedTuple):
    """How one rule reads: what it is, its value in the unit of its key, and why it is usual."""

    what: str
    value: str
    why: str
    source: str = ""


RULES: dict[str, Rule] = {
    "hosts.cores_per_accelerator": Rule(
        "CPU cores per accelerator", "{:g}", "one for its process, one for what hands batches over"
    ),
    "hosts.system_cores": Rule(
        "CPU cores for the system", "{:g} of each server", "agents, drivers, storage clients"
    ),
    "hosts.memory_ratio": Rule(
        "host memory",
        "{:g} times the accelerators'",
        "loading, file caches, offloading; reference servers have three times",
        "dgx-superpod-h100-ra",
    ),
    "hosts.load_s": Rule(
        "time to load weights", "{:g} s", "a new replica should help before the peak has passed"
    ),
    "hosts.prefetch_batches": Rule(
        "batches pinned in host memory",
        "{:g} for each accelerator",
        "loaders prefetch a few",
    ),
    "hosts.memory_gb_per_s": Rule(
        "memory bandwidth of a host", "{:g} GB/s", "two sockets under mixed reads and writes"
    ),
    "hosts.memory_crossings": Rule(
        "times that a sample crosses host memory", "{:g}", "read, decoded, collated, copied out"
    ),
    "links.file_link_frac": Rule(
        "share of a link that file protocols reach",
        "{:.0%}",
        "frames, acknowledgements and gaps between requests",
    ),
    "links.objects_in_flight": Rule(
        "requests to object storage in flight",
        "{:g} from each node",
        "small objects wait for latency, not for bytes",
    ),
    "links.read_mib": Rule(
        "size of a read", "{:g} MiB", "large samples and shards are read in chunks of it"
    ),
    "links.enough_speed_frac": Rule(
        "speed that work must keep over a network",
        "{:.0%}",
        "below it a network costs more speed than its price saves",
    ),
    "links.management_ports": Rule(
        "management ports of a server", "{:g}", "its controller and its system"
    ),
    "links.management_oversubscription": Rule(
        "oversubscription of the management network", "{:g}", "consoles and monitoring need little"
    ),
    "links.held_tb": Rule(
        "stored data", "{:g} TB", "its size is not given; it decides how much storage is bought"
    ),
    "links.kept_checkpoints": Rule("retained checkpoints", "{:g}", "the last may be damaged"),
    "room.nodes_per_rack": Rule(
        "servers in a rack", "{:g}", "no rack is described; it decides how long cables are"
    ),
    "room.racks_per_row": Rule(
        "racks in a row", "{:g}", "decides how long cables are and what a row draws"
    ),
    "room.rack_width_m": Rule("width of a rack", "{:g} m", "the usual footprint"),
    "room.row_m": Rule("distance from row to row", "{:g} m", "a rack and an aisle"),
    "room.cable_ends_m": Rule(
        "cable up and down at both ends", "{:g} m", "from the port to the tray and back"
    ),
    "room.reserved_u": Rule(
        "rack units reserved for switches and power distribution",
        "{:g} U of each rack",
        "usual for a rack with its own leaf switches",
    ),
    "room.cap_reserve_frac": Rule(
        "share of a feed reserved under power caps",
        "{:.0%}",
        "caps hold on average, transients exceed them",
    ),
    "room.liquid_frac": Rule(
        "heat that leaves with the liquid",
        "{:.0%}",
        "cold plates cover accelerators and CPUs, not drives and power supplies",
    ),
    "room.ups_minutes": Rule(
        "time that the UPS bridges", "{:g} min", "a generator starts within it, with a second try"
    ),
    "room.ups_module_kw": Rule("module of the UPS", "{:g} kW, one to spare", "a usual size"),
    "room.ups_power_factor_frac": Rule(
        "power factor at the UPS", "{:g}", "power supplies with correction"
    ),
    "room.ups_efficiency_frac": Rule(
        "efficiency of the UPS", "{:.0%}", "double conversion at usual load"
    ),
    "spares.repair_days": Rule(
        "repair of a server", "{:g} days", "a usual contract; yours may differ"
    ),
    "spares.kept_frac": Rule(
        "time in which the wanted number of servers works", "{:.0%}", "spares are counted for it"
    ),
    "spares.worth_frac": Rule(
        "what a faster checkpoint tier must save",
        "{:.0%} of a run",
        "less is not worth another tier",
    ),
    "prices.switch_usd_per_gbit": Rule("price of switches", f"{GBIT_PRICE} of ports", NO_LIST),
    "prices.adapter_usd_per_gbit": Rule("price of NICs", GBIT_PRICE, NO_LIST),
    "prices.optic_usd_per_gbit": Rule("price of optics and fibre", GBIT_PRICE, NO_LIST),
    "prices.copper_usd_per_gbit": Rule("price of copper cables", GBIT_PRICE, NO_LIST),
    "prices.core_usd": Rule("price of a core in decoding servers", "{} USD", NO_LIST),
    "prices.nvme_usd_per_tb": Rule("price of local NVMe", TB_PRICE, NO_LIST),
    "prices.flash_shelf_usd_per_tb": Rule(
        "price of a parallel file system on flash", TB_PRICE, NO_LIST
    ),
    "prices.disk_usd_per_tb": Rule("price of hard disks behind NFS", TB_PRICE, NO_LIST),
    "footprint.water_l_per_kwh": Rule(
        "water drawn on site",
        "{} litres per kWh of servers",
        "depends on the cooling: none for dry coolers, most for open towers",
        "wue-ranges",
    ),
    "footprint.server_kg": Rule(
        "embodied carbon of a server without accelerators",
        "{} kg CO2e",
        "models differ; no maker publishes a figure for such a server",
        "ecologits",
    ),
    "footprint.life_years": Rule(
        "life over which manufacture is spread", "{:g} years", "a usual life of accelerators"
    ),
    "busy.reject_frac": Rule(
        "GPU utilization below which a system is rejected",
        "{:.0%}",
        "the diagnosis calls accelerators underutilized below it",
    ),
    "busy.warn_frac": Rule(
        "GPU utilization below which a warning is given",
        "{:.0%}",
        "what waits beside the accelerators is worth its price",
    ),
}
STORAGE_PRICES = (
    "prices.nvme_usd_per_tb",
    "prices.flash_shelf_usd_per_tb",
    "prices.disk_usd_per_tb",
)
NETWORK_PRICES = (
    "prices.switch_usd_per_gbit",
    "prices.adapter_usd_per_gbit",
    "prices.optic_usd_per_gbit",
    "prices.copper_usd_per_gbit",
)
CABLES = ("room.racks_per_row", "room.rack_width_m", "room.row_m", "room.cable_ends_m")
UPS = tuple(name for name in RULES if name.startswith("room.ups_"))


def assumed(build: BuildRules, *names: str) -> tuple[Assumption, ...]:
    """An assumption for each of these rules that the user did not set."""
    return tuple(_note(build, name) for name in names if name not in build.given)


def _note(build: BuildRules, name: str) -> Assumption:
    rule, value = RULES[name], build.value_of(name)
    shown = _span(value) if isinstance(value, Range) else value
    return assume(rule.what, rule.value.format(shown), rule.why, f"build.{name}", rule.source)


def _span(value: Range) -> str:
    return f"{value.mid:g}" if value.is_exact else f"{value.low:g} to {value.high:g}"
