"""Rules for everything around accelerators: usual figures where nobody said, each with its key."""

from gpuplan.domain.noun import dataclass
from gpuplan.domain.ranges import Range
from gpuplan.units import DAY, GB, GRAM, KW, KWH, MIB, MINUTE, TB, YEAR

# Prices without a public list: resellers' figures, weak evidence.
SWITCH_USD_PER_GBIT = Range(low=0.6, mid=1.0, high=1.8)  # of a port, one direction
ADAPTER_USD_PER_GBIT = Range(low=2.5, mid=4.0, high=6.0)
OPTIC_USD_PER_GBIT = Range(low=2.0, mid=4.0, high=8.0)  # both ends and the fibre
COPPER_USD_PER_GBIT = Range(low=0.3, mid=0.5, high=1.0)
CORE_USD = Range(low=40.0, mid=70.0, high=120.0)  # in a server that decodes
NVME_USD_PER_TB = Range(low=80.0, mid=120.0, high=220.0)
FLASH_SHELF_USD_PER_TB = Range(low=250.0, mid=500.0, high=1000.0)
DISK_USD_PER_TB = Range(low=15.0, mid=20.0, high=35.0)
# Dry coolers draw none, open towers 1.8 litres per kWh of the machines [wue-ranges].
WATER_KG_PER_J = Range(low=0.0, mid=0.4 / KWH, high=1.8 / KWH)
# A server of eight without its accelerators: 5.7 t in one model [ecologits]; plain ones 1 t.
SERVER_KG = Range(low=1_000.0, mid=3_000.0, high=5_700.0)

# Key of the file → field and factor to its unit; other keys keep their name and unit.
KEY_FIELDS: dict[str, tuple[str, float]] = {
    "hosts.cores_per_accelerator": ("n_cores_per_accelerator", 1.0),
    "hosts.system_cores": ("n_system_cores", 1.0),
    "hosts.prefetch_batches": ("n_prefetch_batches", 1.0),
    "hosts.memory_gb_per_s": ("memory_bytes_per_s", GB),
    "hosts.memory_crossings": ("n_memory_crossings", 1.0),
    "links.objects_in_flight": ("n_objects_in_flight", 1.0),
    "links.read_mib": ("read_bytes", MIB),
    "links.enough_speed_frac": ("enough_frac", 1.0),
    "links.management_ports": ("n_management_ports", 1),
    "links.management_oversubscription": ("management_oversubscription_ratio", 1.0),
    "links.held_tb": ("held_bytes", TB),
    "links.kept_checkpoints": ("n_kept_checkpoints", 1.0),
    "room.nodes_per_rack": ("n_nodes_per_rack", 1),
    "room.racks_per_row": ("n_racks_per_row", 1),
    "room.reserved_u": ("n_reserved_units", 1),
    "room.ups_minutes": ("ups_bridge_s", MINUTE),
    "room.ups_module_kw": ("ups_module_w", KW),
    "spares.repair_days": ("repair_s", DAY),
    "footprint.water_l_per_kwh": ("water_kg_per_j", 1.0 / KWH),  # a litre of water is a kilogram
    "footprint.life_years": ("life_s", YEAR),
    "footprint.hourly_g_per_kwh": ("hourly_kg_per_j", GRAM / KWH),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """What a machine needs for each of its accelerators."""

    n_cores_per_accelerator: float = 2.0  # its process, and what hands batches over
    n_system_cores: float = 4.0
    memory_ratio: float = 2.0  # of host memory over the accelerators'
    load_s: float = 60.0  # that weights may take of a start
    n_prefetch_batches: float = 4.0  # of each accelerator, in pinned memory
    memory_bytes_per_s: float = 200e9  # two sockets
    n_memory_crossings: float = 4.0  # of a sample: read, decoded, collated, copied out


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRules:
    """What storage, its links and networks reach, and what is enough of them."""

    file_link_frac: float = 0.88  # of a line that file protocols reach: 1.1 of 1.25 GB/s
    n_objects_in_flight: float = 256.0  # requests that one node keeps open
    read_bytes: float = MIB  # of a read in sequence, and of a part of a large sample
    enough_frac: float = 0.9  # of its speed that work must keep over a network
    n_management_ports: int = 2  # of a node: its controller and its system
    management_oversubscription_ratio: float = 4.0
    held_bytes: float = 30 * TB  # of data whose size nobody said
    n_kept_checkpoints: float = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRules:
    """Racks, rows, cables and the store of energy."""

    n_nodes_per_rack: int = 4  # for lengths of cables, where no rack is described
    n_racks_per_row: int = 8
    rack_width_m: float = 0.6
    row_m: float = 3.0  # from row to row
    cable_ends_m: float = 4.0  # up and down at both ends
    n_reserved_units: int = 4  # of a rack: switches, distribution, cable trays
    cap_reserve_frac: float = 0.05  # of a feed that stays free under caps
    liquid_frac: float = 0.8  # of the heat of machines that liquid cools
    ups_bridge_s: float = 5 * MINUTE  # until a generator carries the load
    ups_module_w: float = 50 * KW
    ups_power_factor_frac: float = 0.95
    ups_efficiency_frac: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SpareRules:
    """How long repair takes, and what is promised meanwhile."""

    repair_s: float = 3 * DAY
    kept_frac: float = 0.99  # of the time, the wanted number of machines works
    worth_frac: float = 0.01  # of a run that a faster checkpoint tier must save


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPrices:
    """Prices of what joins and feeds machines; no list of them is published."""

    switch_usd_per_gbit: Range = SWITCH_USD_PER_GBIT
    adapter_usd_per_gbit: Range = ADAPTER_USD_PER_GBIT
    optic_usd_per_gbit: Range = OPTIC_USD_PER_GBIT
    copper_usd_per_gbit: Range = COPPER_USD_PER_GBIT
    core_usd: Range = CORE_USD
    nvme_usd_per_tb: Range = NVME_USD_PER_TB
    flash_shelf_usd_per_tb: Range = FLASH_SHELF_USD_PER_TB
    disk_usd_per_tb: Range = DISK_USD_PER_TB


@dataclass(frozen=True, slots=True, kw_only=True)
class FootprintRules:
    """Water and what making the hardware emitted; None: from the catalog, or told as unknown."""

    water_kg_per_j: Range = WATER_KG_PER_J
    server_kg: Range = SERVER_KG
    accelerator_kg: Range | None = None
    hourly_kg_per_j: tuple[float, ...] = ()  # of the 24 hours of a day; empty: not known
    life_s: float = 4 * 365 * DAY  # over which manufacture is spread


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyRules:
    """Shares of use: bands that the diagnosis has too."""

    reject_frac: float = 0.7
    warn_frac: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRules:
    """All of them; `given` names those that the user set: "hosts.load_s"."""

    hosts: HostRules = HostRules()
    links: LinkRules = LinkRules()
    room: RoomRules = RoomRules()
    spares: SpareRules = SpareRules()
    prices: PartPrices = PartPrices()
    footprint: FootprintRules = FootprintRules()
    busy: BusyRules = BusyRules()
    given: frozenset[str] = frozenset()

    def value_of(self, key: str) -> float | Range:
        """The value of a rule in the unit of its key: "hosts.memory_gb_per_s" in GB/s."""
        section, name = key.split(".")
        field, factor = KEY_FIELDS.get(key, (name, 1))
        value: float | Range = getattr(getattr(self, section), field)
        return value.times(1 / factor) if isinstance(value, Range) else value / factor


USUAL = BuildRules()
